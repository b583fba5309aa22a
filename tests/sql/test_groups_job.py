"""The job `groups`: what it keeps is what `match_groups` computes from the events, however these arrive."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from naive.group_cases import random_stream
from sql.group_lake import FIGURE_1, GroupStream, shown
from sql.sketch_lake import DATABASE, E, SketchLake, by_tasks, call, letters, shared

from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ConfigurationError, PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "fig single": {"pattern": "a, b+, c", "within": 6},
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def events(steps: Sequence[dict[str, float]], key: str | None, *, first: int = 1) -> list[E]:
    return [
        E(number * 1000, name, key, {"t": number, "p": p})
        for number, step in enumerate(steps, start=first)
        for name, p in step.items()
    ]


def figure(lake: SketchLake) -> GroupStream:
    """The paper's Fig. 1 in three deliveries, the second of which ends inside a step; another key comes once."""
    name = "groups figure"
    if name not in lake.streams:
        rows = events(FIGURE_1, "fig")
        GroupStream(lake, name, QUERIES).deliver(rows[:4] + events(FIGURE_1[:2], "other"), rows[4:7], rows[7:])
    found = lake.streams[name]
    assert isinstance(found, GroupStream)
    return found


def test_the_worked_answer_comes_from_what_the_job_keeps(lake: SketchLake) -> None:
    stream = figure(lake)
    rounded = [(*row[:4], round(row[4], 4), row[5]) for row in stream.kept("fig single")]
    assert rounded == [("fig", 1, 3, 6, 0.9437, True)]


def test_a_configured_query_is_answered_from_the_table_in_any_words(lake: SketchLake) -> None:
    stream = figure(lake)
    words = [
        call("match_groups", stream.name, "a, b+, c", within=6),
        call("match_groups", stream.name, "a , (b)+ , c WITHIN 6 EVENTS"),
        call("match_groups", stream.name, "a, b+, c", within=6, key="fig", from_step=6),
        call("match_groups", stream.name, "a, b+, c", within=6, key="other"),
        call("match_groups", stream.name, "a, b+, c", within=6, to_step=5),
    ]
    first, second, third, fourth, fifth = lake.ask(words)
    assert shown(first) == shown(second) == shown(third) == stream.kept("fig single")
    assert (fourth, fifth) == ([], [])
    with by_tasks(lake.spark):
        plan = lake.spark.sql(f"SELECT * FROM {words[0]}")
        assert shown(plan.collect()) == shown(first)
        assert "group_matches_log" in plan._jdf.queryExecution().toString()


def test_every_moment_has_the_answer_that_its_events_give(lake: SketchLake) -> None:
    stream = figure(lake)
    text = "a, b+, c"
    # Between the two publications, events are there that the query's state does not have yet: they are read.
    asked = [call("match_groups", stream.name, text, within=6, as_of=moment) for moment in stream.moments]
    found = [shown(rows) for rows in lake.ask(asked)]
    assert [len(rows) for rows in found] == [0, 1, 1]
    assert [row[3] for rows in found for row in rows] == [3, 6]
    assert (
        shown(lake.ask([call("match_groups", stream.name, text, within=6, as_of=stream.caught_up("fig single"))])[0])
        == found[-1]
    )


def test_what_was_open_is_replaced_and_partitions_without_news_are_left(lake: SketchLake) -> None:
    figure(lake)
    log = lake.rows(
        f"SELECT array_join(part, ',') AS key, from_batch, to_batch FROM {DATABASE}_internal.group_state_log "
        "WHERE group_id = pmod(crc32('fig single'), 2147483648) ORDER BY key, from_batch"
    )
    assert [tuple(row) for row in log] == [("fig", 1, 2), ("fig", 2, 3), ("fig", 3, None), ("other", 1, None)]


