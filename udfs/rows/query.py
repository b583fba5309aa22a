"""A row pattern compiled to a program: match, split, anchor, accept, in arrays, apart from the conditions.

An instruction names the ones that may follow it, so the program is a graph; those that do the same are one, so a place
that several ways lead to is one place, and what failed from there need not be tried again.

A quantifier without an upper bound is a circle. An iteration that takes no row is the last one, once the least number
is reached (Perl's rule; ISO/IEC TR 19075-5, 7.2.8). So all parts of a pattern are compiled with two continuations:
where to go on if nothing was taken since the iteration began, and where if something was. No circle is without a row,
hence the search ends. (Others keep where each iteration began, on which then depends what fails.)

PERMUTE of n variables has a place for each set of variables that are left, 2ⁿ of them and not n!.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.row_pattern.tree import (
    Alternation,
    Clause,
    Concatenation,
    Exclusion,
    Node,
    PartitionEnd,
    PartitionStart,
    Permutation,
    Quantified,
    Variable,
)
from patternlake.udfs.rows.condition_code import ConditionCode
from patternlake.udfs.rows.conditions import Expression
from patternlake.udfs.rows.kernels.programs import ACCEPT, AT_END, AT_START, MATCH, SPLIT, Program

_MOST_PERMUTED = 12
MAX_INSTRUCTIONS = 50_000
"""Longest program: ``A{50000}``, a permutation of twelve variables, or a hundred copies of a hundred iterations."""

_NONE = -1
"""Stands for no instruction."""
_Instruction = tuple[int, int, int, int]
"""Operation, variable (negative: none; doubled, and one more if excluded), following instruction, the other of two."""


@dataclass(frozen=True)
class RowPattern:
    """A pattern as a program.

    Attributes
    ----------
    clause
        The clause; its `variables` are what kernels have the numbers of.
    program
        The pattern.
    code
        Those conditions that look at the match so far.
    """

    clause: Clause
    program: Program
    code: ConditionCode


def compile_pattern(
    clause: Clause,
    conditions: Mapping[str, Expression] | None = None,
    types: Mapping[str, str] | None = None,
) -> RowPattern:
    """Compile the pattern of a clause.

    Parameters
    ----------
    clause
        Its pattern and variables.
    conditions
        By variables, what their conditions say of the match so far; what they say of the row alone is no part of it.
    types
        Of the columns in these conditions: ``int`` or ``float``.

    Returns
    -------
    RowPattern
        The program and the code of the conditions.

    Raises
    ------
    UnsupportedOperatorError
        The program has more than `MAX_INSTRUCTIONS` instructions, as for ``(A{1000}){1000}``.
    ArgumentError
        A condition names a variable, a column, an operator or an aggregate that is not known.

    Examples
    --------
    >>> from patternlake.udfs.language.row_pattern.parser import parse_clause
    >>> compile_pattern(parse_clause("PATTERN (a b+ | c)")).program.operation.tolist()
    [1, 0, 0, 0, 4, 1]
    """
    code = ConditionCode(clause.variables, types or {})
    for variable in clause.variables:
        code.add((conditions or {}).get(variable))
    for variable in conditions or {}:
        code.number_of(variable)
    compiler = _Compiler(clause)
    accept = compiler.make((ACCEPT, -1, _NONE, _NONE), clause.pattern)
    entry = compiler.emit(clause.pattern, accept, accept, excluded=False)
    return RowPattern(clause, compiler.program(entry, code), code)


class _Compiler:
    """Makes a program from its end to its beginning: an instruction is made once those that follow it are."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.number = {name: at for at, name in enumerate(clause.variables)}
        self.instructions: list[_Instruction] = []
        self.known: dict[_Instruction, int] = {}
        self.emitted: dict[tuple[object, ...], int] = {}
        self.permuted: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        self.nullable: dict[int, bool] = {}

    def make(self, instruction: _Instruction, node: Node) -> int:
        """The number of an instruction, which is made unless there is one like it."""
        operation, _, following, other = instruction
        if operation == SPLIT and following == other:
            return following
        if instruction not in self.known:
            self.known[instruction] = self.append(instruction, node)
        return self.known[instruction]

    def append(self, instruction: _Instruction, node: Node) -> int:
        """The number of a new instruction."""
        if len(self.instructions) == MAX_INSTRUCTIONS:
            message = (
                f"the pattern has more than {MAX_INSTRUCTIONS:,} steps once its quantifiers and permutations are "
                "written out; count to less, or leave an upper bound away"
            )
            raise UnsupportedOperatorError(message, self.clause.text, node.span.start, node.span.end)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def can_be_empty(self, node: Node) -> bool:
        """Whether a part can match without a row."""
        if id(node) not in self.nullable:
            inner = [self.can_be_empty(child) for child in node.children()]
            if isinstance(node, Alternation):
                empty = any(inner)
            elif isinstance(node, Quantified):
                empty = node.least == 0 or all(inner)
            else:
                empty = not isinstance(node, Variable) and all(inner)
            self.nullable[id(node)] = empty
        return self.nullable[id(node)]

    def emit(self, node: Node, empty: int, full: int, *, excluded: bool) -> int:
        """Compile a part; where it begins.

        Parameters
        ----------
        node
            The part.
        empty, full
            Where to go on if no row was taken since the innermost iteration began, and if one was.
        excluded
            Whether it stands in an exclusion.
        """
        if not self.can_be_empty(node):
            empty = full  # so that a part that goes on alike is the same
        key = (id(node), empty, full, excluded)
        if key not in self.emitted:
            self.emitted[key] = self.emit_new(node, empty, full, excluded)
        return self.emitted[key]

    def emit_new(self, node: Node, empty: int, full: int, excluded: bool) -> int:
        """Compile a part that was not compiled with these continuations."""
        match node:
            case Variable():
                return self.make((MATCH, 2 * self.number[node.name] + excluded, full, _NONE), node)
            case PartitionStart():
                return self.make((AT_START, -1, empty, _NONE), node)
            case PartitionEnd():
                return self.make((AT_END, -1, empty, _NONE), node)
            case Exclusion():
                return self.emit(node.item, empty, full, excluded=True)
            case Concatenation():
                for item in reversed(node.items):
                    empty, full = self.emit_both(item, empty, full, excluded)
                return empty
            case Alternation():
                ways = [self.emit(item, empty, full, excluded=excluded) for item in node.items]
                return self.first_of(ways, node)
            case Permutation():
                if len(node.items) >= MAX_INSTRUCTIONS.bit_length():
                    message = f"PERMUTE takes {_MOST_PERMUTED} arguments at most, and here are {len(node.items)}"
                    raise UnsupportedOperatorError(message, self.clause.text, node.span.start, node.span.end)
                orders = self.permute(node, tuple(range(len(node.items))), empty, full, excluded)
                return self.first_of([begins for begins, _ in orders], node)
            case Quantified():
                return self.repeat(node, empty, full, excluded)
        raise AssertionError(node)

    def emit_both(self, node: Node, empty: int, full: int, excluded: bool) -> tuple[int, int]:
        """Where a part begins if no row was taken so far, and if one was."""
        begins = self.emit(node, empty, full, excluded=excluded)
        return begins, begins if empty == full else self.emit(node, full, full, excluded=excluded)

    def first_of(self, ways: Sequence[int], node: Node) -> int:
        """Where ways begin of which the first is preferred."""
        begins = ways[-1]
        for way in reversed(ways[:-1]):
            begins = self.make((SPLIT, -1, way, begins), node)
        return begins

    def has_one_way(self, node: Node) -> bool:
        """Whether a part can match in one way at most, whatever the rows."""
        if isinstance(node, (Alternation, Permutation)) or (isinstance(node, Quantified) and node.least != node.most):
            return False
        return all(self.has_one_way(child) for child in node.children())

    def permute(
        self, node: Permutation, left: tuple[int, ...], empty: int, full: int, excluded: bool
    ) -> list[tuple[int, int]]:
        """What is left of a permutation: where its orders begin, the preferred first, with either continuation.

        Each order is an alternative. Those that begin with the same argument begin together if that has one way only:
        if it has more, all of them come before the next order.
        """
        if not left:
            return [(empty, full)]
        key = (id(node), left, empty, full, excluded)
        if key not in self.permuted:
            orders: list[tuple[int, int]] = []
            for number in left:
                rest = self.permute(node, tuple(other for other in left if other != number), empty, full, excluded)
                if self.has_one_way(node.items[number]):
                    rest = [(self.first_of([e for e, _ in rest], node), self.first_of([f for _, f in rest], node))]
                orders += [self.emit_both(node.items[number], *pair, excluded) for pair in rest]
            # The same again fails again.
            self.permuted[key] = list(dict.fromkeys(orders))
        return self.permuted[key]

    def repeat(self, node: Quantified, empty: int, full: int, excluded: bool) -> int:
        """A quantifier: as many iterations as there must be, then those that there may be.

        Of each iteration, the second continuation is the next one. The first one, where it takes nothing, is the end of
        the quantifier, except before the least number is reached.
        """

        def iterate(nothing: int, following: int) -> int:
            return self.emit(node.item, nothing, following, excluded=excluded)

        def choose(iteration: int, stop: int) -> int:
            return self.make((SPLIT, -1, *((stop, iteration) if node.reluctant else (iteration, stop))), node)

        if node.most is None:
            more = following = self.circle(node, full, excluded)
        else:
            more = following = full
            for _ in range(node.most - node.least):
                more, following = choose(iterate(full, more), full), more
                if more == following:  # an iteration that takes nothing
                    break
        if node.least == 0:
            return choose(iterate(empty, following), empty)
        empty, full = iterate(empty, more), iterate(full, more)
        for _ in range(node.least - 1):
            before = empty, full
            empty, full = self.emit_both(node.item, empty, full, excluded)
            if (empty, full) == before:
                break
        return empty

    def circle(self, node: Quantified, full: int, excluded: bool) -> int:
        """Iterations without end, where rows were taken before."""
        key = (id(node), "circle", full)
        if key not in self.emitted:
            head = self.append((SPLIT, -1, _NONE, _NONE), node)
            iteration = self.emit(node.item, full, head, excluded=excluded)
            self.instructions[head] = (SPLIT, -1, *((full, iteration) if node.reluctant else (iteration, full)))
            self.emitted[key] = full if iteration == full else head
        return self.emitted[key]

    def program(self, entry: int, code: ConditionCode) -> Program:
        """The arrays, of those instructions that are reached, the first one first."""
        order, numbers = [entry], {entry: 0, _NONE: _NONE}
        for at in order:
            for following in self.instructions[at][2:]:
                if following not in numbers:
                    numbers[following] = len(order)
                    order.append(following)
        rows = np.array([self.instructions[at] for at in order], np.int64).reshape(-1, 4)
        target = np.array([[numbers[int(at)] for at in row] for row in rows[:, 2:]], np.int64).reshape(-1, 2)
        operation, variable = rows[:, 0].copy(), rows[:, 1] >> 1
        ahead, empty, later = _looked_ahead(operation, variable, target, len(code.looks_back))
        back = [frozenset(one for one in names if code.looks_back[one]) for names in later]
        deadlines: list[list[tuple[int, int, int]]] = [[] for _ in order]
        if any(code.deadlines):
            for at, names in enumerate(_variables_ahead(operation, variable, target)):
                deadlines[at] = code.fixed_deadlines(names, later[at])
        # A place that a single one leads to is entered no more often than that one.
        entered = np.bincount(target[target >= 0], minlength=len(order))
        entered[0] += 1
        several = entered > 1
        exact = several & np.array([not conditions for conditions in back])
        slot = np.where(exact, np.cumsum(exact) - 1, -1)
        return Program(
            operation=operation,
            variable=variable,
            excluded=(rows[:, 1] > 0) & (rows[:, 1] % 2 == 1),
            following=target[:, 0].copy(),
            other=target[:, 1].copy(),
            ahead=ahead,
            empty=empty,
            slot=slot,
            slots=int(exact.sum()),
            group=np.array([code.group(one) if several[at] and one else -1 for at, one in enumerate(back)], np.int64),
            deadline_begin=np.cumsum([0, *map(len, deadlines)]).astype(np.int64),
            deadline=np.array([one for each in deadlines for one in each], np.int64).reshape(-1, 3),
        )


