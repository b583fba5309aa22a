"""One driver at a time, where a store cannot keep the commits of several apart.

A lease is an object below the database that names who commits, and until when; its holder makes it anew before it ends.
Whoever finds another's is refused. Two that begin within the same moment read back what they wrote, after a pause, and
one of them finds the other's. It rests on clocks that agree to some seconds, and is for such stores alone.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.committing.conditional_commits import is_safe_for_several
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

_SECONDS = 120.0
"""A lease lasts so long: the longest that others wait for a driver that has died."""
_RENEWAL = 30.0
_PAUSE = 2.0
"""Seconds before what was written is read back: longer than a put takes that began before."""


@contextmanager
def held_lease(database: Database) -> Iterator[None]:
    """Be the one driver that commits to a database's tables, for a block; where several may be, nothing is done.

    Raises
    ------
    StateError
        Another driver is; or became it, as this one could not renew its lease.
    """
    if is_safe_for_several(database.spark, database.location):
        yield
        return
    lease = _Lease(database.spark, database.location)
    lease.take()
    ended = threading.Event()
    renewing = threading.Thread(target=lease.renew_until, args=(ended,), name="patternlake-lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        lease.end()
    lease.check()


class _Lease:
    def __init__(self, spark: SparkSession, location: str) -> None:
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        self._jvm, self._location = jvm, location
        self._path = jvm.org.apache.hadoop.fs.Path(f"{location}/_locks/one-writer.json")
        self._store = self._path.getFileSystem(session.sessionState().newHadoopConf())
        self._holder = uuid.uuid4().hex
        self._other: dict[str, Any] | None = None

    def take(self) -> None:
        self._refuse(self._of_another())
        self._write()
        time.sleep(_PAUSE)
        self._refuse(self._of_another())

    def renew_until(self, ended: threading.Event) -> None:
        while not ended.wait(_RENEWAL):
            try:
                self._other = self._other or self._of_another()
                if self._other is None:
                    self._write()
            except Exception:
                logger.exception("the lease %s could not be renewed, which is tried again", self._path)

    def end(self) -> None:
        if self._of_another() is None:
            self._store.delete(self._path, False)

    def check(self) -> None:
        self._refuse(self._other)

    def _of_another(self) -> dict[str, Any] | None:
        """What another's lease says that has not ended."""
        if not self._store.exists(self._path):
            return None
        stream = self._store.open(self._path)
        try:
            said: dict[str, Any] = json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
        return None if said["holder"] == self._holder or said["until"] < time.time() else said

    def _write(self) -> None:
        said = {
            "holder": self._holder, "process": os.getpid(), "host": socket.gethostname(),
            "until": time.time() + _SECONDS,
        }  # fmt: skip
        stream = self._store.create(self._path, True)
        try:
            stream.write(bytearray(json.dumps(said).encode()))
        finally:
            stream.close()

    def _refuse(self, other: dict[str, Any] | None) -> None:
        if other is None:
            return
        until = datetime.fromtimestamp(other["until"], timezone.utc)
        raise StateError(
            f"process {other['process']} on {other['host']} writes to {self._location}, and its store takes no puts on "
            f"condition, without which a second writer loses commits: wait for its end, at the latest {until:%H:%M:%S} "
            "UTC unless it goes on. Several may write where Hadoop is 3.4.2 or newer, "
            "fs.s3a.create.conditional.enabled is not false, and the store refuses to put an object that is there "
            "(If-None-Match), as S3 does"
        )
