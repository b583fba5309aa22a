"""Any table in the place of a stream: its rows as events, for the length of one question.

A row's time is the first column of ORDER BY, its position the rank in its partition, its key the value of PARTITION BY,
its name a column that the question names; all other columns are attributes, of their own types. Nothing is written.
Everything has arrived: a table has no watermark that it waits for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.spark.spark_types import first_line
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, Term, as_column
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.attributes import column_of, stored_type, types_of_attributes
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.language.predicate.columns import value_type
from patternlake.udfs.language.query.lexer import CLAUSES
from patternlake.udfs.language.row_pattern.tokens import tokens_of
from patternlake.udfs.measures.event_values import FIELD, JSON_OPTIONS, is_handed_on
from patternlake.udfs.own_names import OWN, check_names
from patternlake.udfs.published import SETTLED, NameCount, Published, PublishedBatch
from patternlake.udfs.requests import BatchRange

if TYPE_CHECKING:
    from patternlake.delta_tables.reading.state_reader import Condition, ListedFiles

STREAM = "TABLE(…)"
"""How messages call it."""
_EVENTS_EACH = 100_000
"""Events for each of Spark's own partitions of a shuffle: how many rows a table has is not known before it is read."""
_SHUFFLE = "spark.sql.shuffle.partitions"
_VALUES = ("key", "around", "by")
"""Arguments that are a value or a name as they stand; others are read for the columns that they name."""
_NUMBERS = {"step": ("bigint", T.IntegralType), "probability": ("double", T.NumericType)}
"""Columns of events beside those that each has: their types, and what may become so."""


class _NoFiles:
    """In the place of a reader of files: all rows come from Spark."""

    on_disk = False

    def version(self, table: str) -> int:
        return 0

    def identity(self, table: str) -> Any:
        return 0

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        return 1 << 62

    def rows(self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Any = None) -> Any:
        raise ArgumentError(f"a question over {STREAM} cannot ask for {table}, which only a stream has")

    def list_files(self, table: str, where: Sequence[Condition] = ()) -> ListedFiles | None:
        return None

    def once(self, table: str, key: Any, make: Callable[[], Any]) -> Any:
        return make()


@dataclass(frozen=True)
class _Events(Database):
    """A database of nothing but events."""

    events: DataFrame | None = field(default=None, compare=False)

    def table(self, table: str) -> DataFrame:
        assert self.events is not None
        return self.events


class _Shown(Snapshot):
    """What is known of the table."""

    def __init__(self, reader: Any, as_of: int | None, published: Published) -> None:
        super().__init__(reader, as_of)
        self._published = published

    def published(self, job: str, name: str) -> Published:
        return self._published if job == "ingest" else Published(None)

    def names(self, job: str) -> list[str]:
        return []

    def name_counts(self, rows: BatchRange, most: int) -> list[NameCount]:
        return []

    def last_time(self, rows: BatchRange) -> int | None:
        return None


@dataclass(frozen=True)
class TableLake(Lake):
    """A lake whose one stream is a table.

    Attributes
    ----------
    known
        What is told of the stream.
    elsewhere
        Gives the events in a session of their own, for what is asked while a statement is planned.
    """

    known: Published
    elsewhere: Callable[[], DataFrame]

    def snapshot(self, as_of: int | None) -> Snapshot:
        """What is known of the table; of no earlier moment."""
        if as_of is not None:
            raise ArgumentError(
                f"as_of asks for an earlier moment, which {STREAM} does not keep; leave it out, or give "
                "TABLE(SELECT * FROM name VERSION AS OF n)"
            )
        return _Shown(self.reader, None, self.known)

    def apart(self) -> Lake:
        """As of `Lake`, over the table itself."""
        events = self.elsewhere()
        return replace(self, database=_Events(events.sparkSession, "", "", events=events))

    @property
    def driver_bytes(self) -> int:
        """None: tasks read the rows."""
        return 0

    def count_names(self) -> list[NameCount]:
        """How often each name occurs: read before the question is planned."""
        counts = self.elsewhere().groupBy("name").count().toArrow()
        pairs = zip(counts["name"].to_pylist(), counts["count"].to_pylist(), strict=True)
        return [NameCount(name, events, None, None) for name, events in pairs]

    @property
    def in_one_order(self) -> bool:
        """Positions are ranks in a partition."""
        return False

    @property
    def learns(self) -> bool:
        """Nothing is kept of a question."""
        return False

    @property
    def max_trend_events(self) -> int:
        """How many events there are is not known before they are read."""
        return 1 << 62


