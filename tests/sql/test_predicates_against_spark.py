"""Predicates mean in PatternLake what they mean in Spark SQL (ANSI mode off)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from patternlake.udfs.language.predicate.aggregates import aggregated, aggregates_in, written
from patternlake.udfs.language.predicate.allowed import AGGREGATES
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope, bind, evaluate, parse_predicate
from patternlake.udfs.language.predicate.references import Reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        frame = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
        answers = frame.selectExpr(*(f"({text}) AS c{at}" for at, text in enumerate(EXPRESSIONS))).collect()
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
    wrong = []
    for at, text in enumerate(EXPRESSIONS):
        ours = truths(text)
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
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    before = {name: spark.conf.get(name) for name in settings}
    groups = [number % 3 for number in range(len(ROWS))]
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        rows = [(*row, group, number) for number, (row, group) in enumerate(zip(ROWS, groups, strict=True))]
        frame = spark.createDataFrame(rows, f"{SCHEMA}, g INT, at INT").coalesce(1).sortWithinPartitions("g", "at")
        texts = [F.expr(f"CAST({text} AS STRING)").alias(f"c{at}") for at, text in enumerate(AGGREGATED)]
        answers = frame.groupBy("g").agg(*texts).orderBy("g").collect()
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
    order = np.argsort(groups, kind="stable")
    types = dict(part.split(" ") for part in SCHEMA.split(", "))
    columns = {
        name: column([ROWS[row][at] for row in order], kind.lower()) for at, (name, kind) in enumerate(types.items())
    }
    scope = Scope(operands=("b",), attributes=types, aggregates=True)
    wrong = []
    for at, text in enumerate(AGGREGATED):
        (one,) = aggregates_in(bind(parse_predicate(f"{text} IS NULL"), scope))
        ours = written(aggregated(one, columns.__getitem__, np.array(groups)[order], 3))
        theirs = [row[f"c{at}"] for row in answers]
        wrong += [(text, *pair) for pair in zip(ours, theirs, strict=True) if not same_value(*pair)]
    assert wrong == []


def same_value(ours: str | None, theirs: str | None) -> bool:
    """Equal texts, or two texts of one number: before Java 19 some doubles are written with more digits than needed."""
    if ours is None or theirs is None or ours == theirs:
        return ours == theirs
    return "E" in theirs and float(ours) == float(theirs)


def truths(text: str) -> list[bool | None]:
    types = dict(part.split(" ") for part in SCHEMA.split(", "))
    predicate = bind(parse_predicate(text), Scope(attributes=types))

    def resolve(reference: Reference) -> Column:
        at = list(types).index(reference.column)
        return column([row[at] for row in ROWS], types[reference.column].lower())

    truth = evaluate(predicate, resolve)
    true, known = (np.broadcast_to(part, len(ROWS)).tolist() for part in (truth.true, truth.known))
    return [one if sure else None for one, sure in zip(true, known, strict=True)]


def column(values: list[Any], type_: str) -> Column:
    filler: Any = {"string": "", "boolean": False}.get(type_, 0)
    raw = [filler if value is None else microseconds(value) for value in values]
    known = np.array([value is not None for value in values])
    return Column(np.array(raw, dtype=object if type_ == "string" else None), known, type_)


def microseconds(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days * 86_400_000_000 if isinstance(value, dt.date) else value
