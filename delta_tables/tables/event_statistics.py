"""Table `event_statistics`: how often each event name occurs, by batch; the planner of exact patterns reads it.

`ingest` counts the events of each batch. `maintain` adds rows without events of their own, which tell how the values of
attributes lie over all events so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows, visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.writing import direct_rewriting, writes
from patternlake.delta_tables.writing.arrow_rows import FewRows
from patternlake.delta_tables.writing.row_files import add_marks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication


_FEW_BYTES = 16 << 20
ATTRIBUTES = (
    "ARRAY<STRUCT<attribute: STRING, events: BIGINT, known: BIGINT, distinct: BIGINT, quantiles: ARRAY<DOUBLE>>>"
)
"""Events, values that are not NULL, about how many different ones, and of numbers values at equal steps."""


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, s.name, sum(s.events) AS events,
  min(s.first_time) AS first_time, max(s.last_time) AS last_time, max_by(s.attributes, s.batch_id)
    FILTER (WHERE s.attributes IS NOT NULL) AS attributes
FROM {log("event_statistics")} s JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "s", "p")}
GROUP BY p.stream, s.name"""


TABLE = Table(
    name="event_statistics",
    comment="Number and span of the events of each name, one row per batch.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("batch_id", "BIGINT", "the batch that was counted"),
        Column("name", "STRING", "event name"),
        Column("events", "BIGINT", "events of this name in the batch"),
        Column("first_time", "TIMESTAMP", "least event time"),
        Column("last_time", "TIMESTAMP", "greatest event time"),
        Column("attributes", ATTRIBUTES, "by attribute, over all events so far; NULL in rows of ingest"),
    ),
    keys=("stream_id", "batch_id", "name"),
    view=_view,
    seen=(
        "stream name events:BIGINT first_time:TIMESTAMP last_time:TIMESTAMP "
        "attributes:ARRAY<STRUCT<attribute:STRING,events:BIGINT,known:BIGINT,distinct:BIGINT,quantiles:ARRAY<DOUBLE>>>"
    ),
    job="ingest",
    partitions=("stream_id",),
)


class EventStatisticsWriter:
    """Writes what `maintain` finds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self, publication: Publication, attributes: DataFrame) -> None:
        """Tell how attributes lie as of an ingest publication; what was told of it before is replaced.

        Parameters
        ----------
        publication
            Of the stream's `ingest`.
        attributes
            ``name``, ``attributes``.
        """
        nothing = F.lit(None).cast("timestamp_ltz")
        rows = attributes.select(
            F.lit(publication.stream_id).cast("int").alias("stream_id"),
            F.lit(publication.batch_id).cast("bigint").alias("batch_id"),
            "name",
            F.lit(0).cast("bigint").alias("events"),
            nothing.alias("first_time"),
            nothing.alias("last_time"),
            F.col("attributes").cast(ATTRIBUTES).alias("attributes"),
        )
        writes.replace(
            self._database.log(TABLE.name), rows, _where_described(publication), commits=self._database.commits(TABLE)
        )

    def describe_few(self, publication: Publication, attributes: pa.Table) -> None:
        """As `describe`, of rows that the driver holds; only where tables are read directly."""
        assert self._database.direct is not None
        schema = self._database.direct.schema(TABLE.name)
        same = {"stream_id": publication.stream_id, "batch_id": publication.batch_id, "events": 0}
        rows = FewRows(add_marks(attributes, schema, same), self._database)
        where = [Condition("stream_id", "=", publication.stream_id), Condition("batch_id", "=", publication.batch_id)]

        def replace(given: TableFolder) -> bool:
            return direct_rewriting.replace(given, where, rows.rows, only=_telling, most_bytes=_FEW_BYTES)

        commits = self._database.commits(TABLE)
        writes.replace(
            self._database.log(TABLE.name), rows, _where_described(publication), commits=commits, directly=replace
        )


def _telling(rows: pa.Table) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = rows["attributes"].is_valid().to_numpy()
    return found


def _where_described(publication: Publication) -> str:
    """The rows that tell of attributes as of a publication."""
    return f"stream_id = {publication.stream_id} AND batch_id = {publication.batch_id} AND attributes IS NOT NULL"


class EventStatisticsReader:
    """Reads what `maintain` told."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def described(self, publication: Publication) -> int:
        """How many events the last description of attributes was made of that a publication makes visible."""
        where = [*published_rows(TABLE, publication), Condition("events", "=", 0)]
        rows = self._database.state.rows(TABLE.name, ("batch_id", "attributes"), where).drop_null()
        latest = rows.filter(pc.equal(rows["batch_id"], pc.max(rows["batch_id"])))
        # Every attribute of a name tells how many events the name has.
        return sum(attributes[0]["events"] for attributes in latest["attributes"].to_pylist() if attributes)
