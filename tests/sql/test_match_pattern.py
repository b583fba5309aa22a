"""match_pattern and explain_pattern through SQL, on published events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timezone
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from naive.kleene import Event, matches
from naive.kleene_kernels import compiled
from naive.kleene_random import KEYWORDS as WORDS
from naive.kleene_random import TYPES, Pattern, random_events, random_plan
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, by_tasks, call, letters, moment, shared

from patternlake.sql_ext.lakes.lake import REPLAN_FACTOR
from patternlake.sql_ext.patterns import around_anchors
from patternlake.udfs.errors import PatternError
from patternlake.udfs.kleene import request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bindings = dict[str, list[int]]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def published(lake: SketchLake, name: str, *batches: Sequence[E], ingested: bool = False, **stream: Any) -> Stream:
    """A stream without a sketch."""
    if name not in lake.streams:
        made = lake.streams[name] = Stream(lake, name, {}, stream, ingested=ingested)
        for events in batches:
            made.write(events)
            made.ingest()
            made.moments.append(made.publications("ingest")[-1]["published_at"].astimezone(timezone.utc))
    return lake.streams[name]


def pattern(stream: Stream, text: str, **arguments: Any) -> str:
    return call("match_pattern", stream.name, text, **arguments)


def bound(lake: SketchLake, calls: Sequence[str]) -> list[list[Bindings]]:
    """What each row of each call binds, without operands that have no event."""
    return [[{o: p for o, p in row["bindings"].items() if p} for row in rows] for rows in lake.ask(calls)]


# The stream of each worked answer of SPEC 3: the digit of an event is its place.
WORKED = [
    ("mmggmgm", "g & m+ WITHIN 5 EVENTS", "m1 m2 g3, m1 m2 g4, m2 m5 g6, g3 m5 m7, g4 m5 m7, g6 m7"),
    ("aazbcc", "a+;b;c+ WITHIN 5 EVENTS", "a1 a2 b4 c5, a2 b4 c5 c6"),
    ("abab", "a+;b+", "a1 a3 b4, a1 b2 b4"),
    ("axab", "a+;!x;b", "a1 a3 b4"),
    (
        "azzbzbbbbcd",
        "a ; b[3] ; c ; d",
        ", ".join(f"a1 b{i} b{j} b{k} c10 d11" for i, j, k in combinations((4, 6, 7, 8, 9), 3)),
    ),
    ("azbab", "a , b", "a4 b5"),
    ("abxab", "a+ , b", "a1 b2, a1 a4 b5"),
    ("acbc", "a ; b? ; c", "a1 c2, a1 b3 c4"),
    ("abbbc", "a ; b{1,2} ; c", "a1 b2 b3 c5, a1 b2 b4 c5, a1 b3 b4 c5"),
    ("abubc", "a ; b+ UNTIL u ; c", "a1 b2 c5, a1 b4 c5"),
    ("axc", "2 OF (a, b, c)", "a1 c3"),
]


def told(row: Bindings, names: str, begin: int) -> str:
    """A row as SPEC writes it."""
    places = sorted(position - begin for positions in row.values() for position in positions)
    return " ".join(f"{names[place - 1]}{place}" for place in places)


def test_worked_answers(lake: SketchLake) -> None:
    stream = published(lake, "kleene worked", letters("".join(names for names, _, _ in WORKED)), ingested=True)
    begins = [sum(len(names) for names, _, _ in WORKED[:number]) for number in range(len(WORKED))]
    calls = [
        pattern(stream, text, from_time=moment(begin * 1000), to_time=moment((begin + len(names) - 1) * 1000))
        for begin, (names, text, _) in zip(begins, WORKED, strict=True)
    ]
    for rows, begin, (names, _, expected) in zip(bound(lake, calls), begins, WORKED, strict=True):
        assert sorted(told(row, names, begin) for row in rows) == sorted(expected.split(", "))


def test_every_choice_of_what_a_repetition_takes_is_a_match_where_all_are_asked_for(lake: SketchLake) -> None:
    stream = published(lake, "kleene chosen", letters("abbc"))
    rows, first = bound(
        lake,
        [
            pattern(stream, "a ; b+ ; c", repetition="ALL"),
            pattern(stream, "a ; b* ; c", repetition="all", max_matches=1, truncate=True),
        ],
    )
    assert rows == [
        {"a": [1], "b": [2, 3], "c": [4]},
        {"a": [1], "b": [2], "c": [4]},
        {"a": [1], "b": [3], "c": [4]},
    ]
    assert first == rows[:1]
    (error,) = lake.errors([pattern(stream, "a ; b+ ; c", repetition="each")])
    assert error == "repetition must be one of maximal, all, not 'each'"


def test_near_misses_of_every_choice(lake: SketchLake) -> None:
    """An A awaits a D as long as some B has no C behind it."""
    stream = published(lake, "kleene begun", letters("ABCBAACBADCBABCB"))
    text = "A ; B ; !C ; D MEASURES t(B) - t(A) AS waited WITHIN 9 SEC"
    asked = pattern(stream, text, partial=True)
    with by_tasks(lake.spark):
        (dealt,) = lake.ask([asked])
    (rows,) = lake.ask([asked])
    assert dealt == rows
    found = [
        ({o: p for o, p in row["bindings"].items() if p}, row["missing"], row["final"], row["waited"].seconds)
        for row in rows
    ]
    assert found == [
        ({"A": [1], "B": [8]}, "D", True, 7),
        ({"A": [5], "B": [8], "D": [10]}, None, True, 3),
        ({"A": [6], "B": [8], "D": [10]}, None, True, 2),
        ({"A": [9], "B": [16]}, "D", False, 7),
        ({"A": [13], "B": [16]}, "D", False, 3),
    ]
    assert [row["deadline"] is None for row in rows] == [False, True, True, False, False]
    (error,) = lake.errors([pattern(stream, "A ; (B | C)+", repetition="all", partial=True)])
    assert "takes no '|', OF, '?', '*' and no further group in a repeated group" in error


def test_greedy_policies_take_the_whole_grammar(lake: SketchLake) -> None:
    events = [E(at * 1000, "p", None, {"x": x}) for at, x in enumerate([1, 2, 3, 2])]
    prices = published(lake, "kleene prices", events, attributes={"x": "double"})
    rises = (
        "s ; up+ up[] ; down DEFINE s AS TRUE, up AS TRUE, down AS TRUE "
        "WHERE up[i].x > up[i-1].x AND FIRST(up.x) > s.x AND down.x < LAST(up.x)"
    )
    stream = published(lake, "kleene rounds", letters("abababcba"))
    asked = [
        pattern(prices, rises, policy="strict", after_match="past_last"),
        pattern(stream, "(a ; b)+ ; c", policy="skip_till_next", after_match="past_last"),
        pattern(stream, "(a & b) , c", policy="skip_till_next"),
        pattern(stream, "a AS First ; b{2} AS Bs", policy="skip_till_next", after_match="LAST Bs"),
        pattern(stream, "a ; b+ UNTIL c", policy="skip_till_next", repetition="all", from_time=moment(4000)),
    ]
    steered, rounds, beside, resumed, every = bound(lake, asked)
    assert steered == [{"s": [1], "up": [2, 3], "down": [4]}]
    assert rounds == [{"a": [1, 3, 5], "b": [2, 4, 6], "c": [7]}]
    assert beside == [{"a": [5], "b": [6], "c": [7]}]
    assert resumed == [{"First": [1], "Bs": [2, 4]}, {"First": [5], "Bs": [6, 8]}]
    assert every == [{"a": [5], "b": [6]}]
    errors = lake.errors(
        [
            pattern(stream, "a ; b", policy="skip_till_next", after_match="first d"),
            pattern(stream, "a ; b", policy="skip_till_next", after_match="first a"),
        ]
    )
    assert errors[0] == "after_match => 'first d': d is not an operand that takes events; operands are a, b"
    assert errors[1].startswith("after_match => 'first a': the match that begins at position 1 begins with a,")


@pytest.mark.slow
def test_neighbours_compare_with_the_last_kept_event(lake: SketchLake) -> None:
    values = [E(number * 1000, "b", None, {"x": x}) for number, x in enumerate([5, 3, 4, 6])]
    stream = published(lake, "kleene neighbours", values, attributes={"x": "double"})
    assert bound(lake, [pattern(stream, "b+ WHERE b[i].x > b[i-1].x")]) == [[{"b": [1, 4]}]]


KEYED = [
    E(number * 1000, name, key, {"x": x, "s": s})
    for number, (name, key, x, s) in enumerate(
        [
            ("A", "k", 1, "u"),
            ("A", None, 2, "u"),
            ("B", "k", 3, "v"),
            ("B", None, 1, "u"),
            ("A", "É", 5, "v"),
            ("B", "É", 6, None),
            ("B", "k", 0, "u"),
        ]
    )
]


def keyed(lake: SketchLake) -> Stream:
    return published(lake, "kleene keyed", KEYED, key="who", attributes={"x": "double", "s": "string"})


def test_aggregates_say_which_matches_count(lake: SketchLake) -> None:
    stream = keyed(lake)
    where = "SUM(A.x) >= 1 AND COUNT(A.s) < 3 AND MIN(A.s) = 'u'"
    measures = "SUM(A.x) AS total, COUNT(A.s) AS known, MIN(A.s) AS least"
    (rows,) = lake.ask([pattern(stream, f"A+ ; B WHERE {where} MEASURES {measures} PARTITION BY key")])
    told = [(row["key"], row["last_position"], row["total"], row["known"], row["least"]) for row in rows]
    assert told == [(None, 4, 2.0, 1, "u"), ("k", 3, 1.0, 1, "u"), ("k", 7, 1.0, 1, "u")]


def test_partitions_are_matched_apart_and_null_is_one(lake: SketchLake) -> None:
    stream = keyed(lake)
    text = "A ; B PARTITION BY key"
    everything, unlimited, one, cut = lake.ask(
        [
            pattern(stream, text),
            pattern(stream, text, max_matches=None, truncate=None),
            pattern(stream, text, key="É"),
            pattern(stream, text, max_matches=1, truncate=True),
        ]
    )
    rows = [(row["match_no"], row["key"], row["first_position"], row["last_position"]) for row in everything]
    assert rows == [(1, None, 2, 4), (1, "k", 1, 3), (2, "k", 1, 7), (1, "É", 5, 6)]
    assert unlimited == everything
    assert [(row["match_no"], row["key"], row["first_position"]) for row in one] == [(1, "É", 5)]
    kept = [(row["key"], row["last_position"], row["truncated"]) for row in cut]
    assert kept == [(None, 4, False), ("k", 3, True), ("É", 6, False)]
    (error,) = lake.errors([pattern(stream, text, max_matches=1)])
    assert error.startswith("the pattern has at least 2 matches, more than max_matches = 1")


def test_a_key_without_partition_is_the_streams_own(lake: SketchLake) -> None:
    stream = keyed(lake)
    ((first, second),) = lake.ask([pattern(stream, "A ; B", key="k")])
    assert [(row["key"], row["last_position"]) for row in (first, second)] == [("k", 3), ("k", 7)]


def test_several_columns_partition_together(lake: SketchLake) -> None:
    (rows,) = lake.ask([pattern(keyed(lake), "A ; B PARTITION BY key, s")])
    assert [(r["key"], r["first_position"], r["last_position"]) for r in rows] == [("NULL,u", 2, 4), ("k,u", 1, 7)]


def test_conditions_parameters_and_attributes_that_agree(lake: SketchLake) -> None:
    found = bound(
        lake,
        [
            pattern(keyed(lake), "A ; B WHERE B.x > A.x + more", params={"more": "3"}),
            pattern(keyed(lake), "A ; B WHERE [s]"),
            pattern(keyed(lake), "A ; big DEFINE big AS name = 'B' AND x > 2"),
        ],
    )
    assert found == [
        [{"A": [1], "B": [6]}, {"A": [2], "B": [6]}],
        [{"A": [1], "B": [4]}, {"A": [1], "B": [7]}, {"A": [2], "B": [4]}, {"A": [2], "B": [7]}],
        [{"A": [1], "big": [3]}, {"A": [1], "big": [6]}, {"A": [2], "big": [3]}, {"A": [2], "big": [6]},
         {"A": [5], "big": [6]}],
    ]  # fmt: skip


def test_bounds_of_time_are_inclusive_and_come_before_matching(lake: SketchLake) -> None:
    (found,) = bound(lake, [pattern(keyed(lake), "A+ ; B", from_time=moment(1000), to_time=moment(5000))])
    assert found == [{"A": [2], "B": [3]}, {"A": [2], "B": [4]}, {"A": [2, 5], "B": [6]}]


def test_ranks_count_all_events_of_the_partition(lake: SketchLake) -> None:
    stream = keyed(lake)
    found = bound(
        lake,
        [
            pattern(stream, "A ; B PARTITION BY key WITHIN 2 EVENTS"),
            pattern(stream, "A ; B WITHIN 2 EVENTS"),
            pattern(stream, "A ; B", policy="strict"),
            pattern(stream, "A ; B PARTITION BY key", policy="strict"),
        ],
    )
    by_key = [{"A": [2], "B": [4]}, {"A": [1], "B": [3]}, {"A": [5], "B": [6]}]
    beside = [{"A": [2], "B": [3]}, {"A": [5], "B": [6]}]
    assert found == [by_key, beside, beside, by_key]


def test_ranks_count_events_that_the_pattern_cannot_take(lake: SketchLake) -> None:
    events = [E(number * 1000, name, "k", {}) for number, name in enumerate("ACBAB")]
    stream = published(lake, "kleene others", events, key="who")
    found = bound(
        lake,
        [
            pattern(stream, "A ; B PARTITION BY key WITHIN 2 EVENTS"),
            pattern(stream, "A ; B PARTITION BY key WITHIN 3 EVENTS"),
            pattern(stream, "A ; B PARTITION BY key", policy="strict"),
        ],
    )
    assert found == [[{"A": [4], "B": [5]}], [{"A": [1], "B": [3]}, {"A": [4], "B": [5]}], [{"A": [4], "B": [5]}]]


def test_a_text_that_reads_like_a_clause_is_none(lake: SketchLake) -> None:
    texts = [
        "A ; b DEFINE b AS name IN ('B', 'PARTITION BY key') PARTITION BY s",
        "A ; b DEFINE b AS name IN ('B', 'x PARTITION BY key WITHIN ') PARTITION BY s",
        "A ; b DEFINE b AS name IN ('B') PARTITION BY s",
    ]
    expected = [{"A": [1], "b": [4]}, {"A": [1], "b": [7]}, {"A": [2], "b": [4]}, {"A": [2], "b": [7]}]
    assert bound(lake, [pattern(keyed(lake), text) for text in texts]) == [expected] * 3


KEYWORDS = ("network_partition", "where", "define", "within 3 events", "unit", "PARTITION BY key", "failover")


def words(lake: SketchLake) -> Stream:
    """Names, and values, that contain the language's keywords; the keys take turns, an event a second."""
    made = [
        E(number * 1000, name, "kl"[number % 2], {"s": f"DEFINE x WHERE {name} PARTITION BY key WITHIN 2 EVENTS"})
        for number, name in enumerate(KEYWORDS)
    ]
    return published(lake, "kleene words", made, key="who", attributes={"s": "string"})


