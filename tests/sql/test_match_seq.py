"""match_seq through SQL: SPEC's worked answers, and random questions against brute force."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from naive import sketch_matching as naive
from naive.sketch_cases import POLICIES, naive_rows, random_conditions, random_pattern
from sql.sketch_lake import (
    E,
    SketchLake,
    Stream,
    by_tasks,
    call,
    first_positions,
    leaf_intervals,
    moment,
    naive_events,
    naive_nodes,
    sequence,
    shared,
    worked,
)

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


KEYS = ("k1", "k2", None)
NAMES = ["A", "B", "C", "D", "network_partition", "where_events"]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


# --- worked answers -------------------------------------------------------------------------------------------------


def spans_from(lake: SketchLake, begin: int, length: int, calls: Sequence[dict[str, Any]]) -> list[Any]:
    """Spans of questions to one of the streams, counted from its own first position."""
    stream = worked(lake)
    texts = [stream.seq(from_position=begin, to_position=begin + length - 1, **given) for given in calls]
    return [[(a - begin + 1, b - begin + 1) for a, b in spans] for spans in lake.spans(texts)]


def test_worked_answers_of_a_then_b(lake: SketchLake) -> None:
    stream = worked(lake)
    pattern = "SEQ(A, B)"
    first = {"pattern": pattern, "to_position": 16}
    strict, following, past_last, by_default, every = lake.spans(
        [
            stream.seq(**first, policy="strict"),
            stream.seq(**first, policy="skip_till_next", after_match="next"),
            stream.seq(**first, policy="skip_till_next", after_match="past_last"),
            stream.seq(**first),
            stream.seq(**first, policy="skip_till_any"),
        ]
    )
    assert strict == [(1, 2), (13, 14)]
    assert following == [(1, 2), (5, 8), (6, 8), (9, 12), (13, 14)]
    assert past_last == by_default == [(1, 2), (5, 8), (9, 12), (13, 14)]
    assert every == [(a, b) for a in (1, 5, 6, 9, 13) for b in (2, 4, 8, 12, 14, 16) if a < b]
    assert len(every) == 19


def test_worked_answers_of_conjunction_negation_and_run(lake: SketchLake) -> None:
    (conjunction,) = spans_from(lake, 17, 4, [{"pattern": "SEQ(A, AND(B, C))"}])
    assert conjunction == [(1, 3)]
    (negation,) = spans_from(lake, 21, 4, [{"pattern": "SEQ(A, !B, C)"}])
    assert negation == [(3, 4)]
    (run,) = spans_from(lake, 25, 5, [{"pattern": "A ; B , C"}])
    assert run == [(1, 5)]


def test_worked_answer_of_verify_an_event_serves_one_operand(lake: SketchLake) -> None:
    (found,) = spans_from(lake, 30, 3, [{"pattern": "SEQ(A, A)", "verify": True}])
    assert found == [(1, 2)]


def test_exact_answers_equal_leaves_of_one_event(lake: SketchLake) -> None:
    patterns = ["SEQ(A, AND(B, C))", "SEQ(A, !B, C)", "A ; B , C"]
    stream = worked(lake)
    exact = lake.spans([stream.seq(pattern, verify=True, to_position=29) for pattern in patterns])
    leaves = lake.spans([stream.seq(pattern, to_position=29) for pattern in patterns])
    assert exact == leaves


def test_a_row_says_what_it_rests_on(lake: SketchLake) -> None:
    stream = worked(lake)
    (leaf,), (exact,) = lake.ask([stream.seq("B AS b ; D", to_position=16, verify=v) for v in (False, True)])
    for row in (leaf, exact):
        assert row["match_no"] == 1
        assert row["key"] is None
        assert (row["first_position"], row["last_position"]) == (2, 10)
        assert [tuple(step) for step in row["steps"]] == [("b", 2, 2), ("D", 10, 10)]
        assert row["level"] == 0
        assert not row["truncated"]
    assert not leaf["exact"]
    assert exact["exact"]
    assert 0 < leaf["fp_bound"] < 0.05
    assert exact["fp_bound"] == 0
    at = lake.rows("SELECT timestamp_millis(1704067201000) AS a, timestamp_millis(1704067209000) AS b")[0]
    assert (leaf["first_time"], leaf["last_time"]) == (at["a"], at["b"])


def test_rows_are_numbered_and_cut_at_max_matches(lake: SketchLake) -> None:
    stream = worked(lake)
    question = {"pattern": "A ; B", "to_position": 16, "policy": "skip_till_any"}
    for verify in (False, True):
        whole, cut = lake.ask(
            [
                stream.seq(**question, verify=verify, max_matches=19),
                stream.seq(**question, verify=verify, max_matches=7, truncate=True),
            ]
        )
        assert [row["match_no"] for row in whole] == list(range(1, 20))
        assert not any(row["truncated"] for row in whole)
        assert [row["steps"] for row in cut] == [row["steps"] for row in whole[:7]]
        assert all(row["truncated"] for row in cut)
        (error,) = lake.errors([stream.seq(**question, verify=verify, max_matches=18)])
        assert error == (
            "the pattern has 19 matches, more than max_matches = 18; raise max_matches, narrow the question, "
            "or ask with truncate => true for the first rows"
        )


def test_exact_answers_of_all_keys_are_numbered_and_cut_by_key(lake: SketchLake) -> None:
    keys = [None, "k", "l", "m", "É"]
    events = [E(number * 5 + place, "AB"[number % 2], key) for number in range(6) for place, key in enumerate(keys)]
    stream = lake.stream("five keys", events, sketch={"keyed": True}, key="who")
    asked = {"pattern": "A ; B PARTITION BY key", "verify": True, "after_match": "next"}
    whole, cut = lake.ask([stream.seq(**asked, max_matches=3), stream.seq(**asked, max_matches=2, truncate=True)])
    assert [(row["match_no"], row["key"]) for row in whole] == [(number, key) for key in keys for number in (1, 2, 3)]
    assert [first_positions(row) for row in whole[:4]] == [(1, 6), (11, 16), (21, 26), (2, 7)]
    assert not any(row["truncated"] for row in whole)
    assert [(row["key"], row["steps"]) for row in cut] == [
        (row["key"], row["steps"]) for row in whole if row["match_no"] <= 2
    ]
    assert all(row["truncated"] for row in cut)
    (error,) = lake.errors([stream.seq(**asked, max_matches=2)])
    assert error.startswith("the pattern has 3 matches, more than max_matches = 2; ")


def test_bounds_are_inclusive_and_times_bound_like_positions(lake: SketchLake) -> None:
    stream = worked(lake)
    by_position, by_time = lake.spans(
        [
            stream.seq("A ; B", from_position=5, to_position=12),
            stream.seq("A ; B", from_time=moment(4000), to_time=moment(11_000)),
        ]
    )
    assert by_position == by_time == [(5, 8), (9, 12)]


# --- random questions -----------------------------------------------------------------------------------------------


def mixed(lake: SketchLake) -> Stream:
    """Leaves of 4, segments of 16; three keys, one of them NULL; two token expressions; late rows; new tokens later."""
    rng = random.Random(11)

    def event(time: int, number: int) -> E:
        # The first segment is poor, so that the sizes fitted to it are soon too small.
        if number < 16:
            return E(time, "A", "k1", {"tag": "network_partition", "x": 1})
        tag = rng.choice(["network_partition", "where_events", f"u{number}", f"v{number}", None])
        x = rng.choice([0, 1, 2, 3, None])
        return E(time, rng.choice("ABCDE"), rng.choice(KEYS), {"tag": tag, "x": x})

    times = [number * 2 + rng.randint(0, 3) for number in range(96)]
    # In the later batches some events come long after their time, but within the allowed lateness.
    times = [time - 40 if number > 48 and number % 7 == 0 else time for number, time in enumerate(times)]
    made = [event(time, number) for number, time in enumerate(times)]
    cuts = [0, 6, 22, 48, 70, 96]
    batches = [made[low:high] for low, high in pairwise(cuts)]
    return lake.stream(
        "mixed",
        *batches,
        sketch={"events_per_leaf": 4, "keyed": True, "fpq": 1e-5},
        key="who",
        attributes={"tag": "string", "x": "double"},
        tokens=["name", "tag"],
        allowed_lateness="1 hour",
    )


def flat(lake: SketchLake) -> Stream:
    """A uniform sketch with room enough for every parent; no key; times rise."""
    rng = random.Random(12)
    made = [E(number * 3, rng.choice("AABBCCD"), None, {"x": rng.randint(0, 3)}) for number in range(80)]
    return lake.stream(
        "flat",
        made[:30],
        made[30:],
        sketch={"events_per_leaf": 3, "structure": "uniform", "fpq": 1e-5},
        attributes={"x": "double"},
    )


WIDEST = {1: 1000, 2: 1000, 3: 48, 4: 24}
"""How many rows brute force is asked about, by the number of operands."""
FITTED = {"mixed": 33}
"""First position whose filters have the size that they need; those before err often."""


@dataclass(frozen=True)
class Asked:
    """A random question: its SQL text, and what brute force says: (key, first position of each step) by row."""

    call: str
    expected: list[tuple[str | None, tuple[int, ...]]]


def bounds(
    rng: random.Random, lowest: int, count: int, rows: Sequence[Row], widest: int
) -> tuple[dict[str, Any], tuple[int, int], tuple[int, int]]:
    """Random bounds as arguments, as positions and as times; at most `widest` positions, from `lowest` on."""
    positions, times = (1, count), (-(2**62), 2**62)
    given: dict[str, Any] = {}
    if rng.random() < 0.4 or widest < count or lowest > 1:
        first, last = sorted(rng.sample(range(lowest, count + 1), 2))
        positions = first, min(last, first + widest - 1)
        given |= {"from_position": positions[0], "to_position": positions[1]}
    if rng.random() < 0.2:
        times = tuple(sorted(rng.choice(rows)["at"] for _ in range(2)))  # type: ignore[assignment]
        at = [moment(0).timestamp() * 10**6, *times]
        given |= {"from_time": moment((times[0] - at[0]) / 1000), "to_time": moment((times[1] - at[0]) / 1000)}
    return given, positions, times


def inside(row: naive.Row, positions: tuple[int, int], times: tuple[int, int]) -> bool:
    return row.hi >= positions[0] and row.lo <= positions[1] and row.time_hi >= times[0] and row.time_lo <= times[1]


def brute(
    pattern: naive.Pattern, rows: list[naive.Row], given: dict[str, Any], positions: Any, times: Any, exclusive: bool
) -> list[tuple[int, ...]]:
    kept = [row for row in rows if inside(row, positions, times)]
    found = naive.match(pattern, kept, policy=given["policy"], after_match=given["after_match"], exclusive=exclusive)
    listed = naive_rows(kept, found)
    return sorted(listed) if given["policy"] == "skip_till_any" else listed


def random_question(
    rng: random.Random, stream: Stream, events: Sequence[Row], names: list[str], *, verify: bool
) -> Asked:
    """A random pattern, policy, window and key, with the rows that brute force finds."""
    keyed = stream.sketch.get("keyed", False)
    pattern = random_pattern(rng, names=names)  # type: ignore[arg-type]
    if verify and rng.random() < 0.4:
        pattern = random_conditions(rng, pattern)
    policy, after_match = rng.choice(POLICIES)
    # Brute force tries every combination of rows: the more operands, the fewer rows it can be asked about.
    widest = WIDEST.get(len(pattern.slots), 14) * (1 if verify else stream.sketch["events_per_leaf"])
    lowest = 1 if verify else FITTED.get(stream.name, 1)
    given, positions, times = bounds(rng, lowest, len(events), events, widest)
    given |= {"policy": policy, "after_match": after_match}
    if verify:
        given["verify"] = True
    asked_keys: list[str | None] = []
    of_key = keyed and rng.random() < 0.6
    if of_key:
        asked_keys = sorted(KEYS, key=lambda key: (key is not None, key or ""))
        if rng.random() < 0.5:
            asked_keys = [rng.choice(["k1", "k2"])]
            given["key"] = asked_keys[0]
        else:
            pattern = replace(pattern, partition=rng.choice(["key", "who"]))
        if not verify and pattern.within is not None and pattern.within[1]:
            pattern = replace(pattern, within=None)
    else:
        asked_keys = [None]
    expected = []
    for key in asked_keys:
        if verify:
            rows = naive_events(events, key=key, of_key=of_key)
        else:
            leaves = leaf_intervals(len(events), stream.sketch["events_per_leaf"])
            rows = naive_nodes(events, leaves, key=key, of_key=of_key)
        expected += [(key, steps) for steps in brute(pattern, rows, given, positions, times, verify)]
    return Asked(stream.seq(pattern.text(), **given), expected)


def check(lake: SketchLake, asked: Sequence[Asked], *, ordered: bool = True) -> None:
    answers = lake.ask([question.call for question in asked])
    for question, rows in zip(asked, answers, strict=True):
        found = [(row["key"], tuple(step["from_position"] for step in row["steps"])) for row in rows]
        assert sorted(found, key=repr) == sorted(question.expected, key=repr), question.call
        keys = [row["key"] for row in rows]
        assert [row["match_no"] for row in rows] == [keys[: n + 1].count(key) for n, key in enumerate(keys)], (
            question.call
        )
        assert keys == sorted(keys, key=lambda key: (key is not None, key or "")), question.call
    assert any(question.expected for question in asked)


BEYOND = [
    ("A ; B+ ; !C ; D? WITHIN 20 SEC", "skip_till_next"),
    ("A , (B | (C ; D))+ MEASURES COUNT(B.x) AS many, MAX(t(D)) AS last PARTITION BY who WITHIN 9 EVENTS", "strict"),
    (
        "2 OF (A, B{2,3}, C+ UNTIL D) ; !E @(t(E) - t(A) < 2 MILLISECOND) MEASURES MIN(C.x) AS x WITHIN 8 MILLISECOND",
        "skip_till_any",
    ),
    ("A ; (B ; C)+ ; D WHERE D.x > MIN(B.x) PARTITION BY key", "skip_till_next"),
]
"""Patterns that the sketch engine does not match by itself, each with a policy."""


def test_patterns_beyond_the_sketch_engine_have_the_rows_of_match_pattern(lake: SketchLake) -> None:
    stream = mixed(lake)
    given = [(text, {"policy": policy, "after_match": "next"}) for text, policy in BEYOND]
    wanted = lake.ask([call("match_pattern", stream.name, text, **how) for text, how in given])
    asked = [call("match_seq", stream.name, text, **how) for text, how in given]
    found = lake.ask(asked)
    with by_tasks(lake.spark):
        assert lake.ask(asked) == found
    of_all = ("match_no", "key", "first_position", "last_position", "first_time", "last_time", "truncated")
    for question, expected, rows in zip(asked, wanted, found, strict=True):
        assert expected, question
        measures = expected[0].__fields__[9:]
        told = [[row[name] for name in (*of_all, *measures)] for row in rows]
        assert told == [[row[name] for name in (*of_all, *measures)] for row in expected], question
        steps = [[(step["operand"], step["from_position"]) for step in row["steps"]] for row in rows]
        bound = [[(name, at) for name, ats in row["bindings"].items() for at in ats] for row in expected]
        assert list(map(sorted, steps)) == list(map(sorted, bound)), question
    there = lake.said([stream.exists(text.partition(" MEASURES ")[0], verify=True, policy=p) for text, p in BEYOND])
    assert there == [True] * len(BEYOND)


STREAMS = {"mixed": (mixed, NAMES), "flat": (flat, ["A", "B", "C", "D"])}


def questions(lake: SketchLake, name: str, count: int, seed: int, *, verify: bool) -> list[Asked]:
    make, names = STREAMS[name]
    stream, rng = make(lake), random.Random(seed)
    events = stream.events()
    return [random_question(rng, stream, events, names, verify=verify) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_verified_answers_equal_brute_force_on_all_events(lake: SketchLake, name: str) -> None:
    check(lake, questions(lake, name, 10, 1, verify=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_answers_of_big_filters_equal_brute_force_on_leaves(lake: SketchLake, name: str) -> None:
    check(lake, questions(lake, name, 10, 2, verify=False))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", STREAMS)
def test_many_random_questions_equal_brute_force(lake: SketchLake, name: str, verify: bool) -> None:
    check(lake, questions(lake, name, 200, 3, verify=verify))


@pytest.mark.slow
def test_a_level_answers_by_its_nodes_and_one_node_serves_one_operand(lake: SketchLake) -> None:
    stream = flat(lake)
    events = stream.events()
    calls, expected = [], []
    for level in (1, 2):
        nodes = naive_nodes(events, leaf_intervals(len(events), 3 * 2**level))
        for text, pattern in (("A ; D", sequence("A", "D")), ("D ; D", sequence("D", "D"))):
            for policy in ("skip_till_next", "strict"):
                calls.append(stream.seq(text, level=level, policy=policy, after_match="next"))
                given = {"policy": policy, "after_match": "next"}
                expected.append(brute(pattern, nodes, given, (1, 80), (-(2**62), 2**62), False))
    answers = lake.ask(calls)
    assert [[tuple(s["from_position"] for s in row["steps"]) for row in rows] for rows in answers] == expected
    for rows, level in zip(answers, (1, 1, 1, 1, 2, 2, 2, 2), strict=True):
        assert {row["level"] for row in rows} <= {level}
    assert any(expected)


def sloppy(lake: SketchLake) -> Stream:
    """Filters that are wrong often; times rise with positions."""
    rng = random.Random(13)
    made = [E(number * 5, rng.choice("ABCDEFGHIJKL"), rng.choice(["k1", "k2"])) for number in range(120)]
    return lake.stream("sloppy", made, sketch={"events_per_leaf": 3, "keyed": True, "fpq": 0.5}, key="who")


def apart(row: tuple[int, ...], size: int) -> bool:
    """No two operands in one leaf: what leaves can show."""
    leaves = [(position - 1) // size for position in row]
    return len(set(leaves)) == len(leaves)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, pytest.param(150, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_what_is_promised_is_there_even_if_filters_err(lake: SketchLake, count: int) -> None:
    stream, rng = sloppy(lake), random.Random(5)
    rows = stream.events()
    calls, wanted = [], []
    for number in range(count):
        pattern = random_pattern(rng, names="ABCDEFG", negation=False)
        given: dict[str, Any] = {"policy": "skip_till_any", "after_match": "next"}
        if number % 2:
            given = {"policy": "strict", "after_match": "next"}
            pattern = random_pattern(rng, names="ABC", negation=False, conjunction=False)
        low = rng.randint(1, 80)
        positions = (low, low + 40)
        events = naive_events(rows)
        true = brute(pattern, events, given, positions, (-(2**62), 2**62), True)
        bounded = {"from_position": positions[0], "to_position": positions[1]}
        calls.append(stream.seq(pattern.text(), **given, **bounded))
        wanted.append({tuple((p - 1) // 3 for p in row) for row in true if apart(row, 3)})
    for text, answer, promised in zip(calls, lake.ask(calls), wanted, strict=True):
        found = {tuple((step["from_position"] - 1) // 3 for step in row["steps"]) for row in answer}
        assert promised <= found, text
        assert all(0 < row["fp_bound"] < 1 for row in answer)
    assert any(wanted)


# --- what a pattern's text contains ----------------------------------------------------------------------------------


def outages(lake: SketchLake) -> Stream:
    """Names, and values, that contain the language's keywords; the keys take turns, an event a second."""
    names = ["network_partition", "where", "define", "within 3 events", "PARTITION BY key", "failover"] * 2
    made = [
        E(number * 1000, name, ["k1", "k2"][number % 2], {"s": f"DEFINE x WHERE {name} PARTITION BY key"})
        for number, name in enumerate(names)
    ]
    return lake.stream("outages", made, sketch={"keyed": True}, key="who", attributes={"s": "string"})


