"""match_groups through SQL, on published events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timezone
from typing import TYPE_CHECKING, Any

import pytest
from naive import groups as naive
from naive.group_cases import named, random_pattern, random_stream
from sql.group_lake import FIGURE_1, SECTION, Step
from sql.sketch_lake import E, SketchLake, Stream, by_tasks, call, letters, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def probable(
    lake: SketchLake, name: str, *batches: Sequence[E], key: str | None = "who", ingested: bool = False
) -> Stream:
    """A probabilistic stream; an event's attributes are its step t and its probability p."""
    if name not in lake.streams:
        section = SECTION | ({"key": key} if key else {})
        made = lake.streams[name] = Stream(lake, name, {}, section, ingested=ingested)
        for events in batches:
            made.write(events)
            made.ingest()
            made.moments.append(made.publications("ingest")[-1]["published_at"].astimezone(timezone.utc))
    return lake.streams[name]


def rows_of(steps: Sequence[Step], key: str | None, *, first: int = 1) -> list[E]:
    return [
        E(number * 1000, name, key, {"t": number, "p": p})
        for number, step in enumerate(steps, start=first)
        for name, p in step.items()
    ]


def groups(stream: Stream, pattern: str, **arguments: Any) -> str:
    return call("match_groups", stream.name, pattern, **arguments)


WORKED = {
    "figure 1": FIGURE_1,
    "longer": [{"a": 1}, {"b": 1}, {"c": 0.5, "a": 0.25, "b": 0.25}, {"b": 1}, {"c": 1}],
    "pruned": [{"a": 0.1}, {"b": 1}, {"a": 0.9, "c": 0.1}, {"b": 1}, {"c": 1}],
    "open": [{"a": 1}, {"b": 1}, {"a": 0.5, "b": 0.5}, {"b": 1}],
}


def worked(lake: SketchLake) -> Stream:
    """The streams of SPEC 4's worked answers, one for each key."""
    rows = [row for key, steps in WORKED.items() for row in rows_of(steps, key)]
    return probable(lake, "groups worked", rows, ingested=True)


def test_worked_answers(lake: SketchLake) -> None:
    stream = worked(lake)
    single, complete, longer, pruned, open_end = lake.ask(
        [
            groups(stream, "a, b+, c", within=6, key="figure 1"),
            groups(stream, "a, b+, c WITHIN 6 EVENTS", overlap="complete", key="figure 1"),
            groups(stream, "a, b+, c", within=3, key="longer"),
            groups(stream, "a, b+, c", within=5, threshold=0.5, key="pruned"),
            groups(stream, "a, b+", within=4, overlap="complete", key="open"),
        ]
    )

    def shown(rows: list[Any]) -> list[tuple[Any, ...]]:
        return [(r["t_start"], r["t_first"], r["t_end"], round(r["probability"], 4)) for r in rows]

    assert shown(single) == [(1, 3, 6, 0.9437)]
    assert shown(complete) == [(1, 3, 6, 0.86), (1, 4, 6, 0.88)]
    assert [row[3] for row in shown(longer)] == [0.75]
    assert shown(pruned) == [(3, 5, 5, 0.9)]
    assert {row[1]: row[3] for row in shown(open_end)}[3] == 1.0
    assert {row["key"] for row in [*single, *complete]} == {"figure 1"}


def test_the_best_matches_of_groups_are_those_of_the_paper(lake: SketchLake) -> None:
    stream = worked(lake)
    best, complete, negated, last = lake.ask(
        [
            call("group_members", stream.name, "a, b+, c", within=6, key="figure 1", best=10),
            call("group_members", stream.name, "a, b+, c", "complete", within=6, key="figure 1", best=1),
            call("group_members", stream.name, "a, !b, b", within=3, key="figure 1", from_step=5, to_step=5),
            call("group_members", stream.name, "b, c", within=2, from_step=7),
        ]
    )
    chances = {(row["from_step"], row["to_step"]): round(row["probability"], 4) for row in best}
    # The paper's Fig. 2.
    assert (len(best), chances[1, 3], chances[1, 6], chances[2, 5], chances[4, 6]) == (10, 0.07, 0.3528, 0.0168, 0.09)
    first = next(row for row in best if row["match_no"] == 1)
    assert (first["items"], [len(at) for at in first["positions"]]) == (["a", "b", "b", "b", "b", "c"], [1] * 6)
    assert sorted((row["t_first"], row["from_step"], row["to_step"]) for row in complete) == [(3, 1, 6), (4, 1, 6)]
    assert [row["items"] for row in negated][:1] == [["a", "!b", "b"]]
    assert last == []


def test_members_by_tasks_are_those_of_the_driver(lake: SketchLake) -> None:
    stream = worked(lake)
    asked = [call("group_members", stream.name, "a, _*, c", overlap, 0.01, 4) for overlap in ("single", "complete")]
    here = [sorted(map(str, rows)) for rows in lake.ask(asked)]
    assert all(here)
    with by_tasks(lake.spark):
        assert [sorted(map(str, rows)) for rows in lake.ask(asked)] == here


