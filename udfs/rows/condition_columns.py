"""Columns that the conditions of DEFINE look at: what a part says of one row, with all of Spark's functions.

``upper(LAST(a.x))`` is the value of ``upper(x)`` in the last row of a. Spark computes these columns for all rows,
before the search, so each is computed only where a row may be asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from sqlglot import exp

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.query.tree import Span
from patternlake.udfs.language.row_pattern.formulas import (
    ClassifierTerm,
    ColumnTerm,
    ConstantTerm,
    Formula,
    NavigationTerm,
    Term,
)
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.row_terms import (
    column_sql,
    escape_braces,
    find_tests,
    guard_column,
    is_classifier,
    is_one_term,
    row_seen,
    term_sql,
    write_terms,
)
from patternlake.udfs.measures.seen import CURRENT, LAST, Seen
from patternlake.udfs.rows.conditions import Call, Expression, Value, columns_of, parts_of
from patternlake.udfs.rows.decimals import find_scale
from patternlake.udfs.rows.kernel_columns import BOOLEAN, DOUBLE, INTEGER, MICROSECONDS, RANKS, KernelColumn

_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "int"),
    **dict.fromkeys(("float", "double"), "float"),
    **{name: name for name in ("string", "binary", "boolean", "timestamp", "timestamp_ntz", "date")},
    "void": "null",
}
ENCODINGS = {
    "int": INTEGER,
    "float": DOUBLE,
    "boolean": BOOLEAN,
    "null": INTEGER,
    **dict.fromkeys(("timestamp", "timestamp_ntz", "date", "interval"), MICROSECONDS),
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_STRICT = (
    *_COMPARISONS,
    *_ARITHMETIC,
    *(exp.Neg, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Interval, exp.Var),
    *(exp.TryCast, exp.TsOrDsToDate, exp.Date, exp.Year),
    *(exp.Abs, exp.Cast, exp.DataType, exp.DataTypeParam, exp.DPipe, exp.Like, exp.Length, exp.Lower, exp.Upper),
)
"""Nodes of trees that are NULL where the row's values are."""
_HIDE, _SHOW = str.maketrans("{}", "\ue000\ue001"), str.maketrans("\ue000\ue001", "{}")
CAN_SAY = (
    "what joins several rows of a match is said with + - * / %, abs, comparisons, BETWEEN, IN, AND, OR, NOT, IS NULL, "
    "coalesce, nullif, greatest, least, datediff, if, CASE and casts to DOUBLE, the aggregates count, count_if, "
    "sum, avg, min, max, min_by, max_by, any, every, stddev and variance, with DISTINCT too, array_contains and "
    "size of array_agg; other functions may look at one row, as in LAST(upper(v.x))"
)


@dataclass(frozen=True)
class Part:
    """A part of a condition: its tree and type, and of a value that has a column, which one.

    A decimal is ``decimal`` as a column's value, which can be ranked, and ``scaled`` as a whole number of the last
    digit, with which can be counted.
    """

    tree: Expression
    kind: str
    column: int = -1


class ColumnBuilder:
    """Numbers the columns of a clause's conditions."""

    def __init__(self, clause: Clause, rows: Mapping[str, str], types: Mapping[str, str] | None) -> None:
        self.clause = clause
        self.rows = rows
        self.types = types
        self.scale = None if types is None else find_scale(types.values())
        self.asked: dict[str, None] = {}
        self.columns: dict[tuple[str, str], int] = {}
        self.group: list[int] = []

    def kind_of(self, sql: str) -> str:
        """The kind of an expression's type; nothing while types are not known."""
        self.asked[sql] = None
        if self.types is None:
            return ""
        name = self.types[sql].lower()
        if name.startswith("decimal"):
            return "decimal"
        if name.startswith("interval") and "year" not in name and "month" not in name:
            return "interval"
        if name.startswith(("varchar", "char", "string")) and "collate" not in name.removesuffix(
            " collate utf8_binary"
        ):
            return "string"
        return _KINDS.get(name, name)

    def column(self, sql: str, kind: str) -> int:
        """The number of a column."""
        number = self.columns.setdefault((sql, kind), len(self.columns))
        if number == len(self.group):
            self.group.append(number)
        return number

    def sql_of(self, column: int) -> str:
        """The expression of a column; nothing of a number that is none."""
        return next((sql for (sql, _), number in self.columns.items() if number == column), "")

    def is_small(self, name: str) -> bool:
        """Whether a column has integers of 32 bits."""
        return (self.types or {}).get(self.sql_of(int(name[1:])), "") in ("tinyint", "smallint", "int")

    def root(self, column: int) -> int:
        """The column that stands for all that are ranked with one."""
        while self.group[column] != column:
            column = self.group[column]
        return column

    def kernel_columns(self, conditions: Mapping[str, Expression]) -> tuple[KernelColumn, ...]:
        """The columns that conditions look at."""
        used: set[str] = set()

        def look(part: Expression) -> None:
            used.update(columns_of(part))
            for one in parts_of(part):
                look(one)

        for condition in conditions.values():
            look(condition)
        made = []
        for (sql, kind), number in self.columns.items():
            if f"c{number}" in used:
                encoding = ENCODINGS.get(kind, RANKS)
                made.append(KernelColumn(f"c{number}", sql, encoding, self.root(number) if encoding == RANKS else -1))
        return tuple(made)


