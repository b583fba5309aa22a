"""The checkpoint of a stream's ingest query: which batches Spark has read, and whether it is the right checkpoint.

Spark's checkpoint and PatternLake's publications are two memories of one history. They agree when the query's id is
the published one and the checkpoint stands at the last published epoch or one step around it; anything else means
that one of the two was lost, swapped or brought back from a backup, and going on would read rows twice or never.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.reading.log_copies import store_threads
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.configuration import file_patterns
from patternlake.jobs.sources.file_times import FileTimes
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_Nothing = TypeVar("_Nothing")

_SCHEMA = "source_schema"
_ORIGIN = "origin.json"
"""Stands beside Spark's offsets, which every run lists and of which Spark reads those alone whose names are numbers."""
_FEW_ENTRIES = 4
"""So many entries of the log of what was read are read without a Spark job."""
_ENTRY = "path string, timestamp bigint, batchId bigint"
"""What an entry tells of a file."""
_FEW_BYTES = 1 << 20
"""Nor are entries of up to so many bytes, however many they are."""


class Folder:
    """A folder of small files on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._spark = spark
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._system = self._path(path).getFileSystem(spark._jsc.hadoopConfiguration())

    def names(self, *parts: str) -> list[str]:
        """Names in a folder; none where there is no such folder."""
        return [status.getPath().getName() for status in self.statuses(*parts)]

    def statuses(self, *parts: str) -> list[Any]:
        """What Hadoop tells of the files in a folder; nothing where there is no such folder."""
        try:
            return list(self._system.listStatus(self._path("/".join((self.path, *parts)))))
        except Py4JJavaError as error:
            return _nothing_if_missing(error, [])

    def read(self, *parts: str) -> str | None:
        """A file's text, None where there is no such file."""
        try:
            opened = self._system.open(self._path("/".join((self.path, *parts))))
        except Py4JJavaError as error:
            return _nothing_if_missing(error, None)
        return _read_all(opened)

    def read_listed(self, status: Any) -> str:
        """The text of a file that `statuses` has given, which is opened without another look at it."""
        return _read_all(self._system.openFile(status.getPath()).withFileStatus(status).build().get())

    def write(self, text: str, *parts: str) -> None:
        """Write a small file that is not there yet: all of it or, if the process dies, nothing."""
        whole, draft = self._draft(text, *parts)
        if not self._system.rename(draft, whole):
            self._system.delete(draft, False)

    def replace(self, text: str, *parts: str) -> None:
        """Write a file in the place of one that is there: all of it or, if the process dies, nothing."""
        whole, draft = self._draft(text, *parts)
        hadoop, gateway = self._jvm.org.apache.hadoop.fs, self._spark.sparkContext._gateway
        assert gateway is not None
        rename = getattr(hadoop, "Options$Rename")
        over = gateway.new_array(rename, 1)
        over[0] = rename.OVERWRITE
        hadoop.FileContext.getFileContext(whole.toUri(), self._system.getConf()).rename(draft, whole, over)

    def address(self, path: str) -> str:
        """A path as Spark's checkpoints spell it."""
        place = self._path(path)
        return str(place.getFileSystem(self._system.getConf()).makeQualified(place).toUri().toString())

    def _draft(self, text: str, *parts: str) -> tuple[Any, Any]:
        """A file's place, and a file beside it that has the text."""
        whole = self._path("/".join((self.path, *parts)))
        draft = self._path(f"{whole}.{uuid.uuid4().hex}.tmp")
        opened = self._system.create(draft, True)
        try:
            opened.write(bytearray(text.encode()))
        finally:
            opened.close()
        return whole, draft

    def delete(self) -> None:
        """Delete all of it."""
        self._system.delete(self._path(self.path), True)


def _read_all(opened: Any) -> str:
    try:
        return bytes(opened.readAllBytes()).decode()
    finally:
        opened.close()


def _nothing_if_missing(error: Py4JJavaError, nothing: _Nothing) -> _Nothing:
    """What stands for a file that is not there, where an error says so."""
    if error.java_exception.getClass().getSimpleName() != "FileNotFoundException":
        raise error
    return nothing


@dataclass(frozen=True)
class Expected:
    """What publications and intents say about a checkpoint.

    Parameters
    ----------
    published
        Last published epoch, -1 before the first.
    query
        Id of the query that published or began batches; None where nothing was begun.
    begun
        Epoch that was begun and not published.
    """

    published: int
    query: str | None
    begun: int | None = None