def test_names_and_values_that_contain_keywords_are_no_clauses(lake: SketchLake) -> None:
    stream = outages(lake)
    either = "f DEFINE f AS s LIKE '%WHERE failover PARTITION BY key%'"
    asked = {
        "network_partition ; failover": [(1, 6), (7, 12)],
        "'where'\n;\n'PARTITION BY key' within 1 min": [(2, 5), (8, 11)],
        "'within 3 events' ; 'define' WITHIN 6 EVENT": [(4, 9)],
        f"network_partition ; {either}": [(1, 6), (7, 12)],
        f"network_partition ; {either} partition\tby who": [],
        "network_partition ; 'PARTITION BY key' Partition By key": [(1, 5), (7, 11)],
    }
    assert lake.spans([stream.seq(text, verify=True) for text in asked]) == list(asked.values())
    plain = ["network_partition ; failover", "network_partition ; 'PARTITION BY key' Partition By key"]
    assert lake.spans([stream.seq(text) for text in plain]) == [asked[text] for text in plain]
    assert lake.said([stream.exists(text, key="k1") for text in plain]) == [False, True]


@pytest.mark.parametrize("text", ["A ; B", "A ; B WITHIN 5 SEC"])
@pytest.mark.parametrize("verify", [False, True])
def test_a_limit_is_at_least_one(lake: SketchLake, text: str, verify: bool) -> None:
    calls = [worked(lake).seq(text, verify=verify, max_matches=limit, truncate=True) for limit in (0, -1)]
    assert lake.errors(calls) == [f"max_matches must be 1 or more, not {limit}" for limit in (0, -1)]


