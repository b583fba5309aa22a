"""Looks at what `ingest` would make of the sources of streams, and writes nothing."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.sessions import own_session
from patternlake.jobs.ingest.chunks import KeptChunks, keep_chunks
from patternlake.jobs.ingest.evaluated_rows import EvaluatedRows, Evaluation, settings
from patternlake.jobs.ingest.ordering import order_of
from patternlake.jobs.ingest.ties import Ties
from patternlake.jobs.sources.columns import EventColumns
from patternlake.jobs.sources.source import Source
from patternlake.jobs.starter.checked import Checked, Shown
from patternlake.udfs.errors import ArgumentError, cut
from patternlake.udfs.nearest_names import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.configuration.streams import StreamConfiguration

logger = logging.getLogger(__name__)

SHOWN = 10
"""So many events, and so many rows for quarantine, are shown."""
_LONGEST = 200
"""So many characters of a row that has repeats are shown."""


def choose_streams(configuration: Configuration, object: str | None = None) -> dict[str, StreamConfiguration]:
    """The streams of a configuration, or the one of a name.

    Raises
    ------
    ArgumentError
        There is none of this name, or it is one of matches.
    """
    streams = {name: each for name, each in configuration.streams.items() if configuration.emitted(name) is None}
    if object in configuration.streams and object not in streams:
        raise ArgumentError(
            f"the stream {object!r} is one of matches, which `predict` makes; it has no source to check"
        )
    if object is None:
        return streams
    if object not in streams:
        known = ", ".join(map(repr, streams)) or "none"
        raise ArgumentError(f"there is no stream {object!r}{did_you_mean(object, streams)}; streams are {known}")
    return {object: streams[object]}


def check(spark: SparkSession, name: str, stream: StreamConfiguration, *, rows: int | None = None) -> Checked:
    """Evaluate a stream's expressions over what its source holds, as `ingest` does in a first batch.

    Parameters
    ----------
    spark
        A session that is ready for Delta, not one of Spark Connect.
    name, stream
        The stream and its configuration.
    rows
        Read so many rows at the most; None: all.

    Raises
    ------
    ConfigurationError
        An expression does not fit the source's columns.
    SourceError
        The source is missing, is none, or cannot be read.
    """
    with own_session(spark, settings(stream)) as own, ExitStack() as stack:
        source = Source(own, name, stream)
        schema = source.schema()
        if schema is None:
            return Checked(name, source.shown)
        columns = EventColumns(name, stream)
        columns.check(source.empty(schema), source.unread)
        source.rows(schema)
        evaluation = Evaluation(source, schema, columns)

        def judge(read: DataFrame) -> DataFrame:
            return evaluation.judged(read if rows is None else read.limit(rows))

        try:
            batch, files = source.there(schema)
            found = evaluation.rows(
                batch, files, judge, bad={}, bring=lambda read: stack.enter_context(keep_chunks(read))
            )
            return _sum_up(name, stream, source.shown, found, limited=rows is not None)
        except Exception as error:
            known = source.explain(error, schema.fieldNames())
            if known is not None:
                raise known from None
            raise


def _sum_up(name: str, stream: StreamConfiguration, source: str, found: EvaluatedRows, *, limited: bool) -> Checked:
    assert isinstance(found.rows, KeptChunks)
    accepted, rows = found.rows.accepted_count, found.rows.rows("accepted").frame()
    refused = sorted((reason, total) for reason, total in found.totals.items() if reason is not None)
    return Checked(
        stream=name,
        source=source,
        there=True,
        limited=limited,
        rows=sum(total.rows for total in found.totals.values()),
        accepted=accepted,
        events=_pick_events(rows, stream, SHOWN),
        refused=Shown(
            ("reason", "rows", "such as"),
            tuple((reason, str(total.rows), total.sample) for reason, total in refused),
        ),
        quarantined=_pick_refused(found.rows.rows("refused").frame()),
        bad_files=tuple(sorted(found.bad_files.items())),
        ties=Ties(found.rows.count_ties(), accepted).told(stream),
        repeats=None if stream.event_id is not None else _tell_repeats(rows, stream),
    )


def _tell_repeats(accepted: DataFrame, stream: StreamConfiguration) -> str | None:
    """Say how many accepted rows are the same as another, with one of them; None where none is."""
    alike = accepted.groupBy("hash").agg(F.count("*").alias("rows")).where("rows > 1")
    (told,) = alike.agg(
        F.sum(F.col("rows") - 1).alias("repeats"), F.max("rows").alias("rows"), F.max_by("hash", "rows").alias("hash")
    ).collect()
    if told["repeats"] is None:
        return None
    repeats, most = int(told["repeats"]), int(told["rows"])
    shown = _pick_events(accepted.where(F.col("hash") == told["hash"]), stream, 1)
    values = ("NULL" if value is None else value for value in shown.rows[0])
    example = cut(", ".join(f"{title} {value}" for title, value in zip(shown.header, values, strict=True)), _LONGEST)
    are = "row is the same as an earlier one" if repeats == 1 else "rows are the same as earlier ones"
    return (
        f"{repeats:,} {are} in all columns, such as {example} ({most:,} times); each would be an event of its own: "
        "where rows come more than once, write `event_id:` in the stream with an expression that identifies an event"
    )


def _pick_events(accepted: DataFrame, stream: StreamConfiguration, most: int) -> Shown:
    """The first of some accepted rows, under the names of the event's columns."""
    first = accepted.orderBy(*order_of(accepted.columns)).limit(most)
    moment = F.concat(F.col("time").cast("string"), F.date_format("time", " XXX"))
    columns: dict[str, Column] = {"time": moment}
    if stream.probabilistic:
        columns |= {"step": F.col("step"), "probability": F.round("probability", 6)}
    if stream.key is not None:
        columns["key"] = F.col("key")
    columns["name"] = F.col("name")
    if stream.event_id is not None:
        columns["event_id"] = F.col("event_id")
    columns |= {attribute: F.col(f"a{index}") for index, attribute in enumerate(stream.attributes)}
    if stream.tokens is not None and stream.tokens != ["name"]:
        tokens = F.array_compact(F.array(*[F.col(f"k{index}") for index in range(len(stream.tokens))]))
        columns["tokens"] = F.concat_ws(", ", tokens)
    return _show(first, columns)


def _pick_refused(refused: DataFrame) -> Shown:
    """Some rows of each reason, those of each in a fixed order."""
    of_one_reason = F.row_number().over(Window.partitionBy("reason").orderBy(F.xxhash64("origin", "row"), "row"))
    some = (
        refused.withColumn("__nth", of_one_reason)
        .where(F.col("__nth") <= SHOWN)
        .orderBy("__nth", "reason")
        .limit(SHOWN)
    )
    return _show(some, {name: F.col(name) for name in ("reason", "detail", "row", "origin")})


def _show(rows: DataFrame, columns: dict[str, Column]) -> Shown:
    texts = rows.select(*[column.cast("string").alias(f"c{n}") for n, column in enumerate(columns.values())])
    return Shown(tuple(columns), tuple(tuple(row) for row in texts.collect()))
