"""The footers of Parquet files: which columns each has, and what Spark makes of their types.

Spark takes the types of one file for those of all. But pandas writes nanoseconds in one release and microseconds in the
next, and a column without a value has no type. So each file is read as its own footer says, and brought to the types
that the stream's columns have.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import types as T

from patternlake.delta_tables.schema.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READERS = 8
"""Footers read at once: each mostly waits for its storage."""
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
_NO_VALUE = "UNKNOWN"
_NANOSECONDS = {"TIMESTAMP(NANOS,true)": T.TimestampType(), "TIMESTAMP(NANOS,false)": T.TimestampNTZType()}
# Rounded down, before 1970, too. What has no zone must not be shifted by the session's.
_WHOLE = "(({0} - pmod({0}, 1000L)) div 1000L)"
_MICROSECONDS = {
    "TIMESTAMP(NANOS,true)": f"timestamp_micros({_WHOLE})",
    "TIMESTAMP(NANOS,false)": (
        "(TIMESTAMP_NTZ '1970-01-01 00:00:00' + "
        f"make_dt_interval(0, 0, 0, CAST(CAST({_WHOLE} AS DECIMAL(20,0)) / 1000000 AS DECIMAL(18,6))))"
    ),
}
_MOMENTS = (T.TimestampType, T.TimestampNTZType)
_SINGLE = (T.StringType, T.NumericType, T.BooleanType, T.DateType, *_MOMENTS)


@dataclass(frozen=True)
class ParquetColumn:
    """One column of a file.

    Parameters
    ----------
    name
        As the file spells it.
    type
        Spark's type of it: void where the file has no value in it, None where Spark has no such type.
    told
        Parquet's words for its type.
    nanoseconds
        Whether it holds moments in nanoseconds, of which Spark keeps microseconds.
    """

    name: str
    type: T.DataType | None
    told: str
    nanoseconds: bool = False


Columns = Mapping[str, ParquetColumn]
"""The columns of a file by their names in lower case, in the file's order."""