class Checkpoint:
    """The checkpoint of one incarnation of a stream.

    Parameters
    ----------
    spark
        A session with a JVM.
    path
        Folder of the checkpoint.
    stream
        Name of the stream, for messages.
    """

    def __init__(self, spark: SparkSession, path: str, stream: str) -> None:
        self._spark = spark
        self._stream = stream
        self.path = path
        self._folder = Folder(spark, path)
        self._stands = -1, -1
        self._has_origin = False

    @property
    def query(self) -> str | None:
        """Id of the query that the checkpoint belongs to; None before its first start."""
        text = self._folder.read("metadata")
        return None if text is None else str(json.loads(text)["id"])

    def last(self, log: str) -> int:
        """Last epoch in ``offsets`` (planned) or ``commits`` (done); -1 if there is none."""
        return _newest(self._folder.names(log))

    def offset(self, epoch: int) -> Mapping[str, Any]:
        """Up to where in the source an epoch reads, as Spark wrote it."""
        text = self._folder.read("offsets", str(epoch))
        if text is None:
            raise StateError(
                f"checkpoint {self.path} of stream {self._stream!r} has no offsets of epoch {epoch}; {_REBUILD}"
            )
        found = json.loads(text.strip().splitlines()[-1])
        return found if isinstance(found, dict) else {"offset": found}

    def delete(self) -> None:
        """Delete all of it."""
        self._folder.delete()

    @property
    def schema(self) -> T.StructType | None:
        """The source's columns as they were when the checkpoint began, or had their types."""
        text = self._folder.read(self._schema_file())
        return None if text is None else T.StructType.fromJson(json.loads(text))

    @schema.setter
    def schema(self, schema: T.StructType) -> None:
        self._folder.write(schema.json(), self._schema_file(new=True))

    def _schema_file(self, *, new: bool = False) -> str:
        """The newest file of the columns, or the one after it: a column may get its type later."""
        count = sum(name.startswith(_SCHEMA) and name.endswith(".json") for name in self._folder.names())
        count += new
        return f"{_SCHEMA}.json" if count <= 1 else f"{_SCHEMA}_{count}.json"

    def check(self, expected: Expected) -> None:
        """Compare with what was published.

        Raises
        ------
        StateError
            The checkpoint is lost, another one, or older or newer than the publications.
        """
        # Each waits for storage.
        asking = store_threads().map(self._folder.names, ("offsets", "commits"))
        query, (offsets, commits) = self.query, asking
        self._stands = planned, done = _newest(offsets), _newest(commits)
        self._has_origin = _ORIGIN in offsets
        where = f"the checkpoint of stream {self._stream!r} at {self.path}"
        if query is None:
            raise StateError(f"{where} is lost: batches of query {expected.query} were begun from it; {_REBUILD}")
        if query != expected.query:
            raise StateError(f"{where} belongs to query {query}, but {expected.query} is the published one; {_REBUILD}")
        if done > expected.published:
            raise StateError(
                f"{where} is newer than the database: it has finished epoch {done}, "
                f"{expected.published} is the last published one; {_REBUILD}"
            )
        if (
            planned < (expected.published if expected.begun is None else expected.begun)
            or done < expected.published - 1
        ):
            raise StateError(
                f"{where} is older than the database: it has finished epoch {done} and planned {planned}, "
                f"{expected.published} is the last published one; {_REBUILD}"
            )

    def settled(self, expected: Expected) -> bool:
        """Whether the query had finished all that it planned when it was checked, and all of it is published."""
        return self._stands == (expected.published, expected.published)

    def files_of(self, epoch: int) -> list[str]:
        """The files that an epoch reads, by their addresses."""
        until = int(self.offset(epoch)["logOffset"])
        after = int(self.offset(epoch - 1)["logOffset"]) if epoch else -1
        entries = [str(number) for number in range(after + 1, until + 1)]
        if len(entries) <= _FEW_ENTRIES and {*entries} <= {*self._folder.names("sources", "0")}:
            texts = [self._folder.read("sources", "0", entry) or "" for entry in entries]
            lines = [line for text in texts for line in text.splitlines() if line.startswith("{")]
            return sorted(json.loads(line)["path"] for line in lines)
        found = self.files(until, after=after)
        # Of these Spark holds as many to plan the batch.
        return [] if found is None else sorted(path for path, _ in found.collect())

    def origin(self, epoch: int) -> str | None:
        """Where files were moved to since an epoch was the last one; None: nowhere. Known once it was checked."""
        text = self._folder.read("offsets", _ORIGIN) if self._has_origin else None
        noted = {} if text is None else json.loads(text)
        return str(noted["path"]) if noted.get("epoch") == epoch else None

    def write_origin(self, path: str, epoch: int) -> None:
        """Write down the source's path where all files are known now, until a batch after an epoch says it."""
        self._folder.replace(json.dumps({"epoch": epoch, "path": path}), "offsets", _ORIGIN)

    def move(self, before: str, now: str) -> None:
        """Know the files that were read below one folder by the same names below another.

        Safe to be done again where it was broken off.
        """
        root = self._folder.address(now).rstrip("/")
        self._rewrite(lambda line: _move_entry(line, before, root))

    def renew(self, times: Mapping[str, int], *, after: int) -> None:
        """Write down other times of modification, in milliseconds, of files in entries after one.

        Safe to be done again where it was broken off.
        """
        self._rewrite(lambda line: _renew_entry(line, times, after), after=after)

    def _rewrite(self, change: Callable[[str], str], *, after: int = -1) -> None:
        """Replace each file of Spark's log of the files that were read, after an entry, whose lines change."""
        for name in self._folder.names("sources", "0"):
            number = name.removesuffix(".compact")
            text = self._folder.read("sources", "0", name) if number.isdigit() and int(number) > after else None
            if text is None:
                continue
            version, *lines = text.splitlines()
            changed = [change(line) for line in lines]
            if changed != lines:
                self._folder.replace("\n".join([version, *changed]), "sources", "0", name)

    def files(self, until: int, *, after: int = -1) -> FileTimes | None:
        """The files that the query has read, None if there are none.

        Parameters
        ----------
        until, after
            Only files of the entries of the source's log (``logOffset`` of an epoch) after the one and up to the other.
        """
        statuses = {status.getPath().getName(): status for status in self._folder.statuses("sources", "0")}
        names = list(statuses)
        compact = [int(name.partition(".")[0]) for name in names if name.endswith(".compact") and name[0].isdigit()]
        base = max(compact, default=-1)
        chosen = [f"{base}.compact"] if compact else []
        chosen += [name for name in names if name.isdigit() and int(name) > base]
        if not chosen:
            return None
        if sum(int(statuses[name].getLen()) for name in chosen) <= _FEW_BYTES:
            texts = store_threads().map(self._folder.read_listed, [statuses[name] for name in chosen])
            entries = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
            few = [(each["path"], each["timestamp"]) for each in entries if after < each["batchId"] <= until]
            return FileTimes(few, lambda: frame_of_tuples(self._spark, few, "path string, modified bigint"))
        # Spark's readers skip names that begin with a dot or an underscore only, so these are read as they are.
        lines = self._spark.read.text([f"{self.path}/sources/0/{name}" for name in chosen])
        entry = F.from_json("value", _ENTRY)
        rows = lines.where(F.col("value").startswith("{")).select(entry.alias("file")).select("file.*")
        among = rows.where((F.col("batchId") <= until) & (F.col("batchId") > after))
        return FileTimes(None, lambda: among.select("path", F.col("timestamp").alias("modified")))


