"""Rows of a table as an argument: ``TABLE(t) PARTITION BY k ORDER BY (ts)`` in SQL, a DataFrame in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.row_pattern.tokens import tokens_of
from patternlake.udfs.own_names import is_own

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

TABLE = "FunctionTableSubqueryArgumentExpression"
_COLUMN: Any = ClassicColumn  # its stubs take it for a method


@dataclass(frozen=True)
class Term:
    """A part of PARTITION BY or ORDER BY.

    Attributes
    ----------
    value
        The expression over the table's columns.
    name
        The column that it is, or the expression's text.
    is_column
        Whether it is a column and nothing more.
    order
        What follows it in ORDER BY, such as ``DESC NULLS LAST``.
    """

    value: Column
    name: str
    is_column: bool
    order: str = ""


@dataclass(frozen=True)
class OrderedRows:
    """A table whose partitions are in order.

    Attributes
    ----------
    frame
        Its rows and columns.
    partition_by, order_by
        None of the one: all rows are a partition; none of the other: any order.
    constants
        Columns that are known to be the same in all rows.
    apart
        Gives the table in a session of its own, where `frame` only stands in for it; None: `frame` is the table.
    """

    frame: DataFrame
    partition_by: tuple[Term, ...] = ()
    order_by: tuple[Term, ...] = ()
    constants: frozenset[str] = frozenset()
    apart: Callable[[], DataFrame] | None = None


def read_terms(frame: DataFrame, given: str | Column | Sequence[str | Column] | None, what: str) -> tuple[Term, ...]:
    """PARTITION BY or ORDER BY of a call from Python.

    Parameters
    ----------
    frame
        The table.
    given
        A column's name or an expression of SQL, a Column, or several of them.
    what
        The argument's name, for errors.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if given is None:
        return ()
    several = [given] if isinstance(given, (str, Column)) or not isinstance(given, Sequence) else given
    names = {name.lower(): name for name in frame.columns}
    terms: list[Term] = []
    for one in several:
        if isinstance(one, str):
            column = names.get(one.lower())
            terms.append(text_term(frame, one) if column is None else _column_term(column))
        elif isinstance(one, Column):
            terms += _sorted_terms(frame, one)
        else:
            raise ArgumentError(f"{what} takes names of columns, expressions of SQL or Columns, not {one!r}")
    return tuple(terms)


def qualifiers(frame: DataFrame) -> frozenset[str]:
    """The names of a frame's tables, as its columns know them."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    parts = [list_items(attribute.qualifier()) for attribute in list_items(plan.output())]
    return frozenset(str(one[-1]) for one in parts if one)


def find_constants(plan: JavaObject) -> frozenset[str]:
    """The columns of a projection that name no column of what is projected, such as subqueries."""
    if plan.nodeName() != "Project":
        return frozenset()
    made = [one for one in list_items(plan.projectList()) if one.getClass().getSimpleName() == "Alias"]
    return frozenset(str(one.name()) for one in made if one.references().isEmpty())


def text_term(frame: DataFrame, text: str) -> Term:
    """A part of PARTITION BY or ORDER BY as SQL has it: an expression, ASC or DESC, and where NULLs stand."""
    tokens = tokens_of(text)[:-1]
    words = [token.word for token in tokens]
    end = len(tokens)
    if end > 2 and words[end - 2] == "NULLS" and words[end - 1] in ("FIRST", "LAST"):
        end -= 2
    if end > 1 and words[end - 1] in ("ASC", "DESC") and tokens[end - 2].sign != ".":
        end -= 1
    if not end:
        raise ArgumentError("an expression of PARTITION BY or ORDER BY is empty")
    order = " ".join(words[end:])
    names = {name.lower(): name for name in frame.columns}
    if end == 1 and tokens[0].is_name and (found := names.get(tokens[0].name.lower())) is not None:
        return _column_term(found, order)
    if (
        end == 3
        and tokens[1].sign == "."
        and tokens[0].name.lower() in {one.lower() for one in qualifiers(frame)}
        and (found := names.get(tokens[2].name.lower())) is not None
    ):
        return _column_term(found, order)
    expression = text[tokens[0].start : tokens[end - 1].end]
    return Term(F.expr(expression), expression, is_column=False, order=order)


def _column_term(name: str, order: str = "") -> Term:
    return Term(F.col(identifier(name)), name, is_column=True, order=order)


def _sorted_terms(frame: DataFrame, column: Column) -> list[Term]:
    """A Column, perhaps with its direction."""
    jvm: Any = frame.sparkSession._jvm
    plan: Any = frame.orderBy(column)._jdf.queryExecution().analyzed()
    while plan.nodeName() != "Sort":
        plan = plan.children().apply(0)
    return [_catalyst_term(jvm, frame, order) for order in list_items(plan.order())]


def list_items(items: JavaObject) -> list[JavaObject]:
    """The items of a Seq of Scala's."""
    # A Java iterator ends with an exception, which takes py4j and Delta 0.1 s to look at.
    return [items.apply(number) for number in range(items.size())]


