"""How the values of a stream's attributes lie, by event name: what the planner of exact patterns wants to know.

One pass over all published events: no sample, and no value leaves its task but as part of a summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.event_statistics import EventStatisticsReader, EventStatisticsWriter
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.jobs.batches import few
from patternlake.jobs.maintain import few_attributes
from patternlake.udfs.attributes import attribute_columns, column_of
from patternlake.udfs.language.predicate.columns import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

STEPS = 20
"""Quantiles are this many equal steps apart."""
GROWTH = 1.1
"""A stream is described anew once it has so many times the events that it had."""
_FEW_EVENTS = 500_000
"""Events that the driver counts for itself, at most."""
ACCURACY = 1000
"""The rank of a quantile errs by one part in so many."""


def describe(db: Database, publication: Publication, types: Mapping[str, str]) -> None:
    """Write how attributes lie as of an ingest publication, where that was not told of nearly as many events.

    All events are read, so a stream that grows by little batches is not described with each of them.

    Parameters
    ----------
    db
        The database.
    publication
        The latest of the stream's `ingest`.
    types
        Spark type of each attribute.
    """
    known = EventStatisticsReader(db).described(publication)
    if publication.source_to <= known * GROWTH:
        return
    where = few.of_stream(publication, 1, publication.source_to)
    columns = ("name", "key", *attribute_columns(types, types))
    writer = EventStatisticsWriter(db)
    if publication.source_to <= _FEW_EVENTS and db.direct is not None and few.few_bytes(db, "events", where, columns):
        writer.describe_few(
            publication, few_attributes.count_values(db.direct.rows("events", columns, where), types, STEPS)
        )
        return
    writer.describe(publication, count_values(EventsReader(db).published(publication), types))


def count_values(events: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Summaries of all attributes, and of the key, by name.

    Parameters
    ----------
    events
        Rows of `events`.
    types
        Spark type of each attribute.

    Returns
    -------
    DataFrame
        ``name``, ``attributes`` (as `event_statistics` has it).
    """
    columns = [_summary(F.col("key"), "key", "string")]
    columns += [_summary(F.col(identifier(column_of(name, type_))), name, type_) for name, type_ in types.items()]
    return events.groupBy("name").agg(F.array(*columns).alias("attributes"))


def _summary(value: Column, name: str, spark_type: str) -> Column:
    """One attribute as a struct."""
    return F.struct(
        F.lit(name).alias("attribute"),
        F.count("*").alias("events"),
        F.count(value).alias("known"),
        F.approx_count_distinct(value).alias("distinct"),
        _quantiles(value, value_type(spark_type) or "").alias("quantiles"),
    )


def _quantiles(value: Column, type_: str) -> Column:
    """Values at equal steps; NULL for what is no number. Moments count microseconds, as predicates do."""
    if type_ in ("bigint", "double"):
        number = F.when(~F.isnan(value.cast("double")), value.cast("double"))
    elif type_ in ("timestamp", "date"):
        number = F.unix_micros(value.cast("timestamp_ltz")).cast("double")
    else:
        return F.lit(None).cast("array<double>")
    shares = F.array(*[F.lit(step / STEPS) for step in range(STEPS + 1)])
    return F.percentile_approx(number, shares, ACCURACY)
