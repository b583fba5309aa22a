"""The columns of a source: as its configuration declares them, or as its files show them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.jobs.sources.bad_files import broken, refuse, show_line
from patternlake.jobs.sources.errors import BadFileError, first_line
from patternlake.jobs.sources.expressions import CORRUPT
from patternlake.jobs.sources.source_files import SourceFiles
from patternlake.jobs.sources.tables import refuse_other_than_delta
from patternlake.jobs.sources.unfit_files import find_unfit_files
from patternlake.jobs.sources.xes_files import columns_of_logs
from patternlake.udfs.errors import ConfigurationError

logger = logging.getLogger(__name__)

# Of JSON and XES without schema, this much is looked at for the names of columns.
_SAMPLE_ROWS = 100_000
_SAMPLE_FILES = 1000
# What Spark says of Parquet's types that it does not have; such columns are left out.
_NO_SPARK_TYPE = (
    "PARQUET_TYPE_ILLEGAL",
    "PARQUET_TYPE_NOT_SUPPORTED",
    "PARQUET_TYPE_NOT_RECOGNIZED",
    "UNSUPPORTED_TIME_TYPE",
)
_REPLACEMENT = "\ufffd"
"""Stands where bytes are no text of the encoding."""


class Inferred(NamedTuple):
    """What files say of a source's columns.

    Parameters
    ----------
    columns
        The columns; None where no file says any.
    unread
        Columns of Parquet that Spark has no type for, and Parquet's words for their types; they are not in `columns`.
    """

    columns: T.StructType | None
    unread: Mapping[str, str] = MappingProxyType({})


def parse_schema(source: SourceFiles, ddl: str) -> T.StructType:
    """Read the columns that the configuration declares.

    Raises
    ------
    ConfigurationError
        The text is not DDL, or names columns that the source cannot have.
    """
    try:
        schema = T.StructType.fromDDL(ddl)
        if not isinstance(schema, T.StructType):
            raise ConfigurationError(
                f"streams.{source.name}.schema: {ddl!r} is a type; expected columns like 'a INT, b STRING'"
            )
    except (ParseException, PySparkException) as error:
        raise ConfigurationError(f"streams.{source.name}.schema: {ddl!r} is not DDL: {first_line(error)}") from None
    if CORRUPT in schema.fieldNames():
        raise ConfigurationError(f"streams.{source.name}.schema: {CORRUPT!r} is kept for records that cannot be read")
    if source.kind == "xes" and any(not isinstance(field.dataType, T.StringType) for field in schema.fields):
        raise ConfigurationError(
            f"streams.{source.name}.schema: {ddl!r}: columns of xes are STRING; cast them in expressions"
        )
    return schema


def infer_columns(source: SourceFiles, files: Sequence[str] | None = None, *, merged: bool = False) -> Inferred:
    """Learn the columns from the source's files, or from some of them; `merged` as of `Source.schema`.

    Raises
    ------
    BadFileError
        A file of text would be misread, or holds no JSON object.
    SourceError
        The source is no Delta table.
    Exception
        What Spark says of files that it cannot read.
    """
    if source.kind == "delta":
        if source.configuration.table:
            refuse_other_than_delta(source.spark, source.configuration.table, f"stream {source.name!r}: source")
        return Inferred(source.table().schema)
    if source.kind == "parquet":
        return _infer_from_parquet(source, files, merged=merged)
    if source.kind == "csv":
        return Inferred(_infer_from_csv(source, files))
    return Inferred(_infer_from_json(source, files) if source.kind == "json" else _infer_from_xes(source, files))


def infer_columns_of_good_files(source: SourceFiles) -> Inferred:
    """Learn the columns where the files that Spark looks at first are bad."""
    files = source.paths()
    if source.kind in ("json", "xes"):
        # All files have a say in the columns.
        bad = broken(files, lambda some: infer_columns(source, some), source.explain)
        good = [file for file in files if file not in bad]
        return infer_columns(source, good) if good else Inferred(None)
    for file in files:
        if not broken([file], lambda some: infer_columns(source, some), source.explain):
            return infer_columns(source, [file])
    return Inferred(None)


def _infer_from_csv(source: SourceFiles, files: Sequence[str] | None) -> T.StructType:
    schema = source.load(source.spark.read.options(**source.read_options()).format("csv"), files).schema
    if any(_REPLACEMENT in name for name in schema.names):
        _refuse_unfit(source, files)
    return schema


def _infer_from_json(source: SourceFiles, files: Sequence[str] | None) -> T.StructType:
    lines = source.json_texts(files).limit(_SAMPLE_ROWS)
    if not source.goes_over_lines:
        _refuse_over_lines(source, lines)
    reader = source.spark.read.options(**source.record_options()).option("primitivesAsString", "true")
    schema = reader.json(lines.select("value").rdd.map(lambda row: row[0])).schema
    columns = [field for field in schema.fields if field.name != CORRUPT]
    if any(_REPLACEMENT in field.name for field in columns):
        _refuse_unfit(source, files)
    for row in lines.where(F.trim("value") != "").limit(1).collect() if not columns else ():
        _refuse_unfit(source, files)
        raise BadFileError(source.name, row["file"], f"holds no JSON object: {show_line(row['value'])}")
    return T.StructType(columns)


def _infer_from_xes(source: SourceFiles, files: Sequence[str] | None) -> T.StructType:
    if files is None:
        source.whole_files()  # of a path that is not there, Spark tells
    there = source.paths() if files is None else files
    names, notes = columns_of_logs(source.spark, sorted(there)[:_SAMPLE_FILES])
    for note in notes:
        logger.warning("stream %r: %s", source.name, note)
    return T.StructType([T.StructField(name, T.StringType()) for name in names])


def _infer_from_parquet(source: SourceFiles, files: Sequence[str] | None, *, merged: bool) -> Inferred:
    """Take the columns whose types Spark has, as one file says, or all where they are merged."""
    unread = {}
    merged = merged or source.configuration.option("mergeSchema").lower() == "true"
    options = source.read_options() | {"mergeSchema": str(merged).lower()}
    try:
        schema = source.load(source.spark.read.options(**options).format("parquet"), files).schema
    except AnalysisException as error:
        if error.getCondition() not in _NO_SPARK_TYPE:
            raise
        schema = None
    there = source.paths() if files is None else list(files)
    footers = [
        each for each in source.footers.read(there if merged else there[:1]).values() if not isinstance(each, str)
    ]
    columns = {name: column for each in reversed(footers) for name, column in each.items()}
    if schema is None:
        folders = source.folder_columns()
        typed = [T.StructField(each.name, each.type) for each in columns.values() if each.type is not None]
        schema = T.StructType([*typed, *[field for field in folders if field.name.lower() not in columns]])
        unread = {each.name: each.told for each in columns.values() if each.type is None}
    for column in columns.values():
        if column.nanoseconds:
            logger.info("stream %r: %s has nanoseconds, of which microseconds are kept", source.name, column.name)
    untyped = {name for name, column in columns.items() if isinstance(column.type, T.NullType)}
    fields = [
        T.StructField(field.name, T.NullType() if field.name.lower() in untyped else field.dataType)
        for field in schema.fields
    ]
    return Inferred(T.StructType(fields), unread)


def _refuse_over_lines(source: SourceFiles, lines: DataFrame) -> None:
    """Raise for JSON that goes over lines: Spark would read the lines that are whole objects, and no others."""
    line = F.trim("value")
    ends = {"{": "}", "[": "]"}
    unfinished = reduce(Column.__or__, [line.startswith(one) & ~line.endswith(two) for one, two in ends.items()])
    _refuse_unfit(source, [row["file"] for row in lines.where(unfinished).select("file").distinct().collect()])


def _refuse_unfit(source: SourceFiles, files: Sequence[str] | None) -> None:
    """Raise for the first file that is misread, where columns show that one may be."""
    refuse(source.name, find_unfit_files(source, source.paths() if files is None else files, T.StructType()))
