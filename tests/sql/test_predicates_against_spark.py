"""Predicates mean in PatternLake what they mean in Spark SQL (ANSI mode off)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from sql.odd_predicates import DAY, MORE_TEXTS, NO_DATES, TEXTS, Pair, Predicates, odd_rows
from sql.odd_predicates import SCHEMA as ODD

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.aggregates import aggregated, aggregates_in
from patternlake.udfs.language.predicate.allowed import AGGREGATES
from patternlake.udfs.language.predicate.casting import cast
from patternlake.udfs.language.predicate.columns import Column, typed_column, value_type
from patternlake.udfs.language.predicate.predicates import Scope, bind, evaluate, parse_predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "x DOUBLE, y DOUBLE, n BIGINT, m BIGINT, s STRING, u STRING, f BOOLEAN, ts TIMESTAMP, d DATE"
NAN, INF = float("nan"), float("inf")
UTC = dt.timezone.utc
ROWS: list[tuple[Any, ...]] = [
    (1.5, 2.5, 7, 2, "a%b", "ab", True, dt.datetime(2013, 1, 31, 23, 59, 59, 500_000, UTC), dt.date(2013, 1, 31)),
    (None, NAN, None, 0, None, "", None, None, None),
    (NAN, INF, 0, -3, "10", "9", False, dt.datetime(1969, 12, 31, 23, 59, 58, 0, UTC), dt.date(1969, 12, 31)),
    (-0.0, 0.0, -7, 3, " 2.8 ", "true", True, dt.datetime(2013, 1, 1, tzinfo=UTC), dt.date(2013, 1, 1)),
    (-2.675, 2.675, 15, 300, "2013-01-31", ".5", False, dt.datetime(2020, 2, 29, 12, tzinfo=UTC), dt.date(2020, 2, 29)),
    (1e10, -INF, 9223372036854775807, 1, "1e2", "2013-1-1 10:30", True, None, dt.date(2013, 1, 1)),
    (0.125, 1e-5, -15, -1, "Äß", "12.9", None, dt.datetime(2013, 1, 1, 10, 30, tzinfo=UTC), None),
    (3.0, 1.0, 1, 1, "1d", "-", False, dt.datetime(2013, 1, 1, tzinfo=UTC), dt.date(2013, 1, 1)),
    (-1.0, NAN, 5, 5, "Infinity", "2013-01-01T10:30:00+01:00", True, dt.datetime(2013, 7, 1, tzinfo=UTC), None),
]
EXPRESSIONS = (
    """
