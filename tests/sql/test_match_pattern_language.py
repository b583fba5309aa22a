"""The whole language of `match_pattern` on a lake: every way of answering gives the oracle's rows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from naive.kleene import Event
from naive.kleene_dealt import Found, Question
from naive.kleene_random import TYPES
from naive.kleene_steps import NoSkipError, TooManyError
from sql.sketch_lake import E, SketchLake, call, shared
from sql.test_ways import WAYS

from patternlake.delta_tables.schema.timestamps import to_micros
from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.patterns import around_anchors
from patternlake.udfs.kleene import request as kleene_request

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

QUESTIONS = 60
EVENTS = 26
NAME = "language"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Asked(NamedTuple):
    """A call, and the oracle's rows."""

    text: str
    wanted: list[Found]


def made(rng: random.Random) -> list[E]:
    """Events of few names, one of them rare, and one that no pattern takes by its name; several at one time."""
    found, time = [], 0
    for _ in range(EVENTS):
        time += rng.choice([0, 1, 1, 2])
        values = {
            "x": rng.choice([None, 0.0, 1.0, 2.5]),
            "n": rng.choice([None, 0, 1, 2]),
            "s": rng.choice([None, "b"]),
        }
        found.append(E(time, rng.choice("AAABBBCDD"), rng.choice(["k1", "k2", None]), values))
    return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    lake = shared(spark, tmp_path_factory)
    events = made(random.Random(48))
    lake.stream(NAME, events[:15], events[15:], key="who", attributes=TYPES)
    return lake


def read_back(lake: SketchLake) -> list[Event]:
    """The stream's events as they lie in the lake."""
    types: dict[str, Any] = {"x": float, "n": int, "s": str}
    found = []
    for row in lake.streams[NAME].events():
        own = {name: value for name, value in (row["attributes"] or {}).items() if value is not None}
        values = {name: type_(own[name]) if name in own else None for name, type_ in types.items()}
        found.append(Event(row["position"], row["at"], row["name"], {**values, "key": row["key"]}))
    return found


@pytest.fixture(scope="module")
def questions(lake: SketchLake) -> list[Asked]:
    events, rng, found = read_back(lake), random.Random(3), []
    watermark = max(event.time for event in events)
    while len(found) < QUESTIONS:
        asked = Question(rng, [None, None, "key", "s"], [event.time for event in events])
        try:
            wanted = asked.wanted(events, watermark)
        except (NoSkipError, TooManyError):
            continue
        if not wanted and rng.random() < 0.8:
            continue
        times = {"from_time": asked.from_time, "to_time": asked.to_time}
        bounds = {name: EPOCH + timedelta(microseconds=at) for name, at in times.items() if at is not None}
        found.append(Asked(call("match_pattern", NAME, asked.text, **asked.how, **bounds), wanted))
    return found


@pytest.fixture(params=[*WAYS, "rare"])
def way(request: pytest.FixtureRequest, spark: SparkSession, lake: SketchLake) -> Iterator[str]:
    """One of the ways; by tasks with many small portions, and once around rare names."""
    chosen = WAYS["tasks" if request.param == "rare" else request.param]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kleene_request, "TASK_EVENTS", 4)
        patched.setattr(kleene_request, "MARGINS", 1)
        if request.param == "rare":
            patched.setattr(around_anchors, "_FEW_EVENTS", 0)
            patched.setattr(around_anchors, "_RARE", 1)
            patched.setattr(around_anchors, "_MOST_RANGES", 3)
        forget(lake_of(spark).cache)
        for name, value in chosen.items():
            spark.conf.set(name, value)
        yield request.param
        for name in chosen:
            spark.conf.unset(name)
    forget(lake_of(spark).cache)


def found_rows(rows: list[Row]) -> list[Found]:
    """The rows as the oracle's, once what numbers them is checked."""
    numbers = defaultdict(list)
    found = []
    for row in rows:
        assert not row["truncated"]
        numbers[row["key"]].append(row["match_no"])
        bound = {name: tuple(positions) for name, positions in row["bindings"].items() if positions}
        first, last = (
            (to_micros(row[f"{end}_time"].astimezone(timezone.utc)), row[f"{end}_position"])
            for end in ("first", "last")
        )
        found.append(Found(row["key"], bound, first, last, row["final"]))
    assert all(sorted(own) == list(range(1, len(own) + 1)) for own in numbers.values())
    return sorted(found, key=str)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_random_questions_are_answered_as_the_oracle_does(lake: SketchLake, questions: list[Asked], way: str) -> None:
    answers = lake.ask([asked.text for asked in questions])
    wrong = [
        f"{asked.text}\n  {found_rows(rows)}\n  {asked.wanted}"
        for asked, rows in zip(questions, answers, strict=True)
        if found_rows(rows) != asked.wanted
    ]
    assert not wrong, f"{len(wrong)} of {len(questions)}:\n" + "\n".join(wrong[:5])