class Footers:
    """The footers of a source's files, each of which is read once.

    Parameters
    ----------
    spark
        A session with a JVM.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._of_file: dict[str, Columns | str] = {}
        self._of_text: dict[str, Columns] = {}

    def read(self, files: Iterable[str]) -> dict[str, Columns | str]:
        """The columns of files; a text says why there are none."""
        listed = list(files)
        fresh = [file for file in listed if file not in self._of_file]
        if fresh:
            with ThreadPoolExecutor(_READERS) as pool:
                self._of_file.update(zip(fresh, pool.map(self._read, fresh), strict=True))
        return {file: self._of_file[file] for file in listed}

    def _read(self, file: str) -> Columns | str:
        jvm: Any = self._spark._jvm
        hadoop = self._spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
        try:
            path = jvm.org.apache.hadoop.fs.Path(unquote(file))
            opened = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(
                jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, hadoop)
            )
            try:
                told = opened.getFooter().getFileMetaData()
                schema, spark_schema = told.getSchema(), told.getKeyValueMetaData().get(_SPARK_SCHEMA)
                text = f"{schema.toString()}{spark_schema}"
                if text not in self._of_text:
                    self._of_text[text] = self._columns(schema, spark_schema)
                return self._of_text[text]
            finally:
                opened.close()
        except Py4JJavaError as error:
            said = str(error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName())
            return f"cannot be read: {said.splitlines()[0]}"

    def _columns(self, schema: Any, spark_schema: str | None) -> Columns:
        jvm: Any = self._spark._jvm
        conf = self._spark._jsparkSession.sessionState().conf()  # type: ignore[attr-defined]
        converter = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter(conf)
        # Spark's own types, such as intervals, stand beside Parquet's.
        known = (
            {} if not spark_schema else {f.name: f.dataType for f in T.StructType.fromJson(json.loads(spark_schema))}
        )
        found = {}
        for number in range(schema.getFieldCount()):
            field = schema.getType(number)
            name = str(field.getName())
            annotation = field.getLogicalTypeAnnotation()
            told = str(field.asPrimitiveType().getPrimitiveTypeName()) if field.isPrimitive() else "a nested column"
            told = told if annotation is None else str(annotation.toString())
            alone = jvm.java.util.ArrayList()
            alone.add(field)
            kind: T.DataType | None = known.get(name)
            if told == _NO_VALUE:
                kind = T.NullType()
            elif told in _NANOSECONDS:
                kind = _NANOSECONDS[told]
            elif kind is None and not told.startswith("TIME("):
                try:
                    message = jvm.org.apache.parquet.schema.MessageType("one", alone)
                    kind = T.StructType.fromJson(json.loads(converter.convert(message).json())).fields[0].dataType
                except Exception:  # Spark says so in many ways; the type is told where the column is asked for.
                    kind = None
            found[name.lower()] = ParquetColumn(name, kind, told, told in _NANOSECONDS)
        return found


def missing_columns(
    footers: Mapping[str, Columns | str], columns: Sequence[T.StructField], nested: Collection[tuple[str, ...]] = ()
) -> dict[str, str]:
    """Find the files that lack columns or have no readable footer, and what is wrong with each.

    Spark would give NULL for a column that a file lacks.

    Parameters
    ----------
    footers
        The columns of files.
    columns
        The stream's.
    nested
        The fields inside of columns that the stream's expressions read, such as ``("user", "id")``. They may be
        missing, but not where a file has others in their place, which are taken for the same by other names.
    """
    read = {tuple(name.lower() for name in path) for path in nested}
    found = {}
    for file, there in footers.items():
        if isinstance(there, str):
            found[file] = there
            continue
        missing: list[str] = []
        has = [column.name for column in there.values()]
        for field in columns:
            own = there.get(field.name.lower())
            if own is None:
                missing.append(field.name)
            else:
                lacked, others = _find_renamed((own.name,), own.type, field.dataType, read)
                missing += lacked
                has += others
        if missing:
            found[file] = f"{LACKS} {', '.join(missing)}; it has {', '.join(has)}"
    return found


def _find_renamed(
    path: tuple[str, ...], there: T.DataType | None, wanted: T.DataType, read: Collection[tuple[str, ...]]
) -> tuple[list[str], list[str]]:
    """What is read of a struct, and lacks where it has fields that are not known, and these."""
    if not isinstance(there, T.StructType) or not isinstance(wanted, T.StructType):
        return [], []
    own, known = ({field.name.lower(): field for field in each.fields} for each in (there, wanted))
    above = tuple(name.lower() for name in path)
    lacked = [field.name for name, field in known.items() if name not in own and (*above, name) in read]
    others = [field.name for name, field in own.items() if name not in known]
    if not lacked or not others:
        lacked, others = [], []
    lacked, others = ([".".join((*path, name)) for name in some] for some in (lacked, others))
    for name in own.keys() & known.keys():
        below = _find_renamed((*path, own[name].name), own[name].dataType, known[name].dataType, read)
        lacked, others = lacked + below[0], others + below[1]
    return lacked, others


LACKS = "lacks the columns"


@dataclass(frozen=True)
class Reading:
    """How a stream's column is read from a file.

    Parameters
    ----------
    type
        What Spark is to read it as; void where it is not read.
    sql
        The expression that brings it to the stream's type.
    """

    type: T.DataType
    sql: str


def readings(schema: T.StructType, there: Columns, used: Iterable[str] | None) -> tuple[Reading, ...]:
    """How each of a stream's columns is read from a file.

    Parameters
    ----------
    schema
        The stream's columns.
    there
        The file's.
    used
        The columns that the stream's expressions read; None: all of them. The others may be of any type.
    """
    wanted = None if used is None else {name.lower() for name in used}

    def reading(field: T.StructField) -> Reading:
        name, kind, own = identifier(field.name), field.dataType, there.get(field.name.lower())
        sql = kind.simpleString()
        nothing = Reading(T.NullType(), f"CAST(NULL AS {sql})")
        if isinstance(kind, T.NullType) or (own is not None and isinstance(own.type, T.NullType)):
            return nothing
        # Whether values inside may be NULL makes no other type: a file may say that none is.
        same = own is not None and own.type is not None and own.type.simpleString() == sql
        if own is None or (same and not own.nanoseconds):
            return Reading(kind, name)
        if own.nanoseconds and isinstance(kind, _MOMENTS):
            return Reading(T.LongType(), f"CAST({_MICROSECONDS[own.told].format(name)} AS {sql})")
        if wanted is None or field.name.lower() in wanted:
            return Reading(kind, name)  # Spark widens it, or refuses the file.
        if own.type is None or own.nanoseconds or not (isinstance(own.type, _SINGLE) and isinstance(kind, _SINGLE)):
            return nothing
        return Reading(own.type, f"TRY_CAST(CAST({name} AS STRING) AS {sql})")

    return tuple(map(reading, schema.fields))


def learn_types(schema: T.StructType, footers: Iterable[Columns | str]) -> T.StructType:
    """The columns, with the types of those that had none as the first of some files gives them."""
    found = {field.name.lower(): field for field in schema.fields}
    for there in footers:
        if isinstance(there, str):
            continue
        for name, field in found.items():
            own = there.get(name)
            if isinstance(field.dataType, T.NullType) and own is not None and own.type is not None:
                found[name] = T.StructField(field.name, own.type)
    return T.StructType(list(found.values()))
