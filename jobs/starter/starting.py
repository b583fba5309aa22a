"""Writes a first configuration of a source, guessed from its rows."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from patternlake.delta_tables.committing.sessions import own_session
from patternlake.delta_tables.databases.internal_database import default_place
from patternlake.delta_tables.schema.locations import is_on_disk, path_on_disk
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.ingest.evaluated_rows import READING
from patternlake.jobs.sources.bad_files import MISREAD, UNDECODED, refuse
from patternlake.jobs.sources.source import Source
from patternlake.jobs.sources.unfit_files import find_unfit_files
from patternlake.jobs.starter.column_facts import commonest, look
from patternlake.jobs.starter.found_source import FoundSource, file_source, table_source
from patternlake.jobs.starter.guesses import guess
from patternlake.jobs.starter.text import FORMATS, NO_TIME, Starter, as_yaml
from patternlake.udfs.errors import ArgumentError, SourceError
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

LOOKED_AT = 256 * 1024 * 1024
"""Bytes of files that are looked at, unless all are asked for. Of a table it is all: Delta reads no chosen files."""


def init(
    spark: SparkSession,
    *,
    table: str | None = None,
    files: str | None = None,
    file: Path | None = None,
    stream: str | None = None,
    format: str | None = None,
    everything: bool = False,
    lake: tuple[str, str] | None = None,
) -> tuple[Starter, str]:
    """Guess a first configuration and write it.

    Parameters and errors: as of `patternlake.init`; `lake` is name and location of the database that the session's
    functions answer from, or None.

    Returns
    -------
    Starter
        What was guessed.
    str
        The text, which is a configuration; it stands in the file, too, if one is given.
    """
    if (table is None) == (files is None):
        raise ArgumentError("table, or files: one of the two says where rows come from")
    if format is not None and (files is None or format not in FORMATS):
        raise ArgumentError(f"format {format!r}: files have one of the formats {', '.join(FORMATS)}")
    refuse_file(file)
    found = _guess_columns(
        spark, table=table, files=files, format=format, stream=stream, file=file, everything=everything
    )
    if lake is not None:
        found = replace(found, lake=(lake[0], _location(spark, *lake, file)))
    written = as_yaml(found)
    # What cannot be loaded is not written.
    Configuration.from_text(written, file=found.conf, folder=Path() if file is None else file.resolve().parent)
    if file is not None:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(written)
    return found, written


def _location(spark: SparkSession, database: str, place: str, file: Path | None) -> str | None:
    """The location of a database as a file of configuration has it; None: where the catalog puts it by itself."""
    if not is_on_disk(place):
        return place
    path = path_on_disk(place)
    if path == path_on_disk(default_place(spark, database)):
        return None
    near = path if file is None else os.path.relpath(path, file.absolute().parent)
    return path if near.startswith("..") or os.path.isabs(near) else f"./{near}"


def refuse_file(file: Path | None) -> None:
    """Refuse to overwrite a file, before Spark is started for it.

    Raises
    ------
    ArgumentError
        It is there.
    """
    if file is not None and file.exists():
        raise ArgumentError(
            f"{file} is there already, and is not overwritten; give another file: --conf FILE, in Python file="
        )


def _guess_columns(
    spark: SparkSession,
    *,
    table: str | None = None,
    files: str | None = None,
    format: str | None = None,
    stream: str | None = None,
    file: Path | None = None,
    everything: bool = False,
) -> Starter:
    """Look at a source and guess what its columns mean, given arguments as of `init`."""
    with own_session(spark, READING) as own:
        found = table_source(own, table) if table is not None else file_source(own, files or "", format)
        if stream is not None:
            found = replace(found, name=stream)
        some = [file for file, _ in found.files] if everything else _spread(found.files)
        found = _with_options(own, found, some)
        source = _source(own, found)
        schema = source.schema()
        if schema is None:
            raise SourceError(f"nothing is in {source.shown} yet; a configuration is guessed from rows")
        try:
            schema = source.with_types([file for file, _ in found.files], schema)
            rows, looked_at = _rows(source, found, schema, some)
            columns = look(rows, schema)
            if not any(column.rows for column in columns):
                raise SourceError(f"no row is in {source.shown} yet; a configuration is guessed from rows")
            guesses = guess(columns, options=source.kind == "csv")
            names = commonest(rows, guesses.names[0].expression) if guesses.names else []
        except Exception as error:
            raise source.explain(error, schema.fieldNames()) or error from None
    count = max(column.rows for column in columns)
    return Starter(found, guesses, names, looked_at.replace("{rows}", plural(count, "row")), file)


def _source(spark: SparkSession, found: FoundSource, **options: object) -> Source:
    """The source, with more options of its reader."""
    section = {**found.section, "options": {**found.section.get("options", {}), **options}}
    stream = {"source": section, "time": NO_TIME, "name": "''"}
    if found.schema is not None:
        stream["schema"] = found.schema
    return Source(spark, found.name, StreamConfiguration.model_validate(stream))


def _with_options(spark: SparkSession, found: FoundSource, files: Sequence[str]) -> FoundSource:
    """The source, with the options without which its files would be misread.

    Raises
    ------
    BadFileError
        A file is misread with them as well.
    """
    options: dict[str, object] = {}

    def unfit(**more: object) -> dict[str, str]:
        return find_unfit_files(_source(spark, found, **options, **more), files, T.StructType())

    def of_other_text(bad: Mapping[str, str]) -> set[str]:
        return {file for file, reason in bad.items() if reason.startswith(UNDECODED)}

    bad = unfit()
    # One encoding is for all files, so that none may be UTF-8 beyond ASCII.
    if of_other_text(bad) and of_other_text(bad) == of_other_text(unfit(encoding="US-ASCII")):
        options["encoding"] = "windows-1252"
        bad = unfit()
    if any(reason.startswith(MISREAD) for reason in bad.values()):
        options["multiLine"] = True
        bad = unfit()
    refuse(found.name, bad)
    if not options:
        return found
    return replace(found, section={**found.section, "options": {**found.section.get("options", {}), **options}})


def _rows(source: Source, found: FoundSource, schema: T.StructType, some: Sequence[str]) -> tuple[DataFrame, str]:
    """The rows to look at, and what they are in words."""
    if source.kind == "delta":
        return source.there(schema)[0], f"all {{rows}} of table {source.shown}"
    count = len(found.files)
    rows = source.expand(source.again(some, schema), schema, some)
    if len(some) == count:
        return rows, f"all {{rows}} of {plural(count, 'file')} ({source.shown})"
    return rows, f"{{rows}} of {len(some):,} of {plural(count, 'file')} ({source.shown}); --all looks at all"


def _spread(files: Sequence[tuple[str, int]]) -> list[str]:
    """Files from the whole listing, which is mostly in the order of time, of no more bytes than are looked at."""
    total = sum(size for _, size in files)
    if total <= LOOKED_AT:
        return [file for file, _ in files]
    return _every([file for file, _ in files], max(1, len(files) * LOOKED_AT // total))


def _every(files: Sequence[str], count: int) -> list[str]:
    """So many, evenly spread."""
    return [files[index * len(files) // count] for index in range(count)]