@pytest.mark.slow
def test_overlap_complete_gives_the_worked_answer_too(lake: SketchLake) -> None:
    query = {"fig complete": {"pattern": "a, b+, c WITHIN 6 EVENTS", "overlap": "complete"}}
    stream = GroupStream(lake, "groups complete", query).deliver(events(FIGURE_1, None))
    rounded = [(*row[:4], round(row[4], 2)) for row in stream.kept("fig complete")]
    assert rounded == [(None, 1, 3, 6, 0.86), (None, 1, 4, 6, 0.88)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_cuts_of_random_streams_give_what_the_events_give(lake: SketchLake, seed: int) -> None:
    rng = random.Random(seed)
    streams: dict[str | None, Any] = {f"k{number}": random_stream(rng) for number in range(6)}
    streams[None] = random_stream(rng)
    rows = {
        key: [
            E(step * 1000, row.name, key, {"t": step, "p": row.probability})
            for step, given in sorted(steps.items())
            for row in given
        ]
        for key, steps in streams.items()
    }
    patterns = ["a, b+", "a | b, c*, b", "(a & b)+", "a[2], (b | c)?"]
    queries = {
        f"cut {seed} {number}": {
            "pattern": pattern,
            "within": rng.randint(1, 5),
            "overlap": rng.choice(["single", "complete"]),
            "threshold": rng.choice([0.0, 0.1, 0.5]),
        }
        for number, pattern in enumerate(patterns)
    }
    stream = GroupStream(lake, f"groups cut {seed}", queries, ingested=True)
    cuts = {key: sorted(rng.randint(0, len(given)) for _ in range(2)) for key, given in rows.items()}
    batches = [
        [row for key, given in rows.items() for row in given[slice(*(([0, *cuts[key], None])[part : part + 2]))]]
        for part in range(3)
    ]
    stream.deliver(*(batch for batch in batches if batch))
    kept = {name: stream.kept(name) for name in queries}
    computed = lake.ask(
        # A pattern that is not configured: of its events alone.
        [
            call(
                "match_groups",
                stream.name,
                f"{query['pattern']} WHERE true",
                **{k: v for k, v in query.items() if k != "pattern"},
            )
            for query in queries.values()
        ]
    )
    assert kept == {name: shown(rows) for name, rows in zip(queries, computed, strict=True)}
    assert any(kept.values())
    stream.run("groups", rebuild=True)
    assert {name: stream.kept(name) for name in queries} == kept


def test_parameters_of_a_configured_query_hold_for_the_function(lake: SketchLake) -> None:
    query = {"pattern": "a, b WHERE b.p > least", "within": 2, "params": {"least": 0.6}}
    steps = [{"a": 1.0}, {"b": 0.5}, {"a": 0.4, "b": 0.6}, {"a": 1.0}, {"b": 0.7, "d": 0.3}]
    stream = GroupStream(lake, "groups params", {"least": query}).deliver(events(steps, "k"))
    asked = call("match_groups", stream.name, str(query["pattern"]), within=2)
    assert shown(lake.ask([asked])[0]) == stream.kept("least") == [("k", 4, 5, 5, 0.7, True)]
    stream.write(events([{"a": 1.0}, {"b": 1.0}], "k", first=6))
    stream.ingest()  # the job lags behind: the answer is of the events
    assert [row[3] for row in shown(lake.ask([asked])[0])] == [5, 7]
    assert [row[3] for row in stream.kept("least")] == [5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pattern": "a ; b"}, "does not take ';'"),
        ({"within": None}, "within is missing"),
        ({"pattern": "a, b WITHIN 3 EVENTS", "within": 2}, "within 2 contradicts WITHIN 3 EVENTS"),
        ({"pattern": "a PARTITION BY p", "within": 2}, "PARTITION BY p: steps arrive in order within the stream's key"),
        ({"pattern": "b, a", "within": 6}, "the configuration has changed since the last batch"),
    ],
)
@pytest.mark.slow
def test_a_query_that_cannot_be_kept_is_refused(lake: SketchLake, changes: dict[str, Any], said: str) -> None:
    stream = figure(lake)
    fresh = "has changed" not in said
    queries = {f"refused {said}": {"pattern": "a", "within": 1}} if fresh else {"fig single": QUERIES["fig single"]}
    asked = GroupStream.__new__(GroupStream)
    asked.__dict__.update(stream.__dict__, queries=queries)
    with pytest.raises(PatternLakeError, match=re.escape(said)):
        asked.run("groups", **changes)


@pytest.mark.slow
def test_a_stream_without_probabilities_is_refused(lake: SketchLake) -> None:
    stream = GroupStream(lake, "groups certain", {"of certain": {"pattern": "a", "within": 1}})
    stream.section = {key: value for key, value in stream.section.items() if key not in ("step", "probability")}
    stream.write(letters("ab"))
    stream.ingest()
    with pytest.raises(ConfigurationError, match="has no step and no probability; configure"):
        stream.run("groups")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{stream: nowhere, pattern: a}", "groups.g.stream: no stream 'nowhere'"),
        ("{stream: s, pattern: a, overlap: some}", "groups.g.overlap"),
        ("{stream: s, pattern: a, threshold: 2}", "groups.g.threshold"),
        ("{stream: s, pattern: a, within: 0}", "groups.g.within"),
        ("{stream: s, pattern: a, windows: 3}", "groups.g.windows"),
    ],
)
def test_a_wrong_configuration_names_its_key(section: str, said: str) -> None:
    streams = "streams: {s: {source: {format: parquet, path: x}, time: t, name: n}}"
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(f"{streams}\ngroups: {{g: {section}}}")
    assert said in str(caught.value)
