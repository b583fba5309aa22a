"""The whole language, dealt out: partitions by hash, blocks that overlap, names left out, ranges around rare names."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn import SMALL
from hypothesis import HealthCheck, given, settings
from naive.kleene import Event
from naive.kleene_dealt import Found, Question
from naive.kleene_orders import TooManyError
from naive.kleene_random import TYPES, random_events
from naive.kleene_steps import NoSkipError

from patternlake.delta_tables.schema.timestamps import to_micros
from patternlake.udfs.arrays import BoolArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.anchors import find_anchors
from patternlake.udfs.kleene.dealing import Dealing, count_buckets, ranks_of
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.request import KleeneReads, KleeneRequest
from patternlake.udfs.kleene.result import answer_rows
from patternlake.udfs.kleene.task import Portion, match_partitions, portion_of
from patternlake.udfs.kleene.task import answer_portion as answered_portion
from patternlake.udfs.partitions import PART
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.record_batches import columns_of

NAMES = "AAABBCCDD"
"""No pattern takes a D by its name."""
CONFIGURATION = {"attributes": {name: {"type": type_} for name, type_ in TYPES.items()}, "key": None}


def counts(events: Sequence[Event]) -> list[NameCount]:
    times = {name: [e.time for e in events if e.name == name] for name in sorted({e.name for e in events})}
    return [NameCount(name, len(own), min(own), max(own)) for name, own in times.items()]


def table(events: Sequence[Event], partition: str | None) -> pa.Table:
    texts = [[(name, None if value is None else str(value)) for name, value in e.values.items()] for e in events]
    parts = [[e.values[partition]] if partition else [] for e in events]
    written = pa.table(
        {
            PART: pa.array(parts, pa.list_(pa.string())),
            "position": pa.array([e.position for e in events], pa.int64()),
            "time": pa.chunked_array([pa.array([e.time for e in events], pa.timestamp("us", "UTC"))]),
            "name": pa.array([e.name for e in events], pa.string()),
            "attributes": pa.array(texts, pa.map_(pa.string(), pa.string())),
        }
    )
    return read_attributes(written, TYPES)


def checked(asked: Question, events: Sequence[Event], watermark: int, **changes: Any) -> KleeneReads:
    batch = PublishedBatch(
        object_id=7, base_batch=1, batch_id=1, configuration=json.dumps(CONFIGURATION), watermark=watermark
    )
    call = {"stream": "s", "pattern": asked.text, **asked.how, "from_time": asked.from_time, "to_time": asked.to_time}
    return request.check_request({**call, **changes}, Published(batch), ["s"], counts(events))


def read(asked: Question, reads: KleeneReads, events: Sequence[Event], *, anchored: bool) -> list[Event]:
    """The events that are read: of names that can take part, where that is enough, and around rare ones."""
    found = [e for e in asked.asked_of(events) if reads.names_read is None or e.name in reads.names_read]
    anchors = find_anchors(reads.request.pattern, counts(events)) if anchored else None
    if anchors is None:
        return found
    times = np.array([e.time for e in found if e.name in anchors.names], np.int64)
    ranges = anchors.ranges(times, 3)
    return [e for e in found if any(low <= e.time <= high for low, high in ranges)]


def answered(reads: KleeneReads, rows: pa.Table, *, divided: bool) -> tuple[list[Found], int]:
    """The rows of all portions, and how many of these there could be."""
    asked = reads.request
    counted = asked.portions.width is not None and asked.portions.counted
    dealing = Dealing(asked, ranks_of(*count_buckets(asked.portions, rows["time"])) if counted else None)
    dealt, portion = dealing.deal(rows)
    found = []
    # A portion without events is nobody's.
    for number in sorted(set(portion.tolist())):
        own = dealing.ranked(dealt.filter(pa.array(portion == number)))
        for part in of_portion(asked, number + asked.portions.low, own, divided=divided):
            for row in part.to_pylist():
                bound = {name: tuple(positions) for name, positions in row["bindings"] if positions}
                first = (to_micros(row["first_time"]), row["first_position"])
                last = (to_micros(row["last_time"]), row["last_position"])
                found.append(Found(row["key"], bound, first, last, row["final"]))
    return sorted(found, key=str), asked.portions.count


@pytest.mark.parametrize("window", ["1 HOUR", "30000000 DAYS"])
def test_a_deadline_beyond_all_time_puts_all_events_into_one_block(
    window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "TASK_EVENTS", 2)
    events = [Event(at, at * 60_000_000, "AB"[at % 2], {}) for at in range(1, 9)]
    text = f"A ; B ; !C @(t(C) - t(B) < 20000000 DAYS) WITHIN {window}"
    batch = PublishedBatch(object_id=7, base_batch=1, batch_id=1, configuration=json.dumps(CONFIGURATION), watermark=0)
    asked = request.check_request({"stream": "s", "pattern": text}, Published(batch), ["s"], counts(events)).request
    assert asked.portions.count == 1
    rows, portions = Dealing(asked, None).deal(table(events, None))
    assert (rows.num_rows, portions.tolist()) == (8, [0] * 8)


def of_portion(asked: KleeneRequest, number: int, rows: pa.Table, *, divided: bool) -> Iterator[pa.Table]:
    if not divided:
        return match_partitions(asked, number, columns_of(rows))

    def write(found: Matches, given: Portion, sure: BoolArray, taken: Any) -> pa.Table:
        return answer_rows(found, given.shown, sure, None, taken)

    return answered_portion(asked, number, portion_of(asked, columns_of(rows)), write, in_portions=True)


def check(rng: random.Random, patched: pytest.MonkeyPatch) -> int:
    """Ask a random question in each way; how many portions there could be."""
    events = random_events(rng, 10, NAMES)
    asked = Question(rng, [None, None, "s"], [event.time for event in events])
    if asked.how["repetition"] == "all":
        events = events[:8]
    watermark = rng.choice(events).time + rng.choice([0, 0, 1, 3, 9]) * 1000
    try:
        wanted = asked.wanted(events, watermark)
    except (NoSkipError, TooManyError):
        return 0
    patched.setattr(request, "TASK_EVENTS", 2)
    patched.setattr(request, "MARGINS", 1)
    told = f"{asked} at {watermark} of {[(e.position, e.time // 1000, e.name) for e in events]}"
    reads = checked(asked, events, watermark)
    for anchored in (False, True):
        rows = table(read(asked, reads, events, anchored=anchored), asked.partition)
        found, portions = answered(reads, rows, divided=False)
        assert found == wanted, f"{told}{' around rare names' if anchored else ''}"
    few = checked(asked, events, watermark, max_matches=2)
    try:
        found, _ = answered(few, table(read(asked, few, events, anchored=False), asked.partition), divided=True)
    except ArgumentError:
        return portions
    assert found == wanted, f"{told} by first events"
    return portions


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SMALL)
def test_a_question_is_answered_the_same_however_it_is_dealt_out(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    check(rng, monkeypatch)


@pytest.mark.slow
def test_questions_in_blocks_are_answered_the_same_in_thousands_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    divided = sum(check(random.Random(seed), monkeypatch) > 1 for seed in range(2000))
    assert divided > 800