def _newest(names: Iterable[str]) -> int:
    """The last epoch of a log by the names of its files; -1 if there is none."""
    return max((int(name) for name in names if name.isdigit()), default=-1)


def refuse_unpublished(spark: SparkSession, path: str, stream: str) -> None:
    """Refuse to begin a stream of which nothing is published, although one of its checkpoints has finished batches.

    Raises
    ------
    StateError
        There is such a checkpoint: the publications were lost.
    """
    for name in Folder(spark, path).names():
        done = Checkpoint(spark, f"{path}/{name}", stream).last("commits")
        if done >= 0:
            raise StateError(
                f"the checkpoint of stream {stream!r} at {path}/{name} has read {done + 1} batches, of which nothing "
                f"is published; {_REBUILD}"
            )


def _move_entry(line: str, before: str, root: str) -> str:
    """An entry of Spark's log of the files that were read, with its file below another folder."""
    entry = json.loads(line)
    path = str(entry["path"])
    name = file_patterns.name_below(before, path)
    if name is None:
        return line
    # As many parts of the address as of the name: it is encoded.
    parts = path.split("/")[-len(name.split("/")) :]
    return json.dumps({**entry, "path": "/".join([root, *parts])}, ensure_ascii=False, separators=(",", ":"))


def _renew_entry(line: str, times: Mapping[str, int], after: int) -> str:
    """An entry of Spark's log of the files that were read, with its file's time where that is another one."""
    entry = json.loads(line)
    if entry["batchId"] <= after or entry["path"] not in times:
        return line
    return json.dumps({**entry, "timestamp": times[entry["path"]]}, ensure_ascii=False, separators=(",", ":"))


_REBUILD = "run the job again with --rebuild, which reads the source from its beginning"
