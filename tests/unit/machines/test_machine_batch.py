"""Batches of the job `predict`: partitions stream through it, wherever the rows are cut."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from naive.machine_random import random_events
from naive.machines import Event
from unit.machines.running_cases import TYPES
from unit.streamed import EVENT_FIELDS, cut

from patternlake.udfs import record_batches
from patternlake.udfs.events import EVENT_COLUMNS
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.machines.batch import Batches
from patternlake.udfs.machines.forecasts.totals import Totals
from patternlake.udfs.machines.from_config import groups_of
from patternlake.udfs.machines.passing_time import completable
from patternlake.udfs.machines.state import BATCH_SCHEMA, COUNTS, INSTANCE, INSTANCE_COLUMNS, MATCH, totals_of

QUERIES = (
    "a ; b",
    "a, b ; c",
    "a ; b @(t(b) - t(a) < 3 SEC) ; c, d @(t(d) - t(a) < 8 SEC)",
    "a ; ((b ; c) | d)",
    "p ; q DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v",
    "p & q DEFINE p AS name = 'a' AND y = $w, q AS name = 'c' AND y = $w",
)
STREAM = {"attributes": {name: {"type": type_} for name, type_ in TYPES.items()}, "key": "key"}
INSTANCE_FIELDS = (BATCH_SCHEMA.field(name) for name in ("part", *INSTANCE_COLUMNS))
WRITTEN = pa.schema([*INSTANCE_FIELDS, *pa.schema(EVENT_FIELDS), ("attributes", pa.map_(pa.string(), pa.string()))])
assert {name for name, _ in EVENT_FIELDS} == set(EVENT_COLUMNS)

Rows = list[dict[str, Any]]


def engine(partition: str) -> Batches:
    entries = {f"s{number}": {"query": f"{text} {partition}", "decay": 0.0} for number, text in enumerate(QUERIES)}
    return Batches(groups_of(entries, STREAM), TYPES, 0)


def part_of(event: Event, partition: str) -> list[str | None]:
    return [event.key] if partition else []


def table(events: list[Event], partition: str, instances: Rows) -> pa.Table:
    """Rows in the order in which the job hands them on."""
    rows: Rows = [
        {
            "part": part_of(event, partition),
            "position": event.position,
            "time": event.time,
            "key": event.key,
            "name": event.name,
            "attributes": [
                (name, None if event.values.get(name) is None else str(event.values[name])) for name in TYPES
            ],
        }
        for event in events
    ]
    news = [row["part"] for row in rows]
    rows += [{name: row[name] for name in ("part", *INSTANCE_COLUMNS)} for row in instances if row["part"] in news]
    written = pa.Table.from_pylist(
        sorted(
            rows,
            key=lambda row: (
                [(value is not None, value or "") for value in row["part"]],
                "state_id" not in row,
                row.get("time", 0),
                row.get("position", 0),
            ),
        ),
        WRITTEN,
    )
    return read_attributes(written, TYPES)


def found_by(asked: Batches, given: list[pa.RecordBatch]) -> Rows:
    found = list(asked.rows(given))
    assert all(batch.schema == BATCH_SCHEMA and batch.num_rows for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def told(rows: Rows, kind: str) -> list[str]:
    """Rows of a kind in one order."""
    return sorted(repr([row[name] for name in BATCH_SCHEMA.names]) for row in rows if row["kind"] == kind)


def totals(rows: Rows) -> dict[int, Totals]:
    found: dict[int, Totals] = {}
    for row in rows:
        if row["kind"] == COUNTS:
            own = totals_of(row)
            found[row["group"]] = found[row["group"]] + own if row["group"] in found else own
    return found


def shown(some: Totals) -> tuple[list[float], dict[tuple[int, ...], float]]:
    tally = {tuple(key): weight for key, weight in zip(some.keys.tolist(), some.weights.tolist(), strict=True)}
    return some.counted.tolist(), tally


@pytest.mark.parametrize("partition", ["PARTITION BY key", ""], ids=["by key", "one partition"])
@pytest.mark.parametrize("seed", range(10))
def test_rows_do_not_depend_on_cuts_inside_a_batch_or_between_batches(
    monkeypatch: pytest.MonkeyPatch, seed: int, partition: str
) -> None:
    rng = random.Random(seed)
    events = list(random_events(rng, 40))
    events.sort(key=lambda event: (event.time, event.position))
    at_once = found_by(engine(partition), table(events, partition, []).to_batches())
    monkeypatch.setattr(record_batches, "ROWS_AT_ONCE", rng.choice([1, 3, 8]))
    middle = rng.randint(0, len(events))
    matches: Rows = []
    counts: Rows = []
    instances: Rows = []
    for news in (events[:middle], events[middle:]):
        found = found_by(engine(partition), cut(rng, table(news, partition, instances)))
        advanced = [part_of(event, partition) for event in news]
        instances = [row for row in instances if row["part"] not in advanced]
        instances += [row for row in found if row["kind"] == INSTANCE]
        matches += [row for row in found if row["kind"] == MATCH]
        counts += [row for row in found if row["kind"] == COUNTS]
    assert told(matches, MATCH) == told(at_once, MATCH)
    assert told(instances, INSTANCE) == told(at_once, INSTANCE)
    expected, summed = totals(at_once), totals(counts)
    assert summed.keys() == expected.keys()
    assert all(shown(summed[group]) == shown(expected[group]) for group in expected)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_subscriptions_of_other_parameters_keep_their_own_instances(at: int) -> None:
    query = "p ; b ; c DEFINE p AS name = 'a' AND x > least"
    bounds = {"low": "1", "high": "5"}
    entries = {name: {"query": query, "params": {"least": least}, "decay": 0.0} for name, least in bounds.items()}
    values = dict.fromkeys(TYPES)
    events = [Event(one, one * 1_000_000, name, None, values | {"x": 3}) for one, name in enumerate("abc", start=1)]
    instances: Rows = []
    matched = []
    for some in (events[:at], events[at:]):
        found = found_by(Batches(groups_of(entries, STREAM), TYPES, 0), table(some, "", instances).to_batches())
        instances = [row for row in found if row["kind"] == INSTANCE]
        matched += [row["subscription"] for row in found if row["kind"] == MATCH]
    assert matched == ["low"]


def test_partitions_may_be_of_a_type_that_predicates_do_not_know() -> None:
    types = {"at": "timestamp_ntz"}
    stream = {"attributes": {name: {"type": type_} for name, type_ in types.items()}, "key": None}
    (group,) = groups_of({"s": {"query": "a ; b PARTITION BY at WITHIN 5 SEC", "decay": 0.0}}, stream)
    rows = [
        {"part": ["2024-01-01 00:00:00"], "position": second, "time": second * 1_000_000, "name": name}
        for second, name in ((1, "a"), (2, "b"), (3, "a"))
    ]
    (found,) = (
        pa.Table.from_batches(Batches([group], types, 0).rows(pa.Table.from_pylist(rows, WRITTEN).to_batches()))
        .combine_chunks()
        .to_batches()
    )
    matched = found.filter(pc.equal(found["kind"], MATCH))
    assert matched.select(["first_position", "last_position"]).to_pylist() == [
        {"first_position": 1, "last_position": 2}
    ]
    live = found.filter(pc.equal(found["kind"], INSTANCE))
    completed_by_7 = completable(group, types, {name: live[name] for name in live.schema.names}, 7_000_000)
    assert live.filter(pa.array(completed_by_7))["positions"].to_pylist() == [[3], []]
