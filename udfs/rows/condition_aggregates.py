"""Aggregates of DEFINE as the kernel's trees: over the rows taken so far, and undone as the search goes back.

The kernel keeps what can be told from what it was a row before: counts, sums, the least and greatest value and their
rows, how often each value is there. CLASSIFIER is the same for all rows of a variable, so an aggregate of it is made of
those of each variable, in which its name is a constant. MATCH_NUMBER is the same for all rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from patternlake.udfs.language.row_pattern.formulas import (
    AggregateTerm,
    ClassifierTerm,
    ColumnTerm,
    ConstantTerm,
    Formula,
    MatchNumberTerm,
    Term,
)
from patternlake.udfs.measures.row_terms import (
    escape_braces,
    guard_column,
    is_classifier,
    variables_of,
    write_terms,
)
from patternlake.udfs.rows.condition_columns import CAN_SAY, Part, RowColumns, cannot_compare, with_article
from patternlake.udfs.rows.conditions import Aggregate, Call, Constant, Contains, Expression, Fetch, Value
from patternlake.udfs.rows.decimals import MOST_DIGITS_SUMMED, whole_digits

NUMBERS = frozenset({"int", "float", "decimal", "scaled"})
_FOLDS = {
    **{name: name.lower() for name in ("COUNT", "SUM", "AVG", "MIN", "MAX")},
    "MEAN": "avg",
    "COUNT_IF": "count",
    **dict.fromkeys(("BOOL_OR", "ANY", "SOME"), "max"),
    **dict.fromkeys(("BOOL_AND", "EVERY"), "min"),
}
_ROWS = {"MAX_BY": "greatest row", "MIN_BY": "least row"}
_SPREADS = {
    "VAR_POP": (0, False),
    **dict.fromkeys(("VAR_SAMP", "VARIANCE"), (1, False)),
    "STDDEV_POP": (0, True),
    **dict.fromkeys(("STDDEV_SAMP", "STDDEV", "STD"), (1, True)),
}
"""By how much less than the number of values the squares are divided, and whether the root is taken."""
LISTS = frozenset({"ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET"})
_ANEW = "would be made anew for each row that is tried"
_INSTEAD = {
    **dict.fromkeys(
        (*LISTS, "LISTAGG", "STRING_AGG"),
        f"{_ANEW}; write array_contains(array_agg(v.x), y) or size(array_agg(v.x)), which are kept from row to row, "
        "or count, FIRST(v.x) and LAST(v.x, 1)",
    ),
    **dict.fromkeys(
        ("PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENTILE_APPROX", "APPROX_PERCENTILE", "MEDIAN"),
        f"{_ANEW}; compare with avg, stddev, min or max, or with a percentile of the partition, computed in a subquery "
        "before the clause",
    ),
    "MODE": f"{_ANEW}; compare counts, as in count_if(v.x = 1) > 2",
    "APPROX_COUNT_DISTINCT": "is not kept from row to row; write count(DISTINCT v.x), which is",
    "ANY_VALUE": "is not kept from row to row; write FIRST(v.x)",
}
_KNOWN = frozenset(
    {*NUMBERS, "boolean", "string", "binary", "timestamp", "timestamp_ntz", "date", "interval", "null", ""},
)
"""Kinds whose values can be numbered."""
_NULL, _ZERO = Constant(None), Constant(0)


def one_of(parts: Sequence[Part], tree: Expression) -> Part:
    """A part that is one of several alike: a number is a double where one of them is."""
    typed = next((part for part in parts if part.kind != "null"), parts[0])
    kind = "float" if "float" in {part.kind for part in parts} else typed.kind
    return Part(tree, kind, typed.column)


class AggregateTrees(RowColumns, ABC):
    """The aggregates of one conjunct of a variable's condition."""

    @abstractmethod
    def part(self, node: Any) -> Part:
        """The tree of a part."""

    def read_inside(self, formula: Formula) -> Part:
        """The tree of an expression in an aggregate."""
        return type(self)(self.builder, self.variable, formula).part(formula.tree)

    def rank_together(self, parts: Sequence[Part]) -> list[Part]:
        """Parts whose columns are ranked together."""
        columns = [part.column for part in parts if part.column >= 0]
        for column in columns[1:]:
            self.join(columns[0], column)
        return list(parts)

    def choose_outermost(self, operator: str, parts: Sequence[Part]) -> Part:
        """The greatest or least of values that are not NULL."""

        def choose(trees: Sequence[Expression]) -> Expression:
            # By halves, as each half stands in the choice twice.
            if len(trees) == 1:
                return trees[0]
            one, two = choose(trees[: len(trees) // 2]), choose(trees[len(trees) // 2 :])
            return Call("if", (Call("or", (Call(operator, (one, two)), Call("is null", (two,)))), one, two))

        return one_of(parts, choose([part.tree for part in parts]))

    def refuse_list(self, term: Term, node: Any) -> None:
        """Refuse an aggregate that is not kept from row to row, and say what is."""
        if isinstance(term, AggregateTerm) and term.name in _INSTEAD:
            self.fail(f"{term.name.lower()} cannot stand in a condition: it {_INSTEAD[term.name]}", node)

    def refuse_nulls(self, term: AggregateTerm, node: Any) -> None:
        """Refuse an aggregate that counts NULLs."""
        if term.with_nulls:
            self.fail("RESPECT NULLS cannot stand in a condition; count(*) counts rows whatever they hold", node)

    def aggregate(self, term: AggregateTerm, node: Any) -> Part:
        """An aggregate."""
        self.refuse_nulls(term, node)
        self.refuse_list(term, node)
        known = term.name in _FOLDS or term.name in _ROWS or term.name in _SPREADS
        if not known or len(term.arguments) > (2 if term.name in _ROWS else 1) or term.ordering:
            self.fail(f"this aggregate cannot stand in a condition: {CAN_SAY}", node)
        if term.condition is not None and _is_of_number(term.condition):
            whole = self.fold(term, None, node)
            self.expect(truth := self.read_inside(term.condition), "boolean", node)
            empty = _ZERO if _FOLDS.get(term.name) == "count" else _NULL
            return Part(Call("if", (truth.tree, whole.tree, empty)), whole.kind, whole.column)
        return self.fold(term, term.condition, node)

    def fold(self, term: AggregateTerm, condition: Formula | None, node: Any) -> Part:
        """An aggregate of rows that meet a condition of columns and CLASSIFIER."""
        formulas = [*term.arguments, *([] if condition is None else [condition])]
        terms = [one for formula in formulas for one in formula.terms]
        variables = variables_of(self.clause, term.variable)
        if any(isinstance(one, MatchNumberTerm) for one in terms):
            if len(term.arguments) != 1 or not _is_of_number(term.arguments[0]) or term.name not in _FOLDS:
                self.fail(
                    "an aggregate of a condition is over columns and CLASSIFIER, or over MATCH_NUMBER alone; "
                    "write MATCH_NUMBER() * sum(v.x) for sum(v.x * MATCH_NUMBER())",
                    node,
                )
            return self.fold_number(term, condition, node)
        if any(isinstance(one, ClassifierTerm) for one in terms):
            return self.fold_by_variables(term, condition, variables or self.clause.variables, node)
        return self.fold_columns(term, [_text(one) for one in formulas], variables, node)

    def fold_columns(self, term: AggregateTerm, texts: Sequence[str], variables: tuple[str, ...], node: Any) -> Part:
        """An aggregate of columns, which are given in Spark SQL, and behind them FILTER."""
        column = texts[0] if term.arguments else "1"
        condition = texts[-1] if len(texts) > len(term.arguments) else None
        if column == "1" and condition is None and not term.arguments:
            return Part(Aggregate("count", None, variables), "int")
        if term.name in _ROWS:
            return self.fetch(term, texts, condition, variables, node)
        if term.name == "COUNT_IF":
            column = f"CASE WHEN {column} THEN 1 END"
        if condition is not None:
            column = f"CASE WHEN {condition} THEN {column} END"
        given = column
        kind = self.kind_of(column, node)
        column = guard_column(self.tests_of(variables), column)
        name = _FOLDS.get(term.name, "")
        distinct = None
        if term.distinct and name not in ("min", "max"):
            distinct = f"c{self.number_values(column, kind, node)}"
        if name == "count":
            # Whatever the type, it matters only what is NULL, and what is equal.
            number = self.builder.column(f"CASE WHEN ({column}) IS NOT NULL THEN 1 END", "int")
            return Part(Aggregate("count", distinct or f"c{number}", variables, distinct), "int")
        if name in ("min", "max"):
            if kind not in _KNOWN:
                self.fail(cannot_compare(kind), node)
            number = self.builder.column(column, kind)
            return Part(Aggregate(name, f"c{number}", variables), kind, number)
        if kind not in (*NUMBERS, "null", "") and (kind != "interval" or not name):
            self.fail(f"{term.name} needs numbers, not {with_article(kind)}", node)
        if not name:
            number = self.builder.column(f"CAST({column} AS DOUBLE)", "float")
            squares = Aggregate("squares", f"c{number}", variables, distinct)
            less, root = _SPREADS[term.name]
            count = Call("-", (Aggregate("count", f"c{number}", variables, distinct), Constant(less)))
            # One value has no sample variance: what is divided by 0 is NULL.
            tree = Call("/", (squares, count))
            return Part(Call("sqrt", (tree,)) if root else tree, "float")
        if kind == "decimal" and name == "sum" and (factor := self.factor_of_sum(given)) is not None:
            number = self.builder.column(f"CAST(({column}) * {factor} AS BIGINT)", "int")
            return Part(Aggregate(name, f"c{number}", variables, distinct), "scaled")
        if kind == "decimal":
            kind = "float"
        number = self.builder.column(column, kind)
        made = Aggregate(name, f"c{number}", variables, distinct)
        return Part(made, "float" if name == "avg" and kind == "int" else kind)

    def unscale(self, tree: Expression) -> Expression:
        """A whole number of the last digit as a double."""
        return Call("/", (tree, Constant(10.0 ** (self.builder.scale or 0))))

    def factor_of_sum(self, sql: str) -> int | None:
        """How many of the last digits make 1, where sums of a decimal column fit 64 bits."""
        scale, types = self.builder.scale, self.builder.types or {}
        if scale is None or whole_digits(types[sql]) + scale > MOST_DIGITS_SUMMED:
            return None
        return int(10**scale)

    def fetch(
        self, term: AggregateTerm, texts: Sequence[str], condition: str | None, variables: tuple[str, ...], node: Any
    ) -> Part:
        """``max_by(x, y)``: x in the row of the greatest y."""
        if len(term.arguments) != 2:
            self.fail(f"{term.name} takes two arguments, as in {term.name.lower()}(price, day)", node)
        tests = self.tests_of(variables)
        value, by = (guard_column(tests, text) for text in texts[:2])
        kind, kind_by = self.kind_of(texts[0], node), self.kind_of(texts[1], node)
        if kind_by not in _KNOWN:
            self.fail(cannot_compare(kind_by), node)
        if condition is not None:
            by = guard_column(tests, f"CASE WHEN {condition} THEN {texts[1]} END")
        number = self.builder.column(value, kind)
        row = Aggregate(_ROWS[term.name], f"c{self.builder.column(by, kind_by)}", variables)
        return Part(Fetch(f"c{number}", row), kind, number)

    def number_values(self, column: str, kind: str, node: Any) -> int:
        """The column of the numbers of a column's values."""
        if kind not in _KNOWN:
            self.fail(cannot_compare(kind), node)
        return self.builder.column(column, "value")

    def fold_number(self, term: AggregateTerm, condition: Formula | None, node: Any) -> Part:
        """An aggregate of what is the same in all rows."""
        value = self.read_inside(term.arguments[0])
        rows = AggregateTerm(term.span, term.call, "COUNT", False, (), term.condition, (), "", term.variable)
        count = self.fold(rows, condition, node).tree
        name = _FOLDS[term.name]
        if term.name == "COUNT_IF":
            self.expect(value, "boolean", node)
            return Part(Call("if", (value.tree, count, _ZERO)), "int")
        some = Call(">", (count, _ZERO))
        if name == "count":
            count = Call("if", (some, Constant(1), _ZERO)) if term.distinct else count
            return Part(Call("if", (Call("is null", (value.tree,)), _ZERO, count)), "int")
        if name in ("sum", "avg"):
            if value.kind not in (*NUMBERS, "null", ""):
                self.fail(f"{term.name} needs numbers, not {with_article(value.kind)}", node)
            # An average is a double, whatever the numbers.
            times = Constant(1.0) if name == "avg" else Constant(1) if term.distinct else count
            value = Part(Call("*", (value.tree, times)), "float" if name == "avg" else value.kind)
        return Part(Call("if", (some, value.tree, _NULL)), value.kind, value.column)

    def fold_by_variables(
        self, term: AggregateTerm, condition: Formula | None, variables: Sequence[str], node: Any
    ) -> Part:
        """An aggregate in which CLASSIFIER stands, of those of each variable."""
        formulas = [*term.arguments, *([] if condition is None else [condition])]
        counts_labels = term.distinct and term.name == "COUNT" and is_classifier(term.arguments[0])
        name = _FOLDS.get(term.name, "")
        if not name or (term.distinct and not counts_labels and name not in ("min", "max")):
            hint = "CLASSIFIER may stand in count, sum, avg, min and max, and in count(DISTINCT CLASSIFIER())"
            self.fail(f"{term.name} of a condition cannot be over CLASSIFIER; {hint}", node)

        def fold(variable: str, fold_name: str) -> Part:
            label = write_label(variable)
            whole = AggregateTerm(
                term.span, term.call, fold_name, False, term.arguments, condition, (), "", term.variable
            )
            return self.fold_columns(whole, [_text(one, label) for one in formulas], (variable,), node)

        if name in ("min", "max"):
            parts = self.rank_together([fold(variable, term.name) for variable in variables])
            return self.choose_outermost(">=" if name == "max" else "<=", parts)
        counts = [fold(variable, term.name if name == "count" else "COUNT").tree for variable in variables]
        if counts_labels:
            counts = [Call("if", (Call(">", (count, _ZERO)), Constant(1), _ZERO)) for count in counts]
        count = _add(counts)
        if name == "count":
            return Part(count, "int")
        sums = [fold(variable, "SUM") for variable in variables]
        total = _add([Call("coalesce", (part.tree, _ZERO)) for part in sums])
        kind = "float" if "float" in {part.kind for part in sums} else sums[0].kind
        if name == "avg":
            total = self.unscale(total) if kind == "scaled" else total
            return Part(Call("/", (total, count)), "float" if kind in ("int", "float", "scaled") else kind)
        return Part(Call("if", (Call(">", (count, _ZERO)), total, _NULL)), kind)

    def find_value(self, term: AggregateTerm, value: Part, node: Any) -> Part:
        """``array_contains(array_agg(v.x), y)``: whether a value is one of those of the rows so far."""
        if len(term.arguments) != 1 or any(not isinstance(one, ColumnTerm) for one in term.arguments[0].terms):
            self.fail(f"{term.name} of a condition is over columns", node)
        column = _text(term.arguments[0])
        kind = self.kind_of(column, node)
        if term.condition is not None:
            if not all(isinstance(one, ColumnTerm) for one in term.condition.terms):
                self.fail("FILTER is over columns here", node)
            column = f"CASE WHEN {_text(term.condition)} THEN {column} END"
        sql = self.builder.sql_of(value.column)
        are_numbers = {kind, value.kind} <= NUMBERS
        if not isinstance(value.tree, Value) or (value.kind not in (kind, "null", "") and not are_numbers):
            types = f"{with_article(kind)} as in the list" if kind else "as in the list"
            self.fail(f"what is looked for in {term.name.lower()} must be the value of one row, {types}", node)
        if kind != value.kind and are_numbers:
            column, sql = (f"CAST({one} AS DOUBLE)" for one in (column, sql))
        variables = variables_of(self.clause, term.variable)
        among = self.number_values(guard_column(self.tests_of(variables), column), kind, node)
        number = self.builder.column(sql, "value")
        self.join(among, number)
        return Part(Contains(Value(f"c{number}", value.tree.seen), f"c{among}", variables), "boolean")


def write_label(variable: str) -> str:
    """The name of a variable as a string of Spark SQL."""
    escapes = variable.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escapes}'"


def _is_of_number(formula: Formula) -> bool:
    """Whether an expression looks at MATCH_NUMBER and at nothing else."""
    numbers = [isinstance(term, MatchNumberTerm) for term in formula.terms if not isinstance(term, ConstantTerm)]
    return bool(numbers) and all(numbers)


def _text(formula: Formula, label: str = "") -> str:
    """What an expression says of one row, in Spark SQL with braces doubled; `label` in the place of CLASSIFIER."""

    def write(term: Term) -> str:
        return escape_braces(term.sql if isinstance(term, ColumnTerm | ConstantTerm) else label)

    return write_terms(formula, write)


def _add(trees: Sequence[Expression]) -> Expression:
    add: Callable[[Expression, Expression], Expression] = lambda one, two: Call("+", (one, two))  # noqa: E731
    return reduce(add, trees)
