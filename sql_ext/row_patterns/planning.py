"""From a clause and a table to the plan of its answer.

Spark sorts the rows and computes whatever looks at one row or at rows by physical offset; tasks, which are given
partition by partition in order, find the matches; Spark computes the measures from what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.spark.folded_aggregates import fold_aggregates
from patternlake.delta_tables.spark.spark_types import first_line, project_each, types_of
from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.sql_ext.answering import tasks
from patternlake.sql_ext.answering.user_warnings import warn_user
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, Term, qualifiers, text_term
from patternlake.sql_ext.lakes.size_settings import read_count, read_size
from patternlake.sql_ext.row_patterns.subqueries import place_subqueries
from patternlake.sql_ext.row_patterns.text_orders import warn_of_text_order
from patternlake.udfs.errors import ArgumentError, PatternError, PredicateError
from patternlake.udfs.language.query.tree import NOWHERE, Span
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.language.row_pattern.subqueries import COLUMN
from patternlake.udfs.language.row_pattern.tokens import tokens_of
from patternlake.udfs.language.row_pattern.tree import WITH_UNMATCHED, Clause
from patternlake.udfs.measures.row_terms import find_tests, guard_column
from patternlake.udfs.measures.translation import (
    ATOM,
    CLASSIFIER,
    MATCH_NUMBER,
    AggregateAtom,
    Atom,
    ClassifierAtom,
    MatchNumberAtom,
    Measures,
    NavigationAtom,
    read_measures,
)
from patternlake.udfs.measures.values import LISTS, NUMBER, is_computed_here
from patternlake.udfs.own_names import OWN, check_names
from patternlake.udfs.rows.definitions import read_definitions
from patternlake.udfs.rows.matches import MOST_ROWS, MOST_STEPS
from patternlake.udfs.rows.query import compile_pattern
from patternlake.udfs.rows.task import SIZE, Limits, RowsTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION_BYTES = "spark.patternlake.partitionBytes"
"""Up to so many bytes the rows of a partition may have that a task holds."""
DEFAULT_PARTITION_BYTES = 1 << 30
STEPS = "spark.patternlake.rowPatternSteps"
"""Up to so many steps the search of a row pattern may take in a partition."""
MATCHED_ROWS = "spark.patternlake.rowPatternRows"
"""Up to so many rows the matches may have that a task finds at once."""

_PARTITION, _ORDER = f"{OWN}partition", f"{OWN}order"
_BEGINS = f"{OWN}begins"
"""Whether a row is the first one of its partition."""
_NAME = re.compile(r"([^\W\d]\w*)|`([^`]+)`")
"""One name of SQL, plain or in backticks."""
_ALIKE = (IntegralType, BooleanType, DateType, TimestampType, TimestampNTZType, DecimalType, BinaryType)
"""Types of which equal values are the same; zeros have a sign, and texts may be equal whatever their case."""


def plan_row_pattern(rows: OrderedRows, text: str) -> DataFrame:
    """Plan the answer of a clause over a table.

    Parameters
    ----------
    rows
        The table, and its partitions and their order unless the clause says them.
    text
        What stands between the parentheses of MATCH_RECOGNIZE.

    Returns
    -------
    DataFrame
        ONE ROW PER MATCH: the partition's columns and the measures; ALL ROWS PER MATCH: the partition's columns, those
        of the order, the measures, and all others of the table.

    Raises
    ------
    PatternError
        The clause breaks a rule, or names what is not there.
    ArgumentError
        The table has two columns of a name, partitions or order are given twice, or a setting is no size.
    """
    columns = _columns(rows.frame)
    try:
        clause = parse_clause(text, columns)
    except PatternError:
        # Perhaps it names columns by their table; to ask Spark for each column's takes some milliseconds.
        clause = parse_clause(text, columns, qualifiers(rows.frame))
    rows, clause = place_subqueries(rows, clause)
    rows = _place_rows(rows, clause)
    base, window = _order_rows(rows)
    if rows.order_by and isinstance(base.schema[f"{_ORDER}_0"].dataType, StringType):
        warn_of_text_order(rows)
    definitions = read_definitions(clause, columns)
    measures = _leave_out_unmatched(clause, read_measures(clause, columns))

    alone = {name: sql.format(window=f"({window})") for name, sql in definitions.rows.items()}
    compared = [sql.format(window=f"({window})") for sql in definitions.columns]
    places = {one.variable: one.condition.span for one in clause.definitions}
    # All at once: Spark takes some milliseconds for each question.
    asked = [*((sql, places[name]) for name, sql in alone.items()), *((sql, NOWHERE) for sql in compared)]
    found = iter(types_of(base, [*asked, *_find_places([*measures.columns], clause)], text))
    holding = {name: _holds(clause, name, sql, next(found)) for name, sql in alone.items()}
    conditions = definitions.typed({sql: next(found).simpleString() for sql in definitions.columns})
    types = {sql: next(found) for sql in measures.columns}
    _check_filters(clause, measures, types)
    folded = _choose_folded(measures, types)
    subqueries = [one.column for one in clause.subqueries]
    folded_columns = _find_named(
        [f"{atom.sql} {atom.filter or ''}" for atom in folded.values()], [*columns, *subqueries]
    )
    partition = [f"{_PARTITION}_{number}" for number in range(len(rows.partition_by))]
    once = [name for name in partition if _is_alike(base.schema[name].dataType)]
    # A measure may name a subquery outside of its atoms.
    partition += _find_named(measures.sql, subqueries)
    shown = [*partition, *columns] if clause.all_rows else partition

    # Equal expressions are one column of the rows that tasks are given.
    given: dict[str, str] = {}
    own = {name.lower(): identifier(name) for name in columns}

    def column(sql: str, name: str = "") -> str:
        if not name and (one := _NAME.fullmatch(sql)) is not None:
            name = one[1] or one[2]
        return given.setdefault(own.get(name.lower(), sql), f"__column_{len(given)}")

    atoms = {f"{ATOM}{at}": one for at, one in enumerate(measures.atoms) if f"{ATOM}{at}" not in folded}
    if not (shown or atoms or folded):
        atoms[f"{ATOM}{len(measures.atoms)}"] = MatchNumberAtom()  # rows without columns have no number in Arrow
    task = RowsTask(
        pattern=compile_pattern(clause, conditions.conditions, conditions.types),
        holding=tuple(None if name not in holding else column(holding[name]) for name in clause.variables),
        kernel_columns=tuple((one, column(one.sql.format(window=f"({window})"))) for one in conditions.columns),
        # Spark computes them for all rows: those of other variables must not fail.
        columns={
            sql: column(guard_column(find_tests(alone, variables), sql)) for sql, variables in measures.columns.items()
        },
        shown={name: column(name, name) for name in shown if name not in once},
        shown_once={name: column(name, name) for name in once},
        atoms=atoms,
        limits=_limits(base.sparkSession),
        folded=tuple(folded.values()),
        folded_columns={name: column(name, name) for name in folded_columns},
    )
    numbers = (
        f"lag(true) OVER ({window}) IS NULL AS {_BEGINS}",  # with PREVs of conditions, sooner than a row number
        f"count(1) OVER ({window} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS {SIZE}",
    )
    # The numbers' window leaves the rows in its order, which no later step may change.
    dealt = base.selectExpr(*numbers, *(f"{sql} AS {name}" for sql, name in given.items()))
    # What the first row of a partition says for all is not handed over with each.
    once_only = {SIZE, *task.shown_once.values()}
    handed = [
        f"CASE WHEN {_BEGINS} THEN {name} END AS {name}" if name in once_only else name
        for name in (SIZE, *given.values())
    ]
    dealt = dealt.selectExpr(*handed)
    atom_types = _atom_types(base, measures, types, text)
    fields = [
        *((name, base.schema[name].dataType) for name in [*task.shown_once, *task.shown]),
        *((name, atom_types.get(name, LongType())) for name in task.atoms),
    ]
    if folded:
        fields.append((LISTS, _lists_type(base, folded_columns)))
    answer = tasks.answer_portions(dealt, task.portions, lambda _, portion: [task.answers(portion)], _schema(fields))
    if folded:
        answer = fold_aggregates(answer, list(folded.values()), list(folded))
    return _answer(answer, rows, clause, measures, list(columns))


def _columns(frame: DataFrame) -> dict[str, str]:
    """The table's columns and their types, once no two have the same name."""
    seen: set[str] = set()
    columns = [field for field in frame.schema if not field.name.startswith(COLUMN)]
    check_names(field.name for field in columns)
    for field in columns:
        if field.name.lower() in seen:
            raise ArgumentError(f"the table has two columns called {field.name}; give one of them another name")
        seen.add(field.name.lower())
    return {field.name: field.dataType.simpleString() for field in columns}


