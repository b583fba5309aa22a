"""Commits to a table in an object store without Spark, which needs some twenty requests for each.

delta-rs commits to a copy of the table's log on the local disk, which takes no request, see `log_copies`. Then the new
files are put, and at last the commit, by the store that Delta itself commits with: on condition that nobody has put
one of its number. Where somebody has, nothing has happened but for files that no log names, and it is tried again on a
new copy.
"""

from __future__ import annotations

import json
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from deltalake import PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler

from patternlake.delta_tables.committing import store_objects
from patternlake.delta_tables.committing.direct_commits import WRITER_VERSION, Result, TableFolder
from patternlake.delta_tables.committing.unlisted_files import Place
from patternlake.delta_tables.reading.log_copies import LAST_CHECKPOINT, store_threads
from patternlake.delta_tables.reading.table_logs import CopiedLog, UnreadableError, look_anew
from patternlake.delta_tables.schema.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.reading.direct_reader import DirectReader
    from patternlake.delta_tables.schema.table import Table

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.1
MOST_COMMITS = 8
"""So many commits behind the last checkpoint are worth a new one: each is a request of whoever comes new."""
_LOG = "_delta_log"


@dataclass(frozen=True)
class CopiedTable(TableFolder):
    """The copy of a log, whose table has its files in a store.

    Attributes
    ----------
    url, storage_options
        Of the table, as delta-rs takes them.
    """

    url: str
    storage_options: dict[str, str]

    def open(self, path: str) -> pa.NativeFile:
        """As `TableFolder` has it; the file is read as a whole."""
        store = DeltaStorageHandler(self.url, self.storage_options or None)
        with store.open_input_file(path) as file:
            return pa.BufferReader(file.read())

    def place(self, layout: Layout) -> Place:
        """As `TableFolder` has it: in the store."""
        options = tuple(sorted(self.storage_options.items()))
        return replace(Place.at(self.folder, layout=layout, held=False), folder=self.url, storage_options=options)

    def after_commit(self, version: int) -> PostCommitHookProperties:
        """As `TableFolder` has it; a copy lacks what could be cleaned."""
        return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


@dataclass(frozen=True)
class StoreCommits:
    """Commits to a table in an object store that is read directly.

    Attributes
    ----------
    spark
        A session, whose client of the store puts objects.
    reader
        Reads the tables of the database.
    location
        Of the database, as Spark calls it.
    table
        Which table.
    """

    spark: SparkSession
    reader: DirectReader
    location: str
    table: Table

    def commit(self, write: Callable[[TableFolder], Result], patience: float | None = None) -> Result | None:
        """As `DirectCommits` has it."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._copied() as (copied, folder):
                    if copied.table.protocol().min_writer_version > WRITER_VERSION:
                        copied.kept = True
                        return None
                    found = write(folder)
                    made = self._put(copied)
            except UnreadableError as error:
                logger.info("Spark commits to %s: %s", self.table.log, error)
                return None
            if made is not False:
                return found
            if attempt == ATTEMPTS:
                break
            told = "a commit to %s met a rival; attempt %d of %d follows"
            logger.info(told, self.table.log, attempt + 1, ATTEMPTS)
            # Two writers that wait equally long would meet again.
            time.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + random.random()))
        raise CommitFailedError(f"{ATTEMPTS} commits to {self.table.log} were made by rivals first")

    def through_spark(self) -> AbstractContextManager[None]:
        """As `DirectCommits` has it."""
        return nullcontext()

    def look(self, read: Callable[[TableFolder], Result]) -> Result:
        """As `DirectCommits` has it."""
        with self._copied() as (copied, folder):
            copied.kept = True
            return read(folder)

    def put_checkpoint(self) -> None:
        """Put a checkpoint of the table's current version, so that nobody reads the commits before."""
        with self._copied() as (copied, _):
            if copied.table.protocol().min_writer_version <= WRITER_VERSION:
                copied.table.create_checkpoint()
                self._put_checkpoint(copied)

    @property
    def _url(self) -> tuple[str, dict[str, str]]:
        location, options = self.reader.place
        return f"{location}/{self.table.log}", options

    @contextmanager
    def _copied(self) -> Iterator[tuple[CopiedLog, CopiedTable]]:
        with self.reader.copied_log(self.table.name) as copied:
            yield copied, CopiedTable(copied.folder, *self._url)
        look_anew(self.table.name)

    def _put(self, copied: CopiedLog) -> bool | None:
        """Put what was committed to a copy; False: a rival was first; None: nothing was committed."""
        name = copied.copy.next_commit
        place = f"{copied.folder}/{_LOG}/{name}"
        if not os.path.exists(place):
            copied.kept = True
            return None
        with open(place, "rb") as file:
            # Not splitlines: a value may have what Unicode, not JSON, takes for the end of a line.
            lines = [line for line in file.read().decode().split("\n") if line]
        added = [json.loads(line)["add"]["path"] for line in lines if line.startswith('{"add"')]
        # Others lie in the store already.
        here = [path for path in map(unquote, added) if os.path.exists(f"{copied.folder}/{path}")]
        list(store_threads().map(lambda path: self._put_file(copied, path), here))
        if not store_objects.put_commit(self.spark, self._path(f"{_LOG}/{name}"), lines):
            return False
        for path in here:
            os.unlink(f"{copied.folder}/{path}")
        # As Delta's stores write it, which end each line; delta-rs does not end the last one.
        copied.copy.follow("".join(f"{line}\n" for line in lines).encode())
        if os.path.exists(f"{copied.folder}/{_LOG}/{name.removesuffix('.json')}.checkpoint.parquet"):
            self._put_checkpoint(copied)
        else:
            copied.kept = True
        return True

    def _put_checkpoint(self, copied: CopiedLog) -> None:
        """Put the last checkpoint of a copy, which is no longer used: the next one begins with the checkpoint."""
        with open(f"{copied.folder}/{_LOG}/{LAST_CHECKPOINT}", "rb") as file:
            begin = f"{int(json.loads(file.read())['version']):020}.checkpoint."
        for name in sorted(os.listdir(f"{copied.folder}/{_LOG}")):
            if name.startswith(begin):
                self._put_file(copied, f"{_LOG}/{name}")
        # Last: it tells that the checkpoint is there.
        self._put_file(copied, f"{_LOG}/{LAST_CHECKPOINT}")

    def _put_file(self, copied: CopiedLog, path: str) -> None:
        with open(f"{copied.folder}/{path}", "rb") as file:
            store_objects.put_object(self.spark, self._path(path), file.read())

    def _path(self, path: str) -> str:
        """Where an object of the table is, as Spark calls it."""
        return f"{self.location}/{self.table.log}/{path}"
