"""Table `alert_deliveries`: every attempt to deliver an alert outside, one row each, once it has been made.

No publication makes its rows visible: what was attempted was attempted. Where a run dies between an attempt and its
row, the alert is delivered again, under the same id.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from delta.exceptions import ConcurrentTransactionException

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.arrow_rows import FewRows
from patternlake.delta_tables.writing.frames import frame_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

_WRITERS = 64
"""Names that a row may be written under. Delta remembers each for ever, and takes a name's writes in their order."""
_TRIES = 5


def _view(log: LogName) -> str:
    return f"""SELECT o.object AS alert, d.alert_id, d.attempt, d.tried_at, d.delivered, d.dead_letter, d.error
FROM {log("alert_deliveries")} d LEFT JOIN (
  SELECT DISTINCT object, object_id FROM {log("publications")} WHERE job = 'alerts'
) o ON d.alert_number = o.object_id"""


TABLE = Table(
    name="alert_deliveries",
    comment="Attempts to deliver alerts outside.",
    columns=(
        Column("alert_number", "INT", "number of the alert, as object_numbers gave it out"),
        Column("alert_id", "STRING", "what was to be delivered, as in alerts"),
        Column("attempt", "INT", "number of the attempt, from 1"),
        Column("tried_at", "TIMESTAMP", "when it ended"),
        Column("delivered", "BOOLEAN", "whether the receiver took it"),
        Column("dead_letter", "BOOLEAN", "whether it failed and was the last one"),
        Column("error", "STRING", "what the receiver said, or what kept it from hearing; NULL: it was delivered"),
    ),
    keys=("alert_number", "alert_id", "attempt", "tried_at"),
    view=_view,
    seen="alert=publications.object alert_id attempt tried_at delivered dead_letter error",
    direct=True,
)


def delivered_text(log: LogName) -> str:
    """Write SQL for how deliveries stand: alert_number, alert_id, attempts, tried_at, delivered_at, dead_letter."""
    return (
        "SELECT alert_number, alert_id, max(attempt) AS attempts, max(tried_at) AS tried_at, "
        "min(tried_at) FILTER (WHERE delivered) AS delivered_at, "
        "max_by(dead_letter, attempt) AND NOT bool_or(delivered) AS dead_letter "
        f"FROM {log(TABLE.name)} GROUP BY alert_number, alert_id"
    )


@dataclass(frozen=True)
class Attempt:
    """One attempt; the moment is in UTC."""

    alert_id: str
    attempt: int
    tried_at: datetime
    delivered: bool
    dead_letter: bool
    error: str | None


class AlertDeliveries:
    """Keeps the attempts to deliver the alerts of one name.

    Parameters
    ----------
    database
        Where.
    alert
        The name.
    number
        Its number.
    """

    def __init__(self, database: Database, alert: str, number: int) -> None:
        self._database = database
        self._alert = alert
        self._number = number

    def standing(self, *, most_bytes: int) -> DataFrame:
        """Return alert_id, attempts, tried_at, delivered_at and dead_letter of everything that was attempted.

        Files of up to so many bytes are read in the driver's process.
        """
        mine = [Condition("alert_number", "=", self._number)]
        rows = frame_where(self._database, TABLE.name, mine, most_bytes=most_bytes)
        found = self._database.spark.sql(delivered_text(lambda _: "{rows}"), rows=rows)
        return found.drop("alert_number")

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Write attempts down."""
        database = self._database
        given = [{"alert_number": self._number, **vars(each)} for each in attempts]
        columns = {
            column.name: pa.array(
                [
                    timestamps.to_micros(row[column.name]) if column.type == "TIMESTAMP" else row[column.name]
                    for row in given
                ],
                pa.int64() if column.type == "TIMESTAMP" else column.arrow,
            ).cast(column.arrow)
            for column in TABLE.columns
        }
        rows = FewRows(pa.table(columns), database)
        name, commits = database.log(TABLE.name), database.commits(TABLE)
        for _ in range(_TRIES):
            # A rival may have written under the same name with a clock that is ahead: then nothing is written.
            application = documents.to_array([TABLE.name, self._alert, str(random.randrange(_WRITERS))])
            version = timestamps.to_micros(timestamps.now())
            try:
                if writes.append(name, rows, application=application, version=version, commits=commits):
                    return
                if self._holds(attempts[-1]):
                    return
            except ConcurrentTransactionException:
                logger.info("another run wrote down deliveries of alert %r at the same moment", self._alert)
        logger.warning(
            "alert %r: %d attempts to deliver could not be written down; what was delivered will be so again",
            self._alert,
            len(attempts),
        )

    def _holds(self, attempt: Attempt) -> bool:
        """Whether the table has an attempt: not every commit tells its session that it was made."""
        where = [Condition("alert_number", "=", self._number), Condition("alert_id", "=", attempt.alert_id)]
        found = self._database.state.rows(TABLE.name, ("tried_at",), where)["tried_at"].cast(pa.int64())
        return timestamps.to_micros(attempt.tried_at) in found.to_pylist()