x > y
x = y
x <> y
x <=> y
x >= 0.0 OR f
NOT (x < y) AND f
f OR x IS NULL
x = x
x IN (1.5, 3, NULL)
n NOT IN (7, 0)
n BETWEEN m AND 10
x / y > 0
x % y > 0
n % m >= 0
n / m > 1
n + m < 0
n - 2 * m < 0
-n < m
ABS(x) > ABS(y)
ROUND(x, 2) = -2.68
ROUND(x) = 2
ROUND(n, -1) = 20
ROUND(n, -1) = -20
FLOOR(x) = 0
FLOOR(y) = 9223372036854775807
CEIL(x) = -2
SQRT(x) > 1
POWER(x, 2) > y
POWER(1, y) > 2
EXP(x) > 1
LN(x) < 1
LN(y) IS NULL
LOG(2, m) >= 0
LOG(n) > 1
LEAST(x, y) < 1
GREATEST(x, y) > 100
GREATEST(n, m, 3) = 3
COALESCE(x, y) > 1
COALESCE(s, u) = ''
NULLIF(n, m) IS NULL
CASE WHEN f THEN x ELSE y END > 0
CASE n WHEN 7 THEN 'a' WHEN 0 THEN 'b' END = 'b'
s LIKE 'a\\\\%b'
s LIKE '_0'
u NOT LIKE '%.%'
u LIKE 'a!%' ESCAPE '!'
LOWER(s) = 'äß'
LENGTH(s) > 2
LENGTH(n) = 1
SUBSTRING(s, 2) = '0'
SUBSTRING(s, -3, 2) = '2.'
SUBSTRING(s, 0, 1) = 'a'
SUBSTRING(s, m, n) = '%b'
CONCAT(s, u) = '109'
s || n = '100'
s > u
s = f
s > 5.0
u < 10.0
CAST(x AS INT) = -2
CAST(y AS BIGINT) > 0
CAST(y AS SMALLINT) = -1
CAST(m AS TINYINT) = 44
CAST(s AS DOUBLE) > 2
CAST(u AS BIGINT) = 12
CAST(u AS BIGINT) = 0
CAST(u AS INT) IS NULL
CAST(s AS DECIMAL(5,1)) = 2.8
CAST(x AS DECIMAL(5,2)) = -2.68
CAST(x AS FLOAT) = x
CAST(s AS BOOLEAN)
CAST(u AS BOOLEAN) IS NULL
CAST(x AS STRING) = '1.0E10'
CAST(y AS STRING) = '1.0E-5'
CAST(f AS STRING) = 'true'
CAST(f AS INT) = 1
CAST(n AS BOOLEAN)
CAST(u AS TIMESTAMP) = TIMESTAMP '2013-01-01 10:30:00'
CAST(u AS TIMESTAMP) = TIMESTAMP '2013-01-01 09:30:00'
CAST(u AS DATE) = DATE '2013-01-01'
CAST(s AS DATE) = d
CAST(ts AS DATE) = d
CAST(ts AS BIGINT) = -2
CAST(ts AS DOUBLE) < 0
CAST(ts AS STRING) = '2013-01-31 23:59:59.5'
CAST(n AS TIMESTAMP) > ts
ts > '2013-01-01 10:00:00'
ts >= DATE '2013-01-01'
d = '2013-01-31'
d > ts
s = d
(x > 1) IS NOT TRUE
(x > 1) IS FALSE
x IS DISTINCT FROM y
""".strip()
    .replace("\\\\\\\\", "\\\\")
    .splitlines()
)


def test_every_expression_has_the_truth_that_spark_gives_it(spark: SparkSession) -> None:
    with reference(spark, **INTERPRETED):
        frame = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
        answers = frame.selectExpr(*(f"({text}) AS c{at}" for at, text in enumerate(EXPRESSIONS))).collect()
    types = dict(part.split(" ") for part in SCHEMA.split(", "))
    columns = {name: column([row[at] for row in ROWS], kind.lower()) for at, (name, kind) in enumerate(types.items())}
    wrong = []
    for at, text in enumerate(EXPRESSIONS):
        ours = truths(text, Scope(attributes=types), columns, len(ROWS))
        theirs = [row[at] for row in answers]
        wrong += [(text, ROWS[row], ours[row], theirs[row]) for row in range(len(ROWS)) if ours[row] != theirs[row]]
    assert wrong == []


GROUPED = ["x", "y", "n", "m", "s", "f", "ts", "d", "n * m", "x - y", "CASE WHEN x > 0 THEN n END"]
AGGREGATED = [
    f"{function}({text})"
    for text in GROUPED
    for function in AGGREGATES
    if function not in ("AVG", "SUM") or text not in ("s", "f", "ts", "d")
]


def test_every_aggregate_is_what_spark_gives_for_rows_in_order(spark: SparkSession) -> None:
    groups = [number % 3 for number in range(len(ROWS))]
    with reference(spark):
        rows = [(*row, group, number) for number, (row, group) in enumerate(zip(ROWS, groups, strict=True))]
        frame = spark.createDataFrame(rows, f"{SCHEMA}, g INT, at INT").coalesce(1).sortWithinPartitions("g", "at")
        texts = [F.expr(f"CAST({text} AS STRING)").alias(f"c{at}") for at, text in enumerate(AGGREGATED)]
        answers = frame.groupBy("g").agg(*texts).orderBy("g").collect()
    order = np.argsort(groups, kind="stable")
    types = dict(part.split(" ") for part in SCHEMA.split(", "))
    columns = {
        name: column([ROWS[row][at] for row in order], kind.lower()) for at, (name, kind) in enumerate(types.items())
    }
    scope = Scope(operands=("b",), attributes=types, aggregates=True)
    wrong = []
    for at, text in enumerate(AGGREGATED):
        (one,) = aggregates_in(bind(parse_predicate(f"{text} IS NULL"), scope))
        texts_of_ours = cast(aggregated(one, columns.__getitem__, np.array(groups)[order], 3), "string")
        ours = [text if known else None for text, known in zip(texts_of_ours.values, texts_of_ours.known, strict=True)]
        theirs = [row[f"c{at}"] for row in answers]
        wrong += [(text, *pair) for pair in zip(ours, theirs, strict=True) if not same_value(*pair)]
    assert wrong == []


def same_value(ours: str | None, theirs: str | None) -> bool:
    """Equal texts, or two texts of one number: before Java 19 some doubles are written with more digits than needed."""
    if ours is None or theirs is None or ours == theirs:
        return ours == theirs
    return "E" in theirs and float(ours) == float(theirs)


MANY = [pytest.param(seed, 500, marks=pytest.mark.slow) for seed in range(2, 7)]


@pytest.mark.parametrize(("seed", "count"), [(1, 200), *MANY])
def test_random_predicates_on_odd_values_have_the_truth_that_spark_gives_them(
    spark: SparkSession, seed: int, count: int
) -> None:
    made, rows = Predicates(seed), odd_rows(seed)
    pairs = [made.one() for _ in range(count)]
    with reference(spark, **INTERPRETED):
        frame = odd_frame(spark, rows)
        answers = [
            frame.selectExpr(*(f"{pair.spark} AS c{at}" for at, pair in enumerate(some))).collect()
            for some in batched(pairs)
        ]
    theirs = [[row[at] for row in answer] for answer in answers for at in range(len(answer[0]))]
    columns = {name: column([row[name] for row in rows], kind, stored=True) for name, kind in ODD.items()}
    scope = Scope(attributes=ODD)
    wrong = [
        (pair.spark, rows[at], one, other)
        for pair, spark_truths in zip(pairs, theirs, strict=True)
        for at, (one, other) in enumerate(zip(truths(pair.ours, scope, columns, len(rows)), spark_truths, strict=True))
        if one != other
    ]
    assert wrong == []
    known = [truth for some in theirs for truth in some if truth is not None]
    assert min(known.count(True), known.count(False)) > 5 * count, "both are frequent"


KINDS = (
    "double", "float", "decimal(5,2)", "decimal(38,0)", "decimal(12,6)", "decimal(3,3)", "decimal(20,1)", "bigint",
    "int", "smallint", "tinyint", "boolean", "timestamp", "date",
)  # fmt: skip


def test_odd_texts_are_read_as_spark_reads_them(spark: SparkSession) -> None:
    texts = [*TEXTS, *MORE_TEXTS, *NO_DATES]
    numbers = {"timestamp": "unix_micros", "date": "unix_date"}
    with reference(spark, **INTERPRETED):
        frame = spark.createDataFrame(pa.table({"s": pa.array(texts)})).coalesce(1)
        answers = frame.selectExpr(*(f"{numbers.get(kind, '')}(CAST(s AS {kind}))" for kind in KINDS)).collect()
    wrong = []
    for at, kind in enumerate(KINDS):
        for text, row in zip(texts, answers, strict=True):
            theirs = float(row[at]) if isinstance(row[at], Decimal) else row[at]
            theirs = theirs * DAY if kind == "date" and theirs is not None else theirs
            # Alone, a text may go Arrow's way; beside one that is nothing, it goes ours.
            for beside in ([], ["?"]):
                read = typed_column(np.array([text, *beside], object), kind)
                ours = read.values[0] if read.known[0] else None
                same = (
                    ours is theirs
                    if None in (ours, theirs)
                    else bool(ours == theirs or (ours != ours and theirs != theirs))
                )
                if not same:
                    wrong.append((kind, text, ours, theirs))
    # As docs/language.md says, dates have the range of timestamps.
    assert [(kind, text) for kind, text, *_ in wrong] == [("date", text) for text in NO_DATES for _ in range(2)]


DEPARTURES: list[tuple[str, bool | None, bool | None]] = [
    # Integers are computed in 64 bits.
    ("b + b < 0", False, True),
    ("i + 1 < 0", False, True),
    ("-i - 2 > 0", False, True),
    ("(u = b) IS NULL", False, True),
    # FLOAT, DECIMAL and constants with a point are DOUBLE.
    ("CAST(r AS STRING) = '0.1'", False, True),
    ("0.1 + 0.2 = 0.3", False, True),
    ("c = 9007199254740992", True, False),
    ("c + 1 = 9007199254740994", False, True),
    ("CAST(c AS STRING) = '9007199254740993'", False, True),
    # IN is `=` with each item.
    ("s IN (1)", True, False),
    # A text without a date is no timestamp, and dates have the range of timestamps.
    ("CAST(t AS TIMESTAMP) IS NULL", True, False),
    ("CAST(d AS DATE) IS NULL", True, False),
]
"""What docs/language.md says, under "As in Spark, but": what is so here, and in Spark."""


def test_where_predicates_depart_from_spark_they_do_as_the_page_says(spark: SparkSession) -> None:
    kinds = {"b": "tinyint", "i": "int", "r": "float", "c": "decimal(20,0)"} | dict.fromkeys("stud", "string")
    row: dict[str, Any] = {"b": 127, "i": 2**31 - 1, "r": 0.1, "c": Decimal("9007199254740993")}
    row |= {"s": "01", "t": "10:30", "u": "300", "d": NO_DATES[-1]}
    schema = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    with reference(spark, **INTERPRETED):
        frame = spark.createDataFrame([tuple(row[name] for name in kinds)], schema).coalesce(1)
        (answer,) = frame.selectExpr(*(text for text, *_ in DEPARTURES)).collect()
    columns = {name: typed_column(np.array([str(row[name])], object), kind) for name, kind in kinds.items()}
    ours = [truths(text, Scope(attributes=kinds), columns, 1)[0] for text, *_ in DEPARTURES]
    assert list(zip((text for text, *_ in DEPARTURES), ours, answer, strict=True)) == DEPARTURES
    with pytest.raises(PredicateError, match=re.escape("'2.8' cannot be read as a bigint")):
        truths("i = '2.8'", Scope(attributes=kinds), columns, 1)


INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling an expression takes Spark longer than computing it on so few rows."""


