"""MEASURES: columns of an answer, of the types that Spark gives them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isclose
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from naive.measures import Bound, random_measure
from sql.machine_lake import MachineStream
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, by_tasks, call, moment, shared

import patternlake
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "page": "string",
    "n": "int",
    "m": "bigint",
    "x": "double",
    "flag": "boolean",
    "day": "date",
    "seen": "timestamp",
    "amount": "decimal(10,2)",
    "large": "decimal(38,4)",
}
POOLS: dict[str, list[Any]] = {
    "page": ["home", "cart", " ", "päge", "it's", None],
    "n": [0, 1, -7, 2_000_000_000, None],
    "m": [5, -5, 9_007_199_254_740_993, None],
    "x": [0.5, -2.25, 1e10, 3.0, None],
    "flag": [True, False, None],
    "day": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None],
    "seen": [dt.datetime(2024, 3, 31, 1, 30, 0, 5), dt.datetime(1969, 7, 20, 20, 17, 40), None],
    "amount": [Decimal("0.01"), Decimal("-12345678.90"), Decimal("7.50"), None],
    "large": [Decimal("1234567890123456789012345678.0001"), Decimal("-0.5000"), None],
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def stream(lake: SketchLake) -> tuple[Stream, list[E]]:
    """Events with attributes of every type, many of them NULL."""
    rng = random.Random(48)
    events = [
        E(
            1000 * at,
            rng.choice("aabbbc"),
            rng.choice(["u", "v"]),
            {name: rng.choice(pool) for name, pool in POOLS.items()},
        )
        for at in range(60)
    ]
    made = lake.streams["measured"] = Stream(lake, "measured", {}, {"key": "who", "attributes": TYPES}, ingested=True)
    made.write(events)
    made.ingest()
    return made, events


def told(lake: SketchLake, stream: Stream, text: str, **arguments: Any) -> list[tuple[Any, ...]]:
    """The measures of each row, in the order of their matches."""
    (rows,) = lake.ask([call("match_pattern", stream.name, text, **arguments)])
    names = text.split(" AS ")[1:]
    return [tuple(row[name.split(",")[0].split(" ")[0]] for name in names) for row in rows]


CLICKS = [
    E(0, "cart", "u", {"page": "shoes", "n": 2}),
    E(60_000, "view", "u", {"page": "red", "n": 1}),
    E(90_000, "view", "u", {"page": "blue", "n": None}),
    E(300_000, "pay", "u", {"page": "done", "n": 40}),
    E(400_000, "cart", "v", {"page": None, "n": 5}),
    E(500_000, "pay", "v", {"page": "done", "n": 7}),
]


@pytest.fixture(scope="module")
def clicks(lake: SketchLake) -> Stream:
    made = lake.streams["clicks measured"] = Stream(
        lake, "clicks measured", {}, {"key": "who", "attributes": {"page": "string", "n": "int"}}
    )
    made.write(CLICKS)
    made.ingest()
    return made


FUNNEL = "cart ; view* ; pay {} PARTITION BY key"


def funnel(measures: str) -> str:
    return FUNNEL.format(f"MEASURES {measures}")


def test_measures_are_columns_of_sparks_types_behind_the_others(lake: SketchLake, clicks: Stream) -> None:
    measures = (
        "cart.page AS page, t(pay) - t(cart) AS waited, FIRST(view.page) AS first, LAST(view.page) AS last, "
        "SUM(view.n) AS total, AVG(view.n) AS mean, COUNT(view.n) AS known, COUNT(view.*) AS views, "
        "COUNT(DISTINCT view.page) AS pages, ARRAY_AGG(view.page) AS path, upper(pay.page) || '!' AS loud, "
        "pay.n / cart.n AS ratio, pay.time AS at"
    )
    (rows,) = lake.ask([call("match_pattern", clicks.name, funnel(measures))])
    assert [list(row.asDict())[9:] for row in rows] == [
        ["page", "waited", "first", "last", "total", "mean", "known", "views", "pages", "path", "loud", "ratio", "at"]
    ] * 2
    at = [moment(300_000).replace(tzinfo=None), moment(500_000).replace(tzinfo=None)]
    assert [tuple(row)[9:] for row in rows] == [
        ("shoes", dt.timedelta(minutes=5), "red", "blue", 1, 1.0, 1, 2, 2, ["red", "blue"], "DONE!", 20.0, at[0]),
        (None, dt.timedelta(seconds=100), None, None, None, None, 0, 0, 0, [], "DONE!", 1.4, at[1]),
    ]
    frame = patternlake.match_pattern(lake.spark, clicks.name, funnel(measures))
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields[9:]}
    assert types == {
        "page": "string", "waited": "interval day to second", "first": "string", "last": "string", "total": "bigint",
        "mean": "double", "known": "bigint", "views": "bigint", "pages": "bigint", "path": "array<string>",
        "loud": "string", "ratio": "double", "at": "timestamp",
    }  # fmt: skip


def test_aggregates_of_expressions_and_those_that_only_spark_knows(lake: SketchLake, clicks: Stream) -> None:
    text = funnel(
        "SUM(view.n * 2) AS doubled, percentile(view.n, 0.5) AS middle, max_by(view.page, view.time) AS latest, "
        "COUNT(view.page) FILTER (WHERE view.page LIKE 'r%') AS reds, LAST(length(view.page)) AS long, "
        "listagg(view.page, '>') AS path"
    )
    assert told(lake, clicks, text) == [(2, 1.0, "blue", 1, 4, "red>blue"), (None, None, None, 0, None, None)]


def test_a_parameter_and_a_duration_are_constants(lake: SketchLake, clicks: Stream) -> None:
    text = funnel("pay.n * rate AS due, t(pay) - t(cart) < 2 MIN AS fast, concat(pay.page, note) AS said")
    assert told(lake, clicks, text, params={"rate": "0.5", "note": "it's"}) == [
        (20, False, "doneit's"),
        (Decimal("3.5"), True, "doneit's"),
    ]


def test_tasks_give_the_same(lake: SketchLake, clicks: Stream) -> None:
    text = funnel("SUM(view.n) AS total, SUM(view.n + 1) AS more, t(pay) - t(cart) AS waited, cart.page AS page")
    whole = "cart ; pay MEASURES pay.n - cart.n AS gain WITHIN 10 MIN"
    asked = [call("match_pattern", clicks.name, one) for one in (text, whole)]
    here = lake.ask(asked)
    with by_tasks(lake.spark):
        assert [sorted(map(repr, rows)) for rows in lake.ask(asked)] == [sorted(map(repr, rows)) for rows in here]


def same(left: Any, right: Any) -> bool:
    """Doubles may be added in another order."""
    return bool(left == right) or (isinstance(left, float) and isinstance(right, float) and isclose(left, right))


def test_match_seq_has_measures_of_its_exact_answers(lake: SketchLake) -> None:
    section = {"key": "who", "attributes": {"page": "string", "n": "int"}}
    stream = lake.streams["clicks in order"] = Stream(lake, "clicks in order", {"keyed": True}, section)
    stream.deliver(CLICKS)
    measures = "cart.page AS page, t(pay) - t(cart) AS waited, SUM(pay.n + 1) AS more"
    everyone = f"cart ; pay MEASURES {measures} PARTITION BY key"
    twice = "cart ; view[2] AS v ; (pay | cancel) MEASURES ARRAY_AGG(v.page) AS path, pay.n AS n, cancel.n AS m"
    asked = [call("match_seq", stream.name, everyone), call("match_seq", stream.name, twice, key="u")]
    with by_tasks(lake.spark):
        dealt = lake.ask(asked)
    rows, paths = lake.ask(asked)
    assert sorted(map(repr, dealt[0])) == sorted(map(repr, rows))
    assert [tuple(row)[11:] for row in rows] == [
        ("shoes", dt.timedelta(minutes=5), 41),
        (None, dt.timedelta(seconds=100), 8),
    ]
    assert [tuple(row)[11:] for row in paths] == [(["red", "blue"], 40, None)]
    (wrong,) = lake.errors([call("match_seq", stream.name, everyone, verify=False)])
    assert "takes MEASURES of events alone: ask match_seq or match_exists without verify => false" in wrong
    with pytest.raises(PatternLakeError, match="match_exists has no column for each match"):
        patternlake.match_exists(lake.spark, stream.name, everyone)


def test_a_subscription_has_measures_of_the_events_that_its_matches_bind(lake: SketchLake) -> None:
    measures = "a.x AS x, b.x AS b, c.y AS c, t(c) - t(a) AS waited, COUNT(*) AS n, SUM(a.x + 1) AS more"
    subscribed = {"with_measures": f"a ; (b | c) MEASURES {measures} PARTITION BY key"}
    machines = MachineStream(lake, "measured subscription", subscribed)
    events = [("a", 1, 2), ("b", 3, None), ("c", None, 5)]
    machines.deliver([E(1000 * at, name, "k", {"x": x, "y": y, "n": 0}) for at, (name, x, y) in enumerate(events)])
    asked = [call("match_subscription", "with_measures"), call("match_subscription", "with_measures", key="nobody")]
    rows, nothing = lake.ask(asked)
    expected = [(1, 3, None, None, 2, 2), (1, None, 5, dt.timedelta(seconds=2), 2, 2)]
    assert [tuple(row)[6:] for row in sorted(rows, key=lambda row: row["last_position"])] == expected
    assert nothing == []
    with by_tasks(lake.spark):
        dealt, nothing = lake.ask(asked)
    assert [tuple(row)[6:] for row in sorted(dealt, key=lambda row: row["last_position"])] == expected
    assert nothing == []


def test_jobs_refuse_measures_that_no_answer_could_have(lake: SketchLake) -> None:
    """Before they write anything; an error of a kept pattern is in `test_patterns_job`."""
    measure = "MEASURES nowhere(a.x) AS odd"
    machines = MachineStream(lake, "measured wrongly", {"mw_sub": f"a ; b {measure}"})
    machines.write([E(0, "a", "k", {"x": 1, "y": 1, "n": 0}), E(1000, "b", "k", {"x": 1, "y": 1, "n": 0})])
    machines.ingest()
    with pytest.raises(PatternLakeError, match=r"(?s)subscriptions\.mw_sub\.query: .*nowhere"):
        machines.run("predict")
    tree = {
        "database": DATABASE,
        "location": lake.location,
        "streams": {machines.name: machines.section},
        "trends": {"mw_trend": {"stream": machines.name, "query": f"a ; b {measure} WITHIN 1 MIN SLIDE 1 MIN"}},
    }
    with pytest.raises(PatternLakeError, match=r"(?s)trends of 'mw_trend': .*nowhere"):
        run(lake.spark, Configuration.from_text(yaml.safe_dump(tree)), "trends")
    begun = lake.rows(
        f"SELECT object FROM {DATABASE}_internal.intents_log WHERE object IN ('mw_trend', 'measured wrongly')"
    )
    assert {row["object"] for row in begun} == {"measured wrongly"}, "by `ingest` alone"


TABLE = """
SELECT user, at, page, CAST(price AS DECIMAL(12,3)) AS price, tags, place, seen FROM VALUES
  ('u', TIMESTAMP '2024-01-01 10:00:00', 'cart', 1.5, array('x', NULL), named_struct('city', 'Rom', 'n', 1),
   TIMESTAMP_NTZ '2024-03-31 02:30:00.000007'),
  ('u', TIMESTAMP '2024-01-01 10:01:00', 'view', NULL, NULL, NULL, NULL),
  ('u', TIMESTAMP '2024-01-01 10:02:00', 'view', 2.25, array(), named_struct('city', NULL, 'n', 3), NULL),
  ('u', TIMESTAMP '2024-01-01 10:05:00', 'pay', 7, array('y'), named_struct('city', 'Pisa', 'n', 2), NULL)