def test_names_and_values_that_contain_keywords_are_no_clauses(lake: SketchLake) -> None:
    stream = words(lake)
    both = {"network_partition": [1], "failover": [7]}
    calls = [
        pattern(stream, "network_partition ; failover"),
        pattern(stream, "network_partition ; failover", key="k"),
        pattern(stream, "network_partition ; failover", key="l"),
        pattern(stream, "network_partition ; failover WITHIN 1 MIN"),
        pattern(stream, "network_partition ; failover\nwithin\n6 sec"),
        pattern(stream, "network_partition ; 'PARTITION BY key'", key="k"),
        pattern(stream, "'where' ; 'define'", key="l"),
        pattern(stream, "'within 3 events' ; unit"),
        pattern(stream, "network_partition ; f DEFINE f AS s LIKE '%WHERE failover PARTITION BY key%'"),
        pattern(stream, "network_partition ; f define f as s LIKE '%WHERE failover PARTITION%' partition\tby\nkey"),
    ]
    assert bound(lake, calls) == [
        [both], [both], [], [both], [], [], [], [{"within 3 events": [4], "unit": [5]}],
        [{"network_partition": [1], "f": [7]}], [{"network_partition": [1], "f": [7]}],
    ]  # fmt: skip


def test_events_are_counted_whatever_they_are_called(lake: SketchLake) -> None:
    stream = words(lake)
    units = ["EVENTS", "EVENT", "UNIT", "units", "event", "\n Events"]
    texts = [f"network_partition ; failover WITHIN {n} {unit}" for n in (6, 7) for unit in units]
    found = bound(lake, [pattern(stream, text) for text in texts])
    assert found == [[]] * 6 + [[{"network_partition": [1], "failover": [7]}]] * 6


