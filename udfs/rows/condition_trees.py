"""From conditions that look at what was matched to the kernel's trees.

Each part that looks at one row is a column, see `condition_columns`. What joins several rows must be said by the
kernel's operators. Which of these fit depends on types, which Spark knows: the same walk runs without types, to tell
the columns, and then with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.durations import MICROSECONDS
from patternlake.udfs.language.row_pattern.formulas import (
    AggregateTerm,
    Formula,
    MatchNumberTerm,
    Term,
)
from patternlake.udfs.language.row_pattern.tokens import read_string
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.row_terms import is_of_row
from patternlake.udfs.measures.seen import Seen
from patternlake.udfs.rows.condition_aggregates import LISTS, NUMBERS, AggregateTrees, one_of, write_label
from patternlake.udfs.rows.condition_columns import (
    CAN_SAY,
    ENCODINGS,
    ColumnBuilder,
    Part,
    cannot_compare,
    with_article,
)
from patternlake.udfs.rows.conditions import (
    Aggregate,
    Call,
    Classifier,
    Constant,
    Expression,
    Fetch,
    Label,
    MatchNumber,
    Value,
)
from patternlake.udfs.rows.decimals import MOST_FACTOR, whole_number
from patternlake.udfs.rows.kernel_columns import KernelColumn

_MOST_LITERAL = 1 << 62
_UNITS = {name: size for name, size in MICROSECONDS.items() if name != "WEEK"}
_DAY = MICROSECONDS["DAY"]
_TIMES = frozenset({"timestamp", "timestamp_ntz", "date"})
_COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


@dataclass(frozen=True)
class KernelConditions:
    """What `compile_pattern` and `match_rows` need beside the boolean columns.

    Attributes
    ----------
    conditions
        By variables.
    columns
        Those that the conditions look at.
    """

    conditions: Mapping[str, Expression]
    columns: tuple[KernelColumn, ...]

    @property
    def types(self) -> dict[str, str]:
        """By the names of columns their types, as `compile_pattern` takes them."""
        return {column.name: column.type for column in self.columns}


def build_conditions(
    clause: Clause,
    rows: Mapping[str, str],
    matched: Sequence[tuple[str, tuple[Formula, ...]]],
    types: Mapping[str, str] | None,
) -> tuple[KernelConditions, tuple[str, ...]]:
    """The conditions, and the columns whose types they need; without types, the conditions mean nothing.

    Parameters are as the attributes of `Definitions`.
    """
    builder = ColumnBuilder(clause, rows, types)
    conditions: dict[str, Expression] = {}
    for variable, formulas in matched:
        parts = [_condition(builder, variable, formula) for formula in formulas]
        conditions[variable] = parts[0] if len(parts) == 1 else Call("and", tuple(parts))
    return KernelConditions(conditions, builder.kernel_columns(conditions)), tuple(builder.asked)


def _condition(builder: ColumnBuilder, variable: str, formula: Formula) -> Expression:
    try:
        return _Conjunct(builder, variable, formula).condition()
    except RecursionError:
        text, span = builder.clause.text, formula.span
        raise PatternSyntaxError("this expression is nested too deeply", text, span.start, span.end) from None


class _Conjunct(AggregateTrees):
    """One conjunct of a variable's condition."""

    def condition(self) -> Expression:
        """Its tree."""
        return self.truth(self.formula.tree)

    def part(self, node: Any) -> Part:
        """The tree of a part."""
        if (constant := self.constant(node)) is not None:
            return constant
        if isinstance(node, exp.Paren):
            return self.part(node.this)
        seen = self.one_row(node)
        if seen is not None and not self.counts_from(node):
            return self.value(node, seen)
        if (term := self.term(node)) is not None:
            return self.of_term(term, node)
        translated = self.operator(node) or self.by_label(node)
        if translated is None:
            if seen is not None:
                return self.value(node, seen)
            for term in self.terms(node):
                self.refuse_list(term, node)
            self.fail(f"this is not known of rows matched: {CAN_SAY}", node)
        return translated

    def counts_from(self, node: Any) -> bool:
        """Whether a part is a column and a number of hours or more from it: apart, a deadline of the search."""
        return (
            isinstance(node, (exp.Add, exp.Sub))
            and self.constant(node.expression) is not None
            and self.term(node.this) is not None
        )

    def constant(self, node: Any) -> Part | None:
        """A constant that the kernel can have."""
        sign = 1
        if isinstance(node, exp.Neg):
            sign, node = -1, node.this
        if isinstance(node, exp.Null):
            return Part(Constant(None), "null")
        if isinstance(node, exp.Boolean):
            return Part(Constant(int(node.this)), "boolean")
        if isinstance(node, exp.Literal) and not node.is_string:
            text = str(node.this)
            if text.isdecimal() and int(text) < _MOST_LITERAL:
                return Part(Constant(sign * int(text)), "int")
            return Part(Constant(sign * float(text)), "float")
        if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.unit is not None:
            unit = str(node.unit.name).upper().removesuffix("S")
            text = str(node.this.this)
            if unit in _UNITS and text.removeprefix("-").isdecimal():
                return Part(Constant(sign * int(text) * _UNITS[unit]), "interval")
        return None

    def of_term(self, term: Term, node: Any) -> Part:
        """A term that is more than a column of one row."""
        if isinstance(term, MatchNumberTerm):
            return Part(MatchNumber(), "int")
        if isinstance(term, AggregateTerm):
            return self.aggregate(term, node)
        seen = self.find_classifier_row(term)
        if seen is None:
            self.fail("CLASSIFIER stands alone in FIRST, LAST, PREV and NEXT of a condition", node)
        return Part(Classifier(seen), "label")

    def by_label(self, node: Any) -> Part | None:
        """A part with any function of one row's CLASSIFIER and of the row asked about; None for another.

        Spark computes it once for each variable that CLASSIFIER may be, and once for NULL.
        """
        terms = self.terms(node)
        rows = {seen for term in terms if (seen := self.find_classifier_row(term)) is not None}
        others = [term for term in terms if self.find_classifier_row(term) is None]
        if len(rows) != 1 or not is_of_row(self.clause, others, self.variable):
            return None
        classifier = Classifier(rows.pop())

        def value(label: str) -> Part:
            sql = self.sql(node, label=label)
            kind = self.kind_of(sql, node)
            number = self.builder.column(self.guard(sql, Seen()), kind)
            return Part(Value(f"c{number}", Seen()), kind, number)

        last = value("CAST(NULL AS STRING)")
        tree = last.tree
        for name in reversed(self.clause.variables):
            one = value(write_label(name))
            self.join(one.column, last.column)
            last = one
            tree = Call("if", (Call("=", (classifier, Label(name))), one.tree, tree))
        return Part(tree, last.kind, last.column)

    def operator(self, node: Any) -> Part | None:
        """An operator of the kernel; None for anything else."""
        kind = type(node)
        if kind in _COMPARISONS:
            return self.compare(_COMPARISONS[kind], node.this, node.expression, node)
        if kind is exp.NullSafeNEQ:
            same = self.compare("<=>", node.this, node.expression, node)
            return Part(Call("not", (same.tree,)), "boolean")
        if kind in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[kind], node)
        if kind in (exp.And, exp.Or):
            parts = [self.part(node.this)]
            with self.behind(node.this, "IS NOT FALSE" if kind is exp.And else "IS NOT TRUE"):
                parts.append(self.part(node.expression))
            for part in parts:
                self.expect(part, "boolean", node)
            return Part(Call(kind.__name__.lower(), tuple(part.tree for part in parts)), "boolean")
        if kind is exp.Not:
            return Part(Call("not", (self.truth(node.this),)), "boolean")
        if kind is exp.Is:
            return self.is_constant(node)
        if kind is exp.Between:
            low = self.compare(">=", node.this, node.args["low"], node)
            high = self.compare("<=", node.this, node.args["high"], node)
            return Part(Call("and", (low.tree, high.tree)), "boolean")
        if kind is exp.In and node.expressions:
            ways = [self.compare("=", node.this, one, node).tree for one in node.expressions]
            return Part(ways[0] if len(ways) == 1 else Call("or", tuple(ways)), "boolean")
        if kind in (exp.Neg, exp.Abs):
            inner = self.part(node.this)
            (part,) = self.scale_all([inner], node) or [self.number(inner, node)]
            return Part(Call("neg" if kind is exp.Neg else "abs", (part.tree,)), part.kind)
        if kind is exp.Coalesce:
            parts = self.alike([self.part(one) for one in (node.this, *node.expressions)], node)
            return one_of(parts, Call("coalesce", tuple(part.tree for part in parts)))
        if kind is exp.Anonymous and node.name.lower() == "cardinality" and len(node.expressions) == 1:
            return self.operator(exp.ArraySize(this=node.expressions[0].copy()))  # which the parser does not know
        if kind in (exp.ArrayContains, exp.ArraySize) and isinstance(term := self.term(node.this), AggregateTerm):
            return self.ask_list(term, node)
        if kind is exp.DateDiff and not node.args.get("unit"):
            return self.days_between(node)
        if isinstance(node, exp.Cast):
            return self.cast_number(node)
        if kind is exp.Nullif:
            same = self.compare("=", node.this, node.expression, node)
            part = self.part(node.this)
            return Part(Call("if", (same.tree, Constant(None), part.tree)), part.kind, part.column)
        if kind in (exp.Greatest, exp.Least):
            parts = self.alike([self.part(one) for one in (node.this, *node.expressions)], node)
            return self.choose_outermost(">=" if kind is exp.Greatest else "<=", parts)
        if kind is exp.If:
            return self.choose(None, [node], node.args.get("false"), node)
        if kind is exp.Case:
            return self.choose(node.this, node.args["ifs"], node.args.get("default"), node)
        return None

    def ask_list(self, term: AggregateTerm, node: Any) -> Part | None:
        """What is in a list of the rows so far, which is not made; None for another aggregate."""
        if term.name not in LISTS:
            return None
        self.refuse_nulls(term, node)
        if isinstance(node, exp.ArraySize):
            distinct = term.distinct or term.name == "COLLECT_SET"
            return self.aggregate(replace(term, name="COUNT", distinct=distinct), node)
        seen = self.one_row(node.expression)
        value = self.part(node.expression) if seen is None else self.value(node.expression, seen)
        return self.find_value(term, value, node)

    def days_between(self, node: Any) -> Part:
        """``datediff(later, earlier)`` of two rows' days."""
        days = [self.part(one) for one in (node.this, node.expression)]
        for day in days:
            self.expect(day, "date", node)
        return Part(Call("/", (Call("-", tuple(day.tree for day in days)), Constant(_DAY))), "float")

    def cast_number(self, node: Any) -> Part | None:
        """A number that several rows make, as a double or as the integer that it is; None for another type."""
        part, to = self.part(node.this), node.to.sql(dialect="spark").lower()
        if to == "double":
            return Part(Call("*", (self.number(part, node).tree, Constant(1.0))), "float")
        if to not in ("int", "bigint"):
            return None
        if not part.kind:
            self.by_label(node)  # asks for its types: once they are known, this may be no integer
        return part if part.kind in ("int", "") else None

    def truth(self, node: Any) -> Expression:
        """A condition in a part."""
        part = self.part(node)
        self.expect(part, "boolean", node)
        return part.tree

    def choose(self, subject: Any, branches: Sequence[Any], default: Any, node: Any) -> Part:
        """CASE and if."""
        conditions, values = [], []
        with ExitStack() as before:
            for branch in branches:
                if subject is None:
                    conditions.append(self.truth(branch.this))
                    tested = branch.this
                else:
                    conditions.append(self.compare("=", subject, branch.this, node).tree)
                    tested = exp.EQ(this=subject, expression=branch.this)
                with self.behind(tested, "IS TRUE"):
                    values.append(self.part(branch.args["true"]))
                before.enter_context(self.behind(tested, "IS NOT TRUE"))
            values.append(Part(Constant(None), "null") if default is None else self.part(default))
        parts = self.alike(values, node)
        tree = parts[-1].tree
        for condition, part in reversed(list(zip(conditions, parts, strict=False))):
            tree = Call("if", (condition, part.tree, tree))
        return one_of(parts, tree)

    def is_constant(self, node: Any) -> Part:
        """``x IS NULL``, ``x IS TRUE``."""
        part = self.part(node.this)
        if isinstance(node.expression, exp.Null):
            return Part(Call("is null", (part.tree,)), "boolean")
        self.expect(part, "boolean", node)
        constant = self.constant(node.expression)
        if constant is None:
            self.fail(f"this is not known of rows matched: {CAN_SAY}", node)
        return Part(Call("<=>", (part.tree, constant.tree)), "boolean")

    def number(self, part: Part, node: Any) -> Part:
        """A part as a number; a decimal becomes a double."""
        if part.kind == "decimal":
            return self.cast(part, "double", "float", node)
        if part.kind == "scaled":
            return Part(self.unscale(part.tree), "float")
        if part.kind not in (*NUMBERS, "interval", "null", ""):
            self.fail(f"a number is needed here, not {with_article(part.kind)}", node)
        return part

    def scale_all(self, parts: Sequence[Part], node: Any) -> list[Part] | None:
        """Numbers as whole numbers of the last digit of decimals; None where none is a decimal, or one may not fit."""
        if self.builder.scale is None or not {"decimal", "scaled"} & {part.kind for part in parts}:
            return None
        made = [self.scale(part, 10**self.builder.scale, node) for part in parts]
        found = [part for part in made if part is not None]
        return found if len(found) == len(parts) else None

    def scale(self, part: Part, factor: int, node: Any) -> Part | None:
        """A number as a whole number of the last digit, where it is one that fits."""
        if part.kind in ("scaled", "null"):
            return part
        if part.kind == "decimal":
            return replace(self.cast(part, "bigint", "int", node, factor=factor), kind="scaled")
        if isinstance(part.tree, Constant) and part.tree.value is not None:
            value = whole_number(part.tree.value, factor)
            return None if value is None else Part(Constant(value), "scaled")
        if part.kind == "int" and factor <= MOST_FACTOR and self.is_small(part.tree):
            return Part(Call("*", (part.tree, Constant(factor))), "scaled")
        return None

    def is_small(self, tree: Expression) -> bool:
        """Whether a tree gives integers of 32 bits."""
        match tree:
            case MatchNumber() | Aggregate("count"):
                return True
            case Value(name, _) | Fetch(name, _) | Aggregate("min" | "max", str(name)):
                return self.builder.is_small(name)
            case Call("neg" | "abs", (inner,)):
                return self.is_small(inner)
        return False

    def cast(self, part: Part, to: str, kind: str, node: Any, *, factor: int = 1) -> Part:
        """A value, or so many times a value, cast to another type, in the columns that it is made of."""
        sqls = {f"c{number}": sql for (sql, _), number in self.builder.columns.items()}

        def column(name: str) -> str:
            sql = sqls[name] if factor == 1 else f"({sqls[name]}) * {factor}"
            return f"c{self.builder.column(f'CAST({sql} AS {to.upper()})', kind)}"

        def recast(tree: Expression) -> Expression:
            match tree:
                case Constant():
                    return tree
                case Value(name, seen):
                    return Value(column(name), seen)
                case Fetch(name, row):
                    return Fetch(column(name), row)
                case Aggregate("min" | "max" as name, str(one), variables) if part.kind != "string":
                    # The cast keeps the order.
                    return Aggregate(name, column(one), variables)
                case Call("if", (condition, one, other)):
                    return Call("if", (condition, recast(one), recast(other)))
                case Call("coalesce", arguments):
                    return Call("coalesce", tuple(map(recast, arguments)))
            self.fail(f"{with_article(part.kind)} cannot be cast to {to} here; cast what it is made of", node)

        return Part(recast(part.tree), kind)

    def arithmetic(self, operator: str, node: Any) -> Part | None:
        """``+ - * / %`` of numbers, and of times where microseconds can be added."""
        one, two = self.part(node.this), self.part(node.expression)
        kinds = {one.kind, two.kind}
        seen = self.one_row(node)
        by_days = kinds & _TIMES and "interval" in kinds and self.is_of_days(node)
        if seen is not None and (kinds & {"decimal", "date"} or by_days):
            return None  # Spark computes it
        if "" in kinds:
            if seen is not None:
                self.kind_of(self.sql(node), node)
            return Part(Call(operator, (one.tree, two.tree)), "")
        if operator == "-" and one.kind == two.kind and one.kind in _TIMES:
            if one.kind == "timestamp":
                # As Spark has it: the difference of what clocks show.
                one, two = (self.cast(part, "timestamp_ntz", "timestamp_ntz", node) for part in (one, two))
            return Part(Call("-", (one.tree, two.tree)), "interval")
        if operator in "+-" and one.kind in ("timestamp", "timestamp_ntz") and two.kind == "interval":
            if self.has_days(node):
                self.fail("days are added to one row's time, as in LAST(v.ts + INTERVAL 1 DAY)", node)
            return Part(Call(operator, (one.tree, two.tree)), one.kind)
        if operator in "+-" and kinds <= {"interval", "null"}:
            return Part(Call(operator, (one.tree, two.tree)), "interval")
        if "interval" in kinds or kinds & _TIMES:
            names = " and ".join(with_article(part.kind) for part in (one, two))
            self.fail(f"{operator} of {names} is not known of rows matched", node)
        if operator in "+-" and (exact := self.scale_all([one, two], node)) is not None:
            return Part(Call(operator, tuple(part.tree for part in exact)), "scaled")
        one, two = self.number(one, node), self.number(two, node)
        kind = "float" if operator == "/" or "float" in (one.kind, two.kind) else "int"
        return Part(Call(operator, (one.tree, two.tree)), kind)

    def has_days(self, node: Any) -> bool:
        """Whether an interval in days stands in a part: with a time zone, a day is not always 24 hours."""
        return any(str(each.unit).upper().startswith("DAY") for each in node.find_all(exp.Interval))

    def is_of_days(self, node: Any) -> bool:
        """Whether what is added may be a day or more, whatever its unit: Spark adds days as days."""
        parts = [part for side in (node.this, node.expression) if (part := self.constant(side)) is not None]
        amounts = [part.tree.value or 0 for part in parts if isinstance(part.tree, Constant)]
        return not amounts or self.has_days(node) or any(abs(amount) >= _DAY for amount in amounts)

    def compare(self, operator: str, left: Any, right: Any, node: Any) -> Part:
        """A comparison."""
        labels = [self.label(left, right), self.label(right, left)]
        if any(label is not None for label in labels) and operator in ("=", "<>", "<=>"):
            trees = [label or self.part(one).tree for label, one in zip(labels, (right, left), strict=True)]
            return Part(Call(operator, tuple(reversed(trees))), "boolean")
        parts = [self.part(left), self.part(right)]
        kinds = {part.kind for part in parts}
        if "label" in kinds and (kinds > {"label"} or operator not in ("=", "<>", "<=>")):
            # Variables have numbers, not in the order of their names.
            for at, one in enumerate((left, right)):
                parts[at] = (self.by_label(one) if parts[at].kind == "label" else None) or parts[at]
        one, two = self.alike(parts, node)
        return Part(Call(operator, (one.tree, two.tree)), "boolean")

    def label(self, classifier: Any, other: Any) -> Expression | None:
        """What a constant is that is compared with CLASSIFIER: a variable, or what no row has."""
        term = self.term(classifier)
        if (
            term is None
            or self.find_classifier_row(term) is None
            or not isinstance(other, exp.Literal)
            or not other.is_string
        ):
            return None
        name = read_string(self.formula.unmasked(f"'{other.this}'"))
        return Label(name) if name in self.clause.variables else Constant(-1)

    def alike(self, parts: Sequence[Part], node: Any) -> list[Part]:
        """Parts as values that can be compared with each other; fail where they cannot."""
        kinds = {part.kind for part in parts} - {"null"}
        if "" in kinds or not kinds:
            return list(parts)
        if kinds <= NUMBERS:
            if kinds & {"decimal", "scaled"}:
                if kinds <= {"decimal"} and all(part.column >= 0 or part.kind == "null" for part in parts):
                    return self.rank_together(parts)
                return self.scale_all(parts, node) or [self.number(part, node) for part in parts]
            return list(parts)
        if "string" in kinds and len(kinds) == 2 and (other := (kinds - {"string"}).pop()) in _TIMES:
            return [self.cast(part, other, other, node) if part.kind == "string" else part for part in parts]
        if kinds == {"date", "timestamp"} or kinds == {"date", "timestamp_ntz"}:
            to = (kinds - {"date"}).pop()
            return [self.cast(part, to, to, node) if part.kind == "date" else part for part in parts]
        if len(kinds) > 1:
            names = " and ".join(sorted(map(with_article, kinds)))
            self.fail(f"{names} stand here together; cast one of them", node)
        kind = kinds.pop()
        if kind in ("string", "binary"):
            return self.rank_together(parts)
        if kind not in ENCODINGS and kind != "label":
            self.fail(cannot_compare(kind), node)
        return list(parts)