AS t (user, at, page, price, tags, place, seen)"""


def test_a_table_in_the_place_of_a_stream_keeps_its_own_types(lake: SketchLake) -> None:
    measures = (
        "cart.tags AS tags, LAST(view.place.n) AS n, cart.place AS place, cart.seen AS seen, size(pay.tags) AS many, "
        "SUM(view.price) AS total, MAX(view.price) AS most, ARRAY_AGG(view.place.city) AS cities, "
        "COUNT(view.tags) AS tagged, pay.price / cart.price AS ratio, t(pay) - t(cart) AS waited, pay.user AS who"
    )
    pattern = f"cart ; view+ ; pay MEASURES {measures}"
    lake.spark.sql(TABLE).createOrReplaceTempView("bought")
    frame = lake.spark.sql(
        f"SELECT * FROM match_pattern(TABLE(bought) PARTITION BY user ORDER BY (at), '{pattern}', name => 'page')"
    )
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields[9:]}
    assert types == {
        "tags": "array<string>", "n": "int", "place": "struct<city:string,n:int>", "seen": "timestamp_ntz",
        "many": "int", "total": "decimal(22,3)", "most": "decimal(12,3)", "cities": "array<string>",
        "tagged": "bigint", "ratio": "decimal(28,16)", "waited": "interval day to second", "who": "string",
    }  # fmt: skip
    (row,) = frame.collect()
    assert tuple(row)[9:] == (
        ["x", None], 3, ("Rom", 1), dt.datetime(2024, 3, 31, 2, 30, 0, 7), 1, Decimal("2.250"), Decimal("2.250"), [], 1,
        Decimal("4.6666666666666667"), dt.timedelta(minutes=5), "u",
    )  # fmt: skip
    python = patternlake.match_pattern(
        lake.spark, lake.spark.table("bought"), pattern, key="user", time="at", name="page"
    )
    assert python.collect() == [row]


def test_views_and_earlier_moments_have_measures(lake: SketchLake) -> None:
    stream = Stream(lake, "measured twice", {}, {"attributes": {"page": "string"}})
    lake.streams["measured twice"] = stream
    for begin, page in ((0, "one"), (10_000, "two")):
        stream.write([E(begin, "cart", None, {"page": page}), E(begin + 1000, "pay", None, {"page": page})])
        stream.ingest()
    text = "cart ; pay MEASURES cart.page AS page, t(pay) - t(cart) AS waited"
    call_ = call("match_pattern", stream.name, text)
    lake.rows(f"CREATE OR REPLACE VIEW {DATABASE}.measured_view AS SELECT page, waited FROM {call_}")
    seconds = [dt.timedelta(seconds=one) for one in (1, 11, 1)]
    shown = sorted(map(tuple, lake.rows(f"SELECT * FROM {DATABASE}.measured_view")))
    assert shown == [("one", seconds[0]), ("one", seconds[1]), ("two", seconds[2])]
    first = stream.publications("ingest")[0]["published_at"].astimezone(dt.timezone.utc)
    assert told(lake, stream, text, as_of=first) == [("one", seconds[0])]


def bound_events(events: Sequence[E], bindings: Mapping[str, Sequence[int]]) -> dict[str, list[Bound]]:
    """The events that stand at some positions."""
    return {
        operand: [
            Bound(position, moment(events[position - 1].time).replace(tzinfo=None), events[position - 1].attributes)
            for position in positions
        ]
        for operand, positions in bindings.items()
    }


PATTERNS = [
    ("a AS p ; b+ AS q ; c AS r", "skip_till_any", ("p", "r"), ("q",)),
    ("a+ AS p ; b AS q ; c* AS r", "skip_till_next", ("q",), ("p", "r")),
    ("(a AS p | b AS q) ; c+ AS r", "skip_till_any", ("p", "q"), ("r",)),
    ("a AS p ; b+ AS q", "strict", ("p",), ("q", "p")),
]


@pytest.mark.parametrize(("text", "policy", "single", "repeated"), PATTERNS)
def test_random_measures_are_those_of_the_oracle(
    lake: SketchLake,
    stream: tuple[Stream, list[E]],
    text: str,
    policy: str,
    single: tuple[str, ...],
    repeated: tuple[str, ...],
) -> None:
    made_of, events = stream
    rng = random.Random(text)
    made = [random_measure(rng, single, repeated, TYPES) for _ in range(60)]
    measures = ", ".join(f"{sql} AS m{number}" for number, (sql, _) in enumerate(made))
    whole = f"{text} MEASURES {measures} PARTITION BY key WITHIN 12 EVENTS"
    (rows,) = lake.ask([call("match_pattern", made_of.name, whole, policy=policy)])
    assert len(rows) > 3
    wrong = [
        (sql, row[f"m{number}"], expected)
        for row in rows
        for bound in [bound_events(events, row["bindings"])]
        for number, (sql, value) in enumerate(made)
        if not same(row[f"m{number}"], expected := value(bound))
    ]
    assert wrong == []


def test_random_measures_of_trends_are_those_of_the_oracle(lake: SketchLake, stream: tuple[Stream, list[E]]) -> None:
    made_of, events = stream
    rng = random.Random(3)
    made = [random_measure(rng, ("p",), ("q",), TYPES) for _ in range(60)]
    measures = ", ".join(f"{sql} AS m{number}" for number, (sql, _) in enumerate(made))
    whole = f"PATTERN a AS p ; b+ AS q WHERE q[i].m >= q[i-1].m MEASURES {measures} PARTITION BY key WITHIN 20 SEC"
    asked = [call("cet_trends", whole, stream=made_of.name)]
    (rows,) = lake.ask(asked)
    assert len(rows) > 3
    wrong = []
    for row in rows:
        first, *others = row["positions"]
        bound = bound_events(events, {"p": [first], "q": others})
        for number, (sql, value) in enumerate(made):
            if not same(row[f"m{number}"], expected := value(bound)):
                wrong.append((sql, row[f"m{number}"], expected))
    assert wrong == []
    with by_tasks(lake.spark):
        (dealt,) = lake.ask(asked)
    assert sorted(map(repr, dealt)) == sorted(map(repr, rows))


def test_counts_of_trends_have_no_measures(lake: SketchLake, clicks: Stream) -> None:
    text = "PATTERN view+ AS v MEASURES COUNT(v.n) AS n WITHIN 1 HOUR"
    (rows,) = lake.ask([call("cet_trends", text, stream=clicks.name, key="nobody")])
    assert rows == []
    with pytest.raises(PatternLakeError, match="cet_count has no column for each match, as MEASURES are"):
        patternlake.cet_count(lake.spark, text, stream=clicks.name)


@pytest.mark.parametrize(
    ("measures", "marked", "said"),
    [
        ("view.page AS p", "view.page", "view takes several events; say of which: FIRST(view.page)"),
        ("basket.page AS p", "basket.page", "basket is not an operand of the pattern"),
        ("cart.pag AS p", "cart.pag", "did you mean page?"),
        ("page AS p", "page", "page of which operand? write cart.page"),
        ("cart.page AS Key", "Key", "the answer has a column Key already"),
        ("cart.page AS p, cart.n AS P", "P", "measure P is named twice"),
        ("cart.page", "cart.page", "a measure needs a name: write expression AS name"),
        ("never.page AS p", "never", "no event of never is in the match, it is negated"),
        ("SUM(MAX(view.n)) AS p", "MAX", "aggregates cannot be nested"),
        ("SUM(cart.n + view.n) AS p", "view.n", "all of its argument must be of one operand"),
        ("(SELECT 1) AS p", "SELECT", "a subquery cannot stand in DEFINE or MEASURES"),
        ("SUM(view.n) OVER () AS p", "OVER", "a window function cannot stand"),
        ("PREV(cart.n) AS p", "PREV(cart.n)", "PREV looks at rows beside the match"),
        ("rand() AS p", "rand()", "gives another value each time"),
        ("nothing_like_it(cart.n) AS p", "nothing_like_it(cart.n)", "nothing_like_it"),
        ("cart.n + AS p", "+", "this cannot be read as Spark SQL"),
        ("t(basket) AS p", "t(basket)", "basket is not an operand of the pattern"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    lake: SketchLake, clicks: Stream, measures: str, marked: str, said: str
) -> None:
    text = f"cart ; view* ; !never ; pay MEASURES {measures} PARTITION BY key"
    with pytest.raises(PatternLakeError) as raised:
        patternlake.match_pattern(lake.spark, clicks.name, text)
    message, line, caret = str(raised.value).rsplit("\n", 2)
    assert said in message
    assert line[caret.index("^") : caret.rindex("^") + 1] == marked