def lake_over(
    rows: OrderedRows, arguments: dict[str, Any], elsewhere: Callable[[], OrderedRows]
) -> tuple[TableLake, dict[str, Any]]:
    """A table as a stream.

    Parameters
    ----------
    rows
        The table, in the session that asks.
    arguments
        Of the call: ``time`` and ``name`` say which columns are what; the texts among them which are read.
    elsewhere
        The same in a session of its own.

    Returns
    -------
    (lake, arguments)
        What to ask, and how.

    Raises
    ------
    ArgumentError
        A column is missing or not of the right type, or the order is not one of time.
    """
    others = {name: value for name, value in arguments.items() if name not in ("time", "name")}
    if others.get("query") is not None and "pattern" in others:
        raise ArgumentError(f"query names a kept pattern, which has its stream; with {STREAM} give the pattern's text")
    texts = [value for name, value in others.items() if isinstance(value, str) and name not in _VALUES]
    by = arguments.get("by")
    made = _Table(rows, arguments.get("time"), arguments.get("name"), texts, by)
    spark = rows.frame.sparkSession
    published = Published(
        PublishedBatch(
            object_id=0,
            base_batch=0,
            batch_id=0,
            configuration=json.dumps(made.configuration),
            source_to=_EVENTS_EACH * int(str(spark.conf.get(_SHUFFLE, "8"))),
            watermark=SETTLED,
        ),
        first=0,
    )

    def apart() -> DataFrame:
        return _Table(elsewhere(), arguments.get("time"), arguments.get("name"), texts, by).events()

    database = _Events(spark, "", "", events=made.events())
    unused: Any = None
    lake = TableLake(database, _NoFiles(), unused, unused, published, apart)  # type: ignore[arg-type]
    return lake, {**others, "stream": STREAM}


def lake_of_events(lake: Lake, events: DataFrame, elsewhere: Callable[[], DataFrame]) -> TableLake:
    """A lake whose events are a plan of Spark's.

    Parameters
    ----------
    lake
        Whose stream they are of.
    events
        As the table `events` has them.
    elsewhere
        The same in a session of their own.
    """
    database = _Events(lake.spark, "", "", events=events)
    unused: Any = None
    return TableLake(database, _NoFiles(), unused, unused, Published(None), elsewhere)  # type: ignore[arg-type]


