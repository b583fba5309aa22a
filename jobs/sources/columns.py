"""The stream's SQL expressions over a source's columns, turned into checked event columns.

Of every source row come: the event's columns, a hash of the row for the order inside a batch, and for a bad row the
reason, the details and the row itself as JSON, for quarantine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.schema import timestamps
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.sources.errors import first_line
from patternlake.jobs.sources.expressions import (
    CORRUPT,
    ORIGIN,
    PLACES,
    columns_read,
    examine,
    fields_read,
    is_atomic,
    order_value,
    unfit_types,
)
from patternlake.udfs.attributes import stored_type
from patternlake.udfs.errors import ConfigurationError, SourceError
from patternlake.udfs.own_names import KEPT, OWN, is_own

logger = logging.getLogger(__name__)

_VITAL = ("key", "event_id")
_READ = ("time", "name", "step", "probability")

LATE = "late"
# The first of these that applies is a quarantined row's reason; all that apply stand in its detail.
REASONS = (
    *("file", "corrupt", "time", "name", "cast", "step", "probability", LATE, "repeat", "closed", "sum", "companion"),
)

# Python, Arrow's readers and SQL's DATE know no others.
_YEARS = (1, 9999)
FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_OUTSIDE = "lies outside the years 1 to 9999; is it in milliseconds or microseconds where seconds are read?"
_CORRUPT = {
    "csv": (
        ": it has more or fewer values than the header, or one of another type; the source's options say how they are "
        "parted (sep) and quoted (quote; escape: '\\' where a backslash stands before a quote, multiLine: true where a "
        "value holds line breaks)"
    ),
    "json": ": it is no JSON object, or a value is of another type than the schema's",
}
"""What can be wrong with a record, by format."""
_NO_TYPE = "; its column {0!r} is of Parquet's type {1}, which Spark cannot read: write it as text or as a number"
_SHOWN = 100
"""So many characters of a value stand in a detail; the row has all of them."""


@dataclass(frozen=True)
class EventColumns:
    """A stream's expressions, checked against the columns of its source.

    Parameters
    ----------
    name
        The stream's name, for messages.
    stream
        Its configuration.
    """

    name: str
    stream: StreamConfiguration

    @property
    def attributes(self) -> list[str]:
        """Columns of `prepared` that hold the attributes, in the order of the configuration."""
        return [f"a{index}" for index in range(len(self.stream.attributes))]

    @property
    def tokens(self) -> list[str]:
        """Columns of `prepared` that hold the tokens; none where the name is the only token."""
        texts = self.stream.tokens
        return [] if texts is None or texts == ["name"] else [f"k{index}" for index in range(len(texts))]

    def check(self, source: DataFrame, unread: Mapping[str, str] | None = None) -> None:
        """Analyse every expression on its own.

        Parameters
        ----------
        source
            The source's columns.
        unread
            Columns that Spark has no type for, and the types that they have; see `Source.unread`.

        Raises
        ------
        ConfigurationError
            One line per expression that does not parse, refers to no column, is not deterministic, gives other than
            one value per row, or has a type that cannot be used; each with its key.
        SourceError
            Two columns of the source have one name, or one has a name that is kept for us.
        """
        _check_names(source, self.name)
        problems: list[str] = []
        types: dict[str, T.DataType] = {}
        for key, text in self._expressions():
            found = examine(source, text)
            if isinstance(found, str):
                told = [_NO_TYPE.format(*each) for each in (unread or {}).items() if f"no column {each[0]!r}" in found]
                problems.append(f"streams.{self.name}.{key}: {found}{''.join(told)}")
            else:
                types[key] = found
        problems += [f"streams.{self.name}.{key}: {text}" for key, text in unfit_types(types)]
        if not problems and self.tokens:
            frame = self._in_scope(self._raw(source))
            for index, text in enumerate(self.stream.tokens or ()):
                found = examine(frame, text)
                if isinstance(found, str):
                    problems.append(f"streams.{self.name}.tokens.{index}: {found}")
                elif not is_atomic(found):
                    problems.append(f"streams.{self.name}.tokens.{index}: is {found.simpleString()}; tokens are text")
        if not problems:
            try:
                self.prepared(source.withColumn(ORIGIN, F.lit("")), watermark=None)
            except AnalysisException as error:
                problems.append(f"streams.{self.name}.attributes: {first_line(error)}")
        if problems:
            raise ConfigurationError("\n".join(problems))

    def time_of(self, source: DataFrame) -> Column:
        """The time of each row of a source; NULL where it has none."""
        return _cast(_try(source, self.stream.time), "timestamp_ltz")

    def used(self, source: DataFrame) -> dict[str, bool]:
        """The source's columns that the stream's expressions read, and whether the key or the event's id does."""
        vital = {c for key, text in self._expressions() if key in _VITAL for c in columns_read(source, text)}
        frames = [(source, [text for _, text in self._expressions()])]
        if self.tokens:
            frames.append((self._in_scope(self._raw(source)), list(self.stream.tokens or ())))
        found = {column for frame, texts in frames for text in texts for column in columns_read(frame, text)}
        return {column: column in vital for column in source.columns if column in found}

    def nested(self, source: DataFrame) -> dict[tuple[str, ...], bool]:
        """The fields inside of the source's columns that the stream's expressions read; else as `used`."""
        if not any(isinstance(field.dataType, T.StructType) for field in source.schema.fields):
            return {}
        read = [(key, fields_read(source, text)) for key, text in self._expressions()]
        vital = {field for key, fields in read if key in _VITAL for field in fields}
        return {field: field in vital for field in sorted(set().union(*(fields for _, fields in read)))}

    def prepared(self, source: DataFrame, *, watermark: int | None) -> DataFrame:
        """One row per source row: event columns, and what is wrong with it.

        Parameters
        ----------
        source
            The source's columns, with `ORIGIN`, and `CORRUPT` and `PLACES` where its format has them.
        watermark
            Microseconds since the epoch; an event before it is late. None: no event is.

        Returns
        -------
        DataFrame
            ``time, step, key, name, probability, a0…, k0…, hash, reason, detail, row, origin``, and ``event_id``,
            ``o0…`` and ``file, block, place`` where the stream has an id, an order, and rows a place. Reason and
            detail are NULL for a good row; row and origin too, unless a later look at a whole step, or at repeats, can
            still turn it down.
        """
        columns = [column for column in source.columns if column not in (ORIGIN, *PLACES)]
        # Under names of their own, since an attribute hides the source's column of its name.
        own = {column: f"{OWN}s{index}" for index, column in enumerate(columns)}
        fields = {field.name: field.dataType for field in source.schema.fields}
        placed = [column for column in PLACES if column in source.columns]
        raw = self._raw(source).select(
            "*",
            *[_column(column).alias(name) for column, name in own.items()],
            F.xxhash64(*[_hashable(column, fields[column]) for column in columns]).alias(f"{OWN}hash"),
        )
        scope = self._in_scope(raw, keep=[f"{OWN}hash", ORIGIN, *placed, *columns, *own.values(), *self._raw_names()])
        shown = _as_json({column: name for column, name in own.items() if column != CORRUPT})
        if CORRUPT in own:
            shown = F.when(F.col(own[CORRUPT]).isNull(), shown).otherwise(_as_json(own))
        tokens = [F.expr(text).cast("string") for text in (self.stream.tokens or ())] if self.tokens else []
        wrong = self._problems(own.get(CORRUPT), watermark, {key: self._read(source, key, own) for key in _READ})
        reason = F.coalesce(*[F.when(condition, F.lit(code)) for code, condition, _ in wrong])
        detail = F.concat_ws("; ", *[F.when(condition, message) for _, condition, message in wrong])
        looked_at_later = self.stream.probabilistic or self.stream.event_id is not None
        rows = scope.select(
            *[F.col(name) for name in ("time", "step", "key", "name", "probability")],
            *[
                _column(attribute).cast(stored_type(kind)).alias(column)
                for column, (attribute, kind) in zip(self.attributes, self.stream.types.items(), strict=True)
            ],
            *[token.alias(column) for column, token in zip(self.tokens, tokens, strict=True)],
            *([] if self.stream.event_id is None else [F.col(f"{OWN}event_id").cast("string").alias("event_id")]),
            *[F.col(f"{OWN}o{index}").alias(f"o{index}") for index in range(len(self.stream.order or ()))],
            *[F.col(column).alias(column.removeprefix(OWN)) for column in placed],
            F.col(f"{OWN}hash").alias("hash"),
            reason.alias("reason"),
            F.when(reason.isNotNull(), detail).alias("detail"),
            *[
                # A later look at a whole step, or at what has the same id, may still turn a good row down.
                (value if looked_at_later else F.when(reason.isNotNull(), value)).alias(column)
                for column, value in (("row", shown), ("origin", F.col(ORIGIN)))
            ],
        )
        return rows

    def _expressions(self) -> list[tuple[str, str]]:
        stream = self.stream
        fixed = [(key, getattr(stream, key)) for key in ("time", "name", "key", "event_id", "step", "probability")]
        fixed += [(f"order.{index}", text) for index, text in enumerate(stream.order or ())]
        return [(key, text) for key, text in fixed if text is not None] + [
            (f"attributes.{attribute}", stream.expression(attribute)) for attribute in stream.attributes
        ]

    def _raw_names(self) -> list[str]:
        more = [f"{OWN}step", f"{OWN}probability"] if self.stream.probabilistic else []
        more += [] if self.stream.event_id is None else [f"{OWN}event_id"]
        more += [f"{OWN}o{index}" for index in range(len(self.stream.order or ()))]
        return [f"{OWN}time", f"{OWN}name", *more] + [f"{OWN}a{index}" for index in range(len(self.stream.attributes))]

    def _raw(self, source: DataFrame) -> DataFrame:
        """The source's columns and the values of the expressions as they are, before they are cast."""
        stream = self.stream
        key = F.lit(None) if stream.key is None else F.expr(stream.key)
        columns = [
            _try(source, stream.time).alias(f"{OWN}time"),
            F.expr(stream.name).alias(f"{OWN}name"),
            key.alias(f"{OWN}key"),
        ]
        if stream.step is not None and stream.probability is not None:
            columns += [F.expr(stream.step).alias(f"{OWN}step"), F.expr(stream.probability).alias(f"{OWN}probability")]
        if stream.event_id is not None:
            columns.append(F.expr(stream.event_id).alias(f"{OWN}event_id"))
        for index, text in enumerate(stream.order or ()):
            kind = source.select(F.expr(text)).schema.fields[0].dataType
            columns.append(order_value(F.expr(text), kind).alias(f"{OWN}o{index}"))
        columns += [
            F.expr(stream.expression(attribute)).alias(f"{OWN}a{index}")
            for index, attribute in enumerate(stream.attributes)
        ]
        return source.select("*", *columns)

    def _in_scope(self, raw: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
        """What a token's expression sees: the event's columns, then the source's columns that they do not hide."""
        stream = self.stream
        typed: dict[str, Column] = {
            "time": _cast(F.col(f"{OWN}time"), "timestamp_ltz"),
            "name": F.col(f"{OWN}name").cast("string"),
            "key": F.col(f"{OWN}key").cast("string"),
            "step": _whole(F.col(f"{OWN}step")) if stream.step is not None else F.lit(None).cast("bigint"),
            "probability": (
                F.col(f"{OWN}probability").try_cast("double")
                if stream.probability is not None
                else F.lit(None).cast("double")
            ),
        }
        for index, (attribute, kind) in enumerate(stream.types.items()):
            typed[attribute] = _cast(F.col(f"{OWN}a{index}"), kind)
        hidden = {column.lower() for column in typed}
        kept = [column for column in keep if column.lower() not in hidden] if keep else []
        rest = kept or [c for c in raw.columns if c.lower() not in hidden and not c.startswith(OWN)]
        return raw.select(*[column.alias(name) for name, column in typed.items()], *[_column(name) for name in rest])

    def _read(self, source: DataFrame, key: str, own: dict[str, str]) -> Column:
        """What an expression reads, for a message: `` (at: '31.12.2023')``; nothing where it reads no column."""
        text = getattr(self.stream, key)
        names = [] if text is None else columns_read(source, text)
        shown = [F.concat(F.lit(f"{name}: "), _quote_value(F.col(own[name]))) for name in names if name in own]
        return F.concat(F.lit(" ("), F.concat_ws(", ", *shown), F.lit(")")) if shown else F.lit("")

    def _problems(
        self, corrupt: str | None, watermark: int | None, read: dict[str, Column]
    ) -> list[tuple[str, Column, Column]]:
        """Reason, condition and message of everything that can be wrong with one row, in the order of `REASONS`."""
        found: list[tuple[str, Column, Column]] = []
        if corrupt is not None:
            told = F.lit(f"the record could not be read{_CORRUPT.get(self.stream.source.kind, '')}")
            if self.stream.source.kind == "xes":
                told = F.concat(F.lit("the event is not as XES has it: "), F.col(corrupt))
            found.append(("corrupt", F.col(corrupt).isNotNull(), told))
        found.append(("time", F.col("time").isNull(), _not_a("time", F.col(f"{OWN}time"), "a timestamp", read["time"])))
        outside = ~F.unix_micros("time").between(FIRST_MICROS, LAST_MICROS)
        told = F.concat(F.lit("time: "), _quote_value(F.col(f"{OWN}time")), read["time"], F.lit(f" {_OUTSIDE}"))
        found.append(("time", F.coalesce(outside, F.lit(False)), told))
        found.append(("name", F.col("name").isNull(), F.concat(F.lit("name: is NULL"), read["name"])))
        for index, (attribute, kind) in enumerate(self.stream.types.items()):
            value = F.col(f"{OWN}a{index}")
            failed = value.isNotNull() & _column(attribute).isNull()
            found.append(("cast", failed, _not_a(attribute, value, f"of type {kind}")))
            if kind in ("date", "timestamp", "timestamp_ntz"):
                far = ~F.year(_column(attribute)).between(*_YEARS)
                told = F.concat(F.lit(f"{attribute}: "), _quote_value(value), F.lit(f" {_OUTSIDE}"))
                found.append(("cast", F.coalesce(far, F.lit(False)), told))
        if self.stream.probabilistic:
            share = F.col("probability")
            outside = share.isNull() | F.isnan(share) | (share < 0) | (share > 1)
            found.append(
                ("step", F.col("step").isNull(), _not_a("step", F.col(f"{OWN}step"), "a whole number", read["step"]))
            )
            told = _not_a("probability", F.col(f"{OWN}probability"), "between 0 and 1", read["probability"])
            found.append(("probability", outside, told))
        if watermark is not None:
            bound = F.timestamp_micros(F.lit(watermark).cast("bigint"))
            # It would be part of the code that Spark makes, and compiled anew for each batch; in an array it is not.
            moment = F.get(F.array(bound), F.col("time").isNull().cast("int"))
            found.append(
                (LATE, F.col("time") < moment, F.concat(F.lit("late: before the watermark "), bound.cast("string")))
            )
        return found


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _as_json(columns: dict[str, str]) -> Column:
    """A row as JSON, of columns under other names."""
    return F.to_json(F.struct(*[F.col(own).alias(name) for name, own in columns.items()]), timestamps.JSON)


def _not_a(what: str, value: Column, right: str, read: Column | None = None) -> Column:
    given = F.concat(F.lit(f"{what}: "), _quote_value(value), F.lit(f" is not {right}"))
    missing = F.lit(f"{what}: is NULL")
    return F.when(value.isNotNull(), given).otherwise(missing if read is None else F.concat(missing, read))


def _quote_value(value: Column) -> Column:
    """A value in quotes, cut where it is long; the word NULL for none."""
    text = value.cast("string")
    short = F.when(F.length(text) > _SHOWN, F.concat(F.substring(text, 1, _SHOWN), F.lit("…"))).otherwise(text)
    return F.coalesce(F.concat(F.lit("'"), short, F.lit("'")), F.lit("NULL"))


def _try(source: DataFrame, text: str) -> Column:
    """An expression whose errors are NULL: timestamp_seconds overflows with ANSI mode off, too."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    session: Any = source.sparkSession
    sql = session._jvm.org.apache.spark.sql
    parsed = session._jsparkSession.sessionState().sqlParser().parseExpression(text)
    while parsed.getClass().getSimpleName() == "Alias":
        parsed = parsed.child()
    return ClassicColumn(sql.classic.ExpressionUtils.column(sql.catalyst.expressions.TryEval(parsed)))


def _cast(value: Column, kind: str) -> Column:
    """A value as a type; NULL where it has none, or is a time of day alone, which Spark takes for one of today."""
    if not kind.startswith("timestamp"):
        return value.try_cast(kind)
    # What is no text is decided when the query is planned.
    daily = (F.typeof(value) == "string") & value.cast("string").rlike(r"^\s*T?\d{1,2}:")
    return F.when(~F.coalesce(daily, F.lit(False)), value.try_cast(kind))


def _whole(value: Column) -> Column:
    """A whole number as BIGINT; NULL for fractions and for text that is no number."""
    exact = value.try_cast("decimal(38,10)")
    return F.when(exact == F.floor(exact), exact.try_cast("bigint"))


def _hashable(name: str, kind: T.DataType) -> Column:
    text = kind.simpleString()
    return F.to_json(F.struct(_column(name)), timestamps.JSON) if "map<" in text or "variant" in text else _column(name)


def _check_names(source: DataFrame, stream: str) -> None:
    seen: dict[str, str] = {}
    for column in source.columns:
        if is_own(column):
            raise SourceError(f"stream {stream!r}: a column of the source is called {column!r}; {KEPT}: rename it")
        twin = seen.setdefault(column.lower(), column)
        if twin is not column:
            raise SourceError(
                f"stream {stream!r}: two columns of the source are called {twin!r} and {column!r}; SQL tells none apart"
            )
