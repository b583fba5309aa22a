"""A table in the place of a stream: the same answers as a stream of the same events gives, positions aside."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from sql.sketch_lake import E, SketchLake, Stream, call, moment, shared

import patternlake
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "TABLE(clicks) PARTITION BY user ORDER BY (at)"
ATTRIBUTES = {"x": "bigint", "via": "string"}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def stream(lake: SketchLake) -> Stream:
    """Events as a stream, and as the view ``clicks`` in another order; no two have the same time."""
    rng = random.Random(47)
    events = [
        E(1000 * at, rng.choice("abcd"), f"u{rng.randint(0, 5)}", {"x": rng.randint(0, 3), "via": rng.choice("mn")})
        for at in range(120)
    ]
    made = Stream(lake, "clicked", {}, {"key": "who", "attributes": ATTRIBUTES})
    made.write(events)
    made.ingest()
    rows = [(one.key, one.name, one.attributes["x"], one.attributes["via"], moment(one.time)) for one in events]
    rng.shuffle(rows)
    frame = frame_of_tuples(lake.spark, rows, "user STRING, page STRING, x BIGINT, via STRING, at TIMESTAMP")
    frame.withColumn("unused", F.array("x")).createOrReplaceTempView("clicks")
    return made


def by_time(lake: SketchLake, stream: Stream) -> tuple[dict[int, Any], dict[tuple[str, int], Any]]:
    """The time of each position of the stream, and of each key's ranks."""
    events = sorted(stream.events(), key=lambda row: row["position"])
    ranks: dict[str, int] = {}
    of_rank = {}
    for row in events:
        ranks[row["key"]] = ranks.get(row["key"], 0) + 1
        of_rank[row["key"], ranks[row["key"]]] = row["position"]
    return {row["position"]: row["at"] for row in events}, of_rank


def shown(row: Any, place: Any) -> tuple[Any, ...]:
    """All of a row, positions as `place` says."""

    def plain(name: str, value: Any) -> Any:
        if value is None:
            return None
        if name == "bindings":
            return {operand: [place(row["key"], one) for one in positions] for operand, positions in value.items()}
        if name == "positions":
            return [place(row["key"], one) for one in value]
        return place(row["key"], value) if name.endswith("position") else value

    left_out = ("match_no", "final", "waited_seconds")
    return tuple(
        (name, plain(name, value)) for name, value in row.asDict(recursive=True).items() if name not in left_out
    )


