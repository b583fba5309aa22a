"""The job `patterns` and `match_pattern(query => …)`: kept patterns are answered as their texts are, at any moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from sql.pattern_lake import PatternStream, in_order
from sql.sketch_lake import DATABASE, E, SketchLake, by_tasks, call, letters, moment, shared

from patternlake.delta_tables.batches.retention import forget
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.batches import few
from patternlake.jobs.reports.status import status
from patternlake.udfs.errors import ConfigurationError, PatternLakeError, StateError
from patternlake.udfs.kleene import request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENESS = 4
"""Seconds."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def random_events(rng: random.Random, count: int) -> list[E]:
    """Events a second apart or less, some late, but not too late."""
    found, now, latest = [], 0, 0
    for _ in range(count):
        now += rng.choice([0, 1, 1, 2])
        at = max(0, now - (rng.randint(1, LATENESS) if rng.random() < 0.25 else 0))
        at = max(at, latest - LATENESS)
        latest = max(latest, at)
        key = rng.choice(["k", "l", "é", None])
        found.append(E(at * 1000, rng.choice("ABCX"), key, {"x": rng.randint(1, 5), "s": rng.choice(["u", "v", None])}))
    return found


def same(lake: SketchLake, pairs: Sequence[tuple[str, str]]) -> list[list[Any]]:
    """What both calls of each pair say."""
    found = lake.ask([text for pair in pairs for text in pair])
    for (kept, whole), (asked, _) in zip(zip(found[::2], found[1::2], strict=True), pairs, strict=True):
        assert in_order(kept) == in_order(whole), asked
    return found[::2]


EVERY = {
    "kp_plain": {"query": "A ; B WITHIN 5 SEC"},
    "kp_growing": {"query": "A ; !X ; B+ WHERE B.x >= A.x PARTITION BY key WITHIN 6 SEC"},
    "kp_counted": {
        "query": "A+ ; C MEASURES SUM(A.x) AS total, SUM(A.x + 1) AS more, C.s AS s, t(C) - FIRST(t(A)) AS waited "
        "PARTITION BY key WITHIN 4 EVENTS",
    },
    "kp_ranked": {"query": "A ; B+ WITHIN 6 EVENTS"},
    "kp_funnel": {
        "query": "A ; B ; C PARTITION BY key WITHIN 9 SEC", "policy": "skip_till_next", "after_match": "past_last",
    },
    "kp_strict": {
        "query": "A ; B PARTITION BY s, key WITHIN 5 EVENTS", "policy": "strict", "after_match": "past_last",
    },
    "kp_summed": {
        "query": "A ; B+ ; C WHERE SUM(B.x) > 2 AND LAST(B.s) <> 'w' MEASURES ARRAY_AGG(B.s) AS all WITHIN 7 SEC",
    },
    "kp_params": {
        "query": "A & B WHERE A.x + B.x > more AND [s] MEASURES A.x + more AS m WITHIN 7 SEC",
        "params": {"more": "4"},
    },
    "kp_silent": {"query": "A ; !B PARTITION BY key WITHIN 4 SEC"},
    "kp_late": {"query": "A ; B ; !C @(t(C) - t(B) < 3 SEC) WITHIN 5 SEC", "policy": "skip_till_next"},
    "kp_quiet": {"query": "!C ; A ; !B PARTITION BY key WITHIN 3 EVENTS"},
}  # fmt: skip


def asked(stream: PatternStream, **arguments: Any) -> list[tuple[str, str]]:
    return [(stream.kept(name, **arguments), stream.text(name, **arguments)) for name in stream.patterns]


def section() -> dict[str, Any]:
    return {"key": "who", "attributes": {"x": "double", "s": "string"}, "allowed_lateness": f"{LATENESS} seconds"}


def test_kept_patterns_are_answered_as_their_texts(lake: SketchLake) -> None:
    names = ("kp_counted", "kp_funnel")
    stream = PatternStream(lake, "kept some", {name: EVERY[name] for name in names}, **section())
    _runs(lake, stream, random_events(random.Random(3), 60), [25, 50])


def test_windows_that_count_events_are_answered_alike_by_driver_and_tasks(lake: SketchLake) -> None:
    """Events that no operand takes close windows, and kept events have fewer attributes than new ones."""
    named = {"counted_whole": EVERY["kp_ranked"], "counted_s": {"query": "A ; B WHERE A.s = B.s WITHIN 5 EVENTS"}}
    stream = PatternStream(lake, "counted windows", named, **section())
    events = [
        E(n * 1000, name, None, {"x": n, "s": "v" if name == "X" else "u"}) for n, name in enumerate("XXAXXBXXXXXXXXXX")
    ]
    stream.take(events[:4])
    stream.write(events[4:])
    stream.ingest()
    in_process = same(lake, asked(stream))
    assert [len(rows) for rows in in_process] == [1, 1]
    assert all(row["final"] for rows in in_process for row in rows)
    with by_tasks(lake.spark):
        in_tasks = same(lake, asked(stream))
    assert list(map(in_order, in_tasks)) == list(map(in_order, in_process))


