"""Seeded events, made by Spark from row numbers alone: the same at every run and on every machine.

Event `id` (from 0) happens `id` seconds after the start. Five hundred names follow Zipf's law (name k has the share
ln((k + 1) / k) / ln 501, about 1 / k); a hundred thousand keys and one attribute are uniform. On top of them six rare
names occur fifty times each, at every size: once in each fiftieth of the stream, at a pseudo-random place that is
independent from name to name. In five of the fiftieths the six stand side by side, in order, so that `strict` questions
have answers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

OCCURRENCES = 50
RARE = tuple(f"rare{number}" for number in range(6))
NAMES = 500
KEYS = 100_000

_START = 1_577_836_800
"""2020-01-01T00:00:00Z, in seconds."""


def frequent(count: int) -> tuple[str, ...]:
    """The most frequent names: 11 %, 6.5 %, 4.6 %, … of the events."""
    return tuple(f"n{rank}" for rank in range(1, count + 1))


def middling(count: int) -> tuple[str, ...]:
    """Names with about 0.08 % of the events each: every segment holds them, few leaves do."""
    return tuple(f"n{200 + rank}" for rank in range(count))


def source(spark: SparkSession, total: int, first: int = 0, last: int | None = None) -> DataFrame:
    """Rows `first` to `last` (exclusive) of a stream of `total` events: at, action, account, amount.

    Parameters
    ----------
    total
        Events of the whole stream; it decides where the rare names stand.
    first, last
        Which of them; all by default.
    """
    stratum = total // OCCURRENCES
    places = stratum // len(RARE)
    if places < 1:
        raise ValueError(f"{total} events: at least {OCCURRENCES * len(RARE)} are needed for the rare names")
    number, rest = f"id DIV {stratum}", f"(id % {stratum})"
    salt = f"IF({number} % 10 = 5, 99, {rest} % {len(RARE)})"
    here = f"{rest} DIV {len(RARE)} = pmod(xxhash64({number}, CAST({salt} AS INT)), {places})"
    rare = f"{number} < {OCCURRENCES} AND {here}"
    return spark.range(first, total if last is None else last, 1, 2).selectExpr(
        f"timestamp_seconds({_START} + id) AS at",
        f"CASE WHEN {rare} THEN concat('rare', {rest} % {len(RARE)}) "
        f"ELSE concat('n', CAST(floor(pow({NAMES + 1}, {_uniform(1)})) AS INT)) END AS action",
        f"concat('k', pmod(xxhash64(id, 2), {KEYS})) AS account",
        f"round({_uniform(3)} * 1000, 2) AS amount",
    )


def _uniform(salt: int) -> str:
    """SQL text of a pseudo-random number in [0, 1) that depends on the row's number alone."""
    return f"((xxhash64(id, {salt}) & 4503599627370495) / 4503599627370496D)"