def test_keys_are_apart_and_bounds_keep_groups_by_their_end(lake: SketchLake) -> None:
    stream = worked(lake)
    everything, late = lake.ask([groups(stream, "b, c", within=2), groups(stream, "b, c", within=2, from_step=6)])
    ends = sorted((row["key"], row["t_end"]) for row in everything)
    assert {key for key, _ in ends} == {"figure 1", "longer", "pruned"}
    assert sorted((row["key"], row["t_end"]) for row in late) == [one for one in ends if one[1] >= 6]


def test_names_and_keys_that_never_occurred_are_told(lake: SketchLake) -> None:
    stream = worked(lake)
    for function in ("match_groups", "group_members"):
        with pytest.warns(UserWarning, match="'bb' never occurred in the stream"):
            lake.rows(f"SELECT * FROM {call(function, stream.name, 'a, bb+, c', within=6)}")
        with pytest.warns(UserWarning, match=r"the key 'opn' never occurred in the stream; did you mean 'open'\?"):
            lake.rows(f"SELECT * FROM {call(function, stream.name, 'a, b+', within=4, key='opn')}")


def test_groups_close_with_later_steps_and_as_of_gives_the_answer_of_then(lake: SketchLake) -> None:
    stream = probable(
        lake, "groups cut", rows_of([{"a": 1}, {"b": 0.5}], None), rows_of([{"b": 0.5}, {"d": 1}], None, first=3)
    )
    text = "a, b+"
    then, now = lake.ask([groups(stream, text, within=3, as_of=stream.moments[0]), groups(stream, text, within=3)])
    assert [(r["t_end"], r["final"]) for r in then] == []  # step 2 may still get rows
    assert [(r["t_start"], r["t_end"], r["probability"], r["final"]) for r in now] == [(1, 3, 0.5, True)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("match_groups('groups worked', 'a, b')", "within is missing: give the most steps that a match may take"),
        ("match_groups('groups worked', 'a, b', within => 0)", "within 0: must be 1 or more"),
        ("match_groups('groups worked', 'a, b WITHIN 2 EVENTS', within => 3)", "within 3 contradicts WITHIN 2 EVENTS"),
        ("match_groups('groups worked', 'a, b', within => 2, threshold => 1.5)", "threshold 1.5: must be from 0 to 1"),
        ("match_groups('groups worked', 'a ; b', within => 2)", "does not take ';'"),
        ("match_groups('groups worked', 'a, !b', within => 2)", "put a name on either side, as in a, !b, c"),
        ("group_members('groups worked', 'a', within => 2, best => 0)", "best must be from 1 to 100, not 0"),
        ("group_members('groups worked', 'a ; b', within => 2)", "does not take ';'"),
        ("match_groups('groups worked', 'a', within => 2, overlap => 'any')", "overlap 'any': must be one of"),
        ("match_groups('groups worke', 'a', within => 2)", "did you mean 'groups worked'?"),
        ("match_groups('groups plain', 'a', within => 2)", "has no step and no probability; configure"),
        ("match_groups('groups worked', 'a', within => 2, from_step => 3, to_step => 1)", "from_step is after to_step"),
    ],
)
@pytest.mark.slow
def test_a_wrong_argument_is_named(lake: SketchLake, asked: str, said: str) -> None:
    worked(lake)
    if "groups plain" not in lake.streams:
        plain = lake.streams["groups plain"] = Stream(lake, "groups plain", {}, {})
        plain.write(letters("ab"))
        plain.ingest()
    (error,) = lake.errors([asked])
    assert said in error


@pytest.mark.slow
def test_random_streams_and_patterns_equal_the_oracle(lake: SketchLake) -> None:
    rng = random.Random(4)
    streams = {f"k{number}": random_stream(rng) for number in range(12)}
    events = [
        E(number * 1000, row.name, key, {"t": step, "p": row.probability})
        for key, steps in streams.items()
        for number, (step, rows) in enumerate(sorted(steps.items()))
        for row in rows
    ]
    stream = probable(lake, "groups random", events)
    queries, calls = [], []
    for _ in range(30):
        pattern, regex = random_pattern(rng, "abc")
        overlap, threshold, within = rng.choice(["single", "complete"]), rng.choice([0, 0.1, 0.5]), rng.randint(1, 5)
        query = named(pattern, within, regex=regex, overlap=overlap, threshold=threshold)
        queries.append(query)
        calls.append(groups(stream, pattern, overlap=overlap, threshold=threshold, within=within))
    for query, rows in zip(queries, lake.ask(calls), strict=True):
        for key, steps in streams.items():
            mine = sorted((r for r in rows if r["key"] == key), key=lambda r: r["t_first"])
            expected = naive.groups(query, steps)
            assert [(r["t_start"], r["t_first"], r["t_end"], r["final"]) for r in mine] == [
                (g.t_start, g.t_first, g.t_end, g.final) for g in expected
            ], query
            assert [r["probability"] for r in mine] == pytest.approx([g.probability for g in expected])