QUESTIONS = [
    ("match_pattern", "a ; b+ ; c", {}),
    ("match_pattern", "a ; b ; c WITHIN 20 SEC", {"policy": "skip_till_next"}),
    ("match_pattern", "a ; b ; c WITHIN 9 SEC", {"policy": "skip_till_next", "partial": True}),
    ("match_pattern", "a ; b+ ; c ; !d WHERE b.x <= a.x WITHIN 9 SEC", {"repetition": "all", "partial": True}),
    ("match_pattern", "a ; b", {"policy": "strict", "after_match": "past_last"}),
    ("match_pattern", "a ; b WHERE a.x < b.x AND b.via = 'm'", {"policy": "skip_till_next"}),
    ("match_pattern", "a & b WITHIN 5 EVENTS", {}),
    ("match_pattern", "big ; a DEFINE big AS x >= least AND via = 'n'", {"params": {"least": "2"}, "key": "u3"}),
    ("match_pattern", "a ; !c ; b", {"policy": "skip_till_next"}),
    ("match_funnel_rows", "a ; b ; c WITHIN 15 SEC", {}),
    ("match_funnel_rows", "a ; b ; c ; d WITHIN 30 SEC", {"to_time": moment(90_000)}),
    ("match_funnel_rows", "a ; b ; c", {"mode": "strict_order"}),
    ("match_funnel", "a ; b | c ; d", {"by": "via", "next": 2}),
    ("match_pattern", "a ; b+ ; c WHERE b[i].x >= b[i-1].x AND [via] WITHIN 30 SEC", {"policy": "skip_till_any"}),
    ("match_pattern", "a | b ; c WITHIN 9 SEC", {"policy": "strict"}),
    ("match_funnel_rows", "a ; c ; b ; d", {"mode": "once"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("match_pattern", "a ; b+"),
        ("match_pattern", "a ; !b"),
        ("match_pattern", "a ; b ; !c WITHIN 3 EVENTS"),
        ("match_funnel_rows", "a ; b ; c"),
        ("cet_trends", "PATTERN a ; b"),
        ("cet_count", "PATTERN a+"),
    ],
)
def test_no_later_row_changes_what_a_table_answers(lake: SketchLake, stream: Stream, function: str, text: str) -> None:
    first = (text,) if function.startswith("cet") else ("clicked", text)
    stands = {"stream": "clicked"} if function.startswith("cet") else {}
    asked = call(function, *first, **stands, name="page").replace("'clicked'", TABLE, 1)
    rows = lake.rows(f"SELECT final FROM {asked}")
    assert rows
    assert all(row["final"] for row in rows)


@pytest.mark.parametrize(("function", "text", "given"), QUESTIONS)
def test_a_table_answers_as_a_stream_of_its_rows(
    lake: SketchLake, stream: Stream, function: str, text: str, given: dict[str, Any]
) -> None:
    by_key = f"{text} PARTITION BY key" if function == "match_pattern" else text
    if "WITHIN" in text and function == "match_pattern":
        head, _, tail = text.partition(" WITHIN ")
        by_key = f"{head} PARTITION BY key WITHIN {tail}"
    (wanted,) = lake.ask([call(function, "clicked", by_key, **given)])
    asked = call(function, "clicked", text, name="page", **given).replace("'clicked'", TABLE, 1)
    found = lake.spark.sql(f"SELECT * FROM {asked}").collect()
    _, position = by_time(lake, stream)
    assert wanted
    assert sorted(map(repr, (shown(row, lambda key, rank: position[key, rank]) for row in found))) == sorted(
        map(repr, (shown(row, lambda key, one: one) for row in wanted))
    )


@pytest.mark.parametrize(
    ("function", "text", "given"),
    [
        ("cet_count", "PATTERN a ; b+ ; c WITHIN 20 SEC SLIDE 10 SEC", {}),
        ("cet_trends", "PATTERN a ; b WHERE a.x < b.x MEASURES b.via AS via, t(b) - t(a) AS gap WITHIN 20 SEC", {}),
        ("cet_aggregate", "PATTERN a ; b+ WITHIN 30 SEC", {"aggregate": "SUM(x), MAX(x)"}),
    ],
)
def test_trends_of_a_table(lake: SketchLake, stream: Stream, function: str, text: str, given: dict[str, Any]) -> None:
    head, _, tail = text.partition(" WITHIN ")
    (wanted,) = lake.ask([call(function, query=f"{head} PARTITION BY key WITHIN {tail}", stream="clicked", **given)])
    asked = call(function, query=text, stream="clicked", name="page", **given).replace("'clicked'", TABLE, 1)
    found = lake.spark.sql(f"SELECT * FROM {asked}").collect()
    _, position = by_time(lake, stream)
    assert wanted
    assert sorted(map(repr, (shown(row, lambda key, rank: position[key, rank]) for row in found))) == sorted(
        map(repr, (shown(row, lambda key, one: one) for row in wanted))
    )


def test_paths_of_a_table(lake: SketchLake, stream: Stream) -> None:
    given: dict[str, Any] = {"around": "a", "before": 1, "after": 2, "top": 3}
    (wanted,) = lake.ask([call("match_paths", "clicked", **given)])
    asked = call("match_paths", "clicked", name="page", **given).replace("'clicked'", TABLE, 1)
    found = lake.spark.sql(f"SELECT * FROM {asked}").collect()
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_a_frame_in_python(lake: SketchLake, stream: Stream) -> None:
    frame = lake.spark.table("clicks")
    found = patternlake.match_pattern(
        lake.spark, frame, "a ; b", policy="skip_till_next", key="user", time="at", name="page"
    )
    (wanted,) = lake.ask([call("match_pattern", "clicked", "a ; b PARTITION BY key", policy="skip_till_next")])
    assert found.count() == len(wanted) > 0
    trends = patternlake.cet_trends(lake.spark, "PATTERN a ; b WITHIN 5 SEC", stream=frame, time="at", name="page")
    (wanted,) = lake.ask([call("cet_trends", query="PATTERN a ; b WITHIN 5 SEC", stream="clicked")])
    assert trends.count() == len(wanted) > 0


def test_a_sample_of_no_trends_has_no_rows(lake: SketchLake, stream: Stream) -> None:
    asked = call("cet_trends", "PATTERN a ; none DEFINE none AS x > 99", stream="clicked", name="page", sample=3)
    over_table = asked.replace("'clicked'", TABLE, 1)
    assert lake.spark.sql(f"SELECT * FROM {over_table}").collect() == []


def test_several_columns_partition_and_none_does(lake: SketchLake, stream: Stream) -> None:
    asked = "match_pattern(TABLE(clicks) {by} ORDER BY (at), 'a ; b', 'skip_till_next', name => 'page')"
    by_both = asked.format(by="PARTITION BY (user, via)")
    # Joined by commas two of the partitions would be one.
    alike = "SELECT * FROM VALUES ('x,y', 'z', 'a', 1), ('x', 'y,z', 'b', 2), (NULL, 'z', 'a', 3) AS t(p, q, page, s)"
    table = f"TABLE(SELECT *, timestamp_seconds(s) AS at FROM ({alike})) PARTITION BY (p, q) ORDER BY (at)"
    paths = lake.spark.sql(f"SELECT path, partitions FROM match_paths({table}, name => 'page')").collect()
    assert sorted((row["path"], row["partitions"]) for row in paths) == [(["a"], 2), (["b"], 1)]
    found = {row["key"] for row in lake.spark.sql(f"SELECT key FROM {by_both}").collect()}
    assert found
    assert found <= {f"u{user},{via}" for user in range(6) for via in "mn"}
    (wanted,) = lake.ask([call("match_pattern", "clicked", "a ; b", policy="skip_till_next")])
    alone = lake.spark.sql(f"SELECT * FROM {asked.format(by='WITH SINGLE PARTITION')}").collect()
    assert sorted((row["first_position"], row["last_position"]) for row in alone) == sorted(
        (row["first_position"], row["last_position"]) for row in wanted
    )


def test_a_cte_is_a_table(lake: SketchLake, stream: Stream) -> None:
    text = "WITH c AS (SELECT * FROM clicks WHERE user = 'u4') SELECT DISTINCT key FROM "
    pattern = "match_pattern(TABLE(c) PARTITION BY user ORDER BY (at), 'a ; b', name => 'page')"
    assert [tuple(row) for row in lake.spark.sql(text + pattern).collect()] == [("u4",)]
    trends = "cet_trends('PATTERN a ; b', stream => TABLE(c) PARTITION BY user ORDER BY (at), name => 'page')"
    with pytest.raises(PySparkException) as caught:
        lake.spark.sql(text + trends)
    assert message(caught.value) == (
        "TABLE(…) is read before this question is planned, so it cannot name a CTE of the statement; make a temporary "
        "view of it"
    )


def test_columns_may_have_names_like_our_own(lake: SketchLake, stream: Stream) -> None:
    def asked(x: str, via: str) -> str:
        table = f"TABLE(SELECT user, at, page, x AS {x}, via AS {via} FROM clicks) PARTITION BY (user, {via})"
        pattern = (
            f"a ; big DEFINE big AS {x} > 1 AND upper({via}) = ''M'' "
            f"MEASURES a.{x} AS one, AVG(big.{x} / 2) AS other, a.{via} AS {via}"
        )
        return f"SELECT * FROM match_pattern({table} ORDER BY (at), '{pattern}', 'skip_till_next', name => 'page')"

    plain = lake.spark.sql(asked("x", "via")).collect()
    for names in (("__atom_0", "__part_0"), ("__id", "__row"), ("__event", "__defined_0"), ("__lists", "__number")):
        found = lake.spark.sql(asked(*names)).collect()
        assert sorted(map(tuple, found), key=repr) == sorted(map(tuple, plain), key=repr)
    assert len(plain) > 10


def test_values_of_arguments_are_no_sql(lake: SketchLake, stream: Stream) -> None:
    table = "TABLE(SELECT user, at, replace(page, 'a', '/api/*') AS page, via AS `utm source` FROM clicks)"
    placed = f"{table} PARTITION BY user ORDER BY (at)"
    around = f"SELECT path FROM match_paths({placed}, around => '/api/*', name => 'page')"
    assert {"/api/*"} < {name for row in lake.spark.sql(around).collect() for name in row.path}
    funnel = f"SELECT DISTINCT group FROM match_funnel({placed}, 'b ; c', by => 'utm source', name => 'page')"
    assert {row.group for row in lake.spark.sql(funnel).collect()} in ({"m"}, {"n"}, {"m", "n"})


def test_a_name_that_the_table_has_too_is_no_matter_where_nothing_asks_for_it(lake: SketchLake, stream: Stream) -> None:
    table = "TABLE(SELECT *, x AS name, x AS position, x AS time FROM clicks) PARTITION BY user ORDER BY (at)"
    call = "match_pattern({}, 'a ; name DEFINE name AS x > 1 MEASURES LAST(name.x) AS position', name => 'page')"
    plain = call.format("TABLE(clicks) PARTITION BY user ORDER BY (at)")
    found = lake.spark.sql(f"SELECT * EXCEPT (bindings) FROM {call.format(table)}").collect()
    wanted = lake.spark.sql(f"SELECT * EXCEPT (bindings) FROM {plain}").collect()
    assert sorted(map(tuple, found), key=repr) == sorted(map(tuple, wanted), key=repr) != []


def test_a_step_or_a_probability_of_the_table_is_that_of_its_events(lake: SketchLake, stream: Stream) -> None:
    def asked(step: str, pattern: str) -> list[Any]:
        table = f"TABLE(SELECT user, at, page, {step} AS step FROM clicks) PARTITION BY user ORDER BY (at)"
        call = f"match_pattern({table}, '{pattern}', 'skip_till_next', name => 'page')"
        return sorted(map(tuple, lake.spark.sql(f"SELECT * EXCEPT (bindings) FROM {call}").collect()), key=repr)

    plain = "TABLE(clicks) PARTITION BY user ORDER BY (at)"
    wanted = lake.spark.sql(
        f"SELECT * EXCEPT (bindings) FROM match_pattern({plain}, 'a ; b WHERE b.x > a.x', 'skip_till_next', "
        "name => 'page')"
    )
    assert asked("x", "a ; b WHERE b.step > a.step") == sorted(map(tuple, wanted.collect()), key=repr) != []
    assert asked("x", "a ; b WHERE b.probability > 0") == []
    with pytest.raises(PySparkException) as caught:
        asked("via", "a ; b WHERE b.step = a.step")
    assert message(caught.value) == (
        "the column step is STRING, and the step of an event is BIGINT; give it another name, as in "
        "TABLE(SELECT *, step AS its_step FROM …)"
    )
    assert asked("via", "a ; b WHERE b.page = ''b''") != []
    assert asked("via", "a ; step DEFINE step AS page = ''b''") == asked("x", "a ; b") != [], "an event is called so"


REFUSED = [
    ("match_pattern(TABLE(clicks) PARTITION BY (user), 'a ; b', name => 'page')",
     "TABLE(…) needs an order in time: write ORDER BY (column) behind it, in Python time=\"column\""),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (x), 'a ; b', name => 'page')",
     "the time of an event is a TIMESTAMP or a DATE, not x, which is BIGINT; begin ORDER BY with such a column, or "
     "make one of it, such as timestamp_seconds(x)"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (page), 'a ; b', name => 'page')",
     "the time of an event is a TIMESTAMP or a DATE, not page, which is STRING; begin ORDER BY with such a column, or "
     "make one of it, such as to_timestamp(page, 'dd.MM.yyyy HH:mm')"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (at DESC), 'a ; b', name => 'page')",
     "ORDER BY at DESC NULLS LAST: events come in the order of time; leave DESC out"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (at), 'a ; b')",
     "which column has the names of events? Write name => 'column'; columns: user, page, x, via, at, unused"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (at), 'a ; b', name => 'pag')",
     "name => 'pag' is no column of the table; columns: user, page, x, via, at, unused"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (at), 'a ; b PARTITION BY via', name => 'page')",
     "PARTITION BY stands beside the table and in the pattern; say it once, beside the table"),
    ("match_pattern(TABLE(clicks) PARTITION BY user ORDER BY (at), 'a ; b', name => 'page', as_of => current_date())",
     "as_of asks for an earlier moment, which TABLE(…) does not keep; leave it out, or give TABLE(SELECT * FROM name "
     "VERSION AS OF n)"),
    ("match_pattern('clicked', 'a ; b', name => 'page')",
     "name says which column of TABLE(…) it is; a stream knows its own: leave it out"),
    ("cet_count('PATTERN a ; b WITHIN 5 EVENTS', stream => TABLE(clicks) WITH SINGLE PARTITION ORDER BY (at), name => "
     "'page')",
     "WITHIN n EVENTS counts the events of a whole stream, and the positions of TABLE(…) are ranks in its partitions; "
     "give a window in time"),
    ("match_pattern(TABLE(SELECT *, x AS __PatternLake_id FROM clicks) WITH SINGLE PARTITION ORDER BY (at), 'a ; b', "
     "name => 'page')",
     "a column of the table is called '__PatternLake_id'; names that begin with '__patternlake_' are kept for "
     "PatternLake: rename it"),
    ("match_seq(TABLE(clicks) PARTITION BY user ORDER BY (at), 'a ; b')",
     "match_seq asks a stream, not a table; `patternlake init --table` makes one of it"),
    *[
        (f"match_pattern(TABLE(SELECT *, x AS {name} FROM clicks) PARTITION BY user ORDER BY (at), '{text}', name => "
         "'page')",
         f"{name} is the {name} of an event, which is not the column {name} of the table here; give that another name, "
         f"as in TABLE(SELECT *, {name} AS its_{name} FROM …)")
        for name, text in [
            ("name", "a ; b WHERE a.name = b.name"), ("time", "a ; b MEASURES b.time AS t"),
            ("key", "a ; c DEFINE c AS key > 3"), ("position", "a ; b MEASURES a.x AS x, MAX(b.position) AS p"),
        ]
    ],
    ("match_funnel(TABLE(SELECT *, via AS name FROM clicks) PARTITION BY user ORDER BY (at), 'a ; b', by => 'name', "
     "name => 'page')",
     "name is the name of an event, which is not the column name of the table here; give that another name, as in "
     "TABLE(SELECT *, name AS its_name FROM …)"),
    ("match_pattern(TABLE(SELECT *, x AS Key FROM clicks) WITH SINGLE PARTITION ORDER BY (at), 'a ; b PARTITION BY "
     "key', name => 'page')",
     "key is the key of an event, which is not the column key of the table here; give that another name, as in "
     "TABLE(SELECT *, key AS its_key FROM …)"),
    ("match_pattern(TABLE(SELECT *, TIMESTAMP_NTZ '2024-01-01' AS seen FROM clicks) PARTITION BY user ORDER BY (at), "
     "'a ; b WHERE a.seen < b.time MEASURES a.seen AS seen', name => 'page')",
     "line 1, column 13: attribute seen is of type timestamp_ntz, which predicates cannot use; types are string, "
     "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp; cast it, as in "
     "TABLE(SELECT *, CAST(seen AS TIMESTAMP) AS its_seen FROM …)\n"
     "  a ; b WHERE a.seen < b.time MEASURES a.seen AS seen\n              ^^^^^^"),
    ("match_recognize(TABLE(clicks) PARTITION BY user ORDER BY (at), CAST(NULL AS STRING))",
     "match_recognize: clause is a text, not NULL; give what comes from MEASURES on"),
    ("match_pattern('clicked', TABLE(clicks))",
     "match_pattern: pattern takes no TABLE(…), which may stand for a stream"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "wanted"), REFUSED)
