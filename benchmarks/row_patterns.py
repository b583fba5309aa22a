"""MATCH_RECOGNIZE in `spark.sql`, beside plain Spark SQL where that can say the same.

``python -m benchmarks.row_patterns [rows] [repeats]`` prints one line of JSON for each question: medians of seconds,
in turns. *v* is ``start down+ up+`` over the prices of ten thousand symbols, beside three ``lag``; *no b* is ``A+ B+``
of one partition where no B comes; *crimes* is a robbery, a battery near it and a theft within half an hour, the table
one partition; *thousand* is a clause over 1,000 rows; *other statements* are parses of a statement without the clause,
with our parser in front and without it.

With PATTERNLAKE_PANDAS_MATCH_RECOGNIZE, a folder that has `pandas_match_recognize` and what it needs, it is asked *v*
over a tenth of the rows, once, beside us over the same rows; both must find as many matches.

With ``--flink PATH``, or PATTERNLAKE_FLINK, the folder of a Flink distribution (it has `lib`), Flink SQL is asked *v*
over the same rows, in batch mode on two slots of a cluster within one JVM, beside us over the same CSV files. Of its
repeats the fastest counts, from the submission of a query to its row. It takes no greedy quantifier last, so *v*
has the row behind the rise as well, from which the next match may begin; both must find as many matches.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.lakes import new_folder
from benchmarks.measuring import measure_beside, median, report_beside, seconds
from benchmarks.sessions import ask, spark_session

SYMBOLS = 10_000
KINDS = ("robbery", "battery", "theft", "fraud", "arson", "assault", "burglary", "trespass")
PARSES = 300
_V = (
    "MEASURES LAST(up.price) AS price PATTERN (start down+ up+) "
    "DEFINE down AS price < PREV(price), up AS price > PREV(price)"
)
_CRIMES = (
    "ORDER BY at MEASURES r.at AS r, m.at AS m AFTER MATCH SKIP TO NEXT ROW PATTERN (r z* b z* m) DEFINE "
    "r AS kind = 'robbery', b AS kind = 'battery' AND abs(b.x - r.x) < 0.05, "
    "m AS kind = 'theft' AND abs(m.x - r.x) < 0.05 AND m.at <= r.at + INTERVAL 30 MINUTES"
)


_FLINK_TABLE = (
    "CREATE TABLE prices (symbol STRING, ts BIGINT, price INT, "
    "moment AS TO_TIMESTAMP_LTZ(ts, 0), WATERMARK FOR moment AS moment) "
    "WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
)
_IN_FLINK = """SELECT count(*) FROM prices MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY moment MEASURES LAST(up.price) AS price AFTER MATCH SKIP TO FIRST behind
  PATTERN (begun down+ up+ behind) DEFINE
    down AS down.price < COALESCE(LAST(down.price, 1), begun.price),
    up AS up.price > COALESCE(LAST(up.price, 1), LAST(down.price)), behind AS behind.price <= LAST(up.price))"""
_BESIDE_FLINK = """SELECT count(*) FROM prices_of_flink MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY ts MEASURES LAST(up.price) AS price AFTER MATCH SKIP TO FIRST behind
  PATTERN (begun down+ up+ behind) DEFINE
    down AS price < PREV(price), up AS price > PREV(price), behind AS price <= PREV(price))"""
_OPENED = ("lang", "lang.reflect", "util", "util.concurrent", "io", "net", "nio", "text", "time")
"""Packages of Java that Flink looks into."""


def measure(rows: int, repeats: int, flink: str = os.environ.get("PATTERNLAKE_FLINK", "")) -> dict[str, Any]:
    """All questions."""
    with new_folder(f"row_patterns_{rows}") as folder, spark_session(folder) as spark:
        found = [_prices(spark, f"{folder}/prices", rows, repeats)]
        if (peer := os.environ.get("PATTERNLAKE_PANDAS_MATCH_RECOGNIZE")) is not None:
            found.append(_beside_pandas(spark, peer, rows // 10))
        if flink:
            found.append(_beside_flink(spark, Path(flink), folder / "prices_csv", repeats))
        for count in sorted({20_000, rows // 10}):
            found.append(_no_b(spark, f"{folder}/letters_{count}", count, repeats))
        for count in (20_000, rows * 7 // 10):
            found.append(_crimes(spark, f"{folder}/crimes_{count}", count, repeats))
        found += [_thousand(spark, max(repeats, 5)), _other_statements(spark)]
        return {"events": rows, "repeats": repeats, "beside": found}


def _table(frame: DataFrame, place: str, name: str) -> None:
    frame.write.format("delta").save(place)
    frame.sparkSession.read.format("delta").load(place).createOrReplaceTempView(name)


def _prices(spark: SparkSession, place: str, rows: int, repeats: int) -> dict[str, Any]:
    symbol = (F.col("id") % min(SYMBOLS, rows)).cast("string")
    frame = spark.range(rows).select(
        F.concat(F.lit("s"), symbol).alias("symbol"),
        F.timestamp_seconds(F.col("id")).alias("ts"),
        (F.hash("id") % 1000).alias("price"),
    )
    _table(frame, place, "prices")

    def ours() -> None:
        ask(spark, f"SELECT count(*) FROM prices MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {_V})")

    def plain() -> None:
        over = "OVER (PARTITION BY symbol ORDER BY ts)"
        lags = ", ".join(f"lag(price, {number}) {over} AS p{number}" for number in (1, 2, 3))
        ask(spark, f"SELECT count(*) FROM (SELECT price, {lags} FROM prices) WHERE p1 < p2 AND p2 < p3 AND price > p1")

    return measure_beside(f"v, {rows:,} rows", {"MATCH_RECOGNIZE": ours, "three lags": plain}, repeats)


def _beside_pandas(spark: SparkSession, folder: str, rows: int) -> dict[str, Any]:
    sys.path.append(folder)
    from pandas_match_recognize import match_recognize  # type: ignore[import-not-found]

    few = spark.sql("SELECT symbol, ts, price FROM prices WHERE hash(symbol) % 10 = 0").limit(rows).toPandas()
    found: dict[str, int] = {}
    spark.createDataFrame(few).createOrReplaceTempView("few_prices")
    question = f"MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {_V})"

    def ours() -> None:
        found["MATCH_RECOGNIZE"] = ask(spark, f"SELECT count(*) FROM few_prices {question}")[0][0]

    def pandas() -> None:
        clause = question.replace("PATTERN", "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN", 1)
        found["pandas"] = len(match_recognize(f"SELECT * FROM df {clause}", few))

    figures = measure_beside(
        f"v, {len(few):,} rows", {"MATCH_RECOGNIZE": ours, "pandas-match-recognize": pandas}, 1, warm=False
    )
    if found["MATCH_RECOGNIZE"] != found["pandas"]:
        raise RuntimeError(f"v: they find so many matches: {found}")
    return figures


def _beside_flink(spark: SparkSession, flink: Path, place: Path, repeats: int) -> dict[str, Any]:
    spark.sql("SELECT symbol, unix_seconds(ts) AS ts, price FROM prices").write.csv(str(place))
    schema = "symbol STRING, ts BIGINT, price INT"
    spark.read.schema(schema).csv(str(place)).createOrReplaceTempView("prices_of_flink")
    rows = spark.table("prices_of_flink").count()
    command = ["java", "-Xmx4g", *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED)]
    command += ["-cp", f"{flink}/lib/*", str(Path(__file__).parent / "peers" / "FlinkPeer.java"), str(repeats)]
    command += [_FLINK_TABLE.format(path=place.resolve().as_uri()), _IN_FLINK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink failed: {done.stderr[-2000:]}")
    theirs = [line.split() for line in done.stdout.splitlines()]
    ours = ask(spark, _BESIDE_FLINK)[0][0]
    if ours != int(theirs[-1][1]):
        raise RuntimeError(f"v beside Flink: {ours:,} matches, and Flink has {theirs[-1][1]}")
    taken = median([seconds(lambda: ask(spark, _BESIDE_FLINK)) for _ in range(repeats)])
    fastest = min(float(line[0]) for line in theirs)
    return report_beside(f"v, {rows:,} rows", {"MATCH_RECOGNIZE": taken, "Flink SQL": fastest}, matches=ours)


def _no_b(spark: SparkSession, place: str, rows: int, repeats: int) -> dict[str, Any]:
    name = f"letters_{rows}"
    _table(spark.range(rows).select("id", F.lit("a").alias("letter")), place, name)
    clause = "ORDER BY id PATTERN (a+ b+) DEFINE a AS letter = 'a', b AS letter = 'b'"
    text = f"SELECT count(*) FROM {name} MATCH_RECOGNIZE ({clause})"
    return measure_beside(f"no b, {rows:,} rows", {"MATCH_RECOGNIZE": lambda: ask(spark, text)}, repeats)


def _crimes(spark: SparkSession, place: str, rows: int, repeats: int) -> dict[str, Any]:
    name = f"crimes_{rows}"
    frame = spark.range(rows).select(
        F.timestamp_seconds(F.col("id") * 60).alias("at"),
        F.element_at(F.array(*map(F.lit, KINDS)), F.pmod(F.hash("id"), F.lit(len(KINDS))) + 1).alias("kind"),
        (F.pmod(F.hash("id", F.lit(1)), F.lit(1000)) / 1000).alias("x"),
    )
    _table(frame, place, name)
    text = f"SELECT count(*) FROM {name} MATCH_RECOGNIZE ({_CRIMES})"
    return measure_beside(f"crimes, {rows:,} rows", {"MATCH_RECOGNIZE": lambda: ask(spark, text)}, repeats)


def _thousand(spark: SparkSession, repeats: int) -> dict[str, Any]:
    spark.sql("SELECT symbol, ts, price FROM prices LIMIT 1000").toPandas()
    rows = spark.range(1000).select(
        (F.col("id") % 10).alias("symbol"), F.col("id").alias("ts"), (F.hash("id") % 100).alias("price")
    )
    rows.createOrReplaceTempView("thousand")
    ours = f"SELECT count(*) FROM thousand MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {_V})"
    plain = (
        "SELECT count(*) FROM (SELECT lag(price) OVER (PARTITION BY symbol ORDER BY ts) AS p FROM thousand) WHERE p > 9"
    )
    actions = {"MATCH_RECOGNIZE": lambda: ask(spark, ours), "one lag": lambda: ask(spark, plain)}
    return measure_beside("thousand", actions, repeats)


def _other_statements(spark: SparkSession) -> dict[str, Any]:
    columns = ", ".join(f"sum(price * {number}) AS s{number}" for number in range(100))
    text = f"SELECT symbol, {columns} FROM prices WHERE price > 1 GROUP BY symbol"
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    handler: Any = spark._jvm.java.lang.reflect.Proxy.getInvocationHandler(parser)  # type: ignore[union-attr]
    inner = handler.inner()

    def parses(by: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(PARSES):
                by.parsePlan(text)

        return run

    return measure_beside(f"other statements, {PARSES} parses", {"with": parses(parser), "without": parses(inner)}, 9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=10_000_000)
    parser.add_argument("repeats", type=int, nargs="?", default=3)
    parser.add_argument("--flink", metavar="PATH", default=os.environ.get("PATTERNLAKE_FLINK", ""))
    measure(**vars(parser.parse_args()))
