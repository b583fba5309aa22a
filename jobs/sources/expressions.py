"""Expressions of a configuration over a source's columns: what they give and read, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.spark.repeatability import moving_part, nodes_below
from patternlake.jobs.sources.errors import first_line
from patternlake.udfs.nearest_names import did_you_mean
from patternlake.udfs.own_names import OWN

_ORDER = re.compile(r"o\d+|file|block|place")

ORIGIN = f"{OWN}origin"
CORRUPT = "_corrupt_record"
FILE, BLOCK, PLACE = f"{OWN}file", f"{OWN}block", f"{OWN}place"
"""Columns of a row's place in its source, where that has one: number of the file by its name, first byte of the part of
the file that is read at once, number in that part."""
PLACES = (FILE, BLOCK, PLACE)


def deciding(columns: Sequence[str]) -> list[str]:
    """Columns of prepared rows that decide between events of one time: the stream's `order:`, then the place."""
    return [column for column in columns if _ORDER.fullmatch(column)]


def examine(source: DataFrame, text: str) -> T.DataType | str:
    """Return the type of an expression over the columns of a source, or what is wrong with it."""
    try:
        frame = source.select(F.expr(text))
        kind = frame.schema.fields[0].dataType
        if len(frame.schema.fields) != 1:
            return f"{text!r} gives {len(frame.schema.fields)} columns; expected one value"
    except ParseException as error:
        return f"{text!r} is not SQL: {first_line(error)}"
    except AnalysisException as error:
        return _describe_unresolved(error, source.columns) or f"{text!r}: {first_line(error)}"
    moving = moving_part(frame, text)
    if moving is not None:
        return f"{moving} gives another value when a batch is replayed; only deterministic expressions are allowed"
    return _unfit(frame) or kind


def _describe_unresolved(error: AnalysisException, columns: Sequence[str]) -> str | None:
    if not (error.getCondition() or "").startswith(("UNRESOLVED_COLUMN", "MISSING_COLUMN")):
        return None
    name = (error.getMessageParameters() or {}).get("objectName", "?").replace("`", "")
    there = ", ".join(column for column in columns if column not in (CORRUPT, ORIGIN, *PLACES))
    return f"no column {name!r} in the source{did_you_mean(name, columns)}; columns: {there}"


def _unfit(frame: DataFrame) -> str | None:
    """What keeps an analysed expression from being one repeatable value per row."""
    plan = frame._jdf.queryExecution().analyzed()  # type: ignore[attr-defined]
    if not plan.deterministic():
        return "is not deterministic; a replayed batch would give other values"
    alone = plan.subqueries().isEmpty()
    while plan.nodeName() == "Project":
        plan = plan.child()
    if not alone or not plan.children().isEmpty():
        return "must give one value per row: no aggregates, windows, subqueries or functions that make rows"
    return None


def columns_read(source: DataFrame, text: str) -> list[str]:
    """The source's columns that an expression reads, in their order."""
    plan = source.select(F.expr(text))._jdf.queryExecution().analyzed()  # type: ignore[attr-defined]
    read = plan.references().toSeq()
    # Spark finds a column whatever its case, and goes on with the name as the expression has it.
    names = {read.apply(number).name().lower() for number in range(read.size())}
    return [column for column in source.columns if column.lower() in names]


def fields_read(source: DataFrame, text: str) -> set[tuple[str, ...]]:
    """The fields of the source's columns that an expression reads, such as ``("user", "id")`` for ``user.id``."""
    found = source.select(F.expr(text))._jdf.queryExecution().analyzed().expressions().iterator()  # type: ignore[attr-defined]
    paths = set()
    while found.hasNext():
        paths |= {_path(node) for node in nodes_below(found.next())}
    spelled = {column.lower(): column for column in source.columns}
    return {(spelled.get(path[0].lower(), path[0]), *path[1:]) for path in paths if len(path) > 1}


def _path(node: Any) -> tuple[str, ...]:
    """The names that lead to a part of an expression, from the column's on; empty where it is no column or field."""
    kind = node.getClass().getSimpleName()
    if kind == "AttributeReference":
        return (str(node.name()),)
    if kind != "GetStructField":
        return ()
    above = _path(node.child())
    return (*above, str(node.childSchema().apply(node.ordinal()).name())) if above else ()


def is_atomic(kind: T.DataType) -> bool:
    """Whether a type is of single values."""
    return not isinstance(kind, T.ArrayType | T.MapType | T.StructType) and kind.typeName() != "variant"


_ORDERED = (
    *(T.NumericType, T.StringType, T.BinaryType, T.BooleanType, T.NullType),
    *(T.TimestampType, T.TimestampNTZType, T.DateType),
)


def order_value(value: Column, kind: T.DataType) -> Column:
    """A value of `order:` in a type that Spark, Arrow and Python order alike."""
    if isinstance(kind, T.FloatType | T.DoubleType):
        return value.cast("double") + F.lit(0.0)  # -0.0 is 0.0
    if isinstance(kind, T.DecimalType):
        return value.cast(T.DecimalType(38, kind.scale))
    if isinstance(kind, T.BinaryType):
        return F.hex(value)
    if isinstance(kind, T.StringType):
        return value.cast("string")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.DateType):
        return F.unix_date(value).cast("bigint")
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_diff("MICROSECOND", F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'"), value)
    return value.cast("bigint")


def unfit_types(types: Mapping[str, T.DataType]) -> list[tuple[str, str]]:
    """By key of a stream's configuration: which expressions are of a type that does not fit, and what would."""
    found = []
    for key, kind in types.items():
        allowed: tuple[type[T.DataType], ...]
        if key == "time":
            allowed = (T.TimestampType, T.TimestampNTZType, T.DateType, T.StringType, T.NullType)
            if not isinstance(kind, allowed):
                right = "a timestamp, a date or text; of seconds make one with timestamp_seconds(…)"
                found.append((key, f"is {kind.simpleString()}; the time of an event is {right}"))
        elif key in ("step", "probability"):
            allowed = (T.NumericType, T.StringType, T.NullType)
            if not isinstance(kind, allowed):
                found.append((key, f"is {kind.simpleString()}; expected a number"))
        elif key.split(".")[0] == "order" and not isinstance(kind, _ORDERED):
            found.append((key, f"is {kind.simpleString()}; expected a number, a text, a moment or a truth value"))
        elif not is_atomic(kind):
            found.append((key, f"is {kind.simpleString()}; expected a single value"))
    return found
