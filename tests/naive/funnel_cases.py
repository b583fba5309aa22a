"""Funnels and streams for the funnels engine, drawn at random, and their way into its tasks."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from naive import funnels as naive
from naive.kleene import Event

from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.funnels.request import FunnelRequest, check_request
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.requests import PartitionReads

STREAM = {"attributes": {"x": {"type": "bigint"}, "via": {"type": "string"}}, "key": "user"}
LETTERS = naive.letters("A B C B A A C B A D C B A B C B")
"""The worked stream of ROWS, one event a minute."""

Partitions = Mapping[str | None, Sequence[Event]]


@dataclass(frozen=True)
class Funnel:
    """A pattern, what the oracle makes of it, and the window that both have."""

    text: str
    steps: list[naive.Step]
    within: naive.Window | None


def random_funnel(rng: random.Random, names: str) -> Funnel:
    """Steps of one name, of several, or of a condition; some steps are equal."""
    texts, steps, conditions = [], [], []
    for number in range(rng.choice([1, 2, 3, 3, 4, 5])):
        kind = rng.random()
        if kind < 0.2:
            least, chosen = rng.randint(0, 3), rng.choice(names)
            conditions.append(f"c{number} AS name = '{chosen}' AND x >= {least}")
            other = rng.choice(names)
            texts.append(rng.choice([f"c{number}", f"(c{number} | {other})"]))
            steps.append(condition(chosen, least, other if "|" in texts[-1] else None))
        else:
            taken = rng.sample(names, 2 if kind < 0.4 else 1)
            texts.append(" | ".join(taken))
            steps += naive.named("|".join(taken))
    text = " ; ".join(texts)
    if conditions:
        text += " DEFINE " + ", ".join(conditions)
    within, unit = rng.choice([(None, ""), (rng.randint(1, 12), "MILLISECOND"), (rng.randint(1, 8), "EVENTS")])
    if within is None:
        return Funnel(text, steps, None)
    text += f" WITHIN {within} {unit}"
    return Funnel(text, steps, naive.Window(within * (1 if unit == "EVENTS" else 1000), unit == "EVENTS"))


def condition(name: str, least: int, other: str | None) -> naive.Step:
    return lambda event: (event.name == name and (event.values["x"] or 0) >= least) or event.name == other


def random_partitions(rng: random.Random, names: str, longest: int = 12) -> dict[str | None, list[Event]]:
    """Events of some partitions, in order; some at one time, some of a name that no funnel asks for."""
    position = 0
    found: dict[str | None, list[Event]] = {}
    for key in rng.sample([None, "k", "l", "m", "n"], rng.randint(1, 5)):
        time, events = 0, []
        for _ in range(rng.randint(1, longest)):
            time, position = time + 1000 * rng.randint(0, 2), position + 1
            values = {"x": rng.randint(0, 3), "via": rng.choice([None, "ad", "mail"])}
            events.append(Event(position, time, rng.choice(names + "x"), values))
        found[key] = events
    return found


def asked(
    text: str, partitions: Partitions, watermark: int | None = None, **arguments: Any
) -> PartitionReads[FunnelRequest]:
    """The checked request of a call over a stream of these events."""
    events = [event for some in partitions.values() for event in some]
    names = sorted({event.name for event in events})
    times = {name: [event.time for event in events if event.name == name] for name in names}
    counts = [NameCount(name, len(t), min(t), max(t)) for name, t in times.items()]
    batch = PublishedBatch(1, 1, 1, json.dumps(STREAM), watermark=watermark)
    last = max((event.time for event in events), default=None)
    return check_request({"stream": "s", "pattern": text, **arguments}, Published(batch), ["s"], counts, last)


def rows_of(partitions: Partitions, rng: random.Random | None = None) -> pa.Table:
    """Rows as tasks get them, in any order."""
    events = [(key, event) for key, some in partitions.items() for event in some]
    if rng is not None:
        rng.shuffle(events)
    rows = [
        {
            "part": [key], "position": event.position, "time": event.time, "step": None, "key": key,
            "name": event.name, "probability": None,
            "attributes": [(name, None if value is None else str(value)) for name, value in event.values.items()],
        }
        for key, event in events
    ]  # fmt: skip
    return read_attributes(pa.Table.from_pylist(rows, SCHEMA), types_of_attributes(STREAM))


SCHEMA = pa.schema(
    [
        ("part", pa.list_(pa.string())),
        ("position", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("step", pa.int64()),
        ("key", pa.string()),
        ("name", pa.string()),
        ("probability", pa.float64()),
        ("attributes", pa.map_(pa.string(), pa.string())),
    ]
)


def dealt(partitions: Partitions, portions: int, rng: random.Random) -> list[dict[str | None, Sequence[Event]]]:
    """Partitions dealt out to portions, some of which get none."""
    found: list[dict[str | None, Sequence[Event]]] = [{} for _ in range(portions)]
    for key, events in partitions.items():
        rng.choice(found)[key] = events
    return found


def shown(row: Mapping[str, Any]) -> naive.Row:
    """A row of match_funnel_rows as the oracle has it."""
    return naive.Row(
        row["reached"], tuple(row["positions"]), row["first_time"], row["last_time"], row["waited_seconds"],
        row["next_position"], row["next_name"], row["final"],
    )  # fmt: skip


def count_of(row: Mapping[str, Any]) -> naive.Count:
    """A row of match_funnel as the oracle has it."""
    followed = tuple((one["name"], one["partitions"]) for one in row["next_events"])
    count = naive.Count(**{name: row[name] for name in _COUNT}, next_events=followed)
    return rounded(count)


_COUNT = (
    "group", "step", "reached", "share_of_first", "share_of_previous", "dropped", "seconds_p50", "seconds_p90"
)  # fmt: skip


def rounded(count: naive.Count) -> naive.Count:
    """Without the last digits of fractions, which depend on the order of sums."""
    fractions = ("share_of_first", "share_of_previous", "seconds_p50", "seconds_p90")
    values = {name: getattr(count, name) for name in fractions}
    return replace(count, **{name: None if value is None else round(value, 9) for name, value in values.items()})