@pytest.mark.parametrize("text", ["A ; B", "A ; B WITHIN 5 SEC", "A ; B PARTITION BY key"])
def test_a_limit_is_at_least_one(lake: SketchLake, text: str) -> None:
    calls = [pattern(keyed(lake), text, max_matches=limit, truncate=True) for limit in (0, -1)]
    assert lake.errors(calls) == [f"max_matches must be 1 or more, not {limit}" for limit in (0, -1)]


def test_a_match_is_final_once_the_watermark_lets_nothing_change_it(lake: SketchLake) -> None:
    stream = published(lake, "kleene final", letters("ABAB"), [E(9000, "A")], allowed_lateness="2 seconds")
    calls = [pattern(stream, text) for text in ("A ; B", "A ; B+ WITHIN 4 SEC", "A ; B+ WITHIN 40 SEC", "A ; B+")]
    first = [pattern(stream, "A ; B", as_of=stream.moments[0])]
    plain, short, long, open_ = lake.ask(calls)
    assert [row["final"] for row in plain] == [True, True, True]
    assert [row["final"] for row in short] == [True, True]
    assert not any(row["final"] for row in [*long, *open_])
    # The watermark was second 1 then: a B at second 1 can no longer be preceded by another event.
    assert [(row["last_position"], row["final"]) for row in lake.ask(first)[0]] == [(2, True), (4, False), (4, False)]