def test_what_is_wrong_is_said(lake: SketchLake, stream: Stream, asked: str, wanted: str) -> None:
    with pytest.raises(PySparkException) as caught:
        lake.spark.sql(f"SELECT * FROM {asked}")
    assert message(caught.value) == wanted


def test_a_function_without_tables_says_so_in_python_as_well(lake: SketchLake, stream: Stream) -> None:
    with pytest.raises(ArgumentError, match=r"^match_seq asks a stream, not a table; `patternlake init --table` makes"):
        patternlake.match_seq(lake.spark, lake.spark.table("clicks"), "a ; b")


def test_a_row_without_time_or_name_is_told(lake: SketchLake, stream: Stream) -> None:
    asked = (
        "match_pattern(TABLE(SELECT user, at, nullif(page, 'b') AS page FROM clicks) PARTITION BY user ORDER BY (at), "
    )
    with pytest.raises(PySparkException, match=r"the name \(page\) of a row of the table is NULL, which no event's is"):
        lake.spark.sql(f"SELECT * FROM {asked} 'a ; c', 'strict', name => 'page')").collect()
    with pytest.raises(ArgumentError, match="`when` cannot be resolved"):
        patternlake.match_pattern(lake.spark, lake.spark.table("clicks"), "a", time="when", name="page")