def _is_text(expression: str) -> bool:
    """Whether an expression is a text in quotes."""
    quote = expression[:1]
    return quote in ("'", '"') and len(expression) > 1 and expression.find(quote, 1) == len(expression) - 1


def _place_rows(rows: OrderedRows, clause: Clause) -> OrderedRows:
    """The table with the partitions and the order that the clause says, if it does."""
    for what, here, there in (
        ("PARTITION BY", clause.partition_by, rows.partition_by),
        ("ORDER BY", clause.order_by, rows.order_by),
    ):
        if here and there:
            message = f"{what} stands beside the table already; say it once"
            raise PredicateError(message, clause.text, here[0].span.start, here[-1].span.end)
    terms: dict[Span, Term] = {}
    for one in (*clause.partition_by, *clause.order_by):
        try:
            terms[one.span] = text_term(rows.frame, one.text)
            if one in clause.partition_by and _is_text(one.text) and not terms[one.span].is_column:
                warn_user(
                    f"PARTITION BY {one.text}: a text in quotes is the same for all rows, which make one partition; "
                    f"a column stands in backquotes: `{one.text[1:-1]}`"
                )
            rows.frame.select(terms[one.span].value)
        except PySparkException as error:
            raise PredicateError(first_line(error), clause.text, one.span.start, one.span.end) from None
    return replace(
        rows,
        partition_by=rows.partition_by or tuple(terms[one.span] for one in clause.partition_by),
        order_by=rows.order_by or tuple(terms[one.span] for one in clause.order_by),
    )


