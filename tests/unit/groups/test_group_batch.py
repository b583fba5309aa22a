"""Batches of the job `groups`: partitions stream through it, wherever the rows are cut."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from unit.streamed import EVENT_FIELDS, cut

from patternlake.udfs import record_batches
from patternlake.udfs.groups.batch import BATCH_SCHEMA, CLOSED, OPEN, PART, REMEMBERED, Batches
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.query.parser import parse

SCHEMA = pa.schema(
    [
        ("part", PART),
        ("state", pa.binary()),
        *EVENT_FIELDS,
    ]
)

Event = tuple[str | None, int, str, float]
"""Partition, step, name, probability."""


def engine(text: str, overlap: str) -> Batches:
    return Batches(Groups(compile_query(parse(text), overlap=overlap)), {})


def table(events: list[Event], states: dict[str | None, bytes]) -> pa.Table:
    """Rows in the order in which the job hands them on."""
    rows: list[dict[str, Any]] = [
        {
            "part": [part],
            "step": step,
            "key": part,
            "name": name,
            "probability": p,
            "position": at,
            "time": at,
        }
        for at, (part, step, name, p) in enumerate(events, 1)
    ]
    news = {part for part, *_ in events}
    rows += [{"part": [part], "state": state} for part, state in states.items() if part in news]
    rows.sort(key=lambda row: (row["part"][0] is not None, row["part"][0] or "", "step" in row, row.get("step")))
    return pa.Table.from_pylist(rows, SCHEMA)


def rows_of(found: list[dict[str, Any]], *kinds: str) -> list[tuple[Any, ...]]:
    columns = ("t_start", "t_first", "t_end", "probability", "final")
    chosen = [(row["part"][0], *(row[name] for name in columns)) for row in found if row["kind"] in kinds]
    return sorted(chosen, key=lambda row: (row[0] is not None, row[0] or "", *row[1:3]))


@pytest.mark.parametrize("overlap", ["single", "complete"])
@pytest.mark.parametrize("seed", range(10))
def test_rows_do_not_depend_on_cuts_inside_a_batch_or_between_batches(
    monkeypatch: pytest.MonkeyPatch, seed: int, overlap: str
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(record_batches, "ROWS_AT_ONCE", rng.choice([1, 5, 1000]))
    streams: dict[str | None, list[Event]] = {
        part: [
            (part, step, name, rng.choice([0.2, 0.5]))
            for step in range(rng.randint(1, 12))
            for name in rng.sample("abc", rng.randint(0, 2))
        ]
        for part in (None, "k", "l", "m")
    }
    asked = engine("a, b+ | c WITHIN 4 EVENTS", overlap)
    everything = [event for events in streams.values() for event in events]
    (at_once, *_) = [_found(asked, table(everything, {}).to_batches())]
    states: dict[str | None, bytes] = {}
    closed: list[dict[str, Any]] = []
    open_rows: dict[str | None, list[dict[str, Any]]] = {}
    middle = {part: rng.randint(0, len(events)) for part, events in streams.items()}
    for low in (True, False):
        news = [
            event
            for part, events in streams.items()
            for event in (events[: middle[part]] if low else events[middle[part] :])
        ]
        found = _found(asked, cut(rng, table(news, states)))
        for part in {event[0] for event in news}:
            (mine,) = [row for row in found if row["kind"] == REMEMBERED and row["part"] == [part]]
            states[part] = mine["state"]
            open_rows[part] = [row for row in found if row["kind"] == OPEN and row["part"] == [part]]
        closed += [row for row in found if row["kind"] == CLOSED]
    pieces = closed + [row for rows in open_rows.values() for row in rows]
    assert rows_of(pieces, CLOSED, OPEN) == rows_of(at_once, CLOSED, OPEN)
    assert {row["part"][0] for row in at_once if row["kind"] == REMEMBERED} == set(states)


def test_what_is_remembered_says_how_far_a_partition_is() -> None:
    found = _found(
        engine("a, b WITHIN 2 EVENTS", "single"), table([("k", 3, "a", 1.0), ("k", 4, "b", 0.5)], {}).to_batches()
    )
    (row,) = [row for row in found if row["kind"] == REMEMBERED]
    assert (row["part"], row["last_step"], row["open_groups"]) == (["k"], 4, 0)
    assert row["live_starts"] == 1


def _found(asked: Batches, given: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    found = list(asked.rows(given))
    assert all(batch.schema == BATCH_SCHEMA and batch.num_rows for batch in found)
    return [row for batch in found for row in batch.to_pylist()]
