"""Matching for the sketch engine, slow and obviously right: brute force on Python lists.

A row is a node or an event. Every way to give rows to the slots of a pattern is tried; the policies then choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product


@dataclass(frozen=True)
class Row:
    """A node (lo, hi, times) or an event (lo = hi), with the names it holds and, for conditions, a value."""

    lo: int
    hi: int
    time_lo: int
    time_hi: int
    names: frozenset[str]
    ordinal: int = 0
    x: float | None = None


Slot = tuple[str, ...]  # an OR: any of the names
Block = tuple[Slot, ...]  # an AND: all of the slots
Term = tuple[Block, ...]  # a ',' run


Chosen = tuple[tuple[int, int], ...]  # for each slot: the row, and which of the OR's names it stands for


@dataclass(frozen=True)
class Condition:
    """A conjunct over some slots, and perhaps a negated name in a gap: holds(values of the slots, negated value).

    `taken` are (slot, alternative): where another alternative was taken, the conjunct does not apply. Its text calls
    the alternatives of slot 2 ``s2a0``, ``s2a1``, and the second negated name of gap 0 ``n0b1``.
    """

    slots: tuple[int, ...]
    holds: Callable[..., bool]
    text: str
    taken: tuple[tuple[int, int], ...] = ()
    gap: int | None = None
    negated: int | None = None


@dataclass(frozen=True)
class Pattern:
    """Terms, what the gaps between them forbid, and the window: (amount, counted)."""

    terms: tuple[Term, ...]
    gaps: tuple[tuple[str, ...], ...]
    within: tuple[int, bool] | None = None
    conditions: tuple[Condition, ...] = ()
    partition: str | None = None

    @property
    def slots(self) -> list[Slot]:
        return [slot for term in self.terms for block in term for slot in block]

    def text(self) -> str:
        """The pattern in the language; every operand has an alias where there are conditions."""

        def named(name: str, alias: str) -> str:
            return f"{name} AS {alias}" if self.conditions else name

        number = 0
        parts: list[str] = []
        for at, term in enumerate(self.terms):
            blocks = []
            for block in term:
                slots = []
                for slot in block:
                    slots.append(" | ".join(named(name, f"s{number}a{k}") for k, name in enumerate(slot)))
                    number += 1
                blocks.append(slots[0] if len(slots) == 1 else f"AND({', '.join(slots)})")
            parts.append(" , ".join(blocks))
            if at < len(self.gaps) and self.gaps[at]:
                names = [named(name, f"n{at}b{k}") for k, name in enumerate(self.gaps[at])]
                parts.append(f"NOT({', '.join(names)})")
        text = " ; ".join(parts)
        if self.conditions:
            text += " WHERE " + " AND ".join(condition.text for condition in self.conditions)
        if self.partition is not None:
            text += f" PARTITION BY {self.partition}"
        if self.within is not None:
            amount, counted = self.within
            text += f" WITHIN {amount} {'EVENTS' if counted else 'MILLISECOND'}"
        return text

    def as_run(self) -> Pattern:
        """The pattern under strict: one run."""
        blocks = tuple(block for term in self.terms for block in term)
        return Pattern((blocks,), (), self.within, tuple(c for c in self.conditions if c.gap is None))


class Matcher:
    """All questions to one list of rows; on events (`exclusive`) a row serves one slot."""

    def __init__(self, pattern: Pattern, rows: Sequence[Row], *, exclusive: bool, strict: bool) -> None:
        self.pattern = pattern.as_run() if strict else pattern
        self.rows = rows
        self.exclusive = exclusive
        self.strict = strict
        self._holders: dict[Slot, list[tuple[int, int]]] = {}

    def holders(self, slot: Slot) -> list[tuple[int, int]]:
        """Rows that hold a name of a slot, once for each name; without conditions the first name stands for all."""
        if slot not in self._holders:
            self._holders[slot] = self._found(slot)
        return self._holders[slot]

    def holders_of(self, slot: Slot, alternative: int) -> list[tuple[int, int]]:
        """Rows that hold one name of a slot."""
        return [(i, alternative) for i, row in enumerate(self.rows) if slot[alternative] in row.names]

    def _found(self, slot: Slot) -> list[tuple[int, int]]:
        found = [(i, k) for i, row in enumerate(self.rows) for k, name in enumerate(slot) if name in row.names]
        if self.pattern.conditions:
            return found
        return [(i, k) for i, k in found if not any((i, earlier) in found for earlier in range(k))]

    def adjacent(self, used: list[int]) -> bool:
        rows = sorted(set(used))
        pairs = list(pairwise(rows))
        if self.exclusive:
            return all(self.rows[b].ordinal == self.rows[a].ordinal + 1 for a, b in pairs)
        return all(b == a + 1 and self.rows[a].hi + 1 == self.rows[b].lo for a, b in pairs)

    def places(self, number: int, low: int, way: tuple[int, ...] | None = None) -> Iterator[Chosen]:
        """Every way to place a term at rows >= low, block behind block; what can be no run is not gone on with.

        With `way` each slot stands for that alternative alone.
        """
        term = self.pattern.terms[number]
        run = self.strict or len(term) > 1

        def ways(taken: Chosen, blocks: Sequence[Block]) -> Iterator[Chosen]:
            if not blocks:
                yield taken
                return
            before = max((i for i, _ in taken), default=low - 1)
            held = [
                self.holders(slot) if way is None else self.holders_of(slot, way[len(taken) + place])
                for place, slot in enumerate(blocks[0])
            ]
            for part in product(*([(i, k) for i, k in rows if i > before] for rows in held)):
                apart = not self.exclusive or len({i for i, _ in part}) == len(part)
                if apart and (not run or self.adjacent([i for i, _ in (*taken, *part)])):
                    yield from ways((*taken, *part), blocks[1:])

        yield from ways((), term)

    def applies(self, condition: Condition, bound: Chosen) -> bool:
        return all(bound[slot][1] == k for slot, k in condition.taken)

    def values(self, condition: Condition, bound: Chosen) -> list[float | None]:
        return [self.rows[bound[slot][0]].x for slot in condition.slots]

    def gap_is_free(self, gap: int, bound: Chosen, before: int, after: int) -> bool:
        for row in self.rows[before + 1 : after]:
            for k, name in enumerate(self.pattern.gaps[gap]):
                if name in row.names and all(
                    condition.holds(*self.values(condition, bound), row.x)
                    for condition in self.pattern.conditions
                    if (condition.gap, condition.negated) == (gap, k) and self.applies(condition, bound)
                ):
                    return False
        return True

    def conditions_hold(self, bound: Chosen) -> bool:
        return all(
            condition.holds(*self.values(condition, bound))
            for condition in self.pattern.conditions
            if condition.gap is None and max(condition.slots) < len(bound) and self.applies(condition, bound)
        )

    def in_window(self, used: list[int]) -> bool:
        """The greatest less the least time, or place, of the rows; of nodes, the least that this can be."""
        if self.pattern.within is None:
            return True
        amount, counted = self.pattern.within
        rows = [self.rows[i] for i in used]
        if not counted:
            return max(row.time_lo for row in rows) - min(row.time_hi for row in rows) < amount * 1000
        if self.exclusive:
            return max(row.ordinal for row in rows) - min(row.ordinal for row in rows) < amount
        return max(row.lo for row in rows) - min(row.hi for row in rows) < amount

    def accepted(self, parts: list[Chosen]) -> bool:
        bound = tuple(pair for part in parts for pair in part)
        if not self.in_window([i for i, _ in bound]):
            return False
        return all(
            self.gap_is_free(gap, bound, max(i for i, _ in parts[gap]), min(i for i, _ in parts[gap + 1]))
            for gap in range(len(parts) - 1)
        )

    def every(self) -> list[Chosen]:
        """skip_till_any; a tuple of rows once, with the first alternatives."""
        found: dict[tuple[int, ...], Chosen] = {}

        def go(parts: list[Chosen]) -> None:
            bound = tuple(pair for part in parts for pair in part)
            if not self.conditions_hold(bound):
                return
            if len(parts) == len(self.pattern.terms):
                if self.accepted(parts):
                    rows = tuple(i for i, _ in bound)
                    found[rows] = min(found.get(rows, bound), bound)
                return
            for place in self.places(len(parts), max(i for i, _ in parts[-1]) + 1 if parts else 0):
                go([*parts, place])

        go([])
        return list(found.values())

    def of_start(self, start: int) -> Chosen | None:
        """The one match of a start, under strict and skip_till_next.

        On events the ways of the pattern's ORs are tried in the order of the text, and the first that gives a match is
        the match.
        """
        if not self.exclusive:
            return self.of_way(start)
        for way in product(*(range(len(slot)) for slot in self.pattern.slots)):
            found = self.of_way(start, way)
            if found is not None:
                return found
        return None

    def of_way(self, start: int, way: tuple[int, ...] | None = None) -> Chosen | None:
        """The match of a start; with `way` by these alternatives of the ORs."""
        parts: list[Chosen] = []
        bound: Chosen = ()
        for number, term in enumerate(self.pattern.terms):
            low = start if number == 0 else max(i for i, _ in parts[-1]) + 1
            run = len(term) > 1
            options = [
                place
                for place in self.places(number, low, None if way is None else way[len(bound) :])
                if (number > 0 or min(place)[0] == start) and self.conditions_hold(bound + place)
            ]
            if not options:
                return None
            parts.append(min(options, key=lambda place: (max(place)[0], min(place)[0] if run else 0, place)))
            bound += parts[-1]
        return bound if self.accepted(parts) else None

    def per_start(self, past_last: bool) -> list[Chosen]:
        """strict and skip_till_next."""
        found: list[Chosen] = []
        resume = 0
        for start in range(len(self.rows)):
            if start >= resume and (match := self.of_start(start)) is not None:
                found.append(match)
                last = max(match)[0]
                if past_last:
                    resume = last + 1 if self.exclusive else max(last, start + 1)
        return found


def match(pattern: Pattern, rows: Sequence[Row], *, policy: str, after_match: str, exclusive: bool) -> list[Chosen]:
    """Every match: for each slot its row, and which alternative that stands for."""
    matcher = Matcher(pattern, rows, exclusive=exclusive, strict=policy == "strict")
    return matcher.every() if policy == "skip_till_any" else matcher.per_start(after_match == "past_last")