def _order_rows(rows: OrderedRows) -> tuple[DataFrame, str]:
    """The table with its partitions and order as columns, and what a window over them says."""
    partition = {f"{_PARTITION}_{number}": term for number, term in enumerate(rows.partition_by)}
    order = {f"{_ORDER}_{number}": term for number, term in enumerate(rows.order_by)}
    base = rows.frame.select("*", *(term.value.alias(name) for name, term in {**partition, **order}.items()))
    words = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    words.append("ORDER BY " + (", ".join(f"{name} {term.order}".strip() for name, term in order.items()) or "true"))
    return base, " ".join(words)


def _is_alike(kind: DataType) -> bool:
    """Whether values that a partition takes for equal are the same."""
    return isinstance(kind, _ALIKE) or kind == StringType()


def _holds(clause: Clause, variable: str, sql: str, kind: DataType) -> str:
    """What is said of the row alone, once it is known to be true or false."""
    place = next(one.condition.span for one in clause.definitions if one.variable == variable)
    _check_truth(clause, variable, kind, place)
    return f"CAST({sql} AS BOOLEAN)" if kind.simpleString() == "void" else sql


def _check_filters(clause: Clause, measures: Measures, types: dict[str, DataType]) -> None:
    """Refuse a FILTER of an aggregate that is neither true nor false."""
    conditions = [one.condition for one in measures.atoms if isinstance(one, AggregateAtom) and one.condition]
    for sql, place in _find_places(conditions, clause):
        _check_truth(clause, "FILTER", types[sql], place)


def _check_truth(clause: Clause, whose: str, kind: DataType, place: Span) -> None:
    type_ = kind.simpleString()
    if type_ not in ("boolean", "void"):
        message = f"the condition of {whose} is true or false, not of the type {type_}"
        raise PredicateError(message, clause.text, place.start, place.end)


def _leave_out_unmatched(clause: Clause, measures: Measures) -> Measures:
    """The measures, which are NULL in rows of no match, whatever they make of NULLs."""
    if clause.rows != WITH_UNMATCHED:
        return measures
    number = MatchNumberAtom()
    atoms = measures.atoms if number in measures.atoms else (*measures.atoms, number)
    there = f"{ATOM}{atoms.index(number)}"
    return replace(
        measures, sql=tuple(f"CASE WHEN {there} IS NOT NULL THEN {sql} END" for sql in measures.sql), atoms=atoms
    )


def _find_places(expressions: Sequence[str], clause: Clause) -> list[tuple[str, Span]]:
    """Expressions with their places among the measures; none where they do not stand there word by word."""
    found = []
    for sql in expressions:
        spans = [one.expression.span for one in clause.measures if sql in one.expression.text]
        found.append((sql, spans[0] if spans else NOWHERE))
    return found


