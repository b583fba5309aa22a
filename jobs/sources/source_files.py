"""The files of a source: which are there, with which options Spark reads them, and their text, line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.databases import store_errors
from patternlake.delta_tables.databases.store_options import S3, is_object_store, tell_spark
from patternlake.jobs.configuration import file_patterns, source_options
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.sources import text_encodings
from patternlake.jobs.sources.errors import ChangedRowsError, explain, texts_of
from patternlake.jobs.sources.expressions import CORRUPT
from patternlake.jobs.sources.file_times import FileTimes, find_few
from patternlake.jobs.sources.json_values import cut_files
from patternlake.jobs.sources.parquet_footers import Footers
from patternlake.jobs.sources.tables import columns_changed_at
from patternlake.udfs.errors import PatternLakeError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from patternlake.jobs.configuration.file import Configuration

    _Reader = TypeVar("_Reader", DataFrameReader, DataStreamReader)

LISTING = tuple(map(str.lower, source_options.LISTING))
"""Options that say which files belong to the source."""
STREAMED = tuple(map(str.lower, source_options.STREAMED))
"""Options that say which of them come in one batch, and what becomes of them."""
_OF_BYTES = ("encoding", "charset", "linesep")
# Content is declared because the format wants it, and never read.
FILE_COLUMNS = {"path": "STRING", "modificationTime": "TIMESTAMP", "length": "BIGINT", "content": "BINARY"}
"""The columns of files as Spark reads them whole."""


class SourceFiles:
    """The files of one stream's source; for a source that is a Delta table, the table.

    Parameters
    ----------
    spark
        The session.
    name, stream
        The stream's name and configuration.

    Attributes
    ----------
    configuration
        That of the source.
    footers
        Reads those of Parquet files, each once.
    kind
        csv, json, parquet, xes or delta.
    """

    def __init__(self, spark: SparkSession, name: str, stream: StreamConfiguration) -> None:
        self.spark = spark
        self.name = name
        self.stream = stream
        self.configuration = stream.source
        self.footers = Footers(spark)
        self.kind = stream.source.kind

    @property
    def shown(self) -> str:
        """Where rows come from, for messages."""
        return self.configuration.table or self.configuration.path or ""

    def explain(self, error: BaseException, columns: Sequence[str] = ()) -> PatternLakeError | None:
        """Turn an error of reading into one of ours, which names the file, the version or the store."""
        found = explain(
            error,
            stream=self.name,
            source=self.shown,
            columns=columns,
            header=self.header,
            changed=lambda: columns_changed_at(self.spark, self.configuration),
        )
        begins = [name for name in ("startingVersion", "startingTimestamp") if self.configuration.option(name)]
        if isinstance(found, ChangedRowsError) and begins:
            return SourceError(
                f"stream {self.name!r}: version {found.version} of {self.shown} updates or deletes rows that may have "
                f"been read, and from {begins[0]} on they would be read again; set it behind that version, or leave it "
                "out, and run with --rebuild"
            )
        if found is None and is_object_store(self.shown):
            told = store_errors.explain(self.shown, "\n".join(texts_of(error)))
            return None if told is None else SourceError(f"stream {self.name!r}: {told}")
        return found

    def paths(self) -> list[str]:
        """The files that are there."""
        modified = self.modified()
        return [] if modified is None else sorted(path for path, _ in modified.collect())

    def modified(self) -> FileTimes | None:
        """The files that are there; None for tables or if there are none."""
        files = None if self.kind == "delta" else self._list_files()
        if files is None:
            return None
        path, time = F.col("_metadata.file_path"), F.col("_metadata.file_modification_time")
        return FileTimes(
            find_few(files), lambda: files.select(path.alias("path"), F.unix_millis(time).alias("modified"))
        )

    def _list_files(self) -> DataFrame | None:
        """List the files as Spark reads them whole, with `FILE_COLUMNS`; None if there are none."""
        try:
            return self.whole_files()
        except AnalysisException:
            return None
        except Exception as error:
            raise (self.explain(error) or error) from None

    def whole_files(self) -> DataFrame:
        """The files, with `FILE_COLUMNS`; an AnalysisException where the path names nothing."""
        return self.spark.read.format("binaryFile").options(**self.options_among(LISTING)).load(self.configuration.path)

    def folders_left_out(self) -> list[str]:
        """The folders below the path whose files Spark does not read: it reads those of its own, and of year=2024."""
        path = self.configuration.path or ""
        if file_patterns.is_pattern(path) or self.configuration.option("recursiveFileLookup").lower() == "true":
            return []
        jvm: Any = self.spark._jvm
        place = jvm.org.apache.hadoop.fs.Path(path)
        session: Any = self.spark._jsparkSession
        try:
            found = place.getFileSystem(session.sessionState().newHadoopConf()).listStatus(place)
        except Py4JJavaError:
            return []
        names = [each.getPath().getName() for each in found if each.isDirectory()]
        return sorted(name for name in names if "=" not in name and name[0] not in "._")

    def header(self, file: str) -> list[str]:
        """The columns of one CSV file."""
        options = {key: value for key, value in self.configuration.read_options.items() if key.lower() not in LISTING}
        return self.spark.read.options(**options).csv(escape(file)).columns

    @property
    def name_below(self) -> Callable[[str], str]:
        """What a file is called in the names of traces that have none: its path below the source's."""
        return partial(_name_below, self.configuration.path or "")

    def folder_columns(self) -> list[T.StructField]:
        """Columns in names of folders, such as year=2024."""
        files = self._list_files()
        return [] if files is None else [field for field in files.schema.fields if field.name not in FILE_COLUMNS]

    def has_odd_header(self, schema: T.StructType) -> bool:
        """Whether names are Spark's, for cells of a header that are empty or stand twice, which it then refuses."""
        if self.configuration.option("header").lower() != "true":
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
        return self.spark.createDataFrame([], self.with_corrupt(schema))

    def with_corrupt(self, schema: T.StructType) -> T.StructType:
        """The columns and, but for tables and Parquet, the one of records that cannot be read."""
        if self.kind not in ("csv", "json", "xes"):
            return schema
        return T.StructType([*schema.fields, T.StructField(CORRUPT, T.StringType())])

    def table(self) -> DataFrame:
        """The rows of a Delta table."""
        table = self.configuration.table
        return self.spark.table(table) if table else self.spark.read.format("delta").load(self.configuration.path)

    def load(self, reader: DataFrameReader, files: Sequence[str] | None) -> DataFrame:
        """What a reader makes of the source's path, or of some of its files."""
        path = self.configuration.path or ""
        if files is None:
            return reader.load(path)
        if not file_patterns.is_pattern(path):
            reader = reader.option("basePath", path)
        return reader.load([escape(file) for file in files])

    def text_lines(self, files: Sequence[str] | None) -> DataFrame:
        """The lines of the source, or of some files, as ``value``, in which bytes are as they are, and ``file``."""
        kept = (*LISTING, "linesep")
        options = {key: value for key, value in self.configuration.read_options.items() if key.lower() in kept}
        value = F.translate("value", "\n", " ") if self.configuration.option("lineSep") else F.col("value")
        lines = self.load(self.spark.read.options(**options).format("text"), files)
        return lines.select(value.alias("value"), F.col("_metadata.file_path").alias("file"))

    def json_texts(self, files: Sequence[str] | None = None) -> DataFrame:
        """The JSON values of the source, or of some of its files, as ``value``, and their ``file``."""
        address = F.col("_metadata.file_path").alias("file")
        if self.goes_over_lines:
            return self.cut_values(self.load(self.read_whole(self.spark.read), files).select("value", address), "file")
        lines = self.text_lines(files)
        if text_encodings.is_utf8(self.configuration.encoding):
            return lines
        return lines.mapInArrow(text_encodings.decode_lines(self.configuration.encoding), lines.schema)

    @property
    def goes_over_lines(self) -> bool:
        """Whether JSON values go over lines; each file is cut into its values."""
        return self.kind == "json" and self.configuration.option("multiLine").lower() == "true"

    def read_whole(self, reader: _Reader) -> _Reader:
        """A reader of whole files, as ``value``."""
        return reader.format("text").options(**{**self.configuration.options, "wholetext": "true"})

    def cut_values(self, files: DataFrame, address: str) -> DataFrame:
        """The JSON values of whole files."""
        comments = self.configuration.option("allowComments").lower() == "true"
        return files.mapInArrow(
            cut_files(self.configuration.encoding, comments=comments), f"value string, {address} string"
        )

    def read_options(self, schema: T.StructType | None = None) -> dict[str, str]:
        """The options with which Spark reads rows, those that the configuration leaves to us included."""
        options = self.configuration.read_options
        if self.kind in ("csv", "json"):
            options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        if self.kind == "json" and not text_encodings.is_utf8(self.configuration.encoding):
            options.setdefault("lineSep", "\n")  # Spark wants it named.
        if self.kind == "csv" and self.configuration.option("header").lower() == "true":
            options["enforceSchema"] = str(schema is not None and self.has_odd_header(schema)).lower()
        return options

    def record_options(self) -> dict[str, str]:
        """The options for JSON that stands in columns of text."""
        return {key: value for key, value in self.read_options().items() if key.lower() not in _OF_BYTES}

    def options_among(self, names: tuple[str, ...]) -> dict[str, str]:
        """Those of the configured options that have one of some names, in small letters."""
        return {key: value for key, value in self.configuration.options.items() if key.lower() in names}


def tell_of_stores(spark: SparkSession, configuration: Configuration) -> None:
    """Let Spark into the buckets that streams are read from as into the lake's; before one is first read."""
    for stream in configuration.streams.values():
        if urlsplit(stream.source.path or "").scheme.lower() in S3:
            tell_spark(spark, stream.source.path or "", configuration.storage_options)


def escape(file: str) -> str:
    """A file's address as a path that is no pattern."""
    return file_patterns.escape(unquote(file))


def _name_below(path: str, file: str) -> str:
    return file_patterns.name_below(path, file) or file
