"""MATCH_RECOGNIZE, slow and obviously right: all ways of a pattern in the order of preferment (SQL:2016, R010).

A **way** of a pattern is a sequence of variables, one for each row from a starting row on. The ways from a row have an
order, the preferment: of two ways the one is preferred that chose better at the first place where they differ. Of
alternatives the left one is better, of a greedy quantifier one more iteration, of a reluctant one to stop, of PERMUTE
the order that comes first when its arguments are numbered as written. The match of a starting row is its first way
whose rows all satisfy the conditions of their variables.

A condition is a function of the running match, which ends with the row that is asked about. So nothing here knows an
expression language.

Readings chosen where the standard leaves room, or where its text is not at hand:

- An iteration that takes no row is the last one of its quantifier, unless the least number is not reached: Perl's rule
  (ISO/IEC TR 19075-5, 7.2.8). So ``(A?)*`` ends, and ``(A??)*`` prefers the empty match.
- After an empty match the search goes on with the next row, whatever AFTER MATCH SKIP says.
- Empty matches have match numbers. The row where one begins is not unmatched, and a row of an earlier match is not
  unmatched either, though a later attempt failed there.
- ``^`` and ``$`` look at the partition, not at the match, and may stand anywhere in a pattern.
- What stands in any ``{- -}`` is excluded, however deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Variable:
    """One row that satisfies the variable's condition."""

    name: str


@dataclass(frozen=True)
class Start:
    """``^``: no row of the partition is before this place."""


@dataclass(frozen=True)
class End:
    """``$``: no row of the partition is behind this place."""


@dataclass(frozen=True)
class Concatenation:
    """One behind the other; of no items, it is the empty pattern ``()``."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Alternation:
    """One of the items; the left is preferred."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Permutation:
    """All items in any order."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Quantified:
    """`least` to `most` iterations (None: any number); greedy unless `reluctant`."""

    item: Pattern
    least: int
    most: int | None
    reluctant: bool = False


@dataclass(frozen=True)
class Excluded:
    """``{- … -}``: the rows are of the match, and are not shown."""

    item: Pattern


Pattern = Variable | Start | End | Concatenation | Alternation | Permutation | Quantified | Excluded
Way = tuple[tuple[str, bool], ...]
"""For each row its variable, and whether it is excluded."""


@dataclass(frozen=True)
class Running:
    """A match so far: the row asked about is its last one.

    Attributes
    ----------
    rows
        All rows of the partition.
    start
        Index of the match's first row.
    labels
        The variable of each of its rows.
    number
        The number that the match will have.
    subsets
        Variables that stand for several others.
    """

    rows: Sequence[Row]
    start: int
    labels: tuple[str, ...]
    number: int
    subsets: Mapping[str, tuple[str, ...]]

    @property
    def current(self) -> int:
        """Index of the row asked about."""
        return self.start + len(self.labels) - 1

    def of(self, variable: str | None = None) -> list[int]:
        """Indexes of the rows of a variable or subset, or of all rows of the match."""
        names = self.labels if variable is None else self.subsets.get(variable, (variable,))
        return [self.start + at for at, label in enumerate(self.labels) if label in names]

    def first(self, variable: str | None, column: str, offset: int = 0) -> Any:
        """``FIRST(variable.column, offset)``; None where there are not so many rows."""
        rows = self.of(variable)
        return self.rows[rows[offset]][column] if offset < len(rows) else None

    def last(self, variable: str | None, column: str, offset: int = 0) -> Any:
        """``LAST(variable.column, offset)``; None where there are not so many rows."""
        rows = self.of(variable)
        return self.rows[rows[-1 - offset]][column] if offset < len(rows) else None

    def prev(self, column: str, offset: int = 1) -> Any:
        """``PREV(column, offset)``, which may lie outside the match; None outside the partition."""
        at = self.current - offset
        return self.rows[at][column] if 0 <= at < len(self.rows) else None

    def values(self, variable: str | None, column: str) -> list[Any]:
        """What an aggregate of the variable is over: the values that are not NULL."""
        return [self.rows[at][column] for at in self.of(variable) if self.rows[at][column] is not None]


Condition = Callable[[Running], "bool | None"]
"""NULL, here None, is not true."""


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP: ``past last row``, ``to next row``, ``to first`` or ``to last`` (also for ``to``)."""

    mode: str = "past last row"
    variable: str = ""