def _looked_ahead(
    operation: IntArray, variable: IntArray, target: IntArray, variables: int
) -> tuple[NDArray[np.uint64], BoolArray, list[frozenset[int]]]:
    """`Program.ahead`, `Program.empty`, and the variables that may follow, next or later."""
    sources = _sources(target)
    ahead, later = [0] * len(operation), [0] * len(operation)
    empty = (operation == ACCEPT).tolist()
    for at in np.flatnonzero(operation == MATCH).tolist():
        ahead[at] = later[at] = 1 << int(variable[at])
    # From each instruction to those that lead to it, until nothing changes; MATCH alone takes a row.
    waiting = list(range(len(operation)))
    while waiting:
        at = waiting.pop()
        for source in sources[at]:
            before = ahead[source], empty[source], later[source]
            later[source] |= later[at]
            if operation[source] != MATCH:
                ahead[source] |= ahead[at]
                empty[source] |= empty[at]
            if before != (ahead[source], empty[source], later[source]):
                waiting.append(source)
    words = -(-max(variables, 1) // 64)
    bits = [[one >> (64 * word) & (1 << 64) - 1 for word in range(words)] for one in ahead]
    return np.array(bits, np.uint64).reshape(-1, words), np.array(empty, np.bool_), _members(later)


def _variables_ahead(operation: IntArray, variable: IntArray, target: IntArray) -> list[frozenset[int]]:
    """For each instruction, the variables that follow on every way to the end, itself included."""
    sources = _sources(target)
    own = [1 << int(one) if one >= 0 else 0 for one in variable]
    every = 0
    for one in own:
        every |= one
    # All, until a way without is known.
    needed = [0 if one == ACCEPT else every for one in operation.tolist()]
    waiting = list(range(len(operation)))
    while waiting:
        at = waiting.pop()
        for source in sources[at]:
            common = every
            for following in target[source].tolist():
                common &= needed[following] if following != _NONE else every
            if (common | own[source]) != needed[source]:
                needed[source] = common | own[source]
                waiting.append(source)
    return _members(needed)


def _sources(target: IntArray) -> list[list[int]]:
    """For each instruction, those that lead to it."""
    sources: list[list[int]] = [[] for _ in range(len(target))]
    for at, followings in enumerate(target.tolist()):
        for following in set(followings) - {_NONE}:
            sources[following].append(at)
    return sources


def _members(bits: Sequence[int]) -> list[frozenset[int]]:
    """Sets of numbers that are given as bits."""
    known = {one: frozenset(at for at in range(one.bit_length()) if one >> at & 1) for one in set(bits)}
    return [known[one] for one in bits]
