"""What a check found, and the same as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patternlake.jobs.terminal.text_columns import align
from patternlake.udfs.shown_text import plural

_WIDEST = 120
"""Longer texts of rows are cut: quarantine has all of them."""


@dataclass(frozen=True)
class Shown:
    """Rows as text; NULL is None.

    Parameters
    ----------
    header, rows
        Titles, and one text per title.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Checked:
    """What `ingest` would make of a source if nothing of it had been read.

    Parameters
    ----------
    stream, source
        The stream's name, and where its rows come from.
    there
        Whether the source has anything yet; all that follows is empty where it has not.
    limited
        Whether only some rows were read.
    rows
        How many were read.
    events
        The first events in their order.
    accepted
        How many rows become events.
    refused
        How many rows go to quarantine, by reason, with the detail of one.
    quarantined
        Some of those, a few of each reason.
    bad_files
        Files that would be left out, and what is wrong with each.
    ties
        What to say of events that only their names order; None where they are few.
    repeats
        What to say of rows that are the same as another in all columns; None where there are none, or the stream
        knows events by their ids.
    """

    stream: str
    source: str
    there: bool = False
    limited: bool = False
    rows: int = 0
    accepted: int = 0
    events: Shown = Shown((), ())
    refused: Shown = Shown((), ())
    quarantined: Shown = Shown((), ())
    bad_files: tuple[tuple[str, str], ...] = ()
    ties: str | None = None
    repeats: str | None = None

    def __str__(self) -> str:
        return "\n".join(as_text(self))


def as_text(found: Checked) -> Iterator[str]:
    """Tell what a check of one stream found, line by line."""
    yield f"stream {found.stream}: {found.source}"
    if not found.there:
        yield "  nothing is there yet"
        return
    read = f"{plural(found.rows, 'row')} read" + (", and there may be more" if found.limited else "")
    refused = found.rows - found.accepted + len(found.bad_files)
    yield f"  {read}: {found.accepted:,} would be events, {refused:,} would go to quarantine"
    for file, reason in found.bad_files:
        yield f"  file {file} {reason}; it would be left out"
    yield from (f"  {told}" for told in (found.ties, found.repeats) if told is not None)
    yield from _block("the first events:", found.events)
    yield from _block("quarantine, by reason:", found.refused, right=(1,))
    yield from _block("rows of it:", found.quarantined)


def _block(title: str, shown: Shown, right: tuple[int, ...] = ()) -> Iterator[str]:
    if not shown.rows:
        return
    yield ""
    yield f"  {title}"
    rows = [["NULL" if value is None else _short(value) for value in row] for row in shown.rows]
    yield from (f"    {line}" for line in align(shown.header, rows, right))


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
