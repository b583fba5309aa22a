"""`cet_count` and `cet_trends` through SQL, on what the jobs wrote: worked answers, windows, partitions, lateness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from sql.sketch_lake import E, moment
from sql.trend_lake import TrendLake, TrendStream

from patternlake.udfs.digits import number_of
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return TrendLake(spark, tmp_path_factory.mktemp("trends"))


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
    )
    assert lake.trends("late") == [(1, 3), (2,), (4,)]
    moments = lake.rows(
        f"SELECT published_at FROM {lake.database}.publications_log WHERE job = 'trends' AND object = 'late' ORDER BY 1"
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
    (
        "cet_count('kiting', as_of => TIMESTAMP '2001-01-01')",
        "as_of 2001-01-01 00:00:00.000000 UTC lies before the first publication of the trend query 'kiting', ",
    ),
]


@pytest.mark.parametrize(("asked", "said"), WRONG)
def test_a_wrong_argument_is_named(lake: TrendLake, asked: str, said: str) -> None:
    asked_of = f"SELECT object FROM {lake.database}.publications WHERE job = 'trends'"
    if "kiting" not in [row[0] for row in lake.rows(asked_of)]:
        lake.stream("checks", {"kiting": "PATTERN c+"}, events("c"))
    with pytest.raises(Exception, match=re.escape(said)) as caught:
        lake.rows(f"SELECT * FROM {asked}")
    assert "Traceback" not in str(caught.value)


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
    stream = TrendStream(lake, f"wrong {query}", {}, {}, {})
    stream.deliver(events("A"))
    stream.queries["wrong"] = query
    with pytest.raises(PatternLakeError, match=re.escape(said)) as caught:
        stream.run("trends")
    assert "'wrong'" in str(caught.value)