@pytest.mark.slow
def test_as_of_an_earlier_batch_is_the_answer_given_then(lake: SketchLake) -> None:
    stream = published(lake, "kleene batches", letters("AB"), letters("AB", begin=2))
    then, now = bound(lake, [pattern(stream, "A ; B", as_of=stream.moments[0]), pattern(stream, "A ; B")])
    assert then == [{"A": [1], "B": [2]}]
    assert now == [{"A": [1], "B": [2]}, {"A": [1], "B": [4]}, {"A": [3], "B": [4]}]


WRONG = [
    ("match_pattern(NULL, 'A')", "stream is NULL; give the name of a stream"),
    ("match_pattern('kleene keyd', 'A')", "there is no stream 'kleene keyd' (did you mean 'kleene keyed'?); streams: "),
    (
        "match_pattern('raw.clicks', 'A')",
        "; a table becomes one by `patternlake init --table raw.clicks` and `patternlake run all`",
    ),
    ("match_pattern('kleene keyed', NULL)", "pattern is NULL; give a pattern"),
    ("match_pattern('kleene keyed', 'A ; ?')", "line 1, column 5"),
    ("match_pattern('kleene keyed', '(A ; B)+')", "only with repetition => 'all'"),
    ("match_pattern('kleene keyed', 'A , !B , C')", "'!' (not) stands inside ','"),
    ("match_pattern('kleene keyed', 'A', policy => 'any')", "policy must be one of "),
    ("match_pattern('kleene keyed', 'A ; B', plan => '(A C)')", "'C' is not an operand of the pattern"),
    ("match_pattern('kleene keyed', 'A ; B WHERE C.x > 1')", "C"),
    ("match_pattern('kleene keyed', 'A ; B WHERE A.z > 1')", "z is not an attribute of the stream"),
    ("match_pattern('kleene keyed', 'A PARTITION BY z')", "PARTITION BY z: not an attribute of the stream"),
    (
        "match_pattern('kleene keyed', 'A', from_time => TIMESTAMP '2024-01-02', to_time => TIMESTAMP '2024-01-01')",
        "from_time is after to_time (2024-01-02 00:00:00.000000 > 2024-01-01 00:00:00.000000); swap them",
    ),
    ("match_pattern('kleene unkeyed', 'A', key => 'k')", "the stream 'kleene unkeyed' has no key; configure `key`"),
    ("match_pattern('kleene keyed', 'A', max_matches => 0)", "max_matches must be 1 or more, not 0"),
    (
        "explain_pattern('kleene keyed', 'A ; B', plan => 'up')",
        "plan must be one of left, right, bushy, inner or a tree",
    ),
]


