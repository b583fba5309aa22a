"""Files of a source that cannot be read as the others are: which ones, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from patternlake.jobs.sources.errors import BadFileError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LACKS = "lacks the columns"
_WHOLE = "put a whole file in its place"
_ADVICE = (
    "put its columns right, make it a stream of its own, write `mergeSchema: true` in the source's options where files "
    "may lack columns"
)
_READERS = 8
"""Footers read at once: each mostly waits for its storage."""


def broken(
    files: Sequence[str], read: Callable[[Sequence[str]], object], explain: Callable[[Exception], Exception | None]
) -> dict[str, str]:
    """Find the files that cannot be read, and why, by reading ever smaller parts of those that fail.

    Parameters
    ----------
    files
        Which may be bad.
    read
        Reads some files as a whole, or raises.
    explain
        Turns what `read` raised into a `BadFileError`, or into anything else where no file is to blame.
    """
    try:
        read(files)
    except Exception as error:
        known = explain(error)
        if not isinstance(known, BadFileError):
            raise
        if len(files) == 1:
            return {files[0]: known.reason}
        half = len(files) // 2
        return {**broken(files[:half], read, explain), **broken(files[half:], read, explain)}
    return {}


def without_columns(spark: SparkSession, files: Iterable[str], columns: Sequence[str]) -> dict[str, str]:
    """Find the Parquet files that lack columns or have no readable footer, and what is wrong with each.

    Spark would give NULL for a column that a file lacks.
    """
    names = {column.lower(): column for column in columns}

    def look(file: str) -> str | None:
        try:
            there = _parquet_columns(spark, file)
        except Py4JJavaError as error:
            text = str(error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName())
            return f"cannot be read: {text.splitlines()[0]}"
        missing = [names[name] for name in names if name not in {each.lower() for each in there}]
        if not missing:
            return None
        return f"{_LACKS} {', '.join(missing)}; it has {', '.join(there)}"

    listed = list(files)
    with ThreadPoolExecutor(_READERS) as pool:
        return {file: reason for file, reason in zip(listed, pool.map(look, listed), strict=True) if reason}


def _parquet_columns(spark: SparkSession, file: str) -> list[str]:
    """The top-level columns in a file's footer."""
    jvm: Any = spark._jvm
    hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    path = jvm.org.apache.hadoop.fs.Path(unquote(file))
    opened = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(
        jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, hadoop)
    )
    try:
        fields = opened.getFooter().getFileMetaData().getSchema().getFields()
        return [str(fields.get(number).getName()) for number in range(fields.size())]
    finally:
        opened.close()


def refuse(stream: str, found: Mapping[str, str]) -> None:
    """Raise for the first of some bad files, if there is one.

    Raises
    ------
    BadFileError
        Naming it.
    """
    for file, reason in sorted(found.items()):
        raise BadFileError(stream, file, reason, _ADVICE if reason.startswith(_LACKS) else _WHOLE)