# --- the default ----------------------------------------------------------------------------------------------------


def visits(lake: SketchLake) -> Stream:
    """Leaves of four with one event of each visitor; few events are rare or odd, most are plain."""
    names = ["plain"] * 32
    for place, name in {1: "odd", 2: "rare", 8: "rare", 9: "odd", 20: "rare", 22: "odd"}.items():
        names[place] = name
    made = [E(number * 1000, name, f"v{number % 4}") for number, name in enumerate(names)]
    return lake.stream("visits", made, sketch={"events_per_leaf": 4, "keyed": True, "fpq": 1e-5}, key="who")


def test_an_answer_is_exact_unless_the_sketch_alone_is_asked(lake: SketchLake) -> None:
    visits(lake)
    exact, sketch = lake.ask([call("match_seq", "visits", "odd ; rare", **one) for one in ({}, {"verify": False})])
    # One leaf holds the first odd and the first rare event: the sketch can't tell which came first.
    assert [first_positions(row) for row in exact] == [(2, 3), (10, 21)]
    assert all(row["exact"] and row["fp_bound"] == 0 for row in exact)
    assert [first_positions(row) for row in sketch] == [(1, 9), (9, 21)]
    assert not any(row["exact"] for row in sketch)


@pytest.mark.parametrize(
    "question", [{"pattern": "plain ; plain PARTITION BY key"}, {"pattern": "plain ; odd", "key": "v2"}]
)
def test_questions_of_keys_are_exact_too(lake: SketchLake, question: dict[str, Any]) -> None:
    stream = visits(lake)
    plain, verified = lake.ask([call("match_seq", "visits", **question), stream.seq(**question, verify=True)])
    assert plain
    assert plain == verified


