"""Everything that can be wrong with a call of the sketch functions: a clear error, no stack, no injection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, call, moment, shared, worked

import patternlake
from patternlake.delta_tables.databases.migrations import PROPERTY, SCHEMA_VERSION
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

HOSTILE = 'it\'s "odd"; DROP TABLE `x` -- ☃ 日本\\'
LONG = "n" * 10_000
NAMES = ["it's", 'say "so"', "a;b", "naïve", "日本", "--", "back\\slash", "%s", LONG]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def asked(lake: SketchLake) -> Stream:
    """A stream without a key."""
    return worked(lake)


@pytest.fixture(scope="module")
def unkeyed(lake: SketchLake) -> Stream:
    """A stream with a key, a sketch that is not keyed; odd names everywhere."""
    made = [E(number * 1000, name, f"k'{number % 2}") for number, name in enumerate(["A", *NAMES, "B"])]
    return lake.stream(HOSTILE, made, key="who", attributes={"x": "double"}, sketch={"events_per_leaf": 2})


@pytest.fixture(scope="module")
def keyed(lake: SketchLake) -> Stream:
    made = [E(number * 1000, "AB"[number % 2], ["k'1", 'k";2', None][number % 3]) for number in range(12)]
    return lake.stream("asked by key", made, key="who", sketch={"keyed": True})


CALLS = {
    "unknown stream": ({"stream": "nope"}, "there is no sketch of a stream 'nope'; streams with a sketch: "),
    "stream that is SQL": ({"stream": "x' OR '1'='1"}, "there is no sketch of a stream \"x' OR '1'='1\"; "),
    "no stream": ({"stream": None}, "stream is NULL; give the name of a stream"),
    "no pattern": ({"pattern": None}, "pattern is NULL; give a pattern"),
    "empty pattern": ({"pattern": ""}, "line 1, column 1: "),
    "blank pattern": ({"pattern": "  \n "}, "line "),
    "unknown policy": (
        {"policy": "skip"},
        "policy must be one of strict, skip_till_next, skip_till_any, not 'skip'",
    ),
    "position bounds": (
        {"from_position": 5, "to_position": 2},
        "from_position is after to_position (5 > 2); swap them",
    ),
    "time bounds": (
        {"from_time": moment(5000), "to_time": moment(1000)},
        "from_time is after to_time (2024-01-01 00:00:05.000000 > 2024-01-01 00:00:01.000000); swap them",
    ),
    "key of a stream without": (
        {"key": "k1"},
        "key => 'k1': the stream 'worked' has no key; configure `key` for it",
    ),
    "partition of a stream without": (
        {"pattern": "A ; B PARTITION BY key"},
        "PARTITION BY key: the stream 'worked' has no key; configure `key` for it",
    ),
    "unknown partition": (
        {"pattern": "A ; B PARTITION BY colour"},
        "PARTITION BY colour: match_seq, match_exists and sketch_error partition by the stream's key only; "
        "write PARTITION BY key, or ask match_pattern, which takes any column",
    ),
    "syntax": ({"pattern": "A ; ; B"}, "line 1, column 5: "),
    "syntax in the second line": ({"pattern": "A ;\nB C"}, "line 2, column 3: "),
    "Kleene": ({"pattern": "A ; B+"}, "line 1, column 6: the sketch engine"),
    "timecond": ({"pattern": "A ; B @(t2 - t1 < 5 min)"}, "line 1, column "),
    "negation first": ({"pattern": "!A ; B"}, "line 1, column 1: "),
    "DEFINE without verify": ({"pattern": "e DEFINE e AS TRUE"}, "line 1, column "),
}
SEQ_CALLS = {
    "unknown after_match": (
        {"after_match": "last"},
        "after_match must be one of past_last, next, not 'last'",
    ),
    "level above the top": (
        {"level": 3},
        "level 3: the sketch of 'worked' has the levels 0 (leaves) to 2 (whole segments)",
    ),
    "negative level": ({"level": -1}, "level -1: the sketch of 'worked' has the levels 0 (leaves) to 2"),
    "level of an exact answer": (
        {"level": 1, "verify": True},
        "level 1: an exact answer is about events; ask the sketch alone with verify => false, or leave the level out",
    ),
    "max_matches": ({"max_matches": 0}, "max_matches must be 1 or more, not 0"),
    "WHERE without verify": ({"pattern": "A ; B WHERE A.position < 3"}, "line 1, column "),
    "unknown column": ({"pattern": "A ; B WHERE A.speed < 3", "verify": True}, "line 1, column "),
    "unknown parameter": ({"pattern": "A ; B WHERE A.position < most", "verify": True}, "line 1, column "),
    "subquery": (
        {"pattern": "A ; B WHERE A.position < (SELECT max(position) FROM events)", "verify": True},
        "line 1, column ",
    ),
    "function": ({"pattern": "A WHERE reflect('java.lang.System', 'exit')", "verify": True}, "line 1, column "),
    "Python": ({"pattern": "A WHERE __import__('os').getpid() > 0", "verify": True}, "line 1, column "),
}


def texts(function: str, cases: dict[str, tuple[dict[str, Any], str]]) -> list[str]:
    return [
        call(function, **({"stream": "worked", "pattern": "A ; B", "verify": False} | arguments))
        for arguments, _ in cases.values()
    ]


def test_each_wrong_argument_of_match_seq_is_named(lake: SketchLake, asked: Stream) -> None:
    cases = CALLS | SEQ_CALLS
    for name, (_, expected), error in zip(cases, cases.values(), lake.errors(texts("match_seq", cases)), strict=True):
        assert error.startswith(expected), f"{name}: {error}"


def test_each_wrong_argument_of_match_exists_is_named(lake: SketchLake, asked: Stream) -> None:
    for name, (_, expected), error in zip(
        CALLS, CALLS.values(), lake.errors(texts("match_exists", CALLS)), strict=True
    ):
        assert error.startswith(expected), f"{name}: {error}"


def test_a_syntax_error_shows_the_line_with_a_caret(lake: SketchLake, asked: Stream) -> None:
    (error,) = lake.errors([asked.seq("A ;\nB ; ) ; C")])
    first, line, caret = error.split("\n")
    assert first.startswith("line 2, column 5: ")
    assert "')'" in first
    assert line == "  B ; ) ; C"
    assert caret == "      ^"


def test_a_long_pattern_with_an_error_shows_only_the_place(lake: SketchLake, asked: Stream) -> None:
    (error,) = lake.errors([asked.seq(" ; ".join(["A"] * 3000) + " ; ; B")])
    assert len(error) < 500
    assert error.splitlines()[-1].strip() == "^"


def test_too_many_operands_or_names_are_refused_with_the_limit(lake: SketchLake, asked: Stream) -> None:
    operands, repeated = lake.errors([asked.seq(" ; ".join(["A"] * 201)), asked.seq("A[100000]")])
    assert "a pattern has at most 200 operands" in operands
    assert "a pattern has at most 200 operands, this repeats 100000 times" in repeated


def test_a_key_on_a_sketch_that_is_not_keyed_is_refused(lake: SketchLake, unkeyed: Stream) -> None:
    one, every = lake.errors([unkeyed.seq("A", key="k'1"), unkeyed.exists("A PARTITION BY who")])
    assert "is not keyed; ask match_seq or match_exists without verify => false, or configure `keyed: true`" in one
    assert one.startswith('key => "k\'1": the sketch of')
    assert every.startswith("PARTITION BY who: the sketch of")


def test_counted_windows_of_a_key_need_verify(lake: SketchLake, keyed: Stream) -> None:
    pattern = "A ; B WITHIN 3 EVENTS"
    (error,) = lake.errors([keyed.seq(pattern, key="k'1")])
    assert error.startswith("line 1, column 7: WITHIN … EVENTS counts the events of a key here, and leaves don't")
    lake.ask([keyed.seq(pattern, key="k'1", verify=True)])


def test_odd_names_are_found_as_they_are(lake: SketchLake, unkeyed: Stream) -> None:
    calls = []
    for name in NAMES:
        quoted = "'" + name.replace("'", "''") + "'"
        calls += [unkeyed.seq(quoted, verify=verify) for verify in (False, True)]
    answers = lake.ask(calls)
    for number, name in enumerate(NAMES):
        leaf, exact = answers[2 * number : 2 * number + 2]
        assert [row["first_position"] for row in exact] == [number + 2], name[:20]
        assert any(row["first_position"] <= number + 2 <= row["last_position"] for row in leaf), name[:20]
        assert [step["operand"] for step in exact[0]["steps"]] == [name]


def test_odd_names_in_streams_keys_and_parameters_are_only_text(
    lake: SketchLake, unkeyed: Stream, keyed: Stream
) -> None:
    tables = lake.rows(f"SHOW TABLES IN {DATABASE}_internal")
    assert lake.said([call("match_exists", HOSTILE, "A ; B"), call("match_exists", HOSTILE, "B ; A")]) == [True, False]
    for key in ("k'1", 'k";2', "'; DROP TABLE sketch_lake_internal.events_log; --", LONG, ""):
        exact, leaf = lake.ask([keyed.seq("A", key=key, verify=v, after_match="next") for v in (True, False)])
        known = key in ("k'1", 'k";2')
        assert bool(exact) == bool(leaf) == known
        assert all(row["key"] == key for row in exact + leaf)
    rows = lake.ask([unkeyed.seq("A ; B WHERE A.key = p", verify=True, params={"p": "k' OR 1=1"})])
    assert rows == [[]]
    assert lake.rows(f"SHOW TABLES IN {DATABASE}_internal") == tables


def test_unknown_streams_of_any_name_are_refused(lake: SketchLake, asked: Stream) -> None:
    for name in ("", "'", HOSTILE + "!", "worked\u0000", LONG, "WORKED"):
        for error in lake.errors([call("match_seq", name, "A"), call("match_exists", name, "A")]):
            # A word is shown up to its eightieth letter.
            assert error.startswith(f"there is no sketch of a stream {name!r:.70}"), name[:20]
            assert "; streams with a sketch: " in error
            assert "'worked'" in error


def test_null_arguments_mean_their_defaults(lake: SketchLake, asked: Stream) -> None:
    names = [
        "policy",
        "after_match",
        "key",
        "from_position",
        "to_position",
        "from_time",
        "to_time",
        "level",
        "verify",
        "params",
        "max_matches",
        "truncate",
        "as_of",
    ]
    nulls = asked.seq("A ; B", **dict.fromkeys(names))
    assert lake.ask([nulls]) == lake.ask([asked.seq("A ; B", verify=True)])
    names = ["policy", "key", "from_position", "to_position", "from_time", "to_time", "as_of", "verify"]
    assert lake.said([asked.exists("A ; B", **dict.fromkeys(names))]) == [True]


def test_per_row_calls_of_match_exists_fail_for_the_wrong_row(lake: SketchLake, asked: Stream) -> None:
    (error,) = lake.errors(["SELECT match_exists(s, p) FROM VALUES ('worked', 'A'), ('worked', 'A ; ;') AS t(s, p)"])
    assert error.startswith("line 1, column 5: ")
    rows = lake.rows("SELECT match_exists(s, p) FROM VALUES ('worked', 'A') AS t(s, p)")
    assert rows[0][0] is True


def test_match_seq_takes_constants_only(lake: SketchLake, asked: Stream) -> None:
    with pytest.raises(PySparkException) as caught:
        lake.rows("SELECT m.* FROM VALUES ('worked', 'A ; B') AS t(s, p), LATERAL match_seq(t.s, t.p) AS m")
    assert "Traceback" not in str(caught.value)


def test_arguments_of_another_type_or_name_are_refused_by_spark(lake: SketchLake, asked: Stream) -> None:
    wrong = [
        "SELECT * FROM match_seq('worked')",
        "SELECT * FROM match_seq('worked', 'A', polcy => 'strict')",
        "SELECT * FROM match_seq('worked', 'A', from_position => 'first')",
        "SELECT * FROM match_seq('worked', 'A', as_of => 'yesterday-ish')",
        "SELECT match_exists('worked')",
    ]
    missing, unknown, number, time, exists = lake.errors(wrong)
    assert "match_seq: pattern is missing" in missing
    assert "polcy" in unknown
    assert "first" in number
    assert "yesterday-ish" in time
    assert "match_exists: pattern is missing" in exists


def test_a_database_of_a_newer_version_is_refused_with_both_versions(lake: SketchLake, asked: Stream) -> None:
    table = f"{DATABASE}_internal.publications_log"
    lake.rows(f"ALTER TABLE {table} SET TBLPROPERTIES ('{PROPERTY}' = '99')")
    try:
        with pytest.raises(StateError) as caught:
            patternlake.enable(lake.spark, database=DATABASE, location=lake.location)
    finally:
        lake.rows(f"ALTER TABLE {table} SET TBLPROPERTIES ('{PROPERTY}' = '{SCHEMA_VERSION}')")
    told = f"has schema version 99, but this PatternLake knows versions up to {SCHEMA_VERSION}; update PatternLake"
    assert told in str(caught.value)
    assert lake.said([asked.exists("A ; B")]) == [True]
