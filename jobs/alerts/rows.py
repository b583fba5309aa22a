"""The rows of `alerts`: from what other jobs publish to what is told, with ids that stay the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.quoting import shown_text
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.forecasts import ForecastsReader, made_by
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.alerts.quiet import AT, RANK, TURN
from patternlake.jobs.configuration.alerts import COLUMNS, FORECAST, GROUP, PATTERN, SUBSCRIPTION, find_bound
from patternlake.jobs.sources.expressions import examine
from patternlake.udfs.errors import ConfigurationError

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

FOUND_IN, ORDINAL = "found_in", "ordinal"
SAME = "same"
"""Column of what tells the things apart that are told; a forecast is another one each time that it rises."""

_OF_OTHERS = (
    "alert_number", "stream_id", "batch_id", "first_seen_at", "alert_id", "alert", "kind", "object", "held_back",
)  # fmt: skip
"""Columns of `alerts` that say whose row it is."""
_ID_LENGTH = 32


def check_where(spark: SparkSession, name: str, meaning: Mapping[str, Any]) -> None:
    """Refuse a predicate that Spark does not take, or that is none.

    Raises
    ------
    ConfigurationError
        With the key's path, and what is wrong.
    """
    text = meaning["where"]
    if text is None:
        return
    schema = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[meaning["of"]].items())
    found = examine(spark.createDataFrame([], schema), text)
    if not isinstance(found, str) and found.simpleString() == "boolean":
        return
    wrong = found if isinstance(found, str) else f"{text!r} gives {found.simpleString()}, not true or false"
    raise ConfigurationError(f"alerts.{name}.where: {wrong}")


def locate_rows(read: Publication, meaning: Mapping[str, Any], after: int | None) -> tuple[str, list[Condition]]:
    """Tell where the rows stand that a publication brings, and that `find_rows` makes what is told of.

    Parameters
    ----------
    read
        Of `predict`, `groups` or `patterns`.
    meaning
        Of the alert: ``of``, ``name`` and ``where``.
    after
        The last batch that was read before; None: nothing was.

    Returns
    -------
    (table, conditions)
        Plain name of the table, and the conditions on its rows, which hold all together.
    """
    kind, name = meaning["of"], meaning["name"]
    table = _TABLES[kind]
    if kind == FORECAST:
        return table, [*made_by(read, name, after), *_above_threshold(read, meaning)]
    where = published_rows(TABLES[table], read, after)
    return table, [*where, Condition("subscription", "=", name)] if kind == SUBSCRIPTION else where


def _above_threshold(read: Publication, meaning: Mapping[str, Any]) -> list[Condition]:
    """The condition on forecasts that `predict_match` shows, where the alert names no probability of its own.

    More of them may be kept, for an alert that does.
    """
    if find_bound(meaning["where"]) is not None:
        return []
    threshold = read.configuration["subscriptions"].get(meaning["name"], {}).get("threshold", 0.0)
    return (
        [] if isinstance(threshold, Mapping) else [Condition("probability", ">=", math.nextafter(threshold, math.inf))]
    )


def find_rows(
    database: Database, rows: DataFrame, read: Publication, meaning: Mapping[str, Any], after: int | None
) -> DataFrame:
    """What a publication brings that an alert is about and that was not there before.

    Parameters
    ----------
    database
        Where.
    rows
        Those that `locate_rows` names.
    read, meaning, after
        As for `locate_rows`.

    Returns
    -------
    DataFrame
        The columns that alerts of this kind have, `FOUND_IN` and `SAME`; and `TURN`, `AT` and `RANK`, see `quiet`.
    """
    kind = meaning["of"]
    written = "from_batch" if TABLES[_TABLES[kind]].changing else "batch_id"
    chosen = _apply_predicate(rows.withColumnRenamed(written, FOUND_IN), meaning)
    if kind == FORECAST:
        return _risen_forecasts(chosen, ForecastsReader(database).batches(read, after), known=after is not None)
    # An open group is another one with the next step; what is told of it is told once it is final.
    return _final(chosen) if kind == GROUP else _same_match(chosen, in_batches=kind == PATTERN)


def alert_rows(rows: DataFrame, *, alert: str, meaning: Mapping[str, Any]) -> DataFrame:
    """Rows of `alerts`, without marks and moments, but with `TURN`, `AT` and `RANK`.

    Parameters
    ----------
    rows
        As `find_rows` gives them.
    alert, meaning
        Name and meaning of the alert.
    """
    kind, name = F.lit(meaning["of"]), F.lit(meaning["name"])
    told = F.struct(
        F.lit(alert).alias("alert"), kind.alias("kind"), name.alias("object"), F.col(SAME).alias(SAME)
    )  # fmt: skip
    types = {column.name: column.type for column in TABLES["alerts"].columns if column.name not in _OF_OTHERS}
    own = [
        (F.col(column) if column in rows.columns else F.lit(None)).cast(kind_of_column).alias(column)
        for column, kind_of_column in types.items()
    ]
    return rows.select(
        F.substring(F.sha2(F.to_json(told), 256), 1, _ID_LENGTH).alias("alert_id"),
        F.lit(alert).alias("alert"),
        kind.alias("kind"),
        name.alias("object"),
        *own,
        TURN,
        AT,
        RANK,
    )


def risen(rows: DataFrame, *, known: bool) -> DataFrame:
    """Of things that hold at numbered moments, the first of each run of moments at which they hold.

    Parameters
    ----------
    rows
        `SAME`: what holds; `ORDINAL`: the number of the moment, from 0 without gaps; ``probability`` and ``state``. Of
        several rows of a thing and a moment, the most probable one is told.
    known
        Whether moment 0 was looked at before: then what holds there has been told.
    """
    in_order = Window.partitionBy(SAME).orderBy(ORDINAL, F.desc("probability"), "state")
    before = F.lag(ORDINAL).over(in_order)
    rows = rows.withColumn("before", before)
    rose = F.col("before").isNull() | (F.col("before") < F.col(ORDINAL) - 1)
    return rows.where(rose & (F.col(ORDINAL) >= (1 if known else 0))).drop("before")


def _same_match(rows: DataFrame, *, in_batches: bool) -> DataFrame:
    """Matches with what tells them apart, and their order.

    Those of a subscription are published in the order of time, whatever its batches. Those of a kept pattern become
    final in another one (`in_batches`).
    """
    moments = [F.unix_micros(name).alias(name) for name in ("first_time", "last_time")]
    same = F.struct("part", *moments, _entries(F.col("bindings")).alias("bindings"))
    turn = F.col(FOUND_IN) if in_batches else F.lit(0)
    return _in_order(rows.withColumn(SAME, same), turn, F.unix_micros("last_time"), F.col("last_position"))


def _final(rows: DataFrame) -> DataFrame:
    """Groups that nothing can change any more, with what tells them apart, and their order.

    Groups of a key become final in the order of their ends. The batch says less: the row of a final group is written
    once more when it is closed.
    """
    final = rows.where("final").withColumn(SAME, F.struct("part", "t_start", "t_first", "t_end"))
    return _in_order(final, F.lit(0), F.col("t_end"), F.col("t_first"))


def _risen_forecasts(rows: DataFrame, batches: Mapping[int, datetime | None], *, known: bool) -> DataFrame:
    """Forecasts that have risen, with what tells them apart, their order and the watermark of their batch.

    Of several of a batch, the most probable one comes first.
    """
    bound = F.map_keys(F.map_filter("bindings", lambda _, positions: F.size(positions) > 0))
    same = F.struct("part", "joins", F.array_sort(bound).alias("bound"))
    rose = risen(number_rows(rows, list(batches)).withColumn(SAME, same), known=known)
    rose = rose.withColumn(SAME, F.struct(F.col(f"{SAME}.*"), F.col(FOUND_IN)))
    pairs = [(batch, None if moment is None else timestamps.to_micros(moment)) for batch, moment in batches.items()]
    watermarks = frame_of_tuples(rows.sparkSession, pairs, f"{FOUND_IN} bigint, micros bigint")
    rose = rose.join(F.broadcast(watermarks), FOUND_IN).withColumn("watermark", F.timestamp_micros("micros"))
    return _in_order(rose, F.col(FOUND_IN), F.col("micros"), -F.col("probability"))


def _in_order(rows: DataFrame, turn: Column, at: Column, rank: Column) -> DataFrame:
    """Rows with the columns that say in which order they were found, and when they happened."""
    return rows.withColumns({TURN: turn.cast("bigint"), AT: at.cast("bigint"), RANK: rank.cast("double")})


def number_rows(rows: DataFrame, batches: Sequence[int]) -> DataFrame:
    """Rows of some batches, with `ORDINAL`: which of them, from 0, brought the row in `FOUND_IN`."""
    pairs = [(batch, number) for number, batch in enumerate(batches)]
    numbers = frame_of_tuples(rows.sparkSession, pairs, f"{FOUND_IN} bigint, {ORDINAL} int")
    return rows.join(F.broadcast(numbers), FOUND_IN)


def _apply_predicate(rows: DataFrame, meaning: Mapping[str, Any]) -> DataFrame:
    """Rows that the predicate of an alert holds for, with `key`."""
    rows = rows.withColumn("key", F.expr(shown_text("part")))
    return rows if meaning["where"] is None else rows.where(F.expr(meaning["where"]))


def _entries(bindings: Column) -> Column:
    """A map as a list, in the order of its keys."""
    return F.array_sort(F.map_entries(bindings))


_TABLES = {
    SUBSCRIPTION: "subscription_matches",
    FORECAST: "forecasts",
    GROUP: "group_matches",
    PATTERN: "pattern_matches",
}
