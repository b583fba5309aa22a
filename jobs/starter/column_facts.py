"""What the columns of a source hold: counts, distinct values, and what their texts can be read as."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.schema.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOMENT_FORMATS = {
    "dd.MM.yyyy HH:mm:ss": r"^\d{2}\.\d{2}\.\d{4} \d{2}:\d{2}:\d{2}$",
    "dd.MM.yyyy HH:mm": r"^\d{2}\.\d{2}\.\d{4} \d{2}:\d{2}$",
    "dd.MM.yyyy": r"^\d{2}\.\d{2}\.\d{4}$",
    "dd/MM/yyyy HH:mm:ss": r"^\d{2}/\d{2}/\d{4} \d{2}:\d{2}:\d{2}$",
    "dd/MM/yyyy HH:mm": r"^\d{2}/\d{2}/\d{4} \d{2}:\d{2}$",
    "dd/MM/yyyy": r"^\d{2}/\d{2}/\d{4}$",
    "M/d/yyyy H:mm:ss": r"^\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}$",
    "M/d/yyyy H:mm": r"^\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}$",
    "M/d/yyyy": r"^\d{1,2}/\d{1,2}/\d{4}$",
    "yyyy/MM/dd HH:mm:ss": r"^\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}$",
    "yyyyMMddHHmmss": r"^(19|20)\d{12}$",
    "yyyyMMdd": r"^(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$",
    "dd/MMM/yyyy:HH:mm:ss Z": r"^\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}$",
}
"""Patterns of Spark's datetimes that texts are tried with, each with what such a text looks like."""
_REST, _REST_LOOK = "[.SSSSSS][ ][XXX][XX][z]", r"(\.\d{1,6})?( ?(Z|[+-]\d{2}:?\d{2}|[A-Z]{3,4}|[A-Z]\w+/\w+))?$"
ZONED_FORMATS = {
    pattern + _REST: look.removesuffix("$") + _REST_LOOK
    for pattern, look in {
        **{one: look for one, look in MOMENT_FORMATS.items() if one.endswith(("H:mm", "H:mm:ss"))},
        "yyyy-MM-dd HH:mm": r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$",
        # As Java writes ISO 8601: seconds are left out where they are 0, which Spark's own cast does not read.
        "yyyy-MM-dd'T'HH:mm[:ss]": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$",
    }.items()
}
"""Of texts that have parts of a second or a zone, some of them or all; tried where no pattern without these will do."""
NULL_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "none", "nan", "NaN", r"\N", "-", "?", "")
"""Texts that stand for a missing value where the rest of a column is of another kind."""
COUNTED = 1000
"""Columns with about so many different values or fewer are looked at again, to count them exactly."""

_EPOCHS = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000}
# From 1990 to 2100: numbers of rows, amounts and identifiers are rarely all in it.
_EPOCH_RANGE = (631_152_000, 4_102_444_800)
_WHOLE = r"^[+-]?(0|[1-9]\d{0,18})$"
_DIGITS = r"^[+-]?\d+$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
_CENTS = r",(\d{1,2}|\d{4,})$"
_PADDED = r"^[+-]?0\d"
_ISO = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
_DAY = r"^\d{4}-\d{1,2}-\d{1,2}$"
_CLOCK = r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_TRUTH = r"^(?i)(true|false)$"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ColumnFacts:
    """What a look at a column found.

    Parameters
    ----------
    name
        The column's name; of a field of a struct, all names on the way to it, joined by dots.
    expression
        How SQL refers to it.
    type
        Spark's simple name of the type.
    rows, nulls
        How many rows were looked at, and how many of them hold NULL.
    distinct
        How many different values there are; above `COUNTED`: about so many.
    least, greatest
        Of the values, as they sort; None where all are NULL.
    reads
        How many of the values can be read as what: ``whole``, ``number``, ``share`` (numbers from 0 to 1), ``comma``
        (numbers as in 1.234,50), ``cents`` (those of them whose comma cannot part thousands), ``padded`` (numbers with
        zeros before them), ``truth``, ``day``, ``moment`` (ISO 8601), ``clock`` (a time of day), ``seconds``,
        ``milliseconds`` and ``microseconds`` since 1970, and each of `MOMENT_FORMATS` and `ZONED_FORMATS`.
    words
        How often each of `NULL_WORDS` is a value.
    stray
        One of the values that are neither numbers nor among `NULL_WORDS`; None where there is none.
    """

    name: str
    expression: str
    type: str
    rows: int = 0
    nulls: int = 0
    distinct: int = 0
    least: str | None = None
    greatest: str | None = None
    reads: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    stray: str | None = None

    @property
    def values(self) -> int:
        """How many rows hold a value."""
        return self.rows - self.nulls

    @property
    def missing_word(self) -> str | None:
        """The text that most often stands for a missing value, where there is one."""
        present = [word for word in NULL_WORDS if self.words.get(word)]
        return max(present, key=lambda word: self.words[word]) if present else None

    def strays(self, kind: str) -> int:
        """How many values cannot be read as a kind, those apart that stand for a missing value."""
        return self.values - sum(self.words.values()) - self.reads.get(kind, 0)

    def all_read_as(self, *kinds: str) -> bool:
        """Whether all values, but for one word for what is missing, can be read as one of some kinds."""
        word = self.missing_word
        known = self.values - (self.words[word] if word is not None else 0)
        return known > 0 and any(self.reads.get(kind, 0) == known for kind in kinds)


