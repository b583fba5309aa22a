"""The sources that a stream can have, each as a streaming data frame of rows with their origin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.configuration import file_patterns
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.sources import text_encodings
from patternlake.jobs.sources.column_inference import (
    Inferred,
    infer_columns,
    infer_columns_of_good_files,
    parse_schema,
)
from patternlake.jobs.sources.errors import BadFileError, first_line
from patternlake.jobs.sources.expressions import ORIGIN, PLACE
from patternlake.jobs.sources.parquet_footers import Reading, learn_types, readings
from patternlake.jobs.sources.places import as_read, block_columns, number_by_file, row_numbers
from patternlake.jobs.sources.source_files import FILE_COLUMNS, LISTING, STREAMED, SourceFiles
from patternlake.jobs.sources.xes_files import events_of_logs
from patternlake.udfs.errors import ConfigurationError, SourceError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark forgets files older than this beside the newest one, and would read them again or not at all.
_ANY_AGE = "365000d"
_LAST_LETTER = re.compile(r"(\w)([^\w/]*/*)$")


class Source(SourceFiles):
    """The source of one stream, as its rows; parameters as of `SourceFiles`."""

    def __init__(self, spark: SparkSession, name: str, stream: StreamConfiguration) -> None:
        super().__init__(spark, name, stream)
        self.unread: Mapping[str, str] = {}
        """Columns of Parquet that Spark has no type for, and Parquet's words for their types; known after `schema`."""

    def schema(self, *, merged: bool = False) -> T.StructType | None:
        """The columns, as configured or as found in what is there now; None where there is nothing yet.

        Parameters
        ----------
        merged
            Whether the columns of all files of Parquet are taken; else those of one, where options do not say so.

        Raises
        ------
        ConfigurationError
            The configured schema is not DDL, or the encoding is none.
        SourceError
            The source is missing or cannot be read.
        """
        self._check_encoding()
        try:
            ddl = self.stream.ddl
            inferred = infer_columns(self, merged=merged) if ddl is None else Inferred(parse_schema(self, ddl))
        except AnalysisException as error:
            condition = error.getCondition() or ""
            if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
                return None
            raise SourceError(f"stream {self.name!r}: source {self.shown}: {first_line(error)}") from None
        except Exception as error:
            known = self.explain(error)
            if not isinstance(known, BadFileError) or self.configuration.on_bad_file == "fail":
                raise (known or error) from None
            inferred = infer_columns_of_good_files(self)
        self.unread = inferred.unread
        return inferred.columns if inferred.columns is not None and inferred.columns.fields else None

    def rows(self, schema: T.StructType, *, before: str | None = None) -> DataFrame:
        """The streaming data frame; for XES, of files (see `expand`).

        Parameters
        ----------
        schema
            The columns, as `schema` gave them when the stream was first read.
        before
            `shown` of the last batch, None before the first.

        Raises
        ------
        SourceError
            The source cannot be read.
        StateError
            The path is another than before, and its folders carry columns.
        """
        try:
            if self.kind == "delta":
                return self._delta()
            self._refuse_one_file()
            path = self._path(before)
            if self.kind == "xes":
                reader = (
                    self.spark.readStream.format("binaryFile")
                    .schema(", ".join(" ".join(column) for column in FILE_COLUMNS.items()))
                    .options(**self.options_among((*LISTING, *STREAMED)))
                )
                return (
                    reader.option("maxFileAge", _ANY_AGE).load(path).select(F.col("_metadata.file_path").alias(ORIGIN))
                )
            if self.goes_over_lines:
                rows = self.read_whole(self.spark.readStream).option("maxFileAge", _ANY_AGE).load(path)
                return rows.select("value", F.col("_metadata.file_path").alias(ORIGIN))
            reader = self.spark.readStream.format(self.kind).options(**self.read_options(schema))
            # What a column is read as, each file says: Parquet's batches are read by `again`.
            typed = T.StructType([field for field in schema.fields if not isinstance(field.dataType, T.NullType)])
            return self._add_places(reader.schema(self.with_corrupt(typed)).option("maxFileAge", _ANY_AGE).load(path))
        except AnalysisException as error:
            raise SourceError(f"stream {self.name!r}: source {self.shown}: {first_line(error)}") from None

    def _check_encoding(self) -> None:
        encoding = self.configuration.encoding
        if not encoding:
            return
        key = f"streams.{self.name}.source.options.encoding"
        if not text_encodings.is_known(self.spark, encoding):
            raise ConfigurationError(
                f"{key}: {encoding!r} is no encoding that is known; write one such as 'windows-1252' or 'Shift_JIS'"
            )
        if text_encodings.is_wide(encoding) and self.configuration.option("multiLine").lower() != "true":
            raise ConfigurationError(
                f"{key}: {encoding!r}: lines cannot be told by single bytes; write `multiLine: true` beside it"
            )

    def _path(self, before: str | None) -> str:
        """The path for Spark, which when it starts looks at the last batch's files again and wants them below it.

        A pattern has no folder that files must be below, so a path that has changed is written as one.
        """
        path = self.configuration.path or ""
        if before in (None, path) or file_patterns.is_pattern(path):
            return path
        folders = [field.name for field in self.folder_columns()]
        if folders:
            raise StateError(
                f"stream {self.name!r}: the source moved from {before} to {path}, whose folders carry the columns "
                f"{', '.join(folders)}; run the job with --rebuild"
            )
        return _LAST_LETTER.sub(r"[\g<1>]\g<2>", path, count=1)

    def _refuse_one_file(self) -> None:
        """A stream reads a folder: Spark would fail at a path that is a file."""
        machine = self.spark._jvm
        assert machine is not None
        path = machine.org.apache.hadoop.fs.Path(self.configuration.path)
        system = path.getFileSystem(self.spark._jsc.hadoopConfiguration())
        if system.exists(path) and system.getFileStatus(path).isFile():
            file = (self.configuration.path or "").rstrip("/")
            raise SourceError(
                f"stream {self.name!r}: source {self.shown} is one file, and a stream reads a folder, in which new "
                f"rows come in new files; write path: {file.rpartition('/')[0] or '.'}, or, if the folder holds other "
                f"files, too, path: '{file_patterns.alone(file)}'"
            )

    def expand(self, batch: DataFrame, schema: T.StructType, files: Sequence[str]) -> DataFrame:
        """The rows of a batch of files: those of `rows`, and the values of whole files; with `PLACES`."""
        if self.kind == "xes":
            batch = events_of_logs(batch, self.with_corrupt(schema), self.name_below)
        elif self.goes_over_lines:
            record = F.from_json("value", self.with_corrupt(schema), self.record_options()).alias("record")
            batch = self.cut_values(batch, ORIGIN).select(record, ORIGIN).select("record.*", ORIGIN)
        if self.kind in ("csv", "json"):
            batch = row_numbers(batch)
        return number_by_file(batch, files)

    def again(self, files: Sequence[str], schema: T.StructType, used: Iterable[str] | None = None) -> DataFrame:
        """The same rows as those of a batch of these files, for `expand`.

        Parameters
        ----------
        files, schema
            The files, and the stream's columns.
        used
            The columns that the stream's expressions read; None: all. Others may be of any type in a Parquet file.
        """
        if self.kind == "xes":
            return frame_of_tuples(self.spark, [(as_read(file),) for file in files], f"{ORIGIN} string")
        if self.goes_over_lines and files:
            whole = self.load(self.read_whole(self.spark.read), files)
            return whole.select("value", F.col("_metadata.file_path").alias(ORIGIN))
        if self.goes_over_lines:
            return self.spark.createDataFrame([], f"value string, {ORIGIN} string")
        if not files:
            return self.empty(schema).withColumn(ORIGIN, F.lit(""))
        if self.kind == "parquet":
            return self._by_footers(files, schema, used)
        reader = (
            self.spark.read.format(self.kind).options(**self.read_options(schema)).schema(self.with_corrupt(schema))
        )
        return self._add_places(self.load(reader, files))

    def _add_places(self, rows: DataFrame) -> DataFrame:
        """Rows of files as Spark reads them, with their origin, and what is known of their places."""
        about = rows.metadataColumn("_metadata")  # A column of the files may be called so, too.
        return rows.select("*", about["file_path"].alias(ORIGIN), *block_columns(self.kind, about))

    def _by_footers(self, files: Sequence[str], schema: T.StructType, used: Iterable[str] | None) -> DataFrame:
        """Parquet files as their footers say; those that are read alike together."""
        alike: dict[tuple[Reading, ...], list[str]] = {}
        for file, there in self.footers.read(files).items():
            # Of what has no footer, Spark tells what is wrong.
            alike.setdefault(readings(schema, {} if isinstance(there, str) else there, used), []).append(file)
        frames = []
        for columns, some in alike.items():
            named = zip(schema.names, columns, strict=True)
            read = [T.StructField(name, each.type) for name, each in named if not isinstance(each.type, T.NullType)]
            reader = self.spark.read.format(self.kind).options(**self.read_options()).schema(T.StructType(read))
            values = [F.expr(each.sql).alias(name) for name, each in zip(schema.names, columns, strict=True)]
            frames.append(self._add_places(self.load(reader, some)).select(*values, ORIGIN, PLACE))
        return reduce(DataFrame.unionAll, frames)

    def with_types(self, files: Sequence[str], schema: T.StructType) -> T.StructType:
        """The columns; those that had no value yet, and so no type, have the one that some files give them."""
        if not any(isinstance(field.dataType, T.NullType) for field in schema.fields):
            return schema
        return learn_types(schema, self.footers.read(files).values())

    def there(self, schema: T.StructType) -> tuple[DataFrame, list[str]]:
        """All rows that are there, as one batch for `expand`, and the files that they stand in; none of a table."""
        if self.kind == "delta":
            return self.table().withColumn(ORIGIN, F.lit(self.shown)), []
        files = self.paths()
        return self.again(files, schema), files

    @staticmethod
    def reads_twice(files: Sequence[str]) -> bool:
        """Whether Spark's streaming reader takes the files of a batch more than once.

        Measured with 4.2.0: for each file whose name looks like a pattern, all others of its batch are read once more.
        """
        return any(file_patterns.is_pattern(unquote(file)) for file in files)

    def _delta(self) -> DataFrame:
        options: dict[str, Any] = dict(self.configuration.options)
        if not any(self.configuration.option(limit) for limit in ("maxFilesPerTrigger", "maxBytesPerTrigger")):
            # Delta's own 1000 would cut a table's first snapshot in an order that says nothing about time.
            options["maxFilesPerTrigger"] = str(2**31 - 1)
        reader = self.spark.readStream.format("delta").options(**options)
        table = self.configuration.table
        rows = reader.table(table) if table else reader.load(self.configuration.path)
        return rows.withColumn(ORIGIN, F.lit(self.shown))