class _Table:
    """The rows of a table as events.

    Parameters
    ----------
    rows
        The table.
    time, name
        The columns of events' times and names; None: the first of ORDER BY, and the column ``name``.
    texts, by
        Of the question: of the columns those are attributes that they name.
    """

    def __init__(
        self, rows: OrderedRows, time: str | None, name: str | None, texts: Sequence[str], by: str | None = None
    ) -> None:
        check_names(rows.frame.columns)
        self.rows = rows
        self.types = {field.name: field.dataType.simpleString() for field in rows.frame.schema}
        when = self._time(time)
        self.time = when.value.cast("timestamp_ltz")
        self.name = self._find_column("name", name)
        partition = rows.partition_by[0].name if len(rows.partition_by) == 1 else ""
        self._refuse_hidden({"name": self.name, "time": when.name, "key": partition, "position": ""}, texts, by)
        words = {token.name.lower() for text in texts for token in tokens_of(text) if token.is_name}
        words |= set() if by is None else {by.lower()}
        self.numbers = {
            name: self._number(name, _names_column(texts, name) or (by or "").lower() == name)
            for name in _NUMBERS
            if name in words
        }
        # Of a table that has such columns, the event's own go before them.
        columns = [one for one in self.types if one not in ("key", "name", "time", "position", *self.numbers)]
        self.read = [one for one in columns if one.lower() in words and value_type(self.types[one]) is not None]
        fields = _find_fields(texts)
        self.measured = [one for one in columns if one in fields and one not in self.read]

    @property
    def configuration(self) -> dict[str, Any]:
        """As that of a stream."""
        types = {
            **{name: self.types[name] for name in self.read},
            **dict.fromkeys(self.parts, "string"),
        }
        return {
            "key": "key",
            "attributes": {name: {"type": kind} for name, kind in types.items()},
            "measured": {name: self.types[name] for name in self.measured},
            "partition": list(self.parts) or ["key"],
            "partition_is_given": bool(self.rows.partition_by),
        }

    @property
    def parts(self) -> dict[str, Column]:
        """Attributes that partition the table, where several columns do: joined, different values could be equal."""
        terms = self.rows.partition_by
        return {f"{OWN}part_{at}": term.value.cast("string") for at, term in enumerate(terms)} if len(terms) > 1 else {}

    def _time(self, given: str | None) -> Term:
        if given is not None:
            name = self._column("time", given)
            term = Term(F.col(identifier(name)), name, is_column=True)
        elif self.rows.order_by:
            term = self.rows.order_by[0]
        else:
            raise ArgumentError(
                f'{STREAM} needs an order in time: write ORDER BY (column) behind it, in Python time="column"'
            )
        if self.rows.order_by and (term.order.upper().startswith("DESC")):
            raise ArgumentError(f"ORDER BY {term.name} {term.order}: events come in the order of time; leave DESC out")
        try:
            kind = self.rows.frame.select(term.value).schema[0].dataType.simpleString()
        except PySparkException as error:
            raise ArgumentError(f"time: {first_line(error)}") from None
        if kind not in ("timestamp", "timestamp_ntz", "date"):
            made = (
                f"to_timestamp({term.name}, 'dd.MM.yyyy HH:mm')"
                if kind == "string"
                else f"timestamp_seconds({term.name})"
            )
            raise ArgumentError(
                f"the time of an event is a TIMESTAMP or a DATE, not {term.name}, which is {kind.upper()}; begin ORDER "
                f"BY with such a column, or make one of it, such as {made}"
            )
        return term

    def _refuse_hidden(self, columns: Mapping[str, str], texts: Sequence[str], by: str | None) -> None:
        """Refuse a question that names a column which the event's own of the same name, from another column, hides."""
        own = {one.lower() for one in self.types}
        for name, column in columns.items():
            hidden = name in own and column.lower() != name
            if hidden and (_names_column(texts, name) or (by or "").lower() == name):
                raise ArgumentError(
                    f"{name} is the {name} of an event, which is not the column {name} of the table here; give that "
                    f"another name, as in TABLE(SELECT *, {name} AS its_{name} FROM …)"
                )

    def _find_column(self, what: str, given: str | None) -> str:
        if given is None and what not in (one.lower() for one in self.types):
            raise ArgumentError(
                f"which column has the names of events? Write {what} => 'column'; columns: {', '.join(self.types)}"
            )
        return self._column(what, what if given is None else given)

    def _column(self, what: str, given: str) -> str:
        for name in self.types:
            if name.lower() == given.lower():
                return name
        raise ArgumentError(f"{what} => {shorten(given)} is no column of the table; columns: {', '.join(self.types)}")

    def _number(self, name: str, asked: bool) -> Column:
        """A column of the table as that of the same name which events have; NULLs where there is none, or where nobody
        asks for it: an event may be called so.
        """
        kind, fitting = _NUMBERS[name]
        if name not in self.types or not asked:
            return F.lit(None).cast(kind)
        if not isinstance(self.rows.frame.schema[name].dataType, fitting):
            raise ArgumentError(
                f"the column {name} is {self.types[name].upper()}, and the {name} of an event is {kind.upper()}; give "
                f"it another name, as in TABLE(SELECT *, {name} AS its_{name} FROM …)"
            )
        return F.col(name).cast(kind)

    def events(self) -> DataFrame:
        """The rows as the table `events` has them."""
        partition = [term.value for term in self.rows.partition_by]
        order = [self.time, *map(as_column, self.rows.order_by)]
        rank = F.row_number().over(Window.partitionBy(*partition).orderBy(*order))
        values = {**{name: self._value(name) for name in (*self.read, *self.measured)}, **self.parts}
        types = types_of_attributes(self.configuration)
        try:
            return self.rows.frame.select(
                F.lit(0).alias("stream_id"),
                F.lit(0).cast("bigint").alias("batch_id"),
                rank.cast("bigint").alias("position"),
                _require(self.time, "the time", "timestamp_ltz").alias("time"),
                _key(partition).alias("key"),
                _require(F.col(identifier(self.name)), f"the name ({self.name})", "string").alias("name"),
                *(value.alias(name) for name, value in self.numbers.items()),
                *(value.alias(column_of(name, types[name])) for name, value in values.items()),
            )
        except PySparkException as error:
            raise ArgumentError(f"{STREAM}: {first_line(error)}") from None

    def _value(self, name: str) -> Column:
        """A value as attributes have it."""
        column, kind = F.col(identifier(name)), self.types[name]
        if not is_handed_on(kind):
            return F.to_json(F.struct(column.alias(FIELD)), dict(JSON_OPTIONS))
        # Others are stored as texts.
        return column if stored_type(kind) == kind else column.cast("string")


def _names_column(texts: Sequence[str], name: str) -> bool:
    """Whether texts name a column: behind an operand and a dot, or bare in a condition or in PARTITION BY."""
    for text in texts:
        clause, tokens = "", tokens_of(text)
        for before, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
            clause = token.word if token.word in CLAUSES and before.sign != "." else clause
            bare = clause in ("WHERE", "PARTITION") or (clause == "DEFINE" and behind.word != "AS")
            if token.is_name and token.name.lower() == name and (before.sign == "." or (bare and behind.sign != ".")):
                return True
    return False


def _find_fields(texts: Sequence[str]) -> set[str]:
    """What stands behind a dot in some texts, as a column does behind its operand."""
    found = set()
    for text in texts:
        for before, token in pairwise(tokens_of(text)):
            if before.sign == "." and token.is_name:
                found.add(token.name)
    return found


def _require(value: Column, what: str, type_: str) -> Column:
    """A value, which may not be NULL."""
    message = f"{what} of a row of the table is NULL, which no event's is; leave such rows out"
    return F.coalesce(value.cast(type_), F.expr(f"raise_error({literal(message)})").cast("string").cast(type_))


def _key(partition: Sequence[Column]) -> Column:
    """What is shown of a partition; of several columns their values joined by a comma."""
    if not partition:
        return F.lit(None).cast("string")
    texts = [value.cast("string") for value in partition]
    return texts[0] if len(texts) == 1 else F.concat_ws(",", *(F.coalesce(text, F.lit("NULL")) for text in texts))
