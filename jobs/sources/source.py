"""The sources that a stream can have, each as a streaming data frame of rows with their origin."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.arrow_rows import frame_of_tuples
from patternlake.jobs.configuration import file_patterns
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.sources import text_files
from patternlake.jobs.sources.bad_files import FIELDS, HEADER, broken, refuse
from patternlake.jobs.sources.errors import BadFileError, explained, first_line
from patternlake.jobs.sources.expressions import CORRUPT, ORIGIN, PLACE
from patternlake.jobs.sources.json_values import cut_files
from patternlake.jobs.sources.parquet_footers import Footers, Reading, learned, missing_columns, readings
from patternlake.jobs.sources.places import as_read, block_columns, numbered_by_file, row_numbers
from patternlake.jobs.sources.tables import columns_changed_at, refuse_other_than_delta
from patternlake.jobs.sources.text_files import Faults, TextCheck
from patternlake.jobs.sources.xes_files import columns_of_logs, events_of_logs
from patternlake.udfs.errors import ConfigurationError, PatternLakeError, SourceError, StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    _Reader = TypeVar("_Reader", DataFrameReader, DataStreamReader)

logger = logging.getLogger(__name__)

# Spark forgets files older than this beside the newest one, and would read them again or not at all.
_ANY_AGE = "365000d"
# Of JSON and XES without schema, this much is looked at for the names of columns.
_SAMPLE_ROWS = 100_000
_SAMPLE_FILES = 1000
_LISTING = ("pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore")
_OF_BYTES = ("encoding", "charset", "linesep")
# What Spark says of Parquet's types that it does not have; such columns are left out.
_NO_SPARK_TYPE = (
    "PARQUET_TYPE_ILLEGAL",
    "PARQUET_TYPE_NOT_SUPPORTED",
    "PARQUET_TYPE_NOT_RECOGNIZED",
    "UNSUPPORTED_TIME_TYPE",
)
_READERS = 8
"""Headers read at once."""
_REPLACEMENT = "\ufffd"
"""Stands where bytes are no text of the encoding."""
_CHANGED = "changed while it was looked at"
_LAST_LETTER = re.compile(r"(\w)([^\w/]*/*)$")
# Content is declared because the format wants it, and never read.
_BINARY = {"path": "STRING", "modificationTime": "TIMESTAMP", "length": "BIGINT", "content": "BINARY"}


class Source:
    """The source of one stream.

    Parameters
    ----------
    spark
        The session.
    name, stream
        The stream's name and configuration.
    """

    def __init__(self, spark: SparkSession, name: str, stream: StreamConfiguration) -> None:
        self._spark = spark
        self._name = name
        self._stream = stream
        self._source = stream.source
        self._footers = Footers(spark)
        self.kind = stream.source.kind
        self.unread: dict[str, str] = {}
        """Columns of Parquet that Spark has no type for, and Parquet's words for their types; known after `schema`."""

    @property
    def shown(self) -> str:
        """Where rows come from, for messages."""
        return self._source.table or self._source.path or ""

    def schema(self) -> T.StructType | None:
        """The columns, as configured or as found in what is there now; None where there is nothing yet.

        Raises
        ------
        ConfigurationError
            The configured schema is not DDL, or the encoding is none.
        SourceError
            The source is missing or cannot be read.
        """
        self._check_encoding()
        try:
            found = self._found() if self._stream.ddl is None else self._configured(self._stream.ddl)
        except AnalysisException as error:
            condition = error.getCondition() or ""
            if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
                return None
            raise SourceError(f"stream {self._name!r}: source {self.shown}: {first_line(error)}") from None
        except Exception as error:
            known = self.explained(error)
            if not isinstance(known, BadFileError) or self._source.on_bad_file == "fail":
                raise (known or error) from None
            found = self._found_in_good_files()
        return found if found is not None and found.fields else None

    def explained(self, error: BaseException, columns: Sequence[str] = ()) -> PatternLakeError | None:
        """An error of reading as one of ours, which names the file or the version; see `source_errors.explained`."""
        return explained(
            error,
            stream=self._name,
            source=self.shown,
            columns=columns,
            header=self.header,
            changed=lambda: columns_changed_at(self._spark, self._source),
        )

    def rows(self, schema: T.StructType, *, before: str | None = None) -> DataFrame:
        """The streaming data frame; for XES, of files (see `expanded`).

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
                    self._spark.readStream.format("binaryFile")
                    .schema(", ".join(" ".join(column) for column in _BINARY.items()))
                    .options(**self._options((*_LISTING, "maxfilespertrigger")))
                )
                return (
                    reader.option("maxFileAge", _ANY_AGE).load(path).select(F.col("_metadata.file_path").alias(ORIGIN))
                )
            if self._over_lines:
                rows = self._whole(self._spark.readStream).option("maxFileAge", _ANY_AGE).load(path)
                return rows.select("value", F.col("_metadata.file_path").alias(ORIGIN))
            reader = self._spark.readStream.format(self.kind).options(**self._read_options(schema))
            # What a column is read as, each file says: Parquet's batches are read by `again`.
            typed = T.StructType([field for field in schema.fields if not isinstance(field.dataType, T.NullType)])
            return self._marked(reader.schema(self._full(typed)).option("maxFileAge", _ANY_AGE).load(path))
        except AnalysisException as error:
            raise SourceError(f"stream {self._name!r}: source {self.shown}: {first_line(error)}") from None

    def _check_encoding(self) -> None:
        encoding = self._source.encoding
        if not encoding:
            return
        key = f"streams.{self._name}.source.options.encoding"
        if not text_files.is_known(self._spark, encoding):
            raise ConfigurationError(
                f"{key}: {encoding!r} is no encoding that is known; write one such as 'windows-1252' or 'Shift_JIS'"
            )
        if text_files.is_wide(encoding) and self._source.option("multiLine").lower() != "true":
            raise ConfigurationError(
                f"{key}: {encoding!r}: lines cannot be told by single bytes; write `multiLine: true` beside it"
            )

    def _path(self, before: str | None) -> str:
        """The path for Spark, which when it starts looks at the last batch's files again and wants them below it.

        A pattern has no folder that files must be below, so a path that has changed is written as one.
        """
        path = self._source.path or ""
        if before in (None, path) or file_patterns.is_pattern(path):
            return path
        folders = self._folder_columns()
        if folders:
            raise StateError(
                f"stream {self._name!r}: the source moved from {before} to {path}, whose folders carry the columns "
                f"{', '.join(folders)}; run the job with --rebuild"
            )
        return _LAST_LETTER.sub(r"[\g<1>]\g<2>", path, count=1)

    def _refuse_one_file(self) -> None:
        """A stream reads a folder: Spark would fail at a path that is a file."""
        machine = self._spark._jvm
        assert machine is not None
        path = machine.org.apache.hadoop.fs.Path(self._source.path)
        system = path.getFileSystem(self._spark._jsc.hadoopConfiguration())
        if system.exists(path) and system.getFileStatus(path).isFile():
            file = (self._source.path or "").rstrip("/")
            raise SourceError(
                f"stream {self._name!r}: source {self.shown} is one file, and a stream reads a folder, in which new "
                f"rows come in new files; write path: {file.rpartition('/')[0] or '.'}, or, if the folder holds other "
                f"files, too, path: '{file_patterns.alone(file)}'"
            )

    def _json_texts(self, files: Sequence[str] | None = None) -> DataFrame:
        """The JSON values of the source, or of some of its files, as ``value``, and their ``file``."""
        address = F.col("_metadata.file_path").alias("file")
        if self._over_lines:
            return self._cut(self._load(self._whole(self._spark.read), files).select("value", address), "file")
        lines = self._text_lines(files)
        if text_files.is_utf8(self._source.encoding):
            return lines
        return lines.mapInArrow(text_files.decoded(self._source.encoding), lines.schema)

    @property
    def _over_lines(self) -> bool:
        """Whether JSON values go over lines; each file is cut into its values."""
        return self.kind == "json" and self._source.option("multiLine").lower() == "true"

    def _whole(self, reader: _Reader) -> _Reader:
        """A reader of whole files, as ``value``."""
        return reader.format("text").options(**{**self._source.options, "wholetext": "true"})

    def _cut(self, files: DataFrame, address: str) -> DataFrame:
        """The JSON values of whole files."""
        comments = self._source.option("allowComments").lower() == "true"
        return files.mapInArrow(cut_files(self._source.encoding, comments=comments), f"value string, {address} string")

    def _refuse_over_lines(self, lines: DataFrame) -> None:
        """Of JSON over lines, Spark would read the lines that are whole objects, and no others."""
        line = F.trim("value")
        ends = {"{": "}", "[": "]"}
        unfinished = reduce(Column.__or__, [line.startswith(one) & ~line.endswith(two) for one, two in ends.items()])
        self._refuse_unfit([row["file"] for row in lines.where(unfinished).select("file").distinct().collect()])

    def _refuse_unfit(self, files: Sequence[str] | None) -> None:
        """Raise for the first file that is misread, where columns show that one may be."""
        refuse(self._name, self.unfit_files(self._paths() if files is None else files, T.StructType()))

    def _folders(self) -> list[T.StructField]:
        """Columns in names of folders, such as year=2024."""
        try:
            files = self._spark.read.format("binaryFile").options(**self._options(_LISTING)).load(self._source.path)
        except AnalysisException:
            return []
        return [field for field in files.schema.fields if field.name not in _BINARY]

    def _folder_columns(self) -> list[str]:
        return [field.name for field in self._folders()]

    def expanded(self, batch: DataFrame, schema: T.StructType, files: Sequence[str]) -> DataFrame:
        """The rows of a batch of files: those of `rows`, and the values of whole files; with `PLACES`."""
        if self.kind == "xes":
            batch = events_of_logs(batch, self._full(schema), self._label)
        elif self._over_lines:
            record = F.from_json("value", self._full(schema), self._record_options()).alias("record")
            batch = self._cut(batch, ORIGIN).select(record, ORIGIN).select("record.*", ORIGIN)
        if self.kind in ("csv", "json"):
            batch = row_numbers(batch)
        return numbered_by_file(batch, files)

    def again(self, files: Sequence[str], schema: T.StructType, used: Iterable[str] | None = None) -> DataFrame:
        """The same rows as those of a batch of these files, for `expanded`.

        Parameters
        ----------
        files, schema
            The files, and the stream's columns.
        used
            The columns that the stream's expressions read; None: all. Others may be of any type in a Parquet file.
        """
        if self.kind == "xes":
            return frame_of_tuples(self._spark, [(as_read(file),) for file in files], f"{ORIGIN} string")
        if self._over_lines and files:
            whole = self._load(self._whole(self._spark.read), files)
            return whole.select("value", F.col("_metadata.file_path").alias(ORIGIN))
        if self._over_lines:
            return self._spark.createDataFrame([], f"value string, {ORIGIN} string")
        if not files:
            return self.empty(schema).withColumn(ORIGIN, F.lit(""))
        if self.kind == "parquet":
            return self._by_footers(files, schema, used)
        reader = self._spark.read.format(self.kind).options(**self._read_options(schema)).schema(self._full(schema))
        return self._marked(self._load(reader, files))

    def _marked(self, rows: DataFrame) -> DataFrame:
        """Rows of files as Spark reads them, with their origin, and what is known of their places."""
        return rows.select("*", F.col("_metadata.file_path").alias(ORIGIN), *block_columns(self.kind))

    def _by_footers(self, files: Sequence[str], schema: T.StructType, used: Iterable[str] | None) -> DataFrame:
        """Parquet files as their footers say; those that are read alike together."""
        alike: dict[tuple[Reading, ...], list[str]] = {}
        for file, there in self._footers.read(files).items():
            # Of what has no footer, Spark tells what is wrong.
            alike.setdefault(readings(schema, {} if isinstance(there, str) else there, used), []).append(file)
        frames = []
        for columns, some in alike.items():
            named = zip(schema.names, columns, strict=True)
            read = [T.StructField(name, each.type) for name, each in named if not isinstance(each.type, T.NullType)]
            reader = self._spark.read.format(self.kind).options(**self._read_options()).schema(T.StructType(read))
            values = [F.expr(each.sql).alias(name) for name, each in zip(schema.names, columns, strict=True)]
            frames.append(self._marked(self._load(reader, some)).select(*values, ORIGIN, PLACE))
        return reduce(DataFrame.unionAll, frames)

    def with_types(self, files: Sequence[str], schema: T.StructType) -> T.StructType:
        """The columns; those that had no value yet, and so no type, have the one that some files give them."""
        if not any(isinstance(field.dataType, T.NullType) for field in schema.fields):
            return schema
        return learned(schema, self._footers.read(files).values())

    def there(self, schema: T.StructType) -> tuple[DataFrame, list[str]]:
        """All rows that are there, as one batch for `expanded`, and the files that they stand in; none of a table."""
        if self.kind == "delta":
            return self._table().withColumn(ORIGIN, F.lit(self.shown)), []
        files = self._paths()
        return self.again(files, schema), files

    @staticmethod
    def doubled(files: Sequence[str]) -> bool:
        """Whether Spark's streaming reader takes the files of a batch more than once.

        Measured with 4.2.0: for each file whose name looks like a pattern, all others of its batch are read once more.
        """
        return any(file_patterns.is_pattern(unquote(file)) for file in files)

    def unfit_files(
        self, files: Sequence[str], schema: T.StructType, used: Mapping[str, bool] | None = None
    ) -> dict[str, str]:
        """The files that Spark would read in part, or with NULL or other characters for what stands there.

        Parameters
        ----------
        files, schema
            The files, and the stream's columns.
        used
            The columns that the stream's expressions read, and whether the key or the event's id does; None: unknown.

        Returns
        -------
        dict
            The files, and what is wrong with each.
        """
        if self.kind == "parquet" and self._source.option("mergeSchema").lower() != "true":
            folders = {column.lower() for column in self._folder_columns()}
            wanted = [name for name in schema.names if name.lower() not in folders]
            return missing_columns(self._footers.read(files), wanted)
        if self.kind not in ("csv", "json") or not files:
            return {}
        try:
            return self._unfit_texts(files, schema, used or {})
        except (Py4JJavaError, PySparkException, OSError):
            return {}  # A file that cannot be read is told, or left out, where its rows are read.

    def _unfit_texts(self, files: Sequence[str], schema: T.StructType, used: Mapping[str, bool]) -> dict[str, str]:
        encoding = self._source.encoding
        found: dict[str, str] = {}
        if self.kind == "csv" and self._has_odd_header(schema):
            expected = ", ".join(schema.names)
            with ThreadPoolExecutor(_READERS) as pool:
                headers = zip(files, pool.map(lambda file: ", ".join(self.header(file)), files), strict=True)
            found = {file: f"{HEADER} {there}, expected {expected}" for file, there in headers if there != expected}
        if text_files.is_wide(encoding):
            places = {file: text_files.undecoded(text_files.chunks(self._spark, file), encoding) for file in files}
            return found | {file: place for file, place in places.items() if place is not None}
        check = self._text_check(list(used))
        lacked = {}
        for file, faults in self._faults(check, files).items():
            fields = zip(check.fields, faults.has, faults.alike, strict=True)
            missing = [name for name, has, alike in fields if not has and (alike or used[name])]
            if faults.undecoded:
                found[file] = text_files.undecoded(text_files.chunks(self._spark, file), encoding) or _CHANGED
            elif faults.wrong is not None:
                found.setdefault(file, faults.wrong)
            elif missing:
                lacked[file] = missing
        return found | (self._renamed(lacked, schema, used) if lacked else {})

    def _text_check(self, used: Sequence[str]) -> TextCheck:
        """What is looked for in the source's files."""
        encoding, options = self._source.encoding, self._source.read_options
        if self._source.option("multiLine").lower() == "true":
            return TextCheck(encoding, fields=tuple(used) if self._over_lines else ())
        if self.kind == "json":
            lenient = any(key.lower().startswith("allow") and value.lower() == "true" for key, value in options.items())
            return TextCheck(encoding, json_lines=True, lenient=lenient, fields=tuple(used))
        return TextCheck(
            encoding,
            quote=self._source.option("quote", '"'),
            escape=next((value for key, value in options.items() if key.lower() == "escape"), ""),
            separator=(self._source.option("sep") or self._source.option("delimiter", ",")).replace("\\t", "\t"),
            blanks=self._source.option("ignoreLeadingWhiteSpace").lower() == "true",
        )

    def _faults(self, check: TextCheck, files: Sequence[str]) -> dict[str, Faults]:
        """What a look at all bytes of some files finds, by file."""
        parted = self._source.option("lineSep")
        if not parted and text_files.are_few(files):
            looked = pa.Table.from_batches(
                check.look_at_files([pa.RecordBatch.from_arrays([pa.array(files)], ["file"])])
            )
        else:
            # Lines can be had from everywhere, and cost half of what Spark takes to read them as rows.
            near = [] if parted else [file for file in files if text_files.is_at_hand(file)]
            far = sorted({*files}.difference(near))
            frames = []
            if near:
                addresses = frame_of_tuples(self._spark, [(file,) for file in near], "file string")
                tasks = addresses.repartition(min(len(near), 1000))
                frames.append(tasks.mapInArrow(check.look_at_files, text_files.FAULTS))
            if far:
                frames.append(self._text_lines(far).mapInArrow(check.look_at_lines, text_files.FAULTS))
            looked = reduce(DataFrame.unionAll, frames).toArrow()
        of_plain = {as_read(file): file for file in files}
        found: dict[str, Faults] = {}
        for row in looked.to_pylist():
            file = of_plain[as_read(row.pop("file"))]
            some = Faults(**row)
            found[file] = some if file not in found else found[file].and_of(some)
        return found

    def _text_lines(self, files: Sequence[str] | None) -> DataFrame:
        """The lines of the source, or of some files, as ``value``, in which bytes are as they are, and ``file``."""
        kept = (*_LISTING, "linesep")
        options = {key: value for key, value in self._source.read_options.items() if key.lower() in kept}
        value = F.translate("value", "\n", " ") if self._source.option("lineSep") else F.col("value")
        lines = self._load(self._spark.read.options(**options).format("text"), files)
        return lines.select(value.alias("value"), F.col("_metadata.file_path").alias("file"))

    def _renamed(
        self, lacked: Mapping[str, Sequence[str]], schema: T.StructType, used: Mapping[str, bool]
    ) -> dict[str, str]:
        """The JSON files that have columns under other names; see `text_files.missing_fields`."""
        keys = self._json_texts(list(lacked)).select("file", F.explode(F.json_object_keys("value")).alias("field"))
        fields = keys.distinct().collect()
        found = {}
        for file, names in lacked.items():
            there = sorted(row["field"] for row in fields if as_read(row["file"]) == as_read(file))
            closed = self._stream.ddl is not None
            missing = text_files.missing_fields(there, names, schema.names, used, closed=closed)
            if missing:
                found[file] = f"{FIELDS} {', '.join(missing)}; it has {', '.join(there)}"
        return found

    def _has_odd_header(self, schema: T.StructType) -> bool:
        """Whether names are Spark's, for cells of a header that are empty or stand twice, which it then refuses."""
        if self._source.option("header").lower() != "true":
            return False
        stems: dict[str, int] = {}
        for place, name in enumerate(schema.names):
            if name == f"_c{place}":
                return True
            if name.endswith(str(place)):
                stem = name.removesuffix(str(place)).lower()
                stems[stem] = stems.get(stem, 0) + 1
        return any(count > 1 for count in stems.values())

    def empty(self, schema: T.StructType) -> DataFrame:
        """No rows of the source's columns."""
        return self._spark.createDataFrame([], self._full(schema))

    def modified(self) -> DataFrame | None:
        """The files that are there: ``path`` and ``modified`` (milliseconds); None for tables or if there are none."""
        if self.kind == "delta":
            return None
        try:
            files = self._spark.read.format("binaryFile").options(**self._options(_LISTING)).load(self._source.path)
            return files.select(
                F.col("_metadata.file_path").alias("path"),
                F.unix_millis(F.col("_metadata.file_modification_time")).alias("modified"),
            )
        except AnalysisException:
            return None

    def header(self, file: str) -> list[str]:
        """The columns of one CSV file."""
        options = {key: value for key, value in self._source.read_options.items() if key.lower() not in _LISTING}
        return self._spark.read.options(**options).csv(escaped(file)).columns

    @property
    def _label(self) -> Callable[[str], str]:
        """What a file is called in the names of traces that have none: its path below the source's."""
        return partial(_name_below, self._source.path or "")

    def _load(self, reader: DataFrameReader, files: Sequence[str] | None) -> DataFrame:
        """What a reader makes of the source's path, or of some of its files."""
        path = self._source.path or ""
        if files is None:
            return reader.load(path)
        if not file_patterns.is_pattern(path):
            reader = reader.option("basePath", path)
        return reader.load([escaped(file) for file in files])

    def _found_in_good_files(self) -> T.StructType | None:
        """The columns, where the files that Spark looks at first are bad."""
        files = self._paths()
        bad: dict[str, str] = {}
        if self.kind in ("json", "xes"):
            # All files have a say in the columns.
            bad = broken(files, lambda some: self._found(some), self.explained)
            return self._found([file for file in files if file not in bad]) if len(bad) < len(files) else None
        for file in files:
            if not broken([file], lambda some: self._found(some), self.explained):
                return self._found([file])
        return None

    def _found(self, files: Sequence[str] | None = None) -> T.StructType | None:
        reader = self._spark.read.options(**self._read_options())
        if self.kind == "delta":
            if self._source.table:
                refuse_other_than_delta(self._spark, self._source.table, f"stream {self._name!r}: source")
            return self._table().schema
        if self.kind == "csv":
            found = self._load(reader.format(self.kind), files).schema
            if any(_REPLACEMENT in name for name in found.names):
                self._refuse_unfit(files)
            return found
        if self.kind == "parquet":
            return self._parquet_schema(files)
        if self.kind == "json":
            lines = self._json_texts(files).limit(_SAMPLE_ROWS)
            if not self._over_lines:
                self._refuse_over_lines(lines)
            parsed = self._spark.read.options(**self._record_options()).option("primitivesAsString", "true")
            found = parsed.json(lines.select("value").rdd.map(lambda row: row[0])).schema
            columns = [field for field in found.fields if field.name != CORRUPT]
            if any(_REPLACEMENT in field.name for field in columns):
                self._refuse_unfit(files)
            for row in lines.where(F.trim("value") != "").limit(1).collect() if not columns else ():
                self._refuse_unfit(files)
                raise BadFileError(self._name, row["file"], f"holds no JSON object: {text_files.shown(row['value'])}")
            return T.StructType(columns)
        there = self._paths() if files is None else files
        names, notes = columns_of_logs(self._spark, sorted(there)[:_SAMPLE_FILES])
        for note in notes:
            logger.warning("stream %r: %s", self._name, note)
        return T.StructType([T.StructField(name, T.StringType()) for name in names])

    def _parquet_schema(self, files: Sequence[str] | None) -> T.StructType:
        """The columns of Parquet files whose types Spark has, as one file says, or all where they are merged."""
        try:
            found = self._load(self._spark.read.options(**self._read_options()).format("parquet"), files).schema
        except AnalysisException as error:
            if error.getCondition() not in _NO_SPARK_TYPE:
                raise
            found = None
        there = self._paths() if files is None else list(files)
        merged = self._source.option("mergeSchema").lower() == "true"
        footers = [
            each for each in self._footers.read(there if merged else there[:1]).values() if not isinstance(each, str)
        ]
        columns = {name: column for each in reversed(footers) for name, column in each.items()}
        if found is None:
            folders = self._folders()
            typed = [T.StructField(each.name, each.type) for each in columns.values() if each.type is not None]
            found = T.StructType([*typed, *[field for field in folders if field.name.lower() not in columns]])
            self.unread = {each.name: each.told for each in columns.values() if each.type is None}
        for column in columns.values():
            if column.nanoseconds:
                logger.info("stream %r: %s has nanoseconds, of which microseconds are kept", self._name, column.name)
        untyped = {name for name, column in columns.items() if isinstance(column.type, T.NullType)}
        return T.StructType(
            [
                T.StructField(field.name, T.NullType() if field.name.lower() in untyped else field.dataType)
                for field in found.fields
            ]
        )

    def _paths(self) -> list[str]:
        """The files that are there."""
        modified = self.modified()
        return [] if modified is None else [row["path"] for row in modified.select("path").orderBy("path").collect()]

    def _configured(self, ddl: str) -> T.StructType:
        try:
            schema = T.StructType.fromDDL(ddl)
            if not isinstance(schema, T.StructType):
                raise ConfigurationError(
                    f"streams.{self._name}.schema: {ddl!r} is a type; expected columns like 'a INT, b STRING'"
                )
        except (ParseException, PySparkException) as error:
            raise ConfigurationError(f"streams.{self._name}.schema: {ddl!r} is not DDL: {first_line(error)}") from None
        if CORRUPT in schema.fieldNames():
            raise ConfigurationError(
                f"streams.{self._name}.schema: {CORRUPT!r} is kept for records that cannot be read"
            )
        if self.kind == "xes" and any(not isinstance(field.dataType, T.StringType) for field in schema.fields):
            raise ConfigurationError(
                f"streams.{self._name}.schema: {ddl!r}: columns of xes are STRING; cast them in expressions"
            )
        return schema

    def _full(self, schema: T.StructType) -> T.StructType:
        """The columns and, but for tables and Parquet, the one of records that cannot be read."""
        if self.kind not in ("csv", "json", "xes"):
            return schema
        return T.StructType([*schema.fields, T.StructField(CORRUPT, T.StringType())])

    def _table(self) -> DataFrame:
        """The rows of a Delta table."""
        table = self._source.table
        return self._spark.table(table) if table else self._spark.read.format("delta").load(self._source.path)

    def _delta(self) -> DataFrame:
        options: dict[str, Any] = dict(self._source.options)
        if not any(self._source.option(limit) for limit in ("maxFilesPerTrigger", "maxBytesPerTrigger")):
            # Delta's own 1000 would cut a table's first snapshot in an order that says nothing about time.
            options["maxFilesPerTrigger"] = str(2**31 - 1)
        reader = self._spark.readStream.format("delta").options(**options)
        table = self._source.table
        rows = reader.table(table) if table else reader.load(self._source.path)
        return rows.withColumn(ORIGIN, F.lit(self.shown))

    def _read_options(self, schema: T.StructType | None = None) -> dict[str, str]:
        options = self._source.read_options
        if self.kind in ("csv", "json"):
            options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        if self.kind == "json" and not text_files.is_utf8(self._source.encoding):
            options.setdefault("lineSep", "\n")  # Spark wants it named.
        if self.kind == "csv" and self._source.option("header").lower() == "true":
            options["enforceSchema"] = str(schema is not None and self._has_odd_header(schema)).lower()
        return options

    def _record_options(self) -> dict[str, str]:
        """The options for JSON that stands in columns of text."""
        return {key: value for key, value in self._read_options().items() if key.lower() not in _OF_BYTES}

    def _options(self, names: tuple[str, ...]) -> dict[str, str]:
        return {key: value for key, value in self._source.options.items() if key.lower() in names}


def escaped(file: str) -> str:
    """A file's address as a path that is no pattern."""
    return file_patterns.escaped(unquote(file))


def _name_below(path: str, file: str) -> str:
    return file_patterns.name_below(path, file) or file
