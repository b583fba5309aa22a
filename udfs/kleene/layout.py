"""The slots of a linearization, and which conditions are judged where.

A **slot** takes one event (``one``), all that can be added (``group``: a ``+`` or ``*`` operand), or any n of the
events that fit (``pick``). ``[n]`` becomes a pick wherever which n are picked changes nothing else, so that the
combinations need not be listed before the end ("Kleene num", late combination). Where something does depend on them,
its first or last event, or all of them, become slots of their own:

- next to a ``+`` or ``*`` operand, or to another pick, the event at that side settles what those collect;
- at an end of the linearization under WITHIN, it settles the window of a repeated operand at the other end;
- next to ``!`` it settles where the negated event must not be;
- a condition between neighbours, with another repeated operand or with a negated one needs all, and so does an
  aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import Condition, KleenePattern
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.references import Reference

MOST_SLOTS = 200
"""Greatest number of slots of one linearization."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of the match.

    Attributes
    ----------
    operand
        The operand that it belongs to.
    kind
        ``one``, ``group`` or ``pick``.
    count
        Least number of events: 1 for one, 0 or 1 for a group, n for a pick.
    """

    operand: int
    kind: str
    count: int


@dataclass(frozen=True)
class SlotCondition:
    """A condition over certain slots.

    Attributes
    ----------
    predicate
        The conjunct.
    slot_of
        The slot of each reference.
    chain
        The group slot whose neighbours it compares, or None; references with ``[i-1]`` are then to the earlier one.
    """

    predicate: Predicate
    slot_of: Mapping[Reference, int]
    chain: int | None = None

    @property
    def slots(self) -> frozenset[int]:
        """The slots that it names."""
        return frozenset(self.slot_of.values())


@dataclass(frozen=True)
class Layout:
    """A linearization in slots.

    Attributes
    ----------
    linearization
        The linearization.
    slots
        Its slots.
    of_operand
        The slots of each operand of the linearization, in order.
    stages
        The slots cut into runs: a group, a pick, or ones; in order.
    before
        Pairs (a, b): the events of slot a come before those of b.
    joins
        Conditions over ones only.
    candidates
        Conditions over ones and one group or pick: they choose among its events.
    chains
        Conditions over neighbours of a group, and ones.
    pairs
        Conditions over two groups.
    negations
        Conditions over a negated operand.
    needed
        For a group or pick how many of the events that fit it there must be for a match: `Slot.count`, or more where a
        COUNT must reach more. What a group keeps is among them.
    """

    linearization: Linearization
    slots: tuple[Slot, ...]
    of_operand: Mapping[int, tuple[int, ...]]
    stages: tuple[tuple[int, ...], ...]
    before: frozenset[tuple[int, int]]
    joins: tuple[SlotCondition, ...]
    candidates: tuple[SlotCondition, ...]
    chains: tuple[SlotCondition, ...]
    pairs: tuple[SlotCondition, ...]
    negations: tuple[Condition, ...]
    needed: Mapping[int, int]

    @property
    def apart(self) -> bool:
        """Whether no two groups stand next to each other."""
        kinds = [self.slots[stage[0]].kind for stage in self.stages]
        return all(first != "group" or second != "group" for first, second in pairwise(kinds))

    @property
    def total(self) -> bool:
        """Whether the slots, as they are numbered, come one after another."""
        return all((a, b) in self.before for a, b in pairwise(range(len(self.slots))))

    def of_kind(self, kind: str) -> tuple[int, ...]:
        """The slots of a kind, in order."""
        return tuple(number for number, slot in enumerate(self.slots) if slot.kind == kind)


def layout_of(pattern: KleenePattern, linearization: Linearization) -> Layout:
    """The slots of a linearization.

    Raises
    ------
    UnsupportedOperatorError
        ``[n]`` needs more than `MOST_SLOTS` slots; the place is the operand.
    """
    inside = set(linearization.operands)
    conditions = [part for part in pattern.conditions if set(part.operands) <= inside]
    slots: list[Slot] = []
    stages: list[tuple[int, ...]] = []
    of_operand: dict[int, tuple[int, ...]] = {}

    def add(operand: int, kind: str, count: int) -> None:
        joined = kind == "one" and stages and slots[stages[-1][0]].kind == "one"
        if joined:
            stages[-1] += (len(slots),)
        else:
            stages.append((len(slots),))
        of_operand[operand] = (*of_operand.get(operand, ()), len(slots))
        slots.append(Slot(operand, kind, count))

    for at, stage in enumerate(linearization.stages):
        for operand in stage:
            taken = pattern.operands[operand]
            if taken.grows:
                add(operand, "group", taken.least)
            elif not taken.counted:
                add(operand, "one", 1)
            else:
                after = slots[-1].kind if slots else ""
                ones_before, picked, ones_behind = _split(pattern, linearization, at, conditions, after)
                if len(slots) + ones_before + ones_behind > MOST_SLOTS:
                    _refuse(pattern, operand)
                for _ in range(ones_before):
                    add(operand, "one", 1)
                if picked:
                    add(operand, "pick", picked)
                for _ in range(ones_behind):
                    add(operand, "one", 1)
    made = [
        part for condition in conditions if condition.negated is None for part in _placed(condition, slots, of_operand)
    ]
    groups = [sum(slots[slot].kind != "one" for slot in part.slots) for part in made]
    return Layout(
        linearization=linearization,
        slots=tuple(slots),
        of_operand=of_operand,
        stages=tuple(stages),
        before=_before(linearization, slots, of_operand),
        joins=tuple(part for part, n in zip(made, groups, strict=True) if n == 0),
        candidates=tuple(part for part, n in zip(made, groups, strict=True) if n == 1 and part.chain is None),
        chains=tuple(part for part in made if part.chain is not None),
        pairs=tuple(part for part, n in zip(made, groups, strict=True) if n == 2),
        negations=tuple(part for part in conditions if part.negated is not None),
        needed={
            number: pattern.needed[slot.operand] if slot.kind == "group" else slot.count
            for number, slot in enumerate(slots)
            if slot.kind != "one"
        },
    )


def _split(
    pattern: KleenePattern, linearization: Linearization, at: int, conditions: list[Condition], after: str
) -> tuple[int, int, int]:
    """For ``[n]``: events with slots of their own at the front, picked ones, and such at the back."""
    (operand,) = linearization.stages[at]
    count = pattern.operands[operand].least
    if operand in pattern.aggregates.values():
        return count, 0, 0
    for condition in conditions:
        others = set(condition.operands) - {operand}
        if operand in condition.operands and (
            condition.before is not None
            or condition.negated is not None
            or any(pattern.operands[other].repeated for other in others)
        ):
            return count, 0, 0

    def grows(stage: int) -> bool:
        return 0 <= stage < len(linearization.stages) and pattern.operands[linearization.stages[stage][0]].grows

    last = len(linearization.stages) - 1
    windowed = pattern.within is not None
    repeated_end = pattern.operands[linearization.stages[last][0]].repeated
    front = bool(linearization.gaps) or after in ("group", "pick") or (windowed and at == 0 and repeated_end)
    back = bool(linearization.gaps) or grows(at + 1) or (windowed and at == last and grows(0))
    picked = count - front - back
    return (int(front), picked, int(back)) if picked > 0 else (count, 0, 0)


def _refuse(pattern: KleenePattern, operand: int) -> None:
    span = pattern.query.pattern.span
    shown = pattern.operands[operand].text
    message = (
        f"{shown} needs each of its events on its own here, and a pattern has at most {MOST_SLOTS} such; repeat it "
        "less often, or compare it with plain operands only"
    )
    raise UnsupportedOperatorError(message, pattern.query.text, span.start, span.end)


def _placed(condition: Condition, slots: list[Slot], of_operand: Mapping[int, tuple[int, ...]]) -> list[SlotCondition]:
    """A condition over operands as conditions over their slots."""
    number_of = dict(zip(condition.names, condition.operands, strict=True))
    choices: list[list[tuple[int, int]]] = []
    chain: int | None = None
    for operand in condition.operands:
        own = of_operand[operand]
        if operand != condition.before:
            choices.append([(slot, slot) for slot in own])
        elif slots[own[0]].kind == "group":
            chain = own[0]
            choices.append([(chain, chain)])
        else:
            choices.append(list(pairwise(own)))
    made = []
    for chosen in product(*choices):
        pair_of = dict(zip(condition.operands, chosen, strict=True))
        slot_of = {
            reference: pair_of[number_of[reference.operand or ""]][0 if reference.index == "i-1" else 1]
            for reference in condition.predicate.references
        }
        made.append(SlotCondition(condition.predicate, slot_of, chain))
    return made


def _before(
    linearization: Linearization, slots: list[Slot], of_operand: Mapping[int, tuple[int, ...]]
) -> frozenset[tuple[int, int]]:
    pairs = {(a, b) for first, second in linearization.before for a in of_operand[first] for b in of_operand[second]}
    pairs |= {(a, b) for own in of_operand.values() for a in own for b in own if a < b}
    return frozenset(pairs)