@pytest.mark.parametrize(
    "wrong", [pytest.param(WRONG[::4], id="some"), pytest.param(WRONG, id="all", marks=pytest.mark.slow)]
)
def test_a_wrong_argument_is_named(lake: SketchLake, wrong: list[tuple[str, str]]) -> None:
    keyed(lake)
    published(lake, "kleene unkeyed", letters("AB"))
    for error, (text, said) in zip(lake.errors([text for text, _ in wrong]), wrong, strict=True):
        assert said in error, text


def test_the_plan_is_shown_with_its_steps_and_never_changes_the_rows(lake: SketchLake) -> None:
    stream = published(lake, "kleene plans", letters("AAABAACBABC"))
    text = "A ; B ; C WITHIN 8 EVENTS"
    lines = lake.rows(f"SELECT * FROM {call('explain_pattern', stream.name, text)}")
    assert [row["line"] for row in lines] == list(range(1, len(lines) + 1))
    # C is rarest, then B.
    assert lines[0]["plan"] == "plan (A (B C)) (cheapest)"
    assert lines[0]["cost"] > 0
    shown = lake.rows(f"SELECT * FROM {call('explain_pattern', stream.name, text, plan='left')}")
    assert shown[0]["plan"] == "plan ((A B) C) (forced)"
    plans = [None, "left", "right", "bushy", "inner", "((C A) B)"]
    answers = bound(lake, [pattern(stream, text, plan=plan) for plan in plans])
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)


