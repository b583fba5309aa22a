"""A database: the tables and views of one PatternLake, at one location, under one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from patternlake.delta_tables.committing.commit_lock import POSSIBLE, lock_of
from patternlake.delta_tables.committing.conditional_commits import settings_of
from patternlake.delta_tables.committing.direct_commits import WRITER_VERSION, DirectCommits, OnDisk
from patternlake.delta_tables.committing.sessions import own_session
from patternlake.delta_tables.committing.store_commits import StoreCommits
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.spark_reader import SparkReader
from patternlake.delta_tables.reading.state_reader import StateReader
from patternlake.delta_tables.schema.names import INTERNAL_VIEWS, internal_name, log_name
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.schema.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Database:
    """An open database: where it is, and what reads and names its tables; `opening.open_database` gives one.

    Parameters
    ----------
    session
        The session in whose catalog the tables are registered, or what makes it when it is first needed.
    name
        Name of the catalog's database with the views that analysts ask.
    location
        Folder or object-store path that holds the tables.
    made
        Whether there was none, and it was made empty when it was opened.
    folder_on_disk
        The location as a path, where it is a folder on a local disk whose tables can be read, and those with
        `Table.direct` written, without Spark; else None.
    direct
        Reads the tables in the driver's process; None where only Spark can. Elsewhere than in a `folder_on_disk` Spark
        makes all commits.
    written
        What publications keep of the configuration of the object that a job works on, JSON; see
        `configuration.written`.
    register
        Has the catalog know the tables and views, if it does not yet, when the first of them is named; None: it knows
        them.
    """

    session: SparkSession | Callable[[], SparkSession]
    name: str
    location: str
    made: bool = field(default=False, compare=False)
    folder_on_disk: str | None = field(default=None, compare=False)
    direct: DirectReader | None = field(default=None, compare=False, repr=False)
    written: str | None = field(default=None, compare=False, repr=False)
    register: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def spark(self) -> SparkSession:
        """The session in whose catalog the tables are registered."""
        return self.session() if callable(self.session) else self.session

    @contextmanager
    def apart(self, settings: Mapping[str, str] | None = None, *, when_needed: bool = False) -> Iterator[Database]:
        """The same database in a session of PatternLake's own, see `own_session`, for the length of a block.

        Parameters
        ----------
        settings
            As of `own_session`.
        when_needed
            Whether it is made when the block first asks for it, which has to be in the thread of the block; where
            only Spark reads tables, at once.
        """
        with ExitStack() as stack:

            def own() -> SparkSession:
                of_store = settings_of(self.spark, self.location)
                return stack.enter_context(own_session(self.spark, {**of_store, **(settings or {})}))

            yield replace(self, session=own if when_needed and self.folder_on_disk is not None else own())

    @property
    def state(self) -> StateReader:
        """What reads few rows of the tables: directly where the location allows it, else by Spark jobs."""
        return self.direct or SparkReader(self.spark, self.log)

    @property
    def internal(self) -> str:
        """Name of the catalog's database with the Delta tables and the views of internal state."""
        return internal_name(self.name)

    def log(self, table: str) -> str:
        """Quoted name of a table's Delta table, for SQL text, given its plain name."""
        self._know_names()
        return identifier(self.internal, log_name(table))

    def view(self, table: str) -> str:
        """Quoted name of a table's view, for SQL text, given the table's plain name."""
        self._know_names()
        return identifier(self.database_of(table), table)

    def database_of(self, table: str) -> str:
        """Name of the catalog's database with a table's view."""
        return self.internal if table in INTERNAL_VIEWS else self.name

    def table(self, table: str) -> DataFrame:
        """All rows of a table's Delta table, published or not."""
        return self.spark.table(self.log(table))

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table's Delta table."""
        return self.table(table).columns if self.direct is None else self.direct.schema(table).names

    def commits(self, table: Table) -> DirectCommits | None:
        """How commits to a table are made without Spark; None where Spark makes all of them."""
        folder, direct = self.folder_on_disk, self.direct
        if folder is not None and table.direct:
            return OnDisk(f"{folder}/{table.log}")
        if direct is None:
            return None
        if not direct.on_disk:
            return StoreCommits(self.spark, direct, self.location, table)
        if not POSSIBLE or folder is None or direct.writer_version(table.name) > WRITER_VERSION:
            return None
        return lock_of(folder, table.log)

    def _know_names(self) -> None:
        if self.register is not None:
            self.register()

    def folder(self, *parts: str) -> str:
        """Return a path under the location."""
        return "/".join((self.location, *parts))