def leaves(schema: T.StructType) -> list[tuple[str, str, T.DataType]]:
    """Name, SQL and type of every column; of structs, of their fields."""
    found: list[tuple[str, str, T.DataType]] = []

    def walk(names: tuple[str, ...], kind: T.DataType) -> None:
        if isinstance(kind, T.StructType):
            for each in kind.fields:
                walk((*names, each.name), each.dataType)
        else:
            found.append((".".join(names), ".".join(map(_shortest, names)), kind))

    for column in schema.fields:
        walk((column.name,), column.dataType)
    return found


def is_single(kind: T.DataType) -> bool:
    """Whether a value of the type can be an attribute."""
    return not isinstance(kind, T.ArrayType | T.MapType | T.BinaryType) and kind.typeName() not in (
        "variant",
        "interval",
        "void",
    )


def look(rows: DataFrame, schema: T.StructType) -> list[ColumnFacts]:
    """Look at all rows once.

    Parameters
    ----------
    rows
        The source's rows.
    schema
        Its columns.
    """
    columns = leaves(schema)
    single = [(name, text, kind) for name, text, kind in columns if is_single(kind)]
    total = 0
    told = {}
    if single:
        values = [
            F.struct(F.lit(index).alias("column"), F.expr(text).cast("string").alias("value"))
            for index, (_, text, _) in enumerate(single)
        ]
        # One row per value: counts by column would be hundreds of expressions, which Spark compiles slowly or not.
        counted = rows.select(F.explode(F.array(*values)).alias("of")).select("of.*").groupBy("column").agg(*_counts())
        told = {row["column"]: row.asDict() for row in counted.collect()}
        total = max((row["rows"] for row in told.values()), default=0)
        few = [index for index, row in told.items() if 1 < row["distinct"] <= COUNTED]
        if few:
            of_few = rows.select(F.explode(F.array(*(values[index] for index in few))).alias("of")).select("of.*")
            for each in of_few.groupBy("column").agg(F.count_distinct("value").alias("distinct")).collect():
                told[each["column"]]["distinct"] = each["distinct"]
    numbers = {name: index for index, (name, _, _) in enumerate(single)}
    found = []
    for name, text, kind in columns:
        row = told.get(numbers.get(name, -1))
        if row is None:
            found.append(ColumnFacts(name, text, kind.simpleString(), total))
            continue
        found.append(
            ColumnFacts(
                name,
                text,
                kind.simpleString(),
                total,
                row["nulls"],
                min(row["distinct"], total - row["nulls"]),
                row["least"],
                row["greatest"],
                {kind: row[f"as {kind}"] for kind in _readings() if row[f"as {kind}"]},
                {word: row[f"word {word}"] for word in NULL_WORDS if row[f"word {word}"]},
                row["stray"],
            )
        )
    return found


def commonest(rows: DataFrame, expression: str, most: int = 12) -> list[tuple[str, int]]:
    """The commonest texts that an expression gives, with how many rows have each."""
    counted = rows.groupBy(F.expr(expression).cast("string").alias("value")).agg(F.count("*").alias("rows"))
    ordered = counted.where("value IS NOT NULL").orderBy(F.desc("rows"), "value").limit(most)
    return [(row["value"], row["rows"]) for row in ordered.collect()]


def _shortest(name: str) -> str:
    """A name as SQL has it, with backticks where it needs them."""
    return name if _PLAIN.fullmatch(name) and _reads_as_column(name) else identifier(name)


def _reads_as_column(name: str) -> bool:
    import sqlglot
    from sqlglot import exp

    try:
        return isinstance(sqlglot.parse_one(name, dialect="spark"), exp.Column)
    except sqlglot.errors.SqlglotError:
        return False


def _readings() -> dict[str, Column]:
    """Whether a text can be read as what."""
    value = F.col("value")
    moment = F.when(value.rlike(_ISO), value.try_cast("timestamp_ltz")).isNotNull()
    number = F.when(value.rlike(_WHOLE), value.try_cast("bigint"))
    low, high = _EPOCH_RANGE
    # As a double, an identifier of so many digits would be the same as its neighbours.
    too_long = value.rlike(_DIGITS) & ~value.rlike(_PADDED) & number.isNull()
    return {
        "whole": number.isNotNull(),
        "number": value.rlike(_NUMBER) & ~too_long,
        "share": F.when(value.rlike(_NUMBER), value.try_cast("double")).between(0, 1),
        "comma": value.rlike(_COMMA),
        "cents": value.rlike(_COMMA) & value.rlike(_CENTS),
        "padded": value.rlike(_PADDED) & value.rlike(_NUMBER),
        "truth": value.rlike(_TRUTH),
        "day": moment & value.rlike(_DAY),
        "moment": moment,
        "clock": value.rlike(_CLOCK),
        **{unit: number.between(low * scale, high * scale) for unit, scale in _EPOCHS.items()},
        **{
            pattern: F.when(value.rlike(look), F.try_to_timestamp(value, F.lit(pattern))).isNotNull()
            for pattern, look in {**MOMENT_FORMATS, **ZONED_FORMATS}.items()
        },
    }


def _counts() -> Sequence[Column]:
    value = F.col("value")
    stray = F.when(~value.rlike(_NUMBER) & ~value.isin(*NULL_WORDS), value)
    return [
        F.count("*").alias("rows"),
        F.count_if(value.isNull()).alias("nulls"),
        F.approx_count_distinct("value").alias("distinct"),
        F.min("value").alias("least"),
        F.max("value").alias("greatest"),
        F.min(stray).alias("stray"),
        *[F.count_if(F.coalesce(readable, F.lit(False))).alias(f"as {kind}") for kind, readable in _readings().items()],
        *[F.count_if(value == word).alias(f"word {word}") for word in NULL_WORDS],
    ]