def test_a_plan_that_is_tried_says_what_it_gave(lake: SketchLake) -> None:
    stream = published(lake, "kleene plans", letters("AAABAACBABC"))
    text = "A ; B+ ; !A AS no ; C WHERE COUNT(B.position) > 1 WITHIN 9 EVENTS"
    asked = f"SELECT * FROM {call('explain_pattern', stream.name, text, plan='left', analyze=True)}"
    here = lake.rows(asked)
    with by_tasks(lake.spark):
        elsewhere = lake.rows(asked)
    found = {row["plan"].strip(): row["actual_rows"] for row in here}
    (matched,) = lake.ask([pattern(stream, text)])
    # The last C is in reach of four A's, and two B's lie between it and three of them; the first C has one B before it.
    assert found["plan ((A B) C) (forced)"] == found["then !no: none in its gap"] == len(matched) == 3
    assert (found["A"], found["B+"], found["C"]) == (6, 3, 2)
    assert {row["plan"].strip(): row["actual_rows"] for row in elsewhere} == found
    assert all((row["actual_seconds"] is None) == (row["actual_rows"] is None) for row in (*here, *elsewhere))
    plain = lake.rows(f"SELECT * FROM {call('explain_pattern', stream.name, text)}")
    assert {(row["actual_rows"], row["actual_seconds"]) for row in plain} == {(None, None)}