def test_a_window_may_reach_back_before_all_moments(lake: SketchLake, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"kw_ages": {"query": "A ; B+ WITHIN 1000000 DAYS"}, "kw_ever": {"query": "A ; B WITHIN 15000000 WEEKS"}}
    stream = PatternStream(lake, "ages", named, **section())
    monkeypatch.setattr(few, "FEW_EVENTS", -1)
    stream.take([E(0, "A"), E(1000, "B")])
    stream.take([E(2000, "B"), E(60_000, "C")])
    for rows, wanted in zip(same(lake, asked(stream)), ([([2, 3], False)], [([2], True), ([3], True)]), strict=True):
        assert [(row["bindings"]["B"], row["final"]) for row in rows] == wanted


@pytest.mark.parametrize("way", ["here", pytest.param("tasks", marks=pytest.mark.slow)])
def test_a_batch_closes_what_it_replaces_or_writes_anew_all_that_is_kept(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Of each key the last three settled events are kept, and those that are not settled, as the last one here."""
    if way == "tasks":
        monkeypatch.setattr(few, "FEW_EVENTS", -1)
    name = f"kept anew {way}"
    stream = PatternStream(lake, name, {name: {"query": "A ; B PARTITION BY key WITHIN 4 EVENTS"}}, **section())
    events = [("A", key) for key in "mmmkkkkklllllll"] + [("B", "m")]
    made = [E(number * 10_000, *each) for number, each in enumerate(events)]
    # The second batch brings one event where seven are kept, the third as many as are kept, the fourth one again.
    for begin, end in pairwise((0, 7, 8, 15, 16)):
        stream.take(made[begin:end])
    written = {
        (1, None): {1, 2, 3},
        (1, 2): {4, 5, 6, 7},
        (2, None): {5, 6, 7, 8},
        (3, None): {6, 7, 8},
        (3, 4): {1, 2, 3, 12, 13, 14, 15},
        (4, None): {1, 2, 3, 13, 14, 15, 16},
    }
    assert _kept(lake, name) == written
    shown = lake.rows(f"SELECT position FROM {DATABASE}_internal.pattern_state WHERE pattern = {literal(name)}")
    assert sorted(row["position"] for row in shown) == [1, 2, 3, 6, 7, 8, 13, 14, 15, 16]
    found = same(lake, [pair for at in (None, *stream.moments) for pair in asked(stream, as_of=at)])
    assert [[row["bindings"] for row in rows] for rows in found[1:4]] == [[], [], []]
    assert [row["bindings"] for row in found[0]] == [{"A": [number], "B": [16]} for number in (1, 2, 3)]
    db = open_database(lake.spark, DATABASE, lake.location)
    forget(db, job="patterns", object=name, horizon=stream.moments[-1])
    assert _kept(lake, name) == {(3, None): {6, 7, 8}, (4, None): {1, 2, 3, 13, 14, 15, 16}}
    same(lake, asked(stream))


def _kept(lake: SketchLake, name: str) -> dict[tuple[int, int | None], set[int]]:
    """The positions of kept events by the batches that wrote and closed their rows, whether they count or not."""
    of_pattern = f"object = {literal(name)} AND job = 'patterns'"
    number = f"SELECT max(object_id) FROM {DATABASE}_internal.publications_log WHERE {of_pattern}"
    rows = lake.rows(f"SELECT * FROM {DATABASE}_internal.pattern_state_log WHERE pattern_id = ({number})")
    found: dict[tuple[int, int | None], set[int]] = {}
    for row in rows:
        positions = found.setdefault((row["from_batch"], row["to_batch"]), set())
        assert row["position"] not in positions
        positions.add(row["position"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30, 34))
def test_batches_of_any_size_keep_what_texts_would_look_at(
    lake: SketchLake, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some batches bring less than is kept, others more; some are worked on by tasks."""
    rng = random.Random(seed)
    names = [name for name, one in EVERY.items() if "PARTITION BY" in one["query"] and "EVENTS" in one["query"]]
    stream = PatternStream(lake, f"sizes {seed}", {f"{each}_sizes_{seed}": EVERY[each] for each in names}, **section())
    events = random_events(rng, 150)
    cuts = [0]
    while cuts[-1] < len(events):
        cuts.append(cuts[-1] + rng.choice([1, 2, 3, 5, 20]))
    for begin, end in pairwise(cuts):
        monkeypatch.setattr(few, "FEW_EVENTS", rng.choice([-1, 1_000_000]))
        stream.take(_in_time(stream, events[begin:end]))
        same(lake, asked(stream))
    same(lake, [pair for at in stream.moments[::4] for pair in asked(stream, as_of=at)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_all_kinds_of_kept_patterns_are_answered_as_their_texts(
    lake: SketchLake, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    named = {f"{name}_{seed}": one for name, one in EVERY.items()}
    stream = PatternStream(lake, f"kept all {seed}", named, **section())
    cuts = sorted(rng.sample(range(10, 140), 4))
    _runs(lake, stream, random_events(rng, 150), cuts)
    asked_then = asked(stream, as_of=stream.moments[0])
    in_process = same(lake, [*asked(stream), *asked_then])
    monkeypatch.setattr(request, "TASK_EVENTS", 30)
    with by_tasks(lake.spark):
        in_tasks = same(lake, [*asked(stream), *asked_then])
    assert list(map(in_order, in_tasks)) == list(map(in_order, in_process))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20, 21])
def test_tasks_of_spark_write_and_carry_on_what_the_driver_does(
    lake: SketchLake, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    events = random_events(rng, 120)
    cuts = [0, *sorted(rng.sample(range(10, 110), 2)), 120]
    found = []
    for way, most in (("here", few.FEW_EVENTS), ("tasks", -1)):
        monkeypatch.setattr(few, "FEW_EVENTS", most)
        monkeypatch.setattr(request, "TASK_EVENTS", 30)
        named = {f"{name}_{way}_{seed}": one for name, one in EVERY.items()}
        stream = PatternStream(lake, f"kept {way} {seed}", named, **section())
        for begin, end in pairwise(cuts):
            stream.take(_in_time(stream, events[begin:end]))
        found.append([[without_names(row) for row in stream.written(name)] for name in named])
        states = lake.rows(
            f"SELECT state FROM {DATABASE}_internal.publications_log "
            f"WHERE job = 'patterns' AND object LIKE '%{way}_{seed}' "
            "ORDER BY replace(object, '_here_', '_tasks_'), batch_id"
        )
        found[-1].append([row["state"] for row in states])
        kept = lake.rows(
            f"SELECT pattern, partition, position, time, name, from_batch FROM {DATABASE}_internal.pattern_state "
            f"WHERE pattern LIKE '%{way}_{seed}'"
        )
        found[-1].append(sorted(map(repr, map(without_names, kept))))
    here, tasks = found
    assert here == tasks
    assert all(here), "there is something to compare"


def without_names(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.asDict().items() if name not in ("stream", "pattern")}


def _runs(lake: SketchLake, stream: PatternStream, events: Sequence[E], cuts: Sequence[int]) -> None:
    """The job runs at each cut; what comes after the last one it has not read."""
    earlier = []
    for begin, end in zip([0, *cuts[:-1]], cuts, strict=True):
        stream.take(_in_time(stream, events[begin:end]))
        earlier.append(same(lake, asked(stream)))
    written = {name: stream.written(name) for name in stream.patterns}
    assert all(written.values()), "there is something to keep"
    stream.write(_in_time(stream, events[cuts[-1] :]))
    stream.ingest()
    same(lake, asked(stream))
    then = same(lake, asked(stream, as_of=stream.moments[0]))
    assert [in_order(rows) for rows in then] == [in_order(rows) for rows in earlier[0]]
    for name, rows in written.items():
        assert stream.written(name) == rows, "nothing is written but by the job"
        assert {row["batch_id"] for row in rows} <= set(range(1, len(cuts) + 1))


def _in_time(stream: PatternStream, events: Sequence[E]) -> list[E]:
    """Those that `ingest` would accept."""
    rows = stream.publications("ingest")
    if not rows:
        return list(events)
    low = rows[-1]["watermark"].timestamp() - moment(0).timestamp()
    return [event for event in events if event.time >= low * 1000]


@pytest.fixture(scope="module")
def small(lake: SketchLake) -> PatternStream:
    patterns = {
        "kq_ab": {"query": "A ; B PARTITION BY key WITHIN 1 MIN", "policy": "skip_till_next"},
        "kq_any": {"query": "A+ ; B WITHIN 3 SEC"},
    }
    stream = PatternStream(lake, "kept small", patterns, {"kq told": {"of": "pattern", "name": "kq_ab"}}, key="who")
    stream.take([E(n * 1000, name, key) for n, (name, key) in enumerate(zip("ABAB", "klkl", strict=True))])
    stream.take([E((10 + n) * 1000, name, key) for n, (name, key) in enumerate(zip("BBAA", "klkl", strict=True))])
    return stream


def test_what_narrows_the_question_narrows_it_as_for_a_text(lake: SketchLake, small: PatternStream) -> None:
    narrowed: list[dict[str, Any]] = [
        {"key": "k"},
        {"max_matches": 1, "truncate": True},
        {"from_time": moment(1000), "to_time": moment(11000)},
        {"plan": "(A B)"},
    ]
    found = same(lake, [pair for each in narrowed for pair in asked(small, **each)])
    assert [len(rows) for rows in found] == [2, 0, 1, 1, 1, 1, 2, 2]


ERRORS = [
    ("match_pattern(query => 'kq_bb')", "there is no kept pattern 'kq_bb' (did you mean"),
    (
        "match_pattern('kept small', 'A ; B', query => 'kq_ab')",
        "query => 'kq_ab' names a kept pattern, which has its own pattern; leave out pattern => 'A ; B'",
    ),
    (
        "match_pattern('kept small', query => 'kq_ab')",
        "query => 'kq_ab' names a kept pattern, which has its own stream; leave out stream => 'kept small'",
    ),
    (
        "match_pattern(query => 'kq_ab', policy => 'strict')",
        "policy => 'strict': the kept pattern 'kq_ab' has 'skip_till_next'; leave it out",
    ),
    (
        "match_pattern(query => 'kq_ab', params => map('a', '1'))",
        "params => {'a': '1'}: the kept pattern 'kq_ab' has {}; leave it out",
    ),
    ("match_pattern(max_matches => 3)", "neither a pattern nor a query is given; give stream and pattern, or query =>"),
    ("match_pattern(query => 'kq_any', max_matches => 1)", "the pattern has at least 2 matches, more than max_matches"),
    ("match_pattern(query => 'kq_any', key => 'k', max_matches => 0)", "max_matches must be 1 or more, not 0"),
]


def test_a_key_that_never_occurred_is_told(lake: SketchLake, small: PatternStream) -> None:
    with pytest.warns(UserWarning, match="the key 'kk' never occurred in the stream"):
        assert lake.rows("SELECT * FROM match_pattern(query => 'kq_ab', key => 'kk')") == []


def test_errors_say_what_would_be_right(lake: SketchLake, small: PatternStream) -> None:
    said = lake.errors([text for text, _ in ERRORS])
    assert [error[: len(begin)] for error, (_, begin) in zip(said, ERRORS, strict=True)] == [b for _, b in ERRORS]


def test_a_match_is_told_once_by_an_alert(lake: SketchLake, small: PatternStream) -> None:
    told = f"SELECT * FROM {DATABASE}.alerts WHERE alert = 'kq told' ORDER BY bindings['A'][0]"
    assert small.run("alerts").rows_out == 2
    rows = lake.rows(told)
    assert [(r["kind"], r["object"], r["key"], r["bindings"], r["found_in"]) for r in rows] == [
        ("pattern", "kq_ab", "k", {"A": [1], "B": [5]}, 2),
        ("pattern", "kq_ab", "k", {"A": [3], "B": [5]}, 2),
    ]
    small.keep(rebuild=True)
    assert small.run("alerts").rows_out == 0
    assert lake.rows(told) == rows


def test_status_says_how_much_is_kept(lake: SketchLake, small: PatternStream) -> None:
    found = {
        each.object: each
        for each in status(open_database(lake.spark, DATABASE, lake.location), small.configuration())
        if each.job == "patterns" and each.configured
    }
    assert found["kq_ab"].kept_events == 8
    assert found["kq_any"].kept_events == 3, "B at 11, A at 12 and at 13 seconds"
    assert found["kq_any"].kept_since == moment(13_000 - 3_000).replace(microsecond=1)


@pytest.mark.parametrize(
    ("query", "lateness", "said"),
    [
        (
            "A ; B",
            "0 seconds",
            r"patterns\.kr_bad\.query: the pattern has no WITHIN, .* add one, such as WITHIN 1 HOUR",
        ),
        ("A ; B WITHIN 1 MIN", "none", r"patterns\.kr_bad\.stream: events of 'kept .*' never settle"),
    ],
)
def test_what_cannot_be_kept_is_refused(lake: SketchLake, query: str, lateness: str, said: str) -> None:
    stream = PatternStream(lake, f"kept {lateness}", {"kr_bad": {"query": query}}, allowed_lateness=lateness)
    with pytest.raises(ConfigurationError, match=said):
        stream.take(letters("AB"))
    assert stream.lake.rows(f"SELECT * FROM {DATABASE}_internal.intents_log WHERE object = 'kr_bad'") == []


def test_what_only_a_question_would_tell_is_told_before_anything_is_written(lake: SketchLake) -> None:
    """Measures are tried as `match_pattern` would; conditions that only Spark evaluates are for its text alone."""
    refused = {
        "MEASURES nothing_like_it(B.position) AS odd": r"line 1, column 16: .*nothing_like_it",
        "MEASURES B.colour AS colour": r"line 1, column 16: colour is not an attribute",
        "MEASURES rand() + B.position AS luck": "gives another value each time it is computed",
        "MEASURES stddev_pop(B.position) + nowhere(1) AS odd": "nowhere",
        "MEASURES B.position AS final": "the answer has a column final already",
        "DEFINE B AS dayofweek(time) = 1": "column 19: function dayofweek is not allowed in a predicate.*elsewhere, "
        "make the condition of B an attribute of the stream",
    }
    stream = PatternStream(lake, "kept unasked", {})
    stream.take(letters("AB"))
    for clause, said in refused.items():
        stream.patterns = {"ku_bad": {"query": f"A ; B {clause} WITHIN 1 MIN"}}
        with pytest.raises(PatternLakeError, match=rf"(?s)patterns( of 'ku_bad'|\.ku_bad\.query): .*{said}"):
            stream.keep()
    stream.patterns = {
        "ku_good": {"query": "A ; B MEASURES stddev_pop(B.position) AS s, 1 AS one, B.time AS at WITHIN 1 MIN"}
    }
    stream.keep()
    assert lake.rows(f"SELECT * FROM {DATABASE}_internal.intents_log WHERE object = 'ku_bad'") == []


@pytest.mark.slow
def test_another_meaning_needs_a_rebuild(lake: SketchLake) -> None:
    stream = PatternStream(lake, "kept changed", {"ks": {"query": "A ; B WITHIN 1 MIN"}})
    stream.take(letters("ABB"))
    with pytest.raises(StateError, match=r"policy: 'skip_till_any' → 'strict'.*--rebuild"):
        stream.keep(policy="strict")
    stream.keep(rebuild=True, policy="strict")
    (rows,) = lake.ask([stream.kept("ks")])
    assert [row["bindings"] for row in rows] == [{"A": [1], "B": [2]}]
    (rows,) = lake.ask([stream.kept("ks", as_of=stream.moments[0])])
    assert [row["bindings"]["B"] for row in rows] == [[2], [3]]


@pytest.mark.slow
def test_a_stream_that_is_built_anew_is_answered_from_its_events_until_the_job_has_read_them(lake: SketchLake) -> None:
    stream = PatternStream(lake, "kept anew", {"kt": {"query": "A ; B WITHIN 1 MIN"}}, ingested=True)
    stream.take(letters("ABB"))
    stream.write(letters("AB", begin=5))
    stream.run("ingest", rebuild=True)
    (rows,) = same(lake, asked(stream))
    assert len(rows) == 4
    stream.keep()
    assert len(stream.written("kt")) == 4
    same(lake, asked(stream))


@pytest.mark.slow
def test_events_before_what_was_final_are_answered_and_need_a_rebuild(lake: SketchLake) -> None:
    """`allowed_lateness` may change at any time: while it is none, nothing is too late."""
    stream = PatternStream(
        lake, "kept unsettled", {"ku": {"query": "A ; B WITHIN 1 MIN"}}, allowed_lateness="0 seconds"
    )
    stream.take(letters("ABX", begin=10))
    for lateness, events in (("none", letters("A")), ("0 seconds", letters("B", begin=20))):
        stream.section["allowed_lateness"] = lateness
        stream.write(events)
        stream.ingest()
    (rows,) = same(lake, asked(stream))
    assert len(rows) == 4
    with pytest.raises(StateError, match=r"took an event at 2024-01-01 00:00:00.* run it with --rebuild"):
        stream.keep()
    stream.keep(rebuild=True)
    assert len(stream.written("ku")) == 4


def test_python_asks_for_a_kept_pattern(lake: SketchLake, small: PatternStream) -> None:
    import patternlake

    found = patternlake.match_pattern(lake.spark, query="kq_ab").collect()
    assert in_order(found) == in_order(lake.ask([small.text("kq_ab")])[0])
    assert call("match_pattern", query="kq_ab") == "match_pattern(query => 'kq_ab')"
