"""The source that is meant by a table's name or by a pattern of files, as it stands in a configuration."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from patternlake.delta_tables.databases.store_options import is_object_store
from patternlake.delta_tables.schema.locations import is_on_disk, path_on_disk
from patternlake.jobs.configuration.file_patterns import alone
from patternlake.jobs.configuration.streams import NO_XES_IN_STORES
from patternlake.jobs.sources.errors import first_line, innermost
from patternlake.jobs.sources.tables import refuse_other_than_delta
from patternlake.jobs.sources.text_encodings import begins_as_utf16
from patternlake.jobs.sources.text_files import chunks
from patternlake.udfs.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = {
    **dict.fromkeys(("csv", "tsv", "tab", "psv"), "csv"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "json"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    "xes": "xes",
}
"""Formats by the ending of a file's name."""
_PACKED = ("gz", "bz2", "zst", "snappy", "lz4", "deflate")
_SEPARATORS = (",", ";", "\t", "|")
_PATTERN = re.compile(r"[*?\[\]{}]")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_VALUE = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*")
# A value in quotes that ends behind a backslash, if quotes are doubled, and yet goes on.
_SLASHED = r"""(?:^|{0})"(?:[^"]|"")*\\"(?!"|{0}|\r|$)"""
_ENDINGS = re.compile(r"\.[^/]*$")
_WORD = re.compile(r"\W+")


@dataclass(frozen=True)
class FoundSource:
    """A source, in the words of the configuration.

    Parameters
    ----------
    name
        A name for its stream.
    section
        The section `source`, paths absolute.
    schema
        DDL of the columns, where files do not name them.
    files
        The files with their bytes, by address in order; none of a table.
    place
        Of a table that the catalog forgets with the session: its folder.
    """

    name: str
    section: dict[str, Any]
    schema: str | None = None
    files: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    place: str | None = None


def table_source(spark: SparkSession, table: str) -> FoundSource:
    """A Delta table of the session's catalog, under a name that holds in every database.

    Raises
    ------
    SourceError
        There is none of this name, or it is no Delta table.
    """
    refuse_other_than_delta(spark, table, "--table")
    parts = [part.replace("`", "") for part in re.findall(r"`[^`]+`|[^.`]+", table)]
    qualified = table if len(parts) > 1 else f"{spark.catalog.currentDatabase()}.{table}"
    place = None
    if spark.conf.get("spark.sql.catalogImplementation") == "in-memory":
        (row,) = DeltaTable.forName(spark, table).detail().select("location").collect()
        place = path_on_disk(row.location) if is_on_disk(row.location) else row.location
    return FoundSource(_stream_name(parts[-1]), {"table": qualified}, place=place)


def file_source(spark: SparkSession, pattern: str, format: str | None = None) -> FoundSource:
    """The files that a pattern means, or all those of a folder; a folder of a Delta table is that table.

    Parameters
    ----------
    spark
        The session.
    pattern
        A folder, a file, or a pattern with ``*``, ``?``, ``[…]``, ``{…}``; ``**`` goes into all folders below.
    format
        As in the configuration; None: told from the names of the files.

    Raises
    ------
    SourceError
        Nothing is there, or the format cannot be told.
    """
    place = pattern if _URI.match(pattern) else os.path.abspath(os.path.expanduser(pattern))
    if not _PATTERN.search(place) and DeltaTable.isDeltaTable(spark, place):
        return FoundSource(_stream_name(place), {"format": "delta", "path": place})
    path, options = _folder(place)
    files = _files(spark, path, options)
    name = _stream_name(path)
    if [_plain(file) for file, _ in files] == [_plain(place)]:
        # Not its folder, of which Spark would look through all that lies below it, and there may lie the lake.
        path, name = alone(place), _stream_name(_ENDINGS.sub("", place))
    if not files:
        below = sorted(each.name for each in Path(place).iterdir() if each.is_dir()) if os.path.isdir(place) else []
        if below:
            raise SourceError(
                f"--files {pattern!r}: no file is there, but folders: {', '.join(below)}; name one of them"
            )
        raise SourceError(
            f"--files {pattern!r}: no file is there; write a folder, or a pattern such as 'data/*.csv' in quotes, so "
            "that the shell leaves it alone"
        )
    kind = format or _format(pattern, [file for file, _ in files])
    if kind == "xes" and is_object_store(path):
        raise SourceError(f"--files {pattern!r}: {NO_XES_IN_STORES}")
    schema = None
    if kind in ("csv", "json"):
        head = _head(spark, files[0][0])
        options |= _encoding(head)
        if kind == "csv":
            # Of a letter that the end of the head cuts in two, nothing depends.
            more, schema = _csv(head.decode(options.get("encoding", "utf-8"), errors="replace"), files[0][0])
            options |= more
    section: dict[str, Any] = {"format": kind, "path": path}
    if options:
        section["options"] = options
    return FoundSource(name, section, schema, tuple(files))


