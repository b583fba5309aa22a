"""match_funnel and match_funnel_rows through SQL, on published events: in the driver's process and by Spark's tasks."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from naive import funnels as naive
from naive.funnel_cases import count_of, random_funnel, rounded, shown
from naive.kleene import Event
from sql.sketch_lake import E, SketchLake, Stream, by_tasks, call, letters, shared

import patternlake
from patternlake.sql_ext.answering import stream_facts

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ATTRIBUTES = {"x": "bigint", "via": "string"}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def published(lake: SketchLake, name: str, events: list[E], **section: Any) -> Stream:
    """A stream without a sketch."""
    if name not in lake.streams:
        made = lake.streams[name] = Stream(lake, name, {}, section)
        made.write(events)
        made.ingest()
    return lake.streams[name]


def worked(lake: SketchLake) -> Stream:
    """The stream of ROWS, a letter a second."""
    return published(lake, "funnel worked", letters("ABCBAACBADCBABCB"))


def shop(lake: SketchLake) -> Stream:
    """Random events of some users."""
    rng = random.Random(49)
    events = [
        E(time, rng.choice("abcdx"), f"u{rng.randint(0, 4)}", {"x": rng.randint(0, 3), "via": rng.choice(["ad", "m"])})
        for time in range(160)
    ]
    return published(lake, "funnel shop", events, key="who", attributes=ATTRIBUTES)


def plain(row: Row) -> dict[str, Any]:
    """A row with its moments in microseconds."""
    values = row.asDict(recursive=True)
    return {name: _micros(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def partitions_of(stream: Stream) -> dict[str | None, list[Event]]:
    """The stream's events for the oracle."""
    found: dict[str | None, list[Event]] = {}
    for row in stream.events():
        values = {"x": int(row["attributes"]["x"]), "via": row["attributes"].get("via")}
        found.setdefault(row["key"], []).append(Event(row["position"], row["at"], row["name"], values))
    return found


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_the_worked_letters_stop_at_the_third_step(lake: SketchLake, way: str) -> None:
    text = "A ; B ; C ; D WITHIN 5 SEC"
    calls = [call(function, worked(lake).name, text) for function in ("match_funnel", "match_funnel_rows")]
    with by_tasks_where(lake, way):
        steps, (row,) = lake.ask(calls)
    counts = sorted((one["step"], one["operand"], one["reached"], one["dropped"]) for one in steps)
    assert counts == [(1, "A", 1, 0), (2, "B", 1, 0), (3, "C", 1, 1), (4, "D", 0, 0)]
    assert (row["key"], row["reached"], row["positions"]) == (None, 3, [1, 2, 3])
    assert (row["waited_seconds"], row["next_position"], row["next_name"], row["final"]) == (3.0, 4, "B", True)


def test_the_end_of_the_stream_is_that_of_rare_names_as_well(lake: SketchLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last event may be of a name that is not among those that are counted."""
    monkeypatch.setattr(stream_facts, "MOST_NAMES", 1)
    stream = published(lake, "funnel rare end", letters("AAZ"), allowed_lateness="10 seconds")
    ((row,),) = lake.ask([call("match_funnel_rows", stream.name, "A ; B WITHIN 1 MIN")])
    assert (row["positions"], row["waited_seconds"], row["final"]) == ([1], 2.0, False)


def by_tasks_where(lake: SketchLake, way: str) -> AbstractContextManager[None]:
    return by_tasks(lake.spark) if way == "tasks" else nullcontext()


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_every_mode_gives_the_rows_and_the_counts_of_the_oracle(lake: SketchLake, way: str) -> None:
    stream = shop(lake)
    partitions = partitions_of(stream)
    last = max(event.time for events in partitions.values() for event in events)
    asked = []
    for seed, mode in enumerate(naive.MODES):
        funnel = random_funnel(random.Random(f"sql {seed}"), "abcd")
        asked.append((mode, funnel, call("match_funnel_rows", stream.name, funnel.text, mode=mode)))
        asked.append((mode, funnel, call("match_funnel", stream.name, funnel.text, mode=mode, by="via", next=2)))
    with by_tasks_where(lake, way):
        told = lake.ask([text for _, _, text in asked])
    for (mode, funnel, text), rows in zip(asked, told, strict=True):
        if "match_funnel_rows" in text:
            assert {row["key"]: shown(plain(row)) for row in rows} == {
                key: naive.row(events, funnel.steps, mode, funnel.within, watermark=last, until=last)
                for key, events in partitions.items()
            }, text
        else:
            expected = naive.funnel(
                partitions, funnel.steps, mode, funnel.within, by=lambda event: event.values["via"], next_events=2
            )
            counts = sorted((count_of(plain(row)) for row in rows), key=lambda count: (count.group, count.step))
            assert counts == [rounded(count) for count in expected], text


def test_a_key_partitions_and_parameters_change_the_question(lake: SketchLake) -> None:
    stream = shop(lake)
    one, apart, big = lake.ask(
        [
            call("match_funnel_rows", stream.name, "a ; b", key="u3"),
            call("match_funnel_rows", stream.name, "a ; b PARTITION BY via"),
            call("match_funnel_rows", stream.name, "big DEFINE big AS x >= least", params={"least": "9"}),
        ]
    )
    assert [row["key"] for row in one] == ["u3"]
    assert sorted(row["key"] for row in apart) == ["ad", "m"]
    assert {row["reached"] for row in big} == {0}


def test_where_nothing_enters_each_step_has_a_row_all_the_same(lake: SketchLake) -> None:
    asked = call("match_funnel", worked(lake).name, "Z ; A")
    for way in ("driver", "tasks"):
        with by_tasks_where(lake, way):
            (rows,) = lake.ask([asked])
        assert sorted((row["step"], row["reached"], row["dropped"]) for row in rows) == [(1, 0, 0), (2, 0, 0)]
        assert {row["share_of_first"] for row in rows} == {None}


def test_python_takes_the_same_arguments(lake: SketchLake) -> None:
    found = patternlake.match_funnel(lake.spark, worked(lake).name, "A ; B", within="2 SEC", mode="strict", next=1)
    assert sorted((row["step"], row["reached"]) for row in found.collect()) == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("'A ; !B'", "does not take '!' (not); mode => 'strict_order' or 'steps_in_order'"),
        (
            "'A ; B', mode => 'loose'",
            "mode must be one of any_order_between, strict_order, steps_in_order, once",
        ),
        ("'A ; B', within => 'soon'", "within => 'soon' is no window"),
        ("'A ; B', key => 'k'", "the stream 'funnel worked' has no key"),
    ],
)
def test_what_a_call_may_not_say_is_named(lake: SketchLake, arguments: str, said: str) -> None:
    (message,) = lake.errors([f"match_funnel('{worked(lake).name}', {arguments})"])
    assert said in message