@dataclass(frozen=True)
class Match:
    """A match; one without rows is empty, and begins before the row `start`."""

    number: int
    start: int
    labels: tuple[str, ...]
    excluded: tuple[bool, ...]


@dataclass(frozen=True)
class Found:
    """What a partition gives: its matches in order, and the rows that are of none."""

    matches: tuple[Match, ...]
    unmatched: tuple[int, ...]


class SkipError(Exception):
    """AFTER MATCH SKIP leads nowhere; `reason`: ``absent`` or ``first row``, `start`: the first row of the match."""

    def __init__(self, reason: str, start: int) -> None:
        super().__init__(f"{reason}, match at row {start}")
        self.reason, self.start = reason, start


@dataclass(frozen=True)
class Question:
    """A clause: pattern, conditions of some variables (others are true for every row), subsets and skip."""

    pattern: Pattern
    define: Mapping[str, Condition] = field(default_factory=dict)
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip: Skip = Skip()

    def ask(self, rows: Sequence[Row]) -> Found:
        """The matches in a partition, whose rows are in order."""
        matches: list[Match] = []
        unmatched: list[int] = []
        at, covered = 0, 0
        while at < len(rows):
            way = self.match_at(rows, at, len(matches) + 1)
            if way is None:
                unmatched += [at] if at >= covered else []
                at += 1
                continue
            labels = tuple(label for label, _ in way)
            matches.append(Match(len(matches) + 1, at, labels, tuple(excluded for _, excluded in way)))
            covered = max(covered, at + len(way))
            at = self.after(at, labels) if way else at + 1
        return Found(tuple(matches), tuple(unmatched))

    def match_at(self, rows: Sequence[Row], start: int, number: int) -> Way | None:
        """The first way from a row whose conditions all hold."""
        judged: dict[tuple[str, ...], bool] = {(): True}

        def holds(labels: tuple[str, ...]) -> bool:
            if labels not in judged:
                condition = self.define.get(labels[-1])
                running = Running(rows, start, labels, number, self.subsets)
                judged[labels] = holds(labels[:-1]) and (condition is None or condition(running) is True)
            return judged[labels]

        every = ways(self.pattern, start, len(rows))
        return next((way for way in every if holds(tuple(label for label, _ in way))), None)

    def after(self, start: int, labels: tuple[str, ...]) -> int:
        """Where the search goes on after a match that has rows."""
        if self.skip.mode == "past last row":
            return start + len(labels)
        if self.skip.mode == "to next row":
            return start + 1
        names = self.subsets.get(self.skip.variable, (self.skip.variable,))
        rows = [start + at for at, label in enumerate(labels) if label in names]
        if not rows:
            raise SkipError("absent", start)
        target = rows[0] if self.skip.mode == "to first" else rows[-1]
        if target == start:
            raise SkipError("first row", start)
        return target


def ways(pattern: Pattern, at: int, end: int, excluded: bool = False) -> Iterator[Way]:
    """All ways of a pattern from the row `at` of a partition of `end` rows, in the order of preferment."""
    match pattern:
        case Variable(name):
            if at < end:
                yield ((name, excluded),)
        case Start():
            if at == 0:
                yield ()
        case End():
            if at == end:
                yield ()
        case Excluded(item):
            yield from ways(item, at, end, True)
        case Concatenation(()):
            yield ()
        case Concatenation((first, *others)):
            for way in ways(first, at, end, excluded):
                for rest in ways(Concatenation(tuple(others)), at + len(way), end, excluded):
                    yield way + rest
        case Alternation(items):
            for item in items:
                yield from ways(item, at, end, excluded)
        case Permutation(items):
            # In the lexicographic order of the arguments' numbers, as the library gives them.
            for order in permutations(items):
                yield from ways(Concatenation(order), at, end, excluded)
        case Quantified():
            yield from _iterations(pattern, 0, at, end, excluded)


def _iterations(pattern: Quantified, done: int, at: int, end: int, excluded: bool) -> Iterator[Way]:
    """The ways of a quantifier that has `done` iterations already."""
    if pattern.reluctant and done >= pattern.least:
        yield ()
    if pattern.most is None or done < pattern.most:
        for way in ways(pattern.item, at, end, excluded):
            if not way and done + 1 >= pattern.least:
                yield ()
                continue
            for rest in _iterations(pattern, done + 1, at + len(way), end, excluded):
                yield way + rest
    if not pattern.reluctant and done >= pattern.least:
        yield ()