def _head(spark: SparkSession, file: str) -> bytes:
    try:
        return next(chunks(spark, file), b"")
    except Py4JJavaError as error:
        raise SourceError(f"--files: file {file} cannot be read: {innermost(error)}") from None


def _folder(place: str) -> tuple[str, dict[str, Any]]:
    """The path for Spark, and the options that choose among its files: Spark's patterns know no ``**``."""
    place = place.rstrip("/") or "/"
    if "/**" not in place:
        return place, {}
    folder, _, rest = place.partition("/**")
    last = rest.rpartition("/")[2]
    return folder or "/", {"recursiveFileLookup": True, **({"pathGlobFilter": last} if last else {})}


def _plain(address: str) -> str:
    """An address that compares: without what local ones begin with."""
    return re.sub("^file:/+", "/", unquote(address))


def _files(spark: SparkSession, path: str, options: dict[str, Any]) -> list[tuple[str, int]]:
    reader = spark.read.format("binaryFile").options(
        **{key: str(value).lower() if value is True else value for key, value in options.items()}
    )
    try:
        there = reader.load(path).select(
            F.col("_metadata.file_path").alias("file"), F.col("_metadata.file_size").alias("bytes")
        )
        return [(row["file"], row["bytes"]) for row in there.orderBy("file").collect()]
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("PATH_NOT_FOUND"):
            return []
        raise SourceError(f"--files {path}: {first_line(error)}") from None


def _format(pattern: str, files: Sequence[str]) -> str:
    """The format that the names of most files end in."""
    endings = Counter(_ending(file) for file in files)
    known = Counter({ending: count for ending, count in endings.items() if ending in FORMATS})
    right = "write --format csv, json, parquet or xes"
    if not known:
        shown = ", ".join(sorted(ending or "no ending" for ending in endings))
        raise SourceError(f"--files {pattern!r}: names of files that end in {shown} tell no format; {right}")
    formats = {FORMATS[ending] for ending in known}
    if len(formats) > 1 or len(known) < len(endings):
        shown = ", ".join(f"{count} of {ending or 'no ending'}" for ending, count in sorted(endings.items()))
        raise SourceError(
            f"--files {pattern!r}: means files of several kinds ({shown}); a source has one: write a pattern such as "
            f"'…/*.{known.most_common(1)[0][0]}'"
        )
    return formats.pop()


def _ending(file: str) -> str:
    parts = file.rpartition("/")[2].lower().split(".")
    while len(parts) > 2 and parts[-1] in _PACKED:
        parts.pop()
    return parts[-1] if len(parts) > 1 else ""


def _encoding(head: bytes) -> dict[str, Any]:
    """The options of text that begins as UTF-16 does; others are known by a look at all bytes, see `starting`."""
    # Spark would end lines in the middle of its letters.
    return {"encoding": "UTF-16", "multiLine": True} if begins_as_utf16(head) else {}


def _csv(text: str, file: str) -> tuple[dict[str, Any], str | None]:
    """Options of Spark's reader for a CSV file, and the schema where its first line names no columns."""
    text = io.StringIO(text.lstrip("\ufeff"), newline=None).read()  # lines may end in \r alone
    if not text:
        raise SourceError(f"--files: the first file, {file}, is empty; a csv source begins with a header")
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    options: dict[str, Any] = {} if separator == "," else {"sep": separator}
    if re.search(_SLASHED.format(re.escape(separator)), text, re.M):
        options["escape"] = "\\"
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        names = [cell.strip() for cell in next(rows, ())]
        # A header may have empty cells and one name twice, above what is no text.
        odd = "" in names or len({name.lower() for name in names}) < len(names)
        if any(map(_VALUE.fullmatch, names)) or (
            odd and not any(_VALUE.fullmatch(cell.strip()) for cell in next(rows, ()))
        ):
            return options, ", ".join(f"c{number} STRING" for number in range(1, len(names) + 1))
    except csv.Error as error:
        raise SourceError(f"--files: the first lines of {file} are no CSV: {error}") from None
    return {"header": True, **options}, None


def _stream_name(place: str) -> str:
    """The last word of a place that is no pattern."""
    for part in reversed(place.rstrip("/").split("/")):
        if part and not _PATTERN.search(part):
            word = _WORD.sub("_", part).strip("_").lower()
            if word:
                return word
    return "events"
