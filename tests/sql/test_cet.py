"""`cet_count` and `cet_trends` through SQL, on what the jobs wrote: worked answers, windows, partitions, lateness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from sql.sketch_lake import E, by_tasks, call, moment
from sql.trend_lake import TrendLake, shared

from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.udfs.digits import number_of
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return shared(spark, tmp_path_factory)


def events(names: str, times: Sequence[int] | None = None, **values: Sequence[Any]) -> list[E]:
    """One event for each letter, at seconds 1, 2, … unless told."""
    return [
        E((times[at] if times else at + 1) * 1000, name, None, {column: given[at] for column, given in values.items()})
        for at, name in enumerate(names)
    ]


def test_chains_of_checks(lake: TrendLake) -> None:
    # c1 A→B, c2 B→A, c3 B→C, c4 C→B, c5 C→A, c6 A→B.
    checks = events("cccccc", src=list("ABBCCA"), dest=list("BACBAB"))
    lake.stream(
        "checks",
        {"kiting": "PATTERN c+ c[] WHERE c[i].src = c[i-1].dest"},
        checks[:3],
        checks[3:],
        attributes={"src": "string", "dest": "string"},
    )
    assert lake.trends("kiting") == [(1, 2, 6), (1, 3, 4), (1, 3, 5, 6)]
    assert lake.counts("kiting") == [(None, None, None, "3", 4, "10", False)]


def test_values_that_more_than_double(lake: TrendLake) -> None:
    lake.stream(
        "doubling",
        {"double": "PATTERN e+ e[] WHERE e[i].attr > e[i-1].attr * ratio"},
        events("eeeeee", attr=[32, 7, 15, 35, 40, 17]),
        params={"ratio": 2},
        attributes={"attr": "double"},
    )
    assert lake.trends("double") == [(1,), (2, 3, 4), (2, 3, 5), (2, 4), (2, 5), (2, 6)]


@pytest.mark.slow
def test_sequences_of_types(lake: TrendLake) -> None:
    lake.stream("letters", {"aba": "PATTERN A ; B ; A"}, events("ABABA"))
    assert lake.trends("aba") == [(1, 2, 3), (1, 2, 5), (1, 4, 5), (3, 4, 5)]


@pytest.mark.slow
def test_one_event_does_not_follow_another_of_its_time(lake: TrendLake) -> None:
    lake.stream(
        "ties",
        {
            "up": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x",
            "both up": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x AND e[i].y > e[i-1].y",
        },
        events("eee", [1, 1, 2], x=[1, 2, 3], y=[9, 1, 5]),
        attributes={"x": "double", "y": "double"},
    )
    assert lake.trends("up") == [(1, 3), (2, 3)]
    # Which of two events of one time comes first is for their hashes to say.
    assert sorted(map(len, lake.trends("both up"))) == [1, 2]


def test_sliding_windows_are_final_below_the_watermark(lake: TrendLake) -> None:
    made = events("eeeeee", [0, 2, 4, 6, 8, 10])
    lake.stream("sliding", {"slides": "PATTERN e+ e[] WITHIN 4 SEC SLIDE 2 SEC"}, made)
    assert lake.counts("slides") == [
        (None, -2.0, 2.0, "1", 1, "1", True),
        (None, 0.0, 4.0, "1", 2, "2", True),
        (None, 2.0, 6.0, "1", 2, "2", True),
        (None, 4.0, 8.0, "1", 2, "2", True),
        (None, 6.0, 10.0, "1", 2, "2", True),
        (None, 8.0, 12.0, "1", 2, "2", False),
        (None, 10.0, 14.0, "1", 1, "1", False),
    ]
    assert lake.counts("slides", from_time=moment(2000), to_time=moment(8000)) == [
        (None, 2.0, 6.0, "1", 2, "2", True),
        (None, 4.0, 8.0, "1", 2, "2", True),
    ]
    assert lake.trends("slides", from_time=moment(2000), to_time=moment(8000)) == [(2, 3), (3, 4)]


@pytest.mark.slow
def test_windows_of_events_run_over_all_positions_and_show_their_times(lake: TrendLake) -> None:
    made = events("exeexe", [1, 2, 3, 4, 5, 6])
    lake.stream("counted", {"pairs": "PATTERN e+ e[] WITHIN 2 EVENTS"}, made[:3], made[3:])
    assert lake.counts("pairs") == [
        (None, 1.0, 2.0, "1", 1, "1", True),
        (None, 3.0, 4.0, "1", 2, "2", True),
        (None, 5.0, 6.0, "1", 1, "1", False),
    ]
    assert lake.trends("pairs", from_time=moment(3000), to_time=moment(5000)) == [(3, 4)]


def test_partitions_and_one_of_them(lake: TrendLake) -> None:
    made = [E(at * 1000, "e", key, {"x": x}) for at, (key, x) in enumerate([("a", 1), ("b", 2), ("a", 3), (None, 1)])]
    lake.stream(
        "parted",
        {"by key": "PATTERN e+ e[] PARTITION BY who", "of all": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x"},
        made,
        attributes={"x": "double"},
    )
    assert [row[0::3] for row in lake.counts("by key")] == [(None, "1", False), ("a", "1", False), ("b", "1", False)]
    assert lake.trends("by key") == [(1, 3), (2,), (4,)]
    assert lake.trends("by key", key="a") == [(1, 3)]
    assert lake.trends("of all") == [(1, 2, 3), (1, 3), (4,)], "nothing can be put before or after; between, it could"
    assert lake.trends("of all", key="a") == [(1, 3)]
    assert [row[0] for row in lake.counts("of all", key="a")] == ["a"]


def test_a_late_event_answers_its_window_anew_and_earlier_moments_stay(lake: TrendLake) -> None:
    stream = lake.stream(
        "late",
        {"late": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x WITHIN 10 SEC"},
        events("ee", [1, 12], x=[1, 2]),
        events("ee", [5, 25], x=[3, 4]),
        attributes={"x": "double"},
        allowed_lateness="10 seconds",
        ingested=True,
    )
    assert lake.trends("late") == [(1, 3), (2,), (4,)]
    moments = lake.rows(
        f"SELECT published_at FROM {lake.database}_internal.publications_log "
        "WHERE job = 'trends' AND object = 'late' ORDER BY 1"
    )
    assert lake.trends("late", as_of=moments[0][0]) == [(1,), (2,)]
    vertices, edges = lake.view("trend_vertices", "late"), lake.view("trend_edges", "late")
    stream.run("trends", rebuild=True)

    def without_batches(rows: Sequence[Any]) -> list[str]:
        return sorted(str({**row.asDict(), "from_batch": None}) for row in rows)

    assert without_batches(lake.view("trend_vertices", "late")) == without_batches(vertices)
    assert without_batches(lake.view("trend_edges", "late")) == without_batches(edges)
    assert lake.trends("late") == [(1, 3), (2,), (4,)]


def test_two_hundred_rising_values_are_counted_exactly_and_refused_as_rows(lake: TrendLake) -> None:
    lake.stream(
        "rising",
        {"rising": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x"},
        events("e" * 200, x=list(range(200))),
        attributes={"x": "double"},
    )
    ((_, _, _, trends, longest, _, _),) = lake.counts("rising")
    assert (trends, longest) == (str(2**198), 200)
    with pytest.raises(Exception, match=f"the query has {2**198} trends, more than max_trends = 1000000"):
        lake.trends("rising")
    cut = lake.rows("SELECT * FROM cet_trends('rising', max_trends => 5, truncate => true)")
    assert len(cut) == 5
    assert all(row["truncated"] for row in cut)


def aggregates(lake: TrendLake, query: str, aggregate: str, **arguments: Any) -> list[tuple[Any, ...]]:
    """Key, aggregate and value of each row, by key and window; the query asked as a text gives the same rows."""
    named, of_text = (
        lake.rows(
            "SELECT key, aggregate, value, value_approx, window_start, final FROM "
            f"{call('cet_aggregate', aggregate=aggregate, **asked, **arguments)} ORDER BY key, window_start, aggregate"
        )
        for asked in ({"query": query}, lake.as_text(query))
    )
    assert of_text == named
    return [tuple(row)[:3] for row in named]


def test_aggregates_are_over_all_trends_and_their_events(lake: TrendLake) -> None:
    lake.stream(
        "summed",
        {"summed": "PATTERN a ; b WITHIN 4 SEC", "by who": "PATTERN a ; b PARTITION BY who", "rows": "PATTERN a ; b"},
        [
            E(at * 1000, name, key, {"x": x, "d": d})
            for at, (name, key, x, d) in enumerate(
                [
                    ("a", "k", 1, "0.10"),
                    ("a", "l", 2, None),
                    ("b", "k", 4, "0.25"),
                    ("c", "k", 9, "9"),
                    ("b", "l", 8, "1"),
                ]
            )
        ],
        attributes={"x": "bigint", "d": "decimal(10,2)"},
    )
    # From 0 s: a1 b3 and a2 b3; from 4 s: b5 alone.
    wanted = {"COUNT(*)": "2", "COUNT(d)": "3", "SUM(x)": "11", "SUM(d)": "0.60", "MIN(x)": "1", "AVG(x)": "2.75"}
    found = aggregates(lake, "summed", ", ".join(wanted))
    assert {aggregate: value for _, aggregate, value in found[:6]} == wanted
    assert [value for _, aggregate, value in found[6:] if not aggregate.startswith("COUNT")] == [None] * 4
    assert aggregates(lake, "by who", "SUM(x)") == [("k", "SUM(x)", "5"), ("l", "SUM(x)", "10")]
    assert aggregates(lake, "by who", "SUM(x)", key="l") == [("l", "SUM(x)", "10")]
    assert aggregates(lake, "rows", "COUNT(*), MAX(x)", key="k") == [("k", "COUNT(*)", "1"), ("k", "MAX(x)", "4")]
    joined = lake.rows(
        "SELECT sum(CAST(e.attributes['x'] AS BIGINT)) FROM cet_trends('summed') t "
        f"JOIN {lake.database}.events e ON e.stream = 'summed' AND array_contains(t.positions, e.position)"
    )
    assert joined[0][0] == 11


def test_pages_and_samples_are_of_all_trends(lake: TrendLake) -> None:
    lake.stream("paged", {"paged": "PATTERN e+ e[] WITHIN 4 EVENTS"}, events("e" * 10))
    everything = lake.rows("SELECT key, window_start, positions FROM cet_trends('paged') ORDER BY 2, 3")
    assert len(everything) == 4 + 4 + 1
    pages = [
        lake.rows(
            "SELECT key, window_start, positions, truncated FROM "
            f"{call('cet_trends', 'paged', from_trend=begin, max_trends=4, truncate=True)} ORDER BY 2, 3"
        )
        for begin in (1, 5, 9, 13)
    ]
    assert [row[:3] for page in pages for row in page] == [row[:] for row in everything]
    assert [[row["truncated"] for row in page] for page in pages] == [[True] * 4, [True] * 4, [False], []]
    drawn = lake.rows("SELECT key, window_start, positions FROM cet_trends('paged', sample => 5) ORDER BY 2, 3")
    assert len(drawn) == len(set(map(str, drawn))) == 5
    assert set(map(str, drawn)) <= set(map(str, everything))
    forget(lake_of(lake.spark).cache)
    text = call("cet_trends", "PATTERN e+ e[] WITHIN 4 EVENTS", stream="paged", sample=5)
    assert lake.rows(f"SELECT key, window_start, positions FROM {text} ORDER BY 2, 3") == drawn
    with by_tasks(lake.spark):
        assert lake.rows(f"SELECT key, window_start, positions FROM {text} ORDER BY 2, 3") == drawn


def test_a_sample_of_2_to_the_198_trends(lake: TrendLake) -> None:
    if "rising" not in lake.asked:
        test_two_hundred_rising_values_are_counted_exactly_and_refused_as_rows(lake)
    drawn = lake.rows("SELECT positions, length, truncated FROM cet_trends('rising', sample => 50)")
    assert len({tuple(row["positions"]) for row in drawn}) == 50
    assert all((row["positions"][0], row["positions"][-1], row["truncated"]) == (1, 200, True) for row in drawn)
    # The events between are in half of all trends each.
    assert 95 < sum(row["length"] for row in drawn) / 50 < 107
    ((_, _, total),) = aggregates(lake, "rising", "SUM(x)")
    assert float(total) == float(199 * 2**198 + sum(range(1, 199)) * 2**197)


@pytest.mark.slow
def test_counts_of_thousands_of_digits_are_exact_and_readable_where_rows_are_refused(lake: TrendLake) -> None:
    lake.stream(
        "high",
        {"high": "PATTERN e+ e[] WHERE e[i].x > e[i-1].x"},
        events("e" * 15_000, x=list(range(15_000))),
        attributes={"x": "double"},
    )
    ((_, _, _, trends, longest, total, _),) = lake.counts("high")
    assert (number_of(trends), longest) == (2**14_998, 15_000)
    assert number_of(total) == 2 * 2**14_998 + 14_998 * 2**14_997
    with pytest.raises(Exception, match=r"the query has about 10\^4515 trends, more than max_trends = 1000000; raise"):
        lake.trends("high")
    cut = lake.rows("SELECT length FROM cet_trends('high', max_trends => 2, truncate => true) ORDER BY 1")
    assert [row[0] for row in cut] == [14_999, 15_000]


def test_result_columns_are_pinned(lake: TrendLake) -> None:
    lake.stream("pinned", {"pinned": "PATTERN A+"}, events("A"))
    columns = {
        name: [(field.name, field.dataType.simpleString()) for field in lake.spark.sql(f"SELECT * FROM {name}").schema]
        for name in ("cet_count('pinned')", "cet_trends('pinned')")
    }
    assert list(columns.values()) == [
        [
            ("key", "string"),
            ("window_start", "timestamp"),
            ("window_end", "timestamp"),
            ("trends", "string"),
            ("trends_approx", "double"),
            ("longest", "int"),
            ("total_length", "string"),
            ("final", "boolean"),
        ],
        [
            ("key", "string"),
            ("window_start", "timestamp"),
            ("window_end", "timestamp"),
            ("positions", "array<bigint>"),
            ("length", "int"),
            ("first_time", "timestamp"),
            ("last_time", "timestamp"),
            ("final", "boolean"),
            ("truncated", "boolean"),
        ],
    ]


def test_a_key_that_never_occurred_is_told_of_a_configured_query(lake: TrendLake) -> None:
    lake.stream("told", {"told": "PATTERN e+ PARTITION BY key"}, [E(1000, "e", "k1")], attributes={"x": "double"})
    asked = ["cet_count('told', key => 'K1')", "cet_trends('told', 'K1')", "cet_aggregate('told', 'SUM(x)', 'K1')"]
    for call_of_key in asked:
        with pytest.warns(UserWarning, match=r"the key 'K1' never occurred in the stream; did you mean 'k1'\?"):
            assert lake.rows(f"SELECT * FROM {call_of_key}") == []


def test_a_measure_may_be_called_window(lake: TrendLake) -> None:
    lake.stream("measured", {"measured": "PATTERN e+ AS v MEASURES COUNT(v.name) AS window"}, events("ee"))
    assert lake.trends("measured") == [(1, 2)]
    assert [row["window"] for row in lake.rows("SELECT * FROM cet_trends('measured')")] == [2]


WRONG = [
    ("cet_count('kitig')", "there is no trend query 'kitig' (did you mean 'kiting'?); trend queries: "),
    ("cet_count(NULL)", "query is NULL; give the name of a trend query"),
    (
        "cet_trends('kiting', from_time => TIMESTAMP '2024-01-02', to_time => TIMESTAMP '2024-01-01')",
        "from_time is after to_time (2024-01-02 00:00:00.000000 > 2024-01-01 00:00:00.000000); swap them",
    ),
    (
        "cet_count('kiting', to_time => TIMESTAMP '2024-01-01')",
        "to_time with a query without WITHIN: it has one window, without bounds; leave to_time out",
    ),
    ("cet_trends('kiting', max_trends => 0)", "max_trends must be at least 1, not 0"),
    ("cet_trends('kiting', max_trends => -1, truncate => true)", "max_trends must be at least 1, not -1"),
    ("cet_trends('kiting', from_trend => 0)", "from_trend must be at least 1, the number of the first trend, not 0"),
    ("cet_trends('kiting', sample => 0)", "sample must be at least 1, not 0; leave it out for all trends"),
    ("cet_trends('kiting', sample => 9, max_trends => 8)", "sample => 9 is more than max_trends = 8; raise max_trends"),
    ("cet_trends('kiting', sample => 2, from_trend => 2)", "from_trend stands beside sample, which draws from all"),
    (
        "cet_aggregate('kiting', 'SUM(nothing)')",
        "SUM(nothing): the stream has no attribute 'nothing'; its attributes: ",
    ),
    ("cet_aggregate('kiting', 'SUM x')", "aggregate => 'SUM x': 'SUM x' is no aggregate; write COUNT(*)"),
    (
        "cet_count('kiting', as_of => TIMESTAMP '2001-01-01')",
        "as_of 2001-01-01 00:00:00.000000 UTC lies before the first publication of the trend query 'kiting', ",
    ),
    (
        "cet_count('kiting', stream => 'checks')",
        "stream => 'checks': the trend query 'kiting' has its own in the configuration; leave stream out, or give the "
        "query as a text",
    ),
    (
        "cet_count('c+', stream => 'checks')",
        "query => 'c+' is no configured trend query; where it is meant as a text, begin it with PATTERN",
    ),
    (
        "cet_count('PATTERN c+')",
        "query is a text, and stream is NULL; give the name of the stream that it asks, stream => '…'",
    ),
    ("cet_trends('pattern c+', stream => 'cheks')", "there is no stream 'cheks' (did you mean 'checks'?); streams: "),
    ("cet_trends('PATTERN c+ ; !d', stream => 'checks')", "line 1, column 14"),
    (
        "cet_count('PATTERN c+ c[] WHERE c[i].amount > c[i-1].amount', stream => 'checks')",
        "amount",
    ),
]


@pytest.mark.parametrize(("asked", "said"), WRONG)
def test_a_wrong_argument_is_named(lake: TrendLake, asked: str, said: str) -> None:
    if "kiting" not in lake.asked:
        lake.stream("checks", {"kiting": "PATTERN c+"}, events("c"))
    with pytest.raises(Exception, match=re.escape(said)) as caught:
        lake.rows(f"SELECT * FROM {asked}")
    assert "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_a_text_of_too_many_events_is_refused_with_their_number(lake: TrendLake) -> None:
    made = [E(at * 1000, name, key) for at, (name, key) in enumerate(zip("eeeefe", "ababab", strict=True))]
    lake.stream("crowd", {}, made)
    setting = "spark.patternlake.maxTrendEvents"
    lake.spark.conf.set(setting, "4")
    try:
        with pytest.raises(Exception, match=re.escape(f"of 5 events, more than {setting} = 4; narrow the key")):
            lake.rows("SELECT * FROM cet_count('PATTERN e+', stream => 'crowd')")
        asked = {"stream": "crowd", "to_time": moment(4000)}
        ask = "SELECT trends FROM {}"
        assert lake.rows(ask.format(call("cet_count", "PATTERN f", stream="crowd")))[0][0] == "1"
        assert lake.rows(ask.format(call("cet_count", "PATTERN e+", key="a", stream="crowd")))[0][0] == "1"
        parted = call("cet_count", "PATTERN e+ PARTITION BY key", key="b", stream="crowd")
        assert lake.rows(ask.format(parted))[0][0] == "2", "of three events, the one between is taken or not"
        assert len(lake.rows(ask.format(call("cet_count", "PATTERN e+ WITHIN 2 SEC", **asked)))) == 2
        lake.spark.conf.set(setting, "few")
        with pytest.raises(Exception, match=f"{setting} must be a whole number of 1 or more, not 'few'"):
            lake.rows("SELECT * FROM cet_count('PATTERN f', stream => 'crowd')")
    finally:
        lake.spark.conf.unset(setting)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("PATTERN A ; !B ; C", "'!'"),
        ("PATTERN A+ a[] WHERE a[i].y > a[i-1].y", "y"),
        ("PATTERN A+ SLIDE 3 SEC", "SLIDE"),
        ("PATTERN A+ WITHIN 3 SEC SLIDE 2 EVENTS", "EVENTS"),
        ("PATTERN A+ WITHIN 0 SEC", "0"),
    ],
)
def test_a_query_that_does_not_compile_stops_the_run_with_its_name(lake: TrendLake, query: str, said: str) -> None:
    stream = lake.asked.get("good") or lake.stream("wrong", {"good": "PATTERN A"}, events("A"))
    stream.queries = {"wrong": query}
    with pytest.raises(PatternLakeError, match=re.escape(said)) as caught:
        stream.run("trends")
    assert "wrong" in str(caught.value)
