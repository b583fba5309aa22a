"""From trees of conditions to their code, what they see of rows taken, and how far apart these may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.measures.seen import CURRENT, FIRST, Seen
from patternlake.udfs.rows.conditions import (
    WHOLE,
    Aggregate,
    Call,
    Classifier,
    Constant,
    Contains,
    Expression,
    Fetch,
    Label,
    MatchNumber,
    Value,
)
from patternlake.udfs.rows.kernels import conditions as codes
from patternlake.udfs.rows.kernels import taken
from patternlake.udfs.rows.kernels.taken import Conditions

_ARITHMETIC = {
    "+": (codes.ADD_I, codes.ADD_F),
    "-": (codes.SUB_I, codes.SUB_F),
    "*": (codes.MUL_I, codes.MUL_F),
    "%": (codes.MOD_I, codes.MOD_F),
    "/": (codes.DIV_F, codes.DIV_F),
}
_SIGNS = {"neg": (codes.NEG_I, codes.NEG_F), "abs": (codes.ABS_I, codes.ABS_F)}
_LOGIC = {"and": codes.AND, "or": codes.OR}
_AGGREGATES = {
    "count": {"int": taken.COUNT_I, "float": taken.COUNT_F},
    "sum": {"int": taken.SUM_I, "float": taken.SUM_F},
    "avg": {"int": taken.AVG_I, "float": taken.AVG_F},
    "min": {"int": taken.MIN_I, "float": taken.MIN_F},
    "max": {"int": taken.MAX_I, "float": taken.MAX_F},
    "least row": {"int": taken.LEAST_ROW_I, "float": taken.LEAST_ROW_F},
    "greatest row": {"int": taken.GREATEST_ROW_I, "float": taken.GREATEST_ROW_F},
    "squares": {"float": taken.SQUARES_F},
}
_TURNED = {"<": "<", "<=": "<=", ">": "<", ">=": "<="}
_OPERATORS = frozenset({*_ARITHMETIC, *_SIGNS, *_LOGIC, *codes.COMPARISONS, "not", "is null", "coalesce", "if", "sqrt"})
_Source = tuple[int, int, int]
_MOST_SEEN = 100
"""Of a condition that looks back further, it is not kept what failed: each row on the way would be a part of that."""


@dataclass
class ConditionCode:
    """The code of all conditions of a clause, without the columns.

    Attributes
    ----------
    variables
        The pattern's variables.
    types
        The type of each column by its name: ``int`` or ``float``.
    """

    variables: Sequence[str]
    types: Mapping[str, str]
    begin: list[int] = field(default_factory=lambda: [0])
    code: list[tuple[int, int, int]] = field(default_factory=list)
    rows: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    integers: dict[int, int] = field(default_factory=dict)
    doubles: dict[float, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    sets: dict[frozenset[int], int] = field(default_factory=dict)
    aggregates: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    """By set, kind, column, and by which of them each value counts once, or -1."""
    sees: list[set[_Source] | None] = field(default_factory=list)
    """Of each variable, what its condition sees of rows taken before; None: more than can be told."""
    groups: list[tuple[_Source, ...]] = field(default_factory=list)
    deadlines: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """Of each variable: (column, row, most) where its condition says that the column is at most so much above its value
    in that row. Where the column never falls, as a time by which rows are ordered, no later row can be the variable's
    once one is too far."""

    def add(self, condition: Expression | None) -> None:
        """Compile the condition of the next variable; None: it has none."""
        self.sees.append(set())
        self.deadlines.append([])
        if condition is not None:
            self.emit(condition)
            self.add_deadlines(condition)
        self.begin.append(len(self.code))

    @property
    def looks_back(self) -> list[bool]:
        """Which variables have a condition here."""
        return [last > first for first, last in zip(self.begin, self.begin[1:], strict=False)]

    def group(self, variables: frozenset[int]) -> int:
        """A number for what some conditions see together; -1 where that cannot be told."""
        seen: set[_Source] = set()
        for variable in variables:
            one = self.sees[variable]
            if one is None:
                return -1
            seen |= one
        sources = tuple(sorted(seen))
        if sources not in self.groups:
            self.groups.append(sources)
        return self.groups.index(sources)

    def add_deadlines(self, part: Expression) -> None:
        """Note what the next variable's condition says of how far its row may be from an earlier one."""
        if not isinstance(part, Call):
            return
        if part.operator == "and":
            for argument in part.arguments:
                self.add_deadlines(argument)
        if part.operator not in _TURNED:
            return
        less, more = part.arguments if part.operator in ("<", "<=") else part.arguments[::-1]
        # less <= more + most
        most = 0
        match less, more:
            case Call("-", (own, other)), Constant(int(most)):
                less, more = own, other
            case _, Call("+", (other, Constant(int(most)))) | Call("+", (Constant(int(most)), other)):
                more = other
            case Call("-", (own, Constant(int(most)))), _:
                less = own
        if not isinstance(less, Value) or not isinstance(more, Value) or less.column != more.column:
            return
        if self.types[less.column] == "int" and self.is_own(less.seen) and more.seen.kind != CURRENT:
            whole = most - (_TURNED[part.operator] == "<")
            self.deadlines[-1].append((self.columns[less.column], self.row(more.seen), whole))

    def is_own(self, seen: Seen) -> bool:
        """Whether a row that the next variable's condition looks at is the one asked about."""
        if seen.offset or seen.shift or seen.kind == FIRST:
            return False
        return seen.kind == CURRENT or len(self.deadlines) - 1 in list(self.sets)[self.set_of(seen.variables)]

    def fixed_deadlines(self, variables: frozenset[int], later: frozenset[int]) -> list[tuple[int, int, int]]:
        """The deadlines of variables, from rows that do not change while those of `later` are taken."""
        rows, sets = list(self.rows), list(self.sets)
        every = dict.fromkeys(deadline for variable in sorted(variables) for deadline in self.deadlines[variable])
        return [one for one in every if rows[one[1]][0] == FIRST or not sets[rows[one[1]][1]] & later]

    def emit(self, part: Expression) -> str:
        """Compile a part; its type."""
        match part:
            case Value(column, seen):
                kind = self.type_of_column(column)
                operation = codes.LOAD_F if kind == "float" else codes.LOAD_I
                self.code.append((operation, self.column(column), self.row(seen)))
                self.look(seen, codes.SEES_FIRST, codes.SEES_LAST)
                return kind
            case Classifier(seen):
                self.code.append((codes.LABEL, 0, self.row(seen)))
                if seen.shift:
                    self.sees[-1] = None
                else:
                    self.look(seen, codes.SEES_FIRST_LABEL, codes.SEES_LABEL)
                return "int"
            case Label(variable):
                return self.constant(self.number_of(variable))
            case Constant(value):
                return self.constant(value)
            case MatchNumber():
                self.code.append((codes.NUMBER, 0, 0))
                self.see(codes.SEES_NUMBER, 0, 0)
                return "int"
            case Aggregate():
                return self.aggregate(part)
            case Fetch(column, row):
                self.aggregate(row)
                kind = self.type_of_column(column)
                self.code.append((codes.FETCH_F if kind == "float" else codes.FETCH_I, self.column(column), 0))
                return kind
            case Contains(value, column, variables):
                self.emit(value)
                self.code.append((codes.CONTAINS, self.values_of(self.set_of(variables), column), 0))
                return "int"
            case Call(operator, arguments):
                return self.call(operator, arguments)
        raise AssertionError(part)

    def constant(self, value: float | None) -> str:
        """Compile a constant; its type."""
        if value is None:
            self.code.append((codes.NULL, 0, 0))
            return "int"
        if isinstance(value, float):
            self.code.append((codes.CONST_F, self.doubles.setdefault(value, len(self.doubles)), 0))
            return "float"
        self.code.append((codes.CONST_I, self.integers.setdefault(int(value), len(self.integers)), 0))
        return "int"

    def row(self, seen: Seen) -> int:
        """The number of a row that is looked at."""
        number = -1 if seen.kind == CURRENT else self.set_of(seen.variables)
        return self.rows.setdefault((seen.kind, number, seen.offset, seen.shift), len(self.rows))

    def set_of(self, variables: Sequence[str]) -> int:
        """The number of a set of variables."""
        numbers = frozenset(map(self.number_of, variables or self.variables))
        return self.sets.setdefault(numbers, len(self.sets))

    def number_of(self, variable: str) -> int:
        """The number of a variable."""
        if variable not in self.variables:
            known = ", ".join(self.variables)
            raise ArgumentError(f"{shorten(variable)} is no variable of the pattern; there are: {known}")
        return list(self.variables).index(variable)

    def look(self, seen: Seen, first: int, last: int) -> None:
        """Note what a row that is looked at depends on."""
        if seen.kind == CURRENT:
            return
        number = self.set_of(seen.variables)
        if seen.kind == FIRST:
            self.see(first, number, seen.offset)
            return
        if seen.offset > _MOST_SEEN:
            self.sees[-1] = None
            return
        own = len(self.sees) - 1 in list(self.sets)[number]
        # The last one of a set that the row asked about is of is that row.
        for offset in range(seen.offset + (0 if own else 1)):
            self.see(last, number, offset)

    def see(self, kind: int, number: int, offset: int) -> None:
        """Note something that the condition depends on."""
        seen = self.sees[-1]
        if seen is not None:
            seen.add((kind, number, offset))

    def type_of_column(self, column: str) -> str:
        """The type of a column."""
        if self.types.get(column) not in ("int", "float"):
            known = ", ".join(sorted(self.types)) or "none"
            raise ArgumentError(f"no column of integers or doubles is called {shorten(column)}; there are: {known}")
        return self.types[column]

    def column(self, name: str) -> int:
        """The number of a column: each type has its own array of columns."""
        kind = self.type_of_column(name)
        return self.columns.setdefault(name, sum(self.types[other] == kind for other in self.columns))

    def aggregate(self, part: Aggregate) -> str:
        """Compile an aggregate; its type."""
        if part.name not in _AGGREGATES or (part.column is None and part.name != "count"):
            known = ", ".join(_AGGREGATES)
            raise ArgumentError(f"{shorten(part.name)} is no aggregate of conditions; there are: {known}")
        number = self.set_of(part.variables)
        values = -1 if part.distinct is None else self.values_of(number, part.distinct)
        if part.column is None:
            key, kind = (number, taken.COUNT_ROWS, 0, values), "int"
        else:
            kind = self.type_of_column(part.column)
            if kind not in _AGGREGATES[part.name]:
                raise ArgumentError(f"{part.name} is of doubles, and {shorten(part.column)} has integers")
            key = (number, _AGGREGATES[part.name][kind], self.column(part.column), values)
        each = self.aggregates.setdefault(key, len(self.aggregates))
        kind = WHOLE.get(part.name, kind)
        self.code.append((codes.AGGREGATE_F if kind == "float" else codes.AGGREGATE_I, each, number))
        self.see(codes.SEES_AGGREGATE, each, number)
        return kind

    def values_of(self, number: int, column: str) -> int:
        """The number of the aggregate that counts a column's values in a set."""
        if self.type_of_column(column) != "int":
            raise ArgumentError(f"{shorten(column)} must have integers from 0 on, not doubles")
        if len(list(self.sets)[number]) == len(self.variables):
            # All rows from the first one on: with this, it is known which values there are.
            self.see(codes.SEES_FIRST, number, 0)
        else:
            self.sees[-1] = None
        return self.aggregates.setdefault((number, taken.VALUES_I, self.column(column), -1), len(self.aggregates))

    def call(self, operator: str, arguments: Sequence[Expression]) -> str:
        """Compile an operator; the type of its value."""
        if operator not in _OPERATORS:
            known = ", ".join(sorted(_OPERATORS))
            raise ArgumentError(f"{shorten(operator)} is no operator of conditions; there are: {known}")
        if operator == "if":
            self.emit(arguments[0])
            arguments = arguments[1:]
        emitted = [(self.emit(argument), len(self.code)) for argument in arguments]
        as_floats = operator in ("/", "sqrt") or "float" in [kind for kind, _ in emitted]
        # From the last one on: where the others end stays as it is.
        for kind, end in reversed(emitted):
            if as_floats and kind == "int":
                self.code.insert(end, (codes.TO_FLOAT, 0, 0))
        if operator in _ARITHMETIC or operator in _SIGNS:
            pair = _ARITHMETIC.get(operator) or _SIGNS[operator]
            self.code.append((pair[as_floats], 0, 0))
        elif operator in codes.COMPARISONS:
            operation = codes.COMPARE_F if as_floats else codes.COMPARE_I
            self.code.append((operation, codes.COMPARISONS[operator], 0))
            return "int"
        elif operator in _LOGIC:
            self.code += [(_LOGIC[operator], 0, 0)] * (len(arguments) - 1)
        elif operator == "sqrt":
            self.code.append((codes.SQRT_F, 0, 0))
        elif operator == "coalesce":
            self.code += [(codes.COALESCE, 0, 0)] * (len(arguments) - 1)
        elif operator == "if":
            self.code.append((codes.CHOOSE, 0, 0))
        else:
            self.code.append(({"not": codes.NOT, "is null": codes.IS_NULL}[operator], 0, 0))
            return "int"
        return "float" if as_floats else "int"

    def conditions(self, columns: Mapping[str, tuple[IntArray | FloatArray, BoolArray]], count: int) -> Conditions:
        """The arrays for kernels, with the columns' values and where they are known."""

        def stacked(kind: str, part: int, dtype: type) -> np.ndarray:
            named = [columns[name][part] for name in self.columns if self.types[name] == kind]
            return np.ascontiguousarray(np.stack(named).astype(dtype)) if named else np.zeros((0, count), dtype)

        def table(rows: Sequence[Sequence[int]], width: int) -> IntArray:
            return np.array(rows, np.int64).reshape(-1, width)

        def begins(counts: Sequence[int]) -> IntArray:
            return np.cumsum([0, *counts]).astype(np.int64)

        # Aggregates stand by their sets, so they are numbered anew.
        order = sorted(range(len(self.aggregates)), key=lambda each: list(self.aggregates)[each][0])
        renumbered = {each: at for at, each in enumerate(order)}
        aggregates = [list(self.aggregates)[each] for each in order]
        of_aggregate = (codes.AGGREGATE_I, codes.AGGREGATE_F, codes.CONTAINS)
        code = [(one, renumbered[two] if one in of_aggregate else two, three) for one, two, three in self.code]
        groups = [
            [(kind, renumbered[one] if kind == codes.SEES_AGGREGATE else one, two) for kind, one, two in group]
            for group in self.groups
        ]
        integers = stacked("int", 0, np.int64)
        counted = integers[[column for _, kind, column, _ in aggregates if kind == taken.VALUES_I]]
        member = [[number for names, number in self.sets.items() if v in names] for v in range(len(self.variables))]
        return Conditions(
            begin=np.array(self.begin, np.int64),
            code=table(code, 3),
            row=table(list(self.rows), 4),
            integers=np.array(list(self.integers), np.int64),
            doubles=np.array(list(self.doubles), np.float64),
            int_column=integers,
            int_known=stacked("int", 1, np.bool_),
            float_column=stacked("float", 0, np.float64),
            float_known=stacked("float", 1, np.bool_),
            sets_begin=begins([len(numbers) for numbers in member]),
            sets=np.array([number for numbers in member for number in numbers], np.int64),
            aggregates_begin=begins([sum(one[0] == number for one in aggregates) for number in range(len(self.sets))]),
            aggregate=table(
                [
                    (kind + taken.DISTINCT * (values >= 0), column, renumbered.get(values, -1))
                    for _, kind, column, values in aggregates
                ],
                3,
            ),
            # One at least, if any are counted, though all values are NULL.
            values=int(counted.max(initial=0)) + 1 if len(counted) else 0,
            source_begin=begins([len(group) for group in groups]),
            source=table([source for group in groups for source in group], 3),
            depth=len(code),
        )
