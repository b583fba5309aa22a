"""match_exists through SQL: once, per row of a table, and where ageing leaves no answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from naive import sketch_matching as naive
from naive.sketch_cases import random_pattern
from pyspark.errors import PySparkException
from sql.sketch_lake import (
    E,
    SketchLake,
    Stream,
    by_tasks,
    call,
    leaf_intervals,
    moment,
    naive_events,
    naive_nodes,
    sequence,
    shared,
    value_text,
    worked,
)

from patternlake.sql_ext.functions.match_exists import _NAMES, _per_row
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.sketches import exact_existence
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def keyed(lake: SketchLake) -> Stream:
    """Leaves of two events, three keys, one of them NULL; times rise."""
    rng = random.Random(21)
    made = [E(n * 10, rng.choice("ABCDEF"), rng.choice(["k1", "k2", None])) for n in range(60)]
    sketch = {"events_per_leaf": 2, "keyed": True, "fpq": 1e-5}
    return lake.stream("keyed", made[:25], made[25:], sketch=sketch, key="who")


def test_a_sequence_exists_or_not(lake: SketchLake) -> None:
    stream = worked(lake)
    said = {
        "A ; D": True,
        "D ; D": False,
        "D , C , B , A": True,
        "D , B": False,
        "A ; !B ; C": True,
        "D ; !C ; B": False,
        "AND(D, C) ; A": True,
        "X | D": True,
        "X": False,
    }
    assert lake.said([stream.exists(pattern, to_position=16) for pattern in said]) == list(said.values())


def test_bounds_and_policies_count(lake: SketchLake) -> None:
    stream = worked(lake)
    assert lake.said(
        [
            stream.exists("A ; B", policy="strict", from_position=3, to_position=12),
            stream.exists("A ; B", policy="strict", from_position=3, to_position=16),
            stream.exists("D", from_time=moment(9000), to_time=moment(9000)),
            stream.exists("D", from_time=moment(9001), to_time=moment(15_000)),
            stream.exists("A ; B", to_position=1),
        ]
    ) == [False, True, True, False, False]


def test_it_answers_for_each_row_of_a_table(lake: SketchLake) -> None:
    worked(lake)
    keyed(lake)
    rows = lake.rows(
        "SELECT p, match_exists('worked', p, to_position => 16) AS a, match_exists(s, p, to_position => n) AS b "
        "FROM VALUES ('A ; D', 'worked', 9), ('A ; D', 'worked', 10), ('Z', 'keyed', 5) AS t(p, s, n) ORDER BY p, n"
    )
    assert [tuple(row) for row in rows] == [("A ; D", True, False), ("A ; D", True, True), ("Z", False, False)]


def test_it_stands_wherever_an_expression_may(lake: SketchLake) -> None:
    worked(lake)
    rows = lake.rows(
        "SELECT p FROM VALUES ('A ; D'), ('D ; D') AS t(p) WHERE match_exists('worked', p, to_position => 16) "
        "AND NOT match_exists('worked', concat(p, ' ; X'))"
    )
    assert [row["p"] for row in rows] == ["A ; D"]


def test_one_key_or_every_key(lake: SketchLake) -> None:
    stream = keyed(lake)
    events = stream.events()
    leaves = leaf_intervals(len(events), 2)
    calls, expected = [], []
    rng = random.Random(3)
    for number in range(6):
        pattern = random_pattern(rng, names="ABCDEF", window=False)
        positions = (20, 44) if number % 2 else (1, 60)
        bounds = {"from_position": positions[0], "to_position": positions[1]}
        found = {}
        for key in ("k1", "k2", None):
            nodes = [
                node
                for node in naive_nodes(events, leaves, key=key, of_key=True)
                if node.hi >= positions[0] and node.lo <= positions[1]
            ]
            found[key] = bool(naive.match(pattern, nodes, policy="skip_till_next", after_match="next", exclusive=False))
        calls += [stream.exists(pattern.text(), key=key, **bounds) for key in ("k1", "k2")]
        expected += [found["k1"], found["k2"]]
        calls.append(stream.exists(pattern.text() + " PARTITION BY who", **bounds))
        expected.append(any(found.values()))
    assert lake.said(calls) == expected
    assert {True, False} <= set(expected)


def test_existence_is_never_lost(lake: SketchLake) -> None:
    stream = keyed(lake)
    events = naive_events(stream.events())
    calls: list[str] = []
    rng = random.Random(4)
    while len(calls) < 8:
        pattern = random_pattern(rng, names="ABCDEF", negation=False)
        low = rng.randint(1, 40)
        kept = [event for event in events if low <= event.lo <= low + 15]
        found = naive.match(pattern, kept, policy="skip_till_any", after_match="next", exclusive=True)
        if any(len({(kept[i].lo - 1) // 2 for i, _ in match}) == len(match) for match in found):
            calls.append(stream.exists(pattern.text(), policy="skip_till_any", from_position=low, to_position=low + 15))
    assert lake.said(calls) == [True] * len(calls)


def test_as_of_an_earlier_batch(lake: SketchLake) -> None:
    stream = keyed(lake)
    events = stream.events()
    calls, expected = [], []
    for name in "ABCDEF":
        for at, end in zip(stream.moments, stream.ends, strict=True):
            calls.append(stream.exists(f"{name} ; F", as_of=at))
            nodes = naive_nodes(events[:end], leaf_intervals(end, 2))
            pattern = sequence(name, "F")
            expected.append(
                bool(naive.match(pattern, nodes, policy="skip_till_next", after_match="next", exclusive=False))
            )
    per_row = lake.rows(
        "SELECT "
        + ", ".join(f"match_exists('keyed', p, as_of => {value_text(at)}, verify => false)" for at in stream.moments)
        + " FROM VALUES "
        + ", ".join(f"('{name} ; F')" for name in "ABCDEF")
        + " AS t(p)"
    )
    assert lake.said(calls) == expected
    assert [said for row in per_row for said in row] == expected


def test_a_moment_that_is_yet_to_come_is_refused_for_each_row_as_well(lake: SketchLake) -> None:
    keyed(lake)
    asked = "match_exists('keyed', p, as_of => TIMESTAMP '2999-01-01') FROM VALUES ('A ; B') AS t(p)"
    with pytest.raises(PySparkException, match=r"as_of 2999-01-01.* is yet to come"):
        lake.rows(f"SELECT {asked}")


# --- exactly --------------------------------------------------------------------------------------------------------


def test_a_sequence_inside_one_leaf_exists(lake: SketchLake) -> None:
    """Of the sketch alone, one leaf never serves two operands."""
    sketch = {"events_per_leaf": 4, "keyed": True}
    made = [E(n * 10, name, key) for n, (name, key) in enumerate(zip("ABBA", "klkl", strict=True))]
    stream = lake.stream("inside", made, sketch=sketch, key="who")
    by_user = "SELECT match_exists('inside', 'A ; B', key => u{}) AS said FROM VALUES ('k'), ('l') AS t(u) ORDER BY u"
    assert lake.said([call("match_exists", "inside", "A ; B"), stream.exists("A ; B")]) == [True, False]
    assert [row["said"] for row in lake.rows(by_user.format(""))] == [True, False]
    assert [row["said"] for row in lake.rows(by_user.format(", verify => false"))] == [False, False]


@pytest.mark.parametrize("policy", ["skip_till_next", "skip_till_any", "strict"])
def test_existence_is_that_of_a_full_scan(lake: SketchLake, policy: str) -> None:
    stream = keyed(lake)
    events = stream.events()
    rng = random.Random(policy)
    calls: list[str] = []
    expected: list[bool] = []
    patterns = [random_pattern(rng, names="ABCDEF", window=False) for _ in range(4)]
    by_key: dict[tuple[str, str | None], bool] = {}
    for pattern in patterns:
        text = pattern.text()
        for key in ("k1", "k2", None):
            rows = naive_events(events, key=key, of_key=True)
            by_key[text, key] = bool(naive.match(pattern, rows, policy=policy, after_match="next", exclusive=True))
        whole = bool(naive.match(pattern, naive_events(events), policy=policy, after_match="next", exclusive=True))
        calls += [stream.exists(text, policy=policy, verify=True)]
        calls += [stream.exists(text, policy=policy, verify=True, key=key) for key in ("k1", "k2", "nobody")]
        calls += [stream.exists(f"{text} PARTITION BY who", policy=policy, verify=True)]
        of_keys = [by_key[text, key] for key in ("k1", "k2", None)]
        expected += [whole, *of_keys[:2], False, any(of_keys)]
    assert lake.said(calls) == expected
    assert {True, False} == set(expected)
    texts = ", ".join(f"({value_text(pattern.text())})" for pattern in patterns)
    rows = lake.rows(
        f"SELECT p, k, match_exists('keyed', p, '{policy}', key => k) AS said "
        f"FROM VALUES {texts} AS t(p) CROSS JOIN VALUES ('k1'), ('k2'), ('nobody') AS u(k)"
    )
    assert {(row["p"], row["k"]): row["said"] for row in rows} == {
        (pattern.text(), key): by_key.get((pattern.text(), key), False)
        for pattern in patterns
        for key in ("k1", "k2", "nobody")
    }


def test_conditions_count(lake: SketchLake) -> None:
    made = [E(n * 1000, name, None, {"x": x}) for n, (name, x) in enumerate([("A", 5), ("B", 3), ("A", 1), ("B", 2)])]
    stream = lake.stream("conditions of existence", made, attributes={"x": "int"})
    said = {"A ; B WHERE A.x < B.x": True, "A ; B WHERE A.x > B.x + 3": False, "A ; B WHERE A.x > B.x + 1": True}
    assert lake.said([stream.exists(pattern, verify=True) for pattern in said]) == list(said.values())
    assert (
        "ask match_seq or match_exists without verify => false"
        in lake.errors([stream.exists("A ; B WHERE A.x < B.x")])[0]
    )


def test_more_events_than_one_process_may_read_are_left_to_tasks(lake: SketchLake) -> None:
    stream = keyed(lake)
    calls = [stream.exists(text, verify=True) for text in ("A ; B ; C", "Z ; A", "A ; B PARTITION BY who")]
    here = lake.said(calls)
    with by_tasks(lake.spark):
        assert lake.said(calls) == here == [True, False, True]


def test_rows_that_limits_have_cut_are_each_answered(lake: SketchLake) -> None:
    """A function that joined its answers to a second copy of its rows would answer others than those that are shown."""
    keyed(lake)
    lake.rows(
        "CREATE OR REPLACE TEMPORARY VIEW users AS SELECT concat('k', id) AS name FROM range(1, 40) ORDER BY rand(3)"
    )
    asked = "match_exists('keyed', 'A ; B', key => name)"
    every = dict(lake.rows(f"SELECT name, {asked} FROM users"))
    assert [name for name, found in sorted(every.items()) if found] == ["k1", "k2"]
    for inner, outer in (("ORDER BY name LIMIT 20", "LIMIT 5"), ("LIMIT 20", "ORDER BY found, name LIMIT 5")):
        cut = lake.rows(f"SELECT name, {asked} AS found FROM (SELECT name FROM users {inner}) {outer}")
        assert len(cut) == 5
        assert all(row["found"] is every[row["name"]] for row in cut)


def test_a_row_without_a_key_asks_the_whole_stream(lake: SketchLake) -> None:
    keyed(lake)
    rows = lake.rows("SELECT match_exists('keyed', 'A ; B', key => name) FROM VALUES (CAST(NULL AS STRING)) AS t(name)")
    assert [tuple(row) for row in rows] == [(True,)]


def test_what_is_wrong_with_one_row_is_not_wrong_with_another(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(lake)
    answers = _per_row(
        lake_of(lake.spark), {name: None for name in _NAMES if name not in ("key", "pattern")} | {"stream": "keyed"}
    )

    def refuse(*_: object) -> bool:
        raise ArgumentError("too many events")

    monkeypatch.setattr(exact_existence, "occurs_here", refuse)
    rows = answers(
        pa.StructArray.from_arrays([pa.array(["A ; B", "A ; B"]), pa.array(["k1", None])], ["pattern", "key"])
    )
    assert rows.to_pylist() == [{"found": True, "error": None}, {"found": None, "error": "too many events"}]