@contextmanager
def reference(spark: SparkSession, **more: str) -> Iterator[None]:
    """Spark as predicates mean it."""
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC", **more}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))


def odd_frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """Rows of odd values; moments go as numbers, as Python has no years above 9999."""
    types = {
        "double": pa.float64(), "float": pa.float32(), "decimal(12,3)": pa.decimal128(12, 3), "bigint": pa.int64(),
        "int": pa.int32(), "smallint": pa.int16(), "tinyint": pa.int8(), "string": pa.string(), "boolean": pa.bool_(),
    }  # fmt: skip
    moments = {"timestamp": (pa.int64(), pa.timestamp("us", "UTC")), "date": (pa.int32(), pa.date32())}
    columns = {}
    for name, kind in ODD.items():
        number, moment = moments.get(kind, (types.get(kind), None))
        array = pa.array([row[name] for row in rows], number)
        columns[name] = array if moment is None else array.cast(moment)
    return spark.createDataFrame(pa.table(columns)).coalesce(1)


def batched(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Pairs for one query: a plan of hundreds of long expressions takes Spark too long."""
    for begin in range(0, len(pairs), 50):
        yield pairs[begin : begin + 50]


def truths(text: str, scope: Scope, columns: dict[str, Column], rows: int) -> list[bool | None]:
    truth = evaluate(bind(parse_predicate(text), scope), lambda reference: columns[reference.column])
    true, known = (np.broadcast_to(part, rows).tolist() for part in (truth.true, truth.known))
    return [one if sure else None for one, sure in zip(true, known, strict=True)]


def column(values: list[Any], type_: str, *, stored: bool = False) -> Column:
    """A column of a Spark type; `stored`: moments are numbers, as `odd_rows` has them."""
    kind = value_type(type_) or ""
    filler: Any = {"string": "", "boolean": False}.get(kind, 0)
    raw = [filler if value is None else microseconds(value) for value in values]
    if stored and kind == "date":
        raw = [days * DAY for days in raw]
    known = np.array([value is not None for value in values])
    dtypes: dict[str, Any] = {"string": object, "double": float}
    return Column(np.array(raw, dtype=dtypes.get(kind)), known, kind)


def microseconds(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days * 86_400_000_000 if isinstance(value, dt.date) else value
