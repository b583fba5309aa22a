"""What Spark says of a clause's expressions: their types, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.udfs.errors import ArgumentError, PredicateError, shorten
from patternlake.udfs.language.query.tree import NOWHERE, Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def types_of(frame: DataFrame, expressions: Sequence[tuple[str, Span]], clause: str) -> list[DataType]:
    """The types of expressions.

    Parameters
    ----------
    frame
        What they are over.
    expressions
        In Spark SQL, each with its place in the clause, or `NOWHERE`.
    clause
        The clause's text.

    Raises
    ------
    PredicateError
        Spark does not take one of them.
    """
    if not expressions:
        return []
    return [
        field.dataType
        for field in project(
            frame, [(sql, f"c{at}", span) for at, (sql, span) in enumerate(expressions)], clause
        ).schema
    ]


def project(
    frame: DataFrame, columns: Sequence[tuple[str, str, Span]], clause: str, *, every: bool = False
) -> DataFrame:
    """A projection of expressions, names and places, behind `every` column; errors as of `types_of`."""

    def projected(some: Sequence[tuple[str, str, Span]]) -> DataFrame:
        # As texts: each Column costs ten calls of the JVM.
        return frame.selectExpr(*["*"][:every], *(f"{sql} AS {identifier(name)}" for sql, name, _ in some))

    try:
        return projected(columns)
    except PySparkException as error:
        for column in columns:
            try:
                projected([column])
            except PySparkException as one:
                _, _, span = column
                raise _refusal_of(one, column[0], span, clause) from None
        raise ArgumentError(first_line(error)) from None


def project_each(frame: DataFrame, columns: Sequence[tuple[str, str, Span]], clause: str) -> DataFrame:
    """As `project`, where each row must give one.

    Raises
    ------
    PredicateError
        As of `project`, or an expression folds rows or gives several for one: it holds an aggregate that is not known
        as such, or a generator.
    """
    made = project(frame, columns, clause)
    if _is_by_row(made):
        return made
    for column in columns:
        if not _is_by_row(project(frame, [column], clause)):
            sql, _, span = column
            found = shorten(clause[span.start : span.end] if span is not NOWHERE else sql)
            told = f"{found} gives another number of rows than one for each match; aggregates that you have registered "
            raise PredicateError(told + "and generators cannot stand here", clause, span.start, span.end)
    raise ArgumentError("an expression gives another number of rows than one for each match")


def _is_by_row(frame: DataFrame) -> bool:
    """Whether a projection gives a row for each row."""
    plan = frame._jdf.queryExecution().analyzed()
    return str(plan.nodeName()) != "Aggregate" and str(plan.children().head().nodeName()) != "Generate"


def _refusal_of(error: PySparkException, sql: str, span: Span, clause: str) -> Exception:
    if span is NOWHERE:
        return ArgumentError(f"{sql}: {first_line(error)}")
    return PredicateError(first_line(error), clause, span.start, span.end)


def first_line(error: PySparkException) -> str:
    """What Spark says is wrong, without its codes and its plans."""
    text = str(error).strip().split("\n", 1)[0].partition(" SQLSTATE")[0]
    return text[text.find("] ") + 2 :] if text.startswith("[") else text
