"""The orders of operands whose union a pattern is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import prod

from naive.kleene_asked import Asked

from patternlake.udfs.language.query import tree

MOST_ORDERS = 20_000


class UndefinedError(Exception):
    """The oracle has no meaning for a pattern, for SPEC has none."""


class TooManyError(Exception):
    """More ways than are tried."""


@dataclass(frozen=True)
class Slot:
    """A place for the events of one operand, in one round of each repeated group around it.

    `most` None: as many as there are.
    """

    name: str
    rounds: tuple[int, ...]
    least: int
    most: int | None


@dataclass(frozen=True)
class Absence:
    """A negation: none of its items between the events of the operands `left` and those of `right`.

    `directly`: ``"after"``, of the event directly behind the left side alone; ``"before"``, of the one directly before
    the right side.
    """

    key: int
    node: tree.Negation = field(compare=False)
    left: frozenset[str] = frozenset()
    right: frozenset[str] = frozenset()
    directly: str = ""


@dataclass(frozen=True)
class Order:
    """Slots one after another.

    `adjacent`: where both sets of slots have events, the first event of the second is the one directly behind the last
    of the first. `untils`: behind the first event of the slots, up to the last, there is none that ends them. `rounds`:
    each of these sets of slots has an event. `left_out`: operands of groups without rounds. `blocks`: sets of slots
    between which no other slot stands, those of each repeated group.
    """

    slots: tuple[Slot, ...] = ()
    adjacent: tuple[tuple[frozenset[Slot], frozenset[Slot]], ...] = ()
    untils: tuple[tuple[frozenset[Slot], tree.Node], ...] = ()
    absences: tuple[Absence, ...] = ()
    rounds: tuple[frozenset[Slot], ...] = ()
    left_out: frozenset[str] = frozenset()
    blocks: tuple[frozenset[Slot], ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return self.left_out.union(slot.name for slot in self.slots)


def orders_of(asked: Asked, node: tree.Node, rounds: tuple[int, ...] = ()) -> list[Order]:
    """The orders of a part of the pattern, in text order; `rounds` of the repeated groups around it."""
    below = [] if isinstance(node, tree.Negation) else [orders_of(asked, child, rounds) for child in node.children()]
    if isinstance(node, tree.Event):
        return [Order((Slot(asked.name_of[id(node)], rounds, 1, 1),))]
    if isinstance(node, tree.Negation):
        return [Order(absences=(Absence(id(node), node),))]
    if isinstance(node, tree.Disjunction):
        return [order for part in below for order in part]
    if isinstance(node, tree.SomeOf):
        sizes = range(len(below), node.count - 1, -1)
        chosen = [some for size in sizes for some in combinations(below, size)]
        return [order for some in chosen for parts in product(*some) for order in beside(parts)]
    if isinstance(node, tree.Conjunction):
        return [order for parts in product(*below) for order in beside(parts)]
    if isinstance(node, tree.Repetition):
        return repeated(asked, node, rounds)
    return [behind(parts, node) for parts in product(*below)]


def repeated(asked: Asked, node: tree.Repetition, rounds: tuple[int, ...]) -> list[Order]:
    """One slot for a name; for a group, every number of rounds that the events suffice for."""
    if isinstance(node.item, tree.Event):
        slot = Slot(asked.name_of[id(node.item)], rounds, node.minimum, node.maximum)
        found = [Order((slot,))]
    else:
        least = min(sum(slot.least for slot in order.slots) for order in orders_of(asked, node.item, (*rounds, 0)))
        most = len(asked.events) // max(1, least)
        inner = [event for event in node.item.walk() if isinstance(event, tree.Event)]
        left_out = Order(left_out=frozenset(asked.name_of[id(event)] for event in inner))
        found = [] if node.minimum else [left_out]
        for count in range(max(1, node.minimum), min(most, node.maximum or most) + 1):
            each = [orders_of(asked, node.item, (*rounds, at)) for at in range(count)]
            if prod(map(len, each)) > MOST_ORDERS:
                raise TooManyError(f"more than {MOST_ORDERS} orders")
            for parts in product(*each):
                whole = behind(parts, node)
                each_round = tuple(frozenset(part.slots) for part in parts)
                blocks = (*whole.blocks, frozenset(whole.slots))
                found.append(replace(whole, rounds=(*whole.rounds, *each_round), blocks=blocks))
    if node.until is None:
        return found
    return [replace(order, untils=(*order.untils, (frozenset(order.slots), node.until))) for order in found]


def behind(parts: Sequence[Order], node: tree.Node) -> Order:
    """Everything of a part before everything of the next; directly, where the node is a run of ``,``."""
    slots: tuple[Slot, ...] = ()
    adjacent: list[tuple[frozenset[Slot], frozenset[Slot]]] = []
    absences: list[Absence] = []
    contiguous = isinstance(node, tree.Contiguous)
    for at, part in enumerate(parts):
        if contiguous and slots and part.slots:
            adjacent.append((frozenset(slots), frozenset(part.slots)))
        adjacent += part.adjacent
        before = frozenset[str]().union(*(other.names for other in parts[:at]))
        later = frozenset[str]().union(*(other.names for other in parts[at + 1 :]))
        negated = contiguous and isinstance(node.children()[at], tree.Negation)
        if negated and 0 < at < len(parts) - 1:
            raise UndefinedError("a negation inside of a run")
        directly = ("after" if at else "before") if negated else ""
        absences += [
            Absence(a.key, a.node, a.left | before, a.right | later, directly or a.directly) for a in part.absences
        ]
        slots += part.slots
    untils = tuple(until for part in parts for until in part.untils)
    return Order(slots, tuple(adjacent), untils, tuple(absences), *left_over(parts))


def beside(parts: Sequence[Order]) -> list[Order]:
    """All parts at once: every way to interleave their slots that leaves repeated groups whole."""
    adjacent = tuple(pair for part in parts for pair in part.adjacent)
    untils = tuple(until for part in parts for until in part.untils)
    absences = tuple(absence for part in parts for absence in part.absences)
    rest = left_over(parts)
    return [
        Order(slots, adjacent, untils, absences, *rest)
        for slots in interleaved([part.slots for part in parts])
        if all(is_together(slots, block) for part in parts for block in part.blocks)
    ]


def is_together(slots: Sequence[Slot], block: frozenset[Slot]) -> bool:
    """Whether no other slot stands between those of a block."""
    at = [place for place, slot in enumerate(slots) if slot in block]
    return not at or at[-1] - at[0] + 1 == len(at)


def left_over(
    parts: Sequence[Order],
) -> tuple[tuple[frozenset[Slot], ...], frozenset[str], tuple[frozenset[Slot], ...]]:
    """The rounds of all parts, all that they leave out, and their blocks."""
    rounds = tuple(one for part in parts for one in part.rounds)
    blocks = tuple(block for part in parts for block in part.blocks)
    return rounds, frozenset[str]().union(*(part.left_out for part in parts)), blocks


def interleaved(parts: Sequence[tuple[Slot, ...]]) -> list[tuple[Slot, ...]]:
    """All merges of some rows of slots that keep the order of each."""
    if not any(parts):
        return [()]
    found = []
    for at, part in enumerate(parts):
        if part:
            rest = [other[1:] if place == at else other for place, other in enumerate(parts)]
            found += [(part[0], *merged) for merged in interleaved(rest)]
    return found