def _choose_folded(measures: Measures, types: dict[str, DataType]) -> dict[str, AggregateAtom]:
    """By the names of atoms, those that Spark computes."""
    folded = {}
    for number, atom in enumerate(measures.atoms):
        if isinstance(atom, AggregateAtom):
            kind = types.get(atom.column or "")
            collated = isinstance(kind, StringType) and kind != StringType()
            if collated or not is_computed_here(
                atom, None if kind is None else arrow_schema(_schema([("", kind)])).types[0]
            ):
                folded[f"{ATOM}{number}"] = atom
    return folded


def _find_named(texts: Sequence[str], columns: Iterable[str]) -> list[str]:
    """The columns whose names are words of some texts."""
    words = {token.name.lower() for text in texts for token in tokens_of(text) if token.is_name}
    return [name for name in columns if name.lower() in words]


def _atom_types(base: DataFrame, measures: Measures, types: dict[str, DataType], text: str) -> dict[str, DataType]:
    """By the names of atoms their types."""
    aggregates = {at: one.sql for at, one in enumerate(measures.atoms) if isinstance(one, AggregateAtom)}
    matched = base.selectExpr("*", f"'' AS {CLASSIFIER}", f"0L AS {MATCH_NUMBER}") if aggregates else base
    found = types_of(matched, [(sql, NOWHERE) for sql in aggregates.values()], text)
    of_aggregates = dict(zip(aggregates, found, strict=True))

    def type_of(number: int, atom: Atom) -> DataType:
        if isinstance(atom, AggregateAtom):
            return of_aggregates[number]
        if isinstance(atom, NavigationAtom):
            return types[atom.column]
        return StringType() if isinstance(atom, ClassifierAtom) else LongType()

    return {f"{ATOM}{number}": type_of(number, atom) for number, atom in enumerate(measures.atoms)}


def _lists_type(base: DataFrame, columns: Sequence[str]) -> DataType:
    """The type of the rows that Spark folds."""
    fields = [StructField(NUMBER, IntegerType()), *(StructField(name, base.schema[name].dataType) for name in columns)]
    return ArrayType(
        StructType([*fields, StructField(CLASSIFIER, StringType()), StructField(MATCH_NUMBER, LongType())])
    )


def _schema(fields: Sequence[tuple[str, DataType]]) -> StructType:
    """Columns of rows that tasks give, once they are known to be such that Python can hold."""
    for name, kind in fields:
        try:
            arrow_schema(StructType([StructField(name, kind)]))
        except PySparkException:
            message = (
                f"values of the type {kind.simpleString()} cannot be handed on ({name}); cast them, or leave them out"
            )
            raise ArgumentError(message) from None
    return StructType([StructField(name, kind) for name, kind in fields])


def _limits(spark: SparkSession) -> Limits:
    return Limits(
        partition_bytes=read_size(spark, PARTITION_BYTES, DEFAULT_PARTITION_BYTES),
        steps=read_count(spark, STEPS, MOST_STEPS),
        rows=read_count(spark, MATCHED_ROWS, MOST_ROWS),
        settings=(PARTITION_BYTES, STEPS, MATCHED_ROWS),
    )


def _answer(
    found: DataFrame, rows: OrderedRows, clause: Clause, measures: Measures, columns: Sequence[str]
) -> DataFrame:
    """The answer's columns in the standard's order."""
    partition = [(f"{_PARTITION}_{at}", term.name) for at, term in enumerate(rows.partition_by)]
    made = [
        (sql, name, one.expression.span)
        for sql, name, one in zip(measures.sql, measures.names, clause.measures, strict=True)
    ]
    shown = [(identifier(name), label, NOWHERE) for name, label in partition]
    if not clause.all_rows:
        return project_each(found, [*shown, *made], clause.text)
    taken = [term.name for term in rows.partition_by if term.is_column]
    order = [term.name for term in rows.order_by if term.is_column and term.name not in taken]
    others = [name for name in columns if name not in (*taken, *order)]

    def own(names: Sequence[str]) -> list[tuple[str, str, Span]]:
        return [(identifier(name), name, NOWHERE) for name in dict.fromkeys(names)]

    return project_each(found, [*shown, *own(order), *made, *own(others)], clause.text)