class RowColumns:
    """The parts of one conjunct of a variable's condition that look at one row."""

    def __init__(self, builder: ColumnBuilder, variable: str, formula: Formula) -> None:
        self.builder = builder
        self.clause = builder.clause
        self.variable = variable
        self.formula = formula
        # What is known where a part is asked for: of a row, a test in Spark SQL.
        self.guards: list[tuple[Seen, str]] = []

    def fail(self, why: str, node: Any) -> NoReturn:
        """Refuse a part."""
        spans = [term.span for term in self.terms(node)]
        whole = self.formula.span
        place = Span(min(one.start for one in spans), max(one.end for one in spans)) if spans else whole
        raise UnsupportedOperatorError(why, self.clause.text, place.start, place.end)

    def term(self, node: Any) -> Term | None:
        """The term that a node of the parser's tree is; None for another node."""
        if not isinstance(node, exp.Column) or "start" not in node.parts[0].meta:
            return None
        return self.formula.term_at(self.formula.span.start + node.parts[0].meta["start"])

    def terms(self, node: Any) -> list[Term]:
        """All terms below a node."""
        return [term for each in node.find_all(exp.Column) if (term := self.term(each)) is not None]

    def kind_of(self, sql: str, node: Any) -> str:
        """The kind of a column's type."""
        if self.builder.types is not None and sql not in self.builder.types:
            self.fail(f"this is not known of rows matched: {CAN_SAY}", node)
        return self.builder.kind_of(sql)

    def expect(self, part: Part, kind: str, node: Any) -> None:
        """Fail where a part has another type."""
        if part.kind not in (kind, "null", ""):
            self.fail(f"a {kind} is needed here, not {with_article(part.kind)}", node)

    def one_row(self, node: Any) -> Seen | None:
        """The row that all terms of a part look at, if it is one and only its columns matter."""
        rows = set()
        for term in self.terms(node):
            if isinstance(term, ConstantTerm):
                continue
            seen = row_seen(self.clause, term, self.variable)
            if seen is None or isinstance(term, ClassifierTerm):
                return None
            if isinstance(term, NavigationTerm) and column_sql(term.argument) is None:
                return None
            rows.add(seen)
        if all(seen.kind == CURRENT for seen in rows):
            return Seen()
        return rows.pop() if len(rows) == 1 else None

    def sql(self, node: Any, *, null: bool = False, label: str = "") -> str:
        """A part that looks at one row, in Spark SQL; `null`: with NULL in the place of the row's values.

        With a `label`, the part looks at the row asked about and at CLASSIFIER, in whose place this text stands.
        """
        current = bool(label) or self.one_row(node) == Seen()

        def text(term: Term) -> str:
            if label and self.find_classifier_row(term) is not None:
                return escape_braces(label)
            if current or isinstance(term, ConstantTerm):
                return term_sql(self.clause, term, self.variable)
            column = term.sql if isinstance(term, ColumnTerm) else ""
            if isinstance(term, NavigationTerm):
                column = column_sql(term.argument) or ""
                if not is_one_term(term.argument) and self.term(node) is not term:
                    column = f"({column})"
            return f"(CASE WHEN false THEN {escape_braces(column)} END)" if null else escape_braces(column)

        def replaced(each: Any) -> Any:
            term = self.term(each)
            if term is not None:
                # Braces of the window are not to be doubled.
                return exp.Var(this=text(term).translate(_HIDE))
            return _as_written(each)

        if node is self.formula.tree:
            return write_terms(self.formula, text)
        if (term := self.term(node)) is not None:
            return text(term)
        for shift in node.find_all(exp.BitwiseLeftShift, exp.BitwiseRightShift):
            if isinstance(shift.this, (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)):
                self.fail("<< and >> bind closer than &, ^ and |; put parentheses around them", node)
        sql = node.copy().transform(replaced).sql(dialect="spark")
        return escape_braces(self.formula.unmasked(sql)).translate(_SHOW)

    def value(self, node: Any, seen: Seen) -> Part:
        """A part that looks at one row, as a column."""
        sql = self.sql(node)
        kind = self.kind_of(sql, node)
        number = self.builder.column(self.guard(sql, seen) if self.terms(node) else sql, kind)
        value: Expression = Value(f"c{number}", seen)
        # Where there is no such row the value is that of NULLs, which is NULL for all but such functions as coalesce.
        if seen.kind != CURRENT and not all(isinstance(each, _STRICT) for each in node.walk()):
            there = self.builder.column("true", "boolean")
            missing = self.builder.column(self.sql(node, null=True), kind)
            self.join(number, missing)
            value = Call(
                "if",
                (Call("is null", (Value(f"c{there}", seen),)), Value(f"c{missing}", Seen()), value),
            )
        return Part(value, kind, number)

    def guard(self, sql: str, seen: Seen) -> str:
        """A column of a row, computed only where the row may be asked for it.

        Spark computes a column for all rows, before the search, and under ANSI 1 / x fails where x is 0. A row that is
        asked for it meets what its variable's condition says of the row alone, and what AND, OR and CASE tested before.
        """
        tests = [test for row, test in self.guards if row == seen]
        return guard_column([*find_tests(self.builder.rows, self.variables(seen)), *tests], sql)

    def tests_of(self, variables: Sequence[str]) -> list[str]:
        """What a row of the match meets that is of one of some variables; none: of any."""
        return find_tests(self.builder.rows, variables or self.clause.variables)

    def variables(self, seen: Seen) -> tuple[str, ...]:
        """The variables of which a row is one that is looked at; none where it may be any row."""
        if seen.shift:
            return ()
        return (self.variable,) if seen.kind == CURRENT else seen.variables or self.clause.variables

    def tests(self, node: Any, test: str) -> list[tuple[Seen, str]]:
        """What a condition that `test` holds of (IS TRUE, …) says of single rows."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Or if test == "IS NOT TRUE" else exp.And):
            return [*self.tests(node.this, test), *self.tests(node.expression, test)]
        seen = self.one_row(node)
        return [] if seen is None else [(seen, f"({self.sql(node)}) {test}")]

    @contextmanager
    def behind(self, condition: Any, test: str) -> Iterator[None]:
        """Translate parts that are asked for only where a test of a condition holds."""
        count = len(self.guards)
        self.guards += self.tests(condition, test)
        yield
        del self.guards[count:]

    def join(self, one: int, other: int) -> None:
        """Rank two columns together."""
        if one >= 0 and other >= 0:
            self.builder.group[self.builder.root(one)] = self.builder.root(other)

    def find_classifier_row(self, term: Term) -> Seen | None:
        """The row whose CLASSIFIER a term is; None of another term."""
        if not isinstance(term, ClassifierTerm) and not (
            isinstance(term, NavigationTerm) and is_classifier(term.argument)
        ):
            return None
        seen = row_seen(self.clause, term, self.variable)
        assert seen is not None
        # The kernel knows the variable of the row asked about as that of the last row taken.
        return Seen(LAST, (), 0, seen.shift) if seen.kind == CURRENT else seen


def with_article(kind: str) -> str:
    """A kind with its article."""
    kind = "decimal" if kind == "scaled" else kind
    return "the variable of a row" if kind == "label" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def cannot_compare(kind: str) -> str:
    """Why values of a kind are not compared from row to row, and what is."""
    hint = "; compare by bytes, as in lower(v.x) COLLATE UTF8_BINARY" if " collate " in kind else ""
    return f"{with_article(kind)} cannot be compared with that of another row{hint}"


def _as_written(node: Any) -> Any:
    """A node that the parser's printer would change, as it was written."""
    if isinstance(node, exp.DataType) and node.this == exp.DType.TIME:
        size = ", ".join(one.sql() for one in node.expressions)
        return exp.Var(this=f"TIME({size})" if size else "TIME")  # it prints TIMESTAMP
    if isinstance(node, (exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)):
        # An interval of several units is a sum without parentheses.
        for name in ("this", "expression"):
            if isinstance(node.args.get(name), exp.Add) and not (name == "this" and isinstance(node, exp.Sub)):
                node.set(name, exp.Paren(this=node.args[name]))
    return node
