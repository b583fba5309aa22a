"""A stream without partitions cut into blocks that overlap by the window: together they give the rows of the whole."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive.kleene import Event, Row, matches
from naive.kleene_random import TYPES, Pattern, random_events

from patternlake.udfs.errors import PatternError
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.record_batches import columns_of

CONFIGURATION = {"attributes": {name: {"type": type_} for name, type_ in TYPES.items()}, "key": None}


def publication(watermark: int | None = None) -> Published:
    configuration = json.dumps(CONFIGURATION)
    return Published(
        PublishedBatch(object_id=7, base_batch=1, batch_id=1, configuration=configuration, watermark=watermark)
    )


def counts(events: list[Event]) -> list[NameCount]:
    names = sorted({event.name for event in events})
    times = {name: [event.time for event in events if event.name == name] for name in names}
    return [NameCount(name, len(t), min(t), max(t)) for name, t in times.items()]


def columns(rows: list[tuple[int, Event]]) -> dict[str, pa.Array]:
    texts = [[(name, None if value is None else str(value)) for name, value in e.values.items()] for _, e in rows]
    written = {
        "part": pa.array([[] for _ in rows], pa.list_(pa.string())),
        "position": pa.array([e.position for _, e in rows], pa.int64()),
        "time": pa.array([e.time for _, e in rows], pa.timestamp("us", "UTC")),
        "step": pa.nulls(len(rows), pa.int64()),
        "key": pa.nulls(len(rows), pa.string()),
        "name": pa.array([e.name for _, e in rows], pa.string()),
        "probability": pa.nulls(len(rows), pa.float64()),
        "attributes": pa.array(texts, pa.map_(pa.string(), pa.string())),
        "rank": pa.array([rank for rank, _ in rows], pa.int64()),
    }
    return columns_of(read_attributes(pa.table(written), TYPES))


def portions(question: KleeneRequest, events: list[Event]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """The events of each portion, with its number."""
    ordered = sorted(events, key=lambda event: (event.time, event.position))
    dealt = question.portions
    for portion in range(dealt.low, dealt.high + 1):
        rows = list(enumerate(ordered))
        if dealt.width is not None:
            assert dealt.within is not None
            span = np.array([rank if dealt.counted else event.time for rank, event in rows])
            first, last = ((span + sign * dealt.within) // dealt.width for sign in (-1, 1))
            low, high = np.clip(first, dealt.low, dealt.high), np.clip(last, dealt.low, dealt.high)
            rows = [row for row, inside in zip(rows, (low <= portion) & (portion <= high), strict=True) if inside]
        yield portion, columns(rows)


def answered(
    text: str, events: list[Event], policy: str, *, watermark: int | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Rows of all portions, and how many portions there were."""
    call = {"stream": "s", "pattern": text, "policy": policy}
    question = request.check_request(call, publication(watermark), ["s"], counts(events)).request
    found = []
    for portion, rows in portions(question, events):
        found += [row for table in match_partitions(question, portion, rows) for row in table.to_pylist()]
    found.sort(key=lambda row: (row["first_position"], row["match_no"]))
    return found, question.portions.count


def bindings(rows: list[dict[str, Any]]) -> list[Row]:
    return [{name: tuple(positions) for name, positions in row["bindings"] if positions} for row in rows]


@pytest.mark.parametrize("seed", range(3))
def test_blocks_give_the_rows_of_the_whole_stream(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "TASK_EVENTS", 2)
    monkeypatch.setattr(request, "MARGINS", 1)
    rng = random.Random(seed)
    divided = 0
    while divided < 25:
        policy = rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"])
        text = Pattern(rng, scan=policy != "skip_till_any", most=3).text
        events = random_events(rng, 12)
        try:
            found, portions = answered(text, events, policy)
        except PatternError:
            continue
        expected = matches(text, events, TYPES, policy=policy)
        assert sorted(map(str, bindings(found))) == sorted(map(str, expected)), text
        divided += portions > 1


FOREVER = ["9223372036854775807 EVENTS", "9223372036854775 MILLISECOND", "15000000 WEEKS"]
AGAIN = [Event(place, 1_700_000_000_000_000 + place, name) for place, name in enumerate("aaabb", start=1)]


@pytest.mark.parametrize("within", FOREVER)
def test_a_window_longer_than_any_stream_is_never_over(within: str) -> None:
    for policy in ("skip_till_any", "skip_till_next"):
        rows, _ = answered(f"a ; b+ WITHIN {within}", AGAIN, policy, watermark=AGAIN[-1].time)
        # Whatever b comes next is in the window of each a.
        assert [(row["bindings"], row["final"]) for row in rows] == [
            ([("a", [place]), ("b", [4, 5])], False) for place in (1, 2, 3)
        ]


@pytest.mark.parametrize("within", FOREVER)
def test_blocks_are_as_long_as_numbers_are(within: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "TASK_EVENTS", 2)
    rows, _ = answered(f"a ; b WITHIN {within}", AGAIN, "skip_till_any")
    assert len(rows) == 6