def test_keys_need_no_keyed_sketch_but_for_the_sketch_alone(lake: SketchLake) -> None:
    made = [E(number * 1000, name, "ab"[number % 2]) for number, name in enumerate("AABBAB")]
    stream = lake.stream("unkeyed", made, sketch={"events_per_leaf": 2}, key="who")
    assert lake.spans(
        [stream.seq("A ; B", key="a", verify=True), stream.seq("A ; B PARTITION BY who", verify=True)]
    ) == [
        [(1, 3)],
        [(1, 3), (2, 4)],
    ]
    (error,) = lake.errors([stream.seq("A ; B", key="a")])
    assert "key => 'a': the sketch of 'unkeyed' is not keyed" in error


def test_a_level_is_asked_of_the_sketch_alone(lake: SketchLake) -> None:
    (error,) = lake.errors([call("match_seq", "visits", "odd ; rare", level=1)])
    assert "level 1: an exact answer is about events; ask the sketch alone with verify => false" in error
    (rows,) = lake.ask([visits(lake).seq("odd ; rare", level=1)])
    assert [row["level"] for row in rows] == [1] * len(rows) != []


# --- moments --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_of_an_earlier_batch_is_the_answer_given_then(lake: SketchLake) -> None:
    stream = mixed(lake)
    rows = stream.events()
    pattern = sequence("A", "B")
    every: Any = ((1, 1000), (-(2**62), 2**62))
    given = {"policy": "skip_till_next", "after_match": "next"}
    calls, expected = [], []
    for at, end in zip(stream.moments, stream.ends, strict=True):
        calls += [stream.seq("A ; B", **given, as_of=at, verify=v) for v in (False, True)]
        nodes = naive_nodes(rows[:end], leaf_intervals(end, 4))
        expected.append(brute(pattern, nodes, given, *every, False))
        expected.append(brute(pattern, naive_events(rows[:end]), given, *every, True))
    assert lake.steps(calls) == expected
    assert len({len(answer) for answer in expected[1::2]}) > 2
