"""A database as functions see it in one session: its published state, and ways to give rows back."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.spark_reader import choose_rows
from patternlake.delta_tables.reading.state_reader import Condition, StateReader
from patternlake.delta_tables.writing.arrow_rows import frame_of
from patternlake.sql_ext.lakes.learning import Learned
from patternlake.sql_ext.lakes.size_settings import read_count, read_size
from patternlake.udfs.arguments import moment
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.published import NameCount
from patternlake.udfs.trends.text_request import MOST_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DRIVER_BYTES = "spark.patternlake.driverBytes"
"""Up to so many bytes of files the driver's own process answers; above it, Spark's tasks do."""
DEFAULT_DRIVER_BYTES = 64 << 20

READER = "spark.patternlake.reader"
"""``auto`` (default): state is read directly where possible, else through Spark; ``direct`` or ``spark`` forces it."""
MAX_TREND_EVENTS = "spark.patternlake.maxTrendEvents"
"""Up to so many events the graph of a trend query that is given as a text is built of."""
REPLAN_FACTOR = "spark.patternlake.replanFactor"
"""How far what a plan gives may be off what was expected, before the rest of the events has another; 0: any."""
DEFAULT_REPLAN_FACTOR = 10.0
LEARN = "spark.patternlake.learn"
"""Whether runs of exact patterns tell what they observe of conditions, and plans are chosen by it."""
UNSEEN = "spark.patternlake.unseen"
"""What becomes of a question with a name or a key that never occurred: ``warn`` (default) or ``error``."""
_CLOCKS = 60_000_000
"""Microseconds by which clocks of clients may be ahead of this one."""
_SETTINGS = (DRIVER_BYTES, READER, MAX_TREND_EVENTS)
"""What an answer, or whether there is one, depends on."""


def in_own_session(database: Database) -> Database:
    """A database in a session of its own, with the settings of the one that asks.

    Spark's analyser holds its session's catalog while it plans a function, so a query of that session that needs the
    catalog in another thread would wait for ever.
    """
    spark = database.spark
    session: Any = spark._jsparkSession
    return replace(database, session=SparkSession(spark.sparkContext, session.cloneSession()))


def check_as_of(as_of: int | None) -> None:
    """Refuse a moment, in microseconds, that is yet to come by more than clocks differ.

    Raises
    ------
    ArgumentError
        It is: its answer would change with the next batch.
    """
    now = time.time_ns() // 1000
    if as_of is not None and as_of > now + _CLOCKS:
        raise ArgumentError(f"as_of {moment(as_of)} is yet to come (now: {moment(now)}); leave it out for now")


@dataclass(frozen=True)
class Lake:
    """A database in a session.

    Attributes
    ----------
    database
        Open in the session that asks.
    reader
        Reads its state in the driver's process.
    cache
        Keeps what was read and answered there.
    learned
        What runs observed of conditions in the database.
    """

    database: Database
    reader: StateReader
    cache: TableCache
    learned: Learned

    @property
    def spark(self) -> SparkSession:
        """The session that asks."""
        return self.database.spark

    def apart(self) -> Lake:
        """The lake in a session of its own; see `in_own_session`."""
        return replace(self, database=in_own_session(self.database))

    def snapshot(self, as_of: int | None) -> Snapshot:
        """What is published at a moment, in microseconds; None: now.

        Raises
        ------
        ArgumentError
            As of `check_as_of`.
        """
        check_as_of(as_of)
        return Snapshot(self.reader, as_of)

    def count_names(self) -> list[NameCount]:
        """How often each name occurs, where nothing is kept of it; of what jobs keep, there is nothing to count."""
        return []

    def small(
        self,
        table: str,
        where: Sequence[Condition],
        columns: Sequence[str] = (),
        few: int | None = None,
        *,
        most: int = 1,
    ) -> bool:
        """Whether the driver's own process may read these rows, by their files or by columns alone; see `size`.

        With `most`, of so many times as many bytes.
        """
        driver_bytes = self.driver_bytes
        return self.reader.size(table, where, columns, few) <= most * driver_bytes

    @property
    def driver_bytes(self) -> int:
        """The value of `DRIVER_BYTES`.

        Raises
        ------
        ArgumentError
            It is no size.
        """
        return read_size(self.spark, DRIVER_BYTES, DEFAULT_DRIVER_BYTES)

    @property
    def refuses_unseen(self) -> bool:
        """Whether `UNSEEN` is ``error``.

        Raises
        ------
        ArgumentError
            It is neither that nor ``warn``.
        """
        return self._read_choice(UNSEEN, "warn", "error") == "error"

    @property
    def in_one_order(self) -> bool:
        """Whether positions count the events of a whole stream."""
        return True

    @property
    def ways(self) -> tuple[str | None, ...]:
        """The settings that say how a question is answered."""
        return tuple(self.spark.conf.get(name, None) for name in _SETTINGS)

    @property
    def max_trend_events(self) -> int:
        """The value of `MAX_TREND_EVENTS`.

        Raises
        ------
        ArgumentError
            It is no whole number of 1 or more.
        """
        return read_count(self.spark, MAX_TREND_EVENTS, MOST_EVENTS)

    @property
    def replan_factor(self) -> float | None:
        """The value of `REPLAN_FACTOR`; None for 0.

        Raises
        ------
        ArgumentError
            It is neither 0 nor a number above 1.
        """
        text = str(self.spark.conf.get(REPLAN_FACTOR, str(DEFAULT_REPLAN_FACTOR))).strip()
        try:
            factor = float(text)
        except ValueError:
            factor = -1.0
        if factor == 0:
            return None
        if not 1 < factor < math.inf:
            raise ArgumentError(f"{REPLAN_FACTOR} must be a number above 1, or 0 for plans that stay, not {text!r}")
        return factor

    @property
    def learns(self) -> bool:
        """The value of `LEARN`.

        Raises
        ------
        ArgumentError
            It is neither true nor false.
        """
        return self._read_choice(LEARN, "true", "false") == "true"

    def _read_choice(self, name: str, default: str, other: str) -> str:
        text = str(self.spark.conf.get(name, default)).strip().lower()
        if text not in (default, other):
            raise ArgumentError(f"{name} must be {default} or {other}, not {shorten(text)}")
        return text

    def frame(self, table: str, where: Sequence[Condition]) -> DataFrame:
        """Rows of a table, for Spark's tasks to read."""
        return choose_rows(self.database.table(table), where)

    def local(self, rows: pa.Table, schema: str) -> DataFrame:
        """Rows that are here already, with columns of these types, as DDL."""
        return frame_of(self.spark, rows, schema)