def test_events_without_partitions_are_dealt_out_in_blocks_that_overlap_by_the_window(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(11)
    events = [E(n * 700, rng.choice("ABCX"), "k", {"x": n % 5}) for n in range(90)]
    stream = published(lake, "in blocks", events, key="who", attributes={"x": "double"})
    texts = (
        "A ; B+ ; C WHERE A.x < C.x WITHIN 6 SEC",
        "A ; !X ; B WITHIN 5 EVENTS",
        "A & B WITHIN 4 EVENTS",
        "A ; B ; C WITHIN 3 SEC",
    )
    calls = [pattern(stream, text) for text in texts]
    calls += [pattern(stream, texts[0], policy="skip_till_next"), pattern(stream, texts[3], key="k")]
    here = lake.ask(calls)
    assert all(here)
    monkeypatch.setattr(request, "TASK_EVENTS", 10)
    with by_tasks(lake.spark):
        elsewhere = lake.ask(calls)
    assert [sorted(map(str, rows)) for rows in elsewhere] == [sorted(map(str, rows)) for rows in here]


@pytest.mark.parametrize("factor", ["1", "much", "inf"])
def test_a_factor_of_replanning_that_says_nothing_is_refused(lake: SketchLake, factor: str) -> None:
    stream = keyed(lake)
    lake.spark.conf.set(REPLAN_FACTOR, factor)
    try:
        (error,) = lake.errors([pattern(stream, f"A ; B WHERE A.x <> {len(factor)}")])
    finally:
        lake.spark.conf.unset(REPLAN_FACTOR)
    assert error == f"{REPLAN_FACTOR} must be a number above 1, or 0 for plans that stay, not '{factor}'"


def test_conditions_are_estimated_from_what_maintain_found(lake: SketchLake) -> None:
    rng = random.Random(5)
    events = [E(n * 1000, "AB"[n % 2], f"k{n % 4}", {"x": rng.random(), "s": "uvwxy"[n % 5]}) for n in range(400)]
    stream = published(lake, "kleene estimates", events, key="who", attributes={"x": "double", "s": "string"})
    asked = [
        (f"A ; B WHERE {condition} WITHIN 2 EVENTS", share)
        for condition, share in [("B.x > 0.9", 0.1), ("B.x > A.x", 0.5), ("B.s = A.s", 0.2)]
    ]
    plain = call("explain_pattern", stream.name, "A ; B WITHIN 2 EVENTS")
    calls = [f"SELECT rows FROM {plain} WHERE line = 1"]
    calls += [f"SELECT rows FROM {call('explain_pattern', stream.name, text)} WHERE line = 1" for text, _ in asked]
    before = [rows[0][0] for rows in lake.ask(calls)]
    stream.run("maintain")
    whole, *after = [rows[0][0] for rows in lake.ask(calls)]
    # Nothing was known of them before: shares were guessed.
    assert [one / before[0] for one in before[1:]] == pytest.approx([1 / 3, 1 / 3, 0.1])
    assert [one / whole for one in after] == pytest.approx([share for _, share in asked], rel=0.25)
    (row,) = lake.rows(
        f"SELECT count(*) AS n, sum(events) AS events FROM {DATABASE}.event_statistics WHERE stream = '{stream.name}'"
    )
    assert (row["n"], row["events"]) == (2, 400)


# --- random patterns ------------------------------------------------------------------------------------------------


def random_stream(lake: SketchLake, seed: int) -> tuple[Stream, list[Event]]:
    """A stream in three batches, and its events as `ingest` numbered them."""
    events = random_events(random.Random(seed), 14, WORDS)
    made = [
        E(event.time // 1000, event.name, None, {name: shown(value) for name, value in event.values.items()})
        for event in events
    ]
    cuts = [0, 5, 9, 14]
    stream = published(
        lake,
        f"kleene random {seed}",
        *(made[low:high] for low, high in pairwise(cuts)),
        attributes=TYPES,
        allowed_lateness="1 hour",
    )
    rows = lake.rows(
        f"SELECT position, unix_micros(time) AS at, name, CAST(attributes['x'] AS DOUBLE) AS x, "
        f"CAST(attributes['n'] AS BIGINT) AS n, attributes['s'] AS s FROM {DATABASE}.events "
        f"WHERE stream = '{stream.name}'"
    )
    return stream, [Event(row.position, row["at"], row["name"], {"x": row.x, "n": row.n, "s": row.s}) for row in rows]


def shown(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


@pytest.fixture(params=["all", "around the rarest"])
def events_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which events patterns with a window read: of so few all are, unless each name is said to be rare."""
    if request.param != "all":
        for name, value in (("_FEW_EVENTS", 0), ("_RARE", 0)):
            assert hasattr(around_anchors, name)
            monkeypatch.setattr(around_anchors, name, value)


@pytest.mark.usefixtures("events_read")
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed else []) for seed in range(8)])
def test_random_patterns_equal_the_oracle(lake: SketchLake, seed: int) -> None:
    stream, events = random_stream(lake, seed)
    rng = random.Random(seed)
    calls, expected = [], []
    while len(calls) < (6 if seed == 0 else 40):
        policy = rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"])
        text = Pattern(rng, scan=policy != "skip_till_any", most=3, names=WORDS).text
        after = rng.choice(["next", "past_last"])
        try:
            operands = compiled(text, TYPES, policy=policy).operands
        except PatternError:
            continue
        rows = matches(text, events, TYPES, policy=policy, after_match=after)
        plan = random_plan(rng, [o.name for o in operands if not o.negated]) if rng.random() < 0.5 else None
        calls.append(pattern(stream, text, policy=policy, after_match=after, plan=plan))
        expected.append([{name: list(positions) for name, positions in row.items()} for row in rows])
    for text, found, wanted in zip(calls, bound(lake, calls), expected, strict=True):
        assert found == wanted, text