def _catalyst_term(jvm: Any, frame: DataFrame, expression: JavaObject) -> Term:
    order = ""
    if expression.getClass().getSimpleName() == "SortOrder":
        order = f"{expression.direction().sql()} {expression.nullOrdering().sql()}"
        expression = expression.child()
    column = _COLUMN(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
    found = _find_column(frame, expression)
    return Term(column, expression.sql() if found is None else found, found is not None, order)


def _find_column(frame: DataFrame, expression: JavaObject) -> str | None:
    """The column that an expression of Spark's is and nothing more, as the table spells it."""
    kind = expression.getClass().getSimpleName()
    if kind not in ("AttributeReference", "UnresolvedAttribute"):
        return None
    parts = [expression.name()] if kind == "AttributeReference" else list_items(expression.nameParts())
    if len(parts) > 1 and parts[-2].lower() not in {one.lower() for one in qualifiers(frame)}:
        return None  # a field
    return {name.lower(): name for name in frame.columns}.get(parts[-1].lower())


def as_column(term: Term) -> Column:
    """A part of ORDER BY as a Column."""
    words = term.order.upper().split()
    name = f"{'desc' if 'DESC' in words else 'asc'}{f'_nulls_{words[-1].lower()}' if 'NULLS' in words else ''}"
    column: Column = getattr(term.value, name)()
    return column


def is_table(expression: JavaObject) -> bool:
    """Whether an argument is ``TABLE(…)``."""
    return bool(expression.getClass().getSimpleName() == TABLE)


def plan_over(spark: SparkSession, expression: JavaObject, plan: Callable[[OrderedRows], DataFrame]) -> JavaObject:
    """Plan a question over ``TABLE(…)``.

    The table's plan may name what only the statement around it knows, such as a CTE. So the question is planned over a
    leaf with the same columns, which gives way to the table.

    Parameters
    ----------
    spark
        The session that analyses the statement.
    expression
        The argument.
    plan
        The question.

    Returns
    -------
    JavaObject
        The analysed plan of the answer.

    Raises
    ------
    ArgumentError
        The table refers to columns of the statement around it.
    """
    jvm: Any = spark._jvm
    if list_items(expression.outerAttrs()):
        raise ArgumentError(
            "TABLE(…) refers to columns of the query around it, which differ from row to row; join its answer instead"
        )
    table = expression.plan()
    leaf = getattr(jvm.org.apache.spark.sql.catalyst.plans.logical, "LocalRelation$")
    stand_in = getattr(leaf, "MODULE$").apply(table.output())
    rows = replace(_rows_of(spark, expression, stand_in), apart=lambda: rows_apart(spark, expression).frame)
    answer: Any = plan(rows)
    return jvm.patternlake.StandIn.replaced(answer._jdf.queryExecution().analyzed(), stand_in, table)


def rows_apart(spark: SparkSession, expression: JavaObject) -> OrderedRows:
    """The rows of ``TABLE(…)`` in a session of their own, for what has to be known before a question is planned.

    Raises
    ------
    ArgumentError
        The table names what only the statement around it knows.
    """
    session: Any = spark._jsparkSession
    own = SparkSession(spark.sparkContext, session.cloneSession())
    try:
        return _rows_of(own, expression, expression.plan())
    except (Py4JError, PySparkException) as error:
        if isinstance(error, PySparkException) and error.getCondition() == "USER_RAISED_EXCEPTION":
            raise  # A server that only reads refuses it.
        raise ArgumentError(
            "TABLE(…) is read before this question is planned, so it cannot name a CTE of the statement; make a "
            "temporary view of it"
        ) from None


def _rows_of(spark: SparkSession, expression: JavaObject, plan: JavaObject) -> OrderedRows:
    jvm: Any = spark._jvm
    rows: Any = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    frame = DataFrame(rows, spark)
    # To ask for each column takes some milliseconds; it matters only of those that we put there.
    constants = find_constants(expression.plan()) if any(map(is_own, frame.columns)) else frozenset[str]()
    return OrderedRows(
        frame,
        tuple(_catalyst_term(jvm, frame, one) for one in list_items(expression.partitionByExpressions())),
        tuple(_catalyst_term(jvm, frame, one) for one in list_items(expression.orderByExpressions())),
        constants,
    )
