"""What 1, 10 and 100 billion events cost, on paper: the tables of docs/scale.md, from measured figures.

    python -m benchmarks.scale [--events N ...] [--batches N] [--cores N] [--markdown | --write]

The figures stand in `scale_constants`, what is made of them in `scale_arithmetic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.events import NAMES, RARE
from benchmarks.scale_arithmetic import CORES, HUNDRED, JOBS, MILLION, Load
from benchmarks.scale_constants import CONSTANTS, read_measured
from benchmarks.tables import console
from patternlake.sql_ext.lakes.lake import DEFAULT_DRIVER_BYTES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scale.md"
SIZES = (1_000 * MILLION, 10_000 * MILLION, 100_000 * MILLION)
BATCH = 10 * MILLION
MANY_CORES = 16


@dataclass(frozen=True)
class Sheet:
    """A table of the page: its name there, its columns and its rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def markdown(self) -> str:
        """The table as the page has it, with the mark that finds it there."""
        lines = [f"| {' | '.join(cells)} |" for cells in (self.columns, *self.rows)]
        lines.insert(1, "|---" * len(self.columns) + "|")
        return "\n".join([f"<!-- {self.name} -->", *lines, ""])

    @property
    def rich(self) -> Table:
        """The table for a terminal."""
        table = Table(title=self.name, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        return table


def sheets(events: Sequence[int], batches: int | None, cores: int) -> Iterator[Sheet]:
    """All tables, in the order of the page."""
    loads = [Load(each, batches or max(1, -(-each // BATCH)), CORES) for each in events]
    yield _disk(loads)
    yield _driver(loads)
    yield _jobs(loads, cores)
    yield _calls(events, cores)
    yield _steps(loads)
    yield _batches(events[len(events) // 2], cores)
    yield Sheet(
        "constants",
        ("what", "value", "unit"),
        tuple((each.name, f"{each.value:,}", each.unit) for each in CONSTANTS),
    )


def _compare(name: str, loads: Sequence[Load], rows: Sequence[tuple[str, Callable[[Load], str]]]) -> Sheet:
    """A row for each figure, a column for each stream."""
    told = tuple((what, *(tell(load) for load in loads)) for what, tell in rows)
    return Sheet(name, ("", *(f"{shown_count(load.events)} events" for load in loads)), told)


def _disk(loads: Sequence[Load]) -> Sheet:
    def sketch(load: Load, kind: str) -> str:
        return shown_bytes(load.of(f"bodies of the {kind}") + load.of(f"tops of the {kind}"))

    return _compare(
        "disk",
        loads,
        [
            ("batches", lambda load: f"{load.batches:,}"),
            ("`events`", lambda load: shown_bytes(load.of("files of events"))),
            ("files of `events`", lambda load: f"{load.event_files:,}"),
            ("its log, JSON", lambda load: shown_bytes(load.log_bytes[0])),
            ("its log, the last checkpoint", lambda load: shown_bytes(load.checkpoint_bytes[0])),
            ("its log, all checkpoints", lambda load: shown_bytes(load.checkpoint_bytes[1])),
            ("sketch", lambda load: sketch(load, "sketch")),
            ("files of the sketch", lambda load: f"{load.sketch_files:,}"),
            ("its log, JSON", lambda load: shown_bytes(load.log_bytes[1])),
            ("its filters: what `memory` must allow", lambda load: shown_bytes(load.of("filters of the sketch"))),
            ("keyed sketch", lambda load: sketch(load, "keyed sketch")),
            (
                "its filters and keys: what `memory` must allow",
                lambda load: shown_bytes(load.of("filters and keys of the keyed sketch")),
            ),
        ],
    )


def _driver(loads: Sequence[Load]) -> Sheet:
    def files(load: Load) -> float:
        return (load.event_files + load.sketch_files) / MILLION

    return _compare(
        "driver",
        loads,
        [
            ("Python: both logs", lambda load: shown_bytes(load.driver_bytes[0])),
            ("Python: counts of names, one for each batch", lambda load: shown_bytes(load.statistics_bytes)),
            ("Spark's heap: both logs", lambda load: shown_bytes(load.driver_bytes[1])),
            (
                "the first call opens both logs",
                lambda load: shown_seconds(files(load) * read_measured("delta-rs opens 1,000,000 files")),
            ),
            (
                "the first call after a batch looks at both",
                lambda load: shown_seconds(files(load) * read_measured("look of delta-rs, 1,000,000 files")),
            ),
            (
                "Spark looks at the log of `events` after a batch",
                lambda load: shown_seconds(2 * load.looks / load.batches),
            ),
        ],
    )


def _jobs(loads: Sequence[Load], cores: int) -> Sheet:
    many = [Load(load.events, load.batches, cores) for load in loads]

    def both(tell: Callable[[Load], float]) -> tuple[str, ...]:
        pairs = zip(loads, many, strict=True)
        return tuple(f"{shown_seconds(tell(few))}, {shown_seconds(tell(more))}" for few, more in pairs)

    rows = [(f"`{job}`", *both(lambda load, job=job: load.time(job).total)) for job in JOBS]
    rows.append(("of `ingest`: what batches cost, however small", *both(lambda load: load.time("ingest").fixed)))
    rows.append(("of `ingest`: looks at the log, checkpoints", *both(lambda load: load.time("ingest").log)))
    rows.append(("of each other job: looks at the log", *both(lambda load: load.time("sketch").log)))
    heads = (f"{shown_count(load.events)} events: {CORES} cores, {cores}" for load in loads)
    return Sheet("jobs", ("", *heads), tuple(rows))


def _calls(events: Sequence[int], cores: int) -> Sheet:
    loads = [Load(HUNDRED, 10), *(Load(each, max(1, -(-each // BATCH))) for each in events)]

    def asked(seconds: float, read: float, decisive: float) -> str:
        """Seconds in the driver's process; where its bound is passed, by tasks on two cores and on many."""
        if decisive <= DEFAULT_DRIVER_BYTES:
            return f"{shown_seconds(seconds)}; {shown_bytes(read)}"
        return f"{shown_seconds(seconds)}, {shown_seconds(seconds * CORES / cores)}; {shown_bytes(read)}"

    def keyed(load: Load, name: str) -> str:
        return asked(load.of(name), load.key_bytes, load.of("filters of the keyed tops"))

    def counted(load: Load) -> str:
        seconds = read_measured("cet_count, all windows") * load.events / (10 * MILLION)
        return f"{shown_seconds(seconds)}, {shown_seconds(seconds * CORES / cores)}"

    return _compare(
        "calls",
        loads,
        [
            ("`match_seq`, rare", lambda load: asked(load.rare_seconds[0], load.rare_bytes, load.rare_bytes)),
            ("the same, `verify`", lambda load: asked(load.rare_seconds[1], load.rare_bytes, load.rare_bytes)),
            ("`match_seq`, one key", lambda load: keyed(load, "match_seq, one key")),
            ("the same, `verify`", lambda load: keyed(load, "match_seq, one key, verify")),
            ("`cet_count`, all windows", counted),
            ("`cet_count`, 60 windows", lambda load: shown_seconds(read_measured("cet_count, 60 windows"))),
            ("`match_subscription`", lambda load: "not measured"),
            ("`predict_match`, 1.6 million live instances", lambda load: shown_seconds(read_measured("predict_match"))),
        ],
    )


def _steps(loads: Sequence[Load]) -> Sheet:
    return _compare(
        "steps",
        loads,
        [
            ("Spark's looks at the log of `events`, of one job", lambda load: shown_seconds(load.looks)),
            ("checkpoints of `events`", lambda load: shown_bytes(load.checkpoint_bytes[1])),
            ("probabilistic streams: events read again", lambda load: shown_count(load.read_again)),
            ("`event_id`, never late: events read again", lambda load: shown_count(load.read_again)),
            ("sketch: segments summed one by one", lambda load: shown_count(load.segment_steps)),
            ("sketch: tops written again", lambda load: shown_bytes(load.merged_tops(keyed=False))),
            ("keyed sketch: tops written again", lambda load: shown_bytes(load.merged_tops(keyed=True))),
            ("Spark's list of source files", lambda load: shown_bytes(load.source_list)),
            (
                f"rows of `event_statistics`, {NAMES + len(RARE)} names",
                lambda load: shown_count((NAMES + len(RARE)) * load.batches),
            ),
        ],
    )


def _batches(events: int, cores: int) -> Sheet:
    loads = [Load(events, events // batch, cores) for batch in (MILLION, BATCH, HUNDRED)]
    rows: list[tuple[str, Callable[[Load], str]]] = [
        ("batches", lambda load: f"{load.batches:,}"),
        ("files of `events`", lambda load: f"{load.event_files:,}"),
        ("all checkpoints of its log", lambda load: shown_bytes(load.checkpoint_bytes[1])),
        ("`ingest`", lambda load: shown_seconds(load.time("ingest").total)),
        ("of it what batches cost, however small", lambda load: shown_seconds(load.time("ingest").fixed)),
        ("of it looks at the log, checkpoints", lambda load: shown_seconds(load.time("ingest").log)),
        ("`trends`", lambda load: shown_seconds(load.time("trends").total)),
        ("probabilistic streams: events read again", lambda load: shown_count(load.read_again)),
    ]
    found = _compare("batches", loads, rows)
    return Sheet("batches", ("", *(f"batches of {shown_count(load.batch)}" for load in loads)), found.rows)


def shown_count(value: float) -> str:
    """A number of things, to two digits or three: ``10 G``."""
    return _show(value, [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")])


def shown_bytes(value: float) -> str:
    """Bytes: ``1.1 GB``."""
    return _show(value, [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")])


def shown_seconds(value: float) -> str:
    """A time: ``8.3 h``."""
    return _show(value, [(86_400, "days"), (3_600, "h"), (60, "min"), (1, "s")])


def _show(value: float, units: Sequence[tuple[float, str]]) -> str:
    size, unit = next((each for each in units if value >= each[0]), units[-1])
    amount = value / size
    return f"{amount:,.{0 if amount >= 10 or amount == int(amount) else 1 if amount >= 1 else 2}f} {unit}".rstrip()


def write_page(page: str, found: Sequence[Sheet]) -> str:
    """The text of the page with these tables in the place of its own.

    Raises
    ------
    ValueError
        The page has no table of a name.
    """
    for sheet in found:
        place = re.compile(rf"<!-- {re.escape(sheet.name)} -->\n(\|.*\n)*")
        if not place.search(page):
            raise ValueError(f"the page has no table <!-- {sheet.name} -->")
        page = place.sub(lambda _, text=sheet.markdown: text, page)
    return page


def main(
    events: Annotated[list[int] | None, typer.Option(help="events of a stream; may be repeated")] = None,
    batches: Annotated[int | None, typer.Option(min=1, help="batches of each stream [default: of 10 M]")] = None,
    cores: Annotated[int, typer.Option(min=1, help="cores beside the two that were measured on")] = MANY_CORES,
    markdown: Annotated[bool, typer.Option("--markdown", help="as docs/scale.md has them")] = False,
    write: Annotated[bool, typer.Option("--write", help="put them into docs/scale.md")] = False,
) -> None:
    """Print the tables of docs/scale.md."""
    small = [each for each in events or () if each < BATCH]
    if small:
        raise typer.BadParameter(
            f"{small[0]:,}: at least {BATCH:,}, a batch of what was measured", param_hint="--events"
        )
    if write and (events or batches or cores != MANY_CORES):
        raise typer.BadParameter("the page has the tables of the default sizes", param_hint="--write")
    found = list(sheets(events or SIZES, batches, cores))
    if write:
        PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    elif markdown:
        print("\n".join(sheet.markdown for sheet in found), end="")
    else:
        for sheet in found:
            console().print(sheet.rich)


if __name__ == "__main__":
    typer.run(main)
