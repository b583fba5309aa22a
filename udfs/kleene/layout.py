"""The slots of a linearization, and which conditions are judged where.

A **slot** takes one event (``one``), all that can be added (``group``), or any choice of so many of the events that fit
(``pick``). ``[n]`` becomes a pick wherever which n are picked changes nothing else, so that the combinations need not
be listed before the end ("Kleene num", late combination). Where something does depend on them, its first or last event,
or all of them, become slots of their own:

- next to another repeated operand the event at that side settles what that one collects;
- at an end of the linearization under WITHIN, it settles the window of a repeated operand at the other end;
- next to ``!`` it settles where the negated event must not be, next to ``,`` which event comes directly next, and
  where an operand is left out, what could be added to it;
- a condition between neighbours, with another repeated operand or with a negated one needs all, and so does an
  aggregate; and so does ``!`` beside it under ``&``, where an event that is passed over may be the one forbidden.

An operand that may take several numbers of events gives several layouts, whose matches are all different:

- ``b{n,m}`` takes m of the events that fit, as ``b[m]`` does; or all that can be added where they are fewer, as ``b+``
  does; or none, where n is 0 and none can be added (**left out**). So does ``b?``, which is ``b{0,1}``.
- ``b*`` next to ``,`` takes some events, or none. Elsewhere an empty group is a group.
- Under ``repetition => 'all'`` it takes no event, one, or two and any choice of those between them; where all events of
  it must be known, a **choice**, whose sets of events are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product

from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import Condition, KleenePattern
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.references import Reference

MOST_SLOTS = 200
"""Greatest number of slots of one linearization."""
MOST_LAYOUTS = 500
"""Greatest number of layouts of one pattern."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of the match.

    Attributes
    ----------
    operand
        The operand that it belongs to.
    kind
        ``one``, ``group``, ``choice`` or ``pick``.
    count
        Least number of events: 1 for one.
    most
        Greatest number of events; None: there is none. A group has as many as can be added, and no match where those
        are more.
    """

    operand: int
    kind: str
    count: int
    most: int | None


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
        The group or choice whose neighbours it compares, or None; references with ``[i-1]`` are then to the earlier
        one.
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
    """A linearization by slots.

    Attributes
    ----------
    linearization
        The linearization, without the operands that are left out.
    whole
        The linearization with them.
    slots
        In an order that `before` allows.
    of_operand
        The slots of each operand.
    stages
        The slots cut into runs: a group, a choice, a pick, or ones; in order.
    before
        Pairs (a, b): the events of slot a come before those of b.
    next_to
        Pairs (a, b) of ones: b takes the event directly after that of a in the partition.
    left_out
        The operands that take no event, of which none can be added to a match; under ``repetition => 'all'`` that is no
        matter.
    joins
        Conditions over ones only.
    candidates
        Conditions over ones and one group, choice or pick: they choose among its events.
    chains
        Conditions over neighbours of a group or choice, and ones.
    pairs
        Conditions over two groups or choices.
    negations
        Conditions over a negated operand.
    outside
        Conditions over operands that are left out.
    needed
        For all but ones how many of the events that fit it there must be for a match: `Slot.count`, or more where a
        COUNT must reach more. What a group keeps is among them.
    ending
        The groups, choices, and operands with several slots, whose collecting UNTIL ends.
    """

    linearization: Linearization
    whole: Linearization
    slots: tuple[Slot, ...]
    of_operand: Mapping[int, tuple[int, ...]]
    stages: tuple[tuple[int, ...], ...]
    before: frozenset[tuple[int, int]]
    next_to: frozenset[tuple[int, int]]
    left_out: tuple[int, ...]
    joins: tuple[SlotCondition, ...]
    candidates: tuple[SlotCondition, ...]
    chains: tuple[SlotCondition, ...]
    pairs: tuple[SlotCondition, ...]
    negations: tuple[Condition, ...]
    outside: tuple[Condition, ...]
    needed: Mapping[int, int]
    ending: frozenset[int]

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

    @property
    def sized(self) -> tuple[int, ...]:
        """The groups whose events must be counted once they are collected."""
        return tuple(slot for slot in self.of_kind("group") if self.slots[slot].count > 1 or self.slots[slot].most)

    @property
    def touching(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Slots of the two sides of each ``,``, where `next_to` does not say it: it is judged of what is collected."""
        sides = [
            tuple(tuple(slot for operand in side for slot in self.of_operand[operand]) for side in pair)
            for pair in self.linearization.adjacent
        ]
        return tuple((left, right) for left, right in sides if self._meeting(left, right) not in self.next_to)

    def _meeting(self, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, int] | None:
        """The last slot of one side and the first one of the other, where it is known which these are, and both are
        ones.
        """
        last = [a for a in left if all(a == b or (b, a) in self.before for b in left)]
        first = [a for a in right if all(a == b or (a, b) in self.before for b in right)]
        if last and first and self.slots[last[0]].kind == self.slots[first[0]].kind == "one":
            return last[0], first[0]
        return None

    @property
    def clear(self) -> tuple[tuple[int, int, int], ...]:
        """(a, b, c): no event of the negated operand c lies between those of the ones a and b, whatever else a match
        takes.
        """
        judged = {number for part in self.negations for number in part.absent}
        found = []
        for gap in self.linearization.gaps:
            left, right = (
                tuple(slot for operand in side for slot in self.of_operand.get(operand, ()))
                for side in (gap.left, gap.right)
            )
            met = self._meeting(left, right)
            # An event of the match that stands beside the gap may be there.
            beside = set(self.linearization.operands) - gap.left - gap.right
            if met is None or beside or gap.behind or gap.ahead:
                continue
            alone = [absent.operands[0] for absent in gap.negated if len(absent.operands) == 1]
            found += [(*met, number) for number in alone if number not in judged]
        return tuple(found)

    @property
    def screened(self) -> bool:
        """Whether some of what is collected may be no match, negations and aggregates apart."""
        return bool(self.left_out or self.sized or self.touching or self.ending)


@dataclass(frozen=True, slots=True)
class _Share:
    """How many events an operand takes in a layout, and how.

    Attributes
    ----------
    how
        ``any``: any `least` to `most` of those that fit; ``added``: all that can be added; ``listed``: as ``any``, each
        set of events listed; ``none``.
    front, back
        Of ``any``: whether its first event, and its last one, have slots of their own whatever stands beside them.
    """

    how: str
    least: int = 0
    most: int | None = None
    front: bool = False
    back: bool = False


def layouts_of(pattern: KleenePattern, linearization: Linearization) -> list[Layout]:
    """The layouts of a linearization; no two of them give one match.

    Raises
    ------
    UnsupportedOperatorError
        ``[n]`` needs more than `MOST_SLOTS` slots, or there are more than `MOST_LAYOUTS` layouts.
    """
    ways = [_ways(pattern, linearization, operand) for operand in linearization.operands]
    count = 1
    for each in ways:
        count *= len(each)
        if count > MOST_LAYOUTS:
            message = (
                f"'?', '{{n,m}}' and '*' give this pattern more than {MOST_LAYOUTS} combinations of operands with and "
                "without events; split it into several patterns"
            )
            raise pattern.query.unsupported(message)
    found = []
    for chosen in product(*ways):
        shares = dict(zip(linearization.operands, chosen, strict=True))
        if any(share.how != "none" for share in chosen):
            found.append(_Laying(pattern, linearization, shares).layout())
    return found


def _ways(pattern: KleenePattern, linearization: Linearization, number: int) -> list[_Share]:
    """How an operand may take its events."""
    operand = pattern.operands[number]
    least, most = operand.least, operand.most
    if most is not None and least == most:
        return [_Share("any", least, most)]
    out = [_Share("none")] if least == 0 else []
    some = max(least, 1)
    if most == 1:
        return [_Share("any", 1, 1), *out]
    if pattern.every:
        if _needs_all(pattern, linearization, number):
            return [_Share("listed", some, most), *out]
        return [*_choices(pattern, linearization, number), *out]
    if most is None:
        return (
            [_Share("added", some), *out]
            if out and _ends_matter(pattern, linearization, number)
            else [_Share("added", least)]
        )
    fewer = [_Share("added", some, most - 1)] if most > some else []
    return [_Share("any", most, most), *fewer, *out]


def _choices(pattern: KleenePattern, linearization: Linearization, number: int) -> list[_Share]:
    """Any choice of an operand's events but none, by what must be known of its first and its last event.

    What stands beside it may be left out, and then what stands behind that is next to it: so a repeated operand beside
    it is enough in front, and behind it all are looked at up to one that is needed. Of two such the later one has its
    first event apart; one whose sets are listed is bounded by ones. The first event of a match always has a slot of its
    own.
    """
    operand = pattern.operands[number]
    some, most = max(operand.least, 1), operand.most
    stages = linearization.stages
    at = next(at for at, stage in enumerate(stages) if number in stage)

    def listed(stage: int) -> bool:
        return _needs_all(pattern, linearization, stages[stage][0])

    needed = [later for later in range(at + 1, len(stages)) if pattern.operands[stages[later][0]].least > 0]
    beside = range(at + 1, min(needed, default=len(stages) - 1) + 1)
    both = _ends_matter(pattern, linearization, number) or bool(linearization.gaps)
    front = both or at == 0 or pattern.operands[stages[at - 1][0]].repeated
    windowed = pattern.within is not None and not needed
    back = both or any(map(listed, beside)) or (windowed and any(listed(stage) for stage in range(at)))
    if not (front and back):
        return [_Share("any", some, most, front, back)]
    one = [_Share("any", 1, 1)] if some == 1 else []
    several = [_Share("any", max(some, 2), most, front, back)] if most is None or most > 1 else []
    return [*one, *several]


def _ends_matter(pattern: KleenePattern, linearization: Linearization, number: int) -> bool:
    """Whether ``,`` or UNTIL asks where an operand's events begin and end."""
    touches = any(number in side for pair in linearization.adjacent for side in pair)
    return touches or bool(pattern.operands[number].until)


def _needs_all(pattern: KleenePattern, linearization: Linearization, number: int) -> bool:
    """Whether a condition judges each event of an operand beside other repeated ones, or all of them together, or an
    event that it does not take may be one that must be absent.
    """
    operand = pattern.operands[number]
    return operand.repeated and (
        number in pattern.aggregates.values()
        or _may_pass_over_absent(pattern, linearization, number)
        or any(
            number in condition.operands
            and (
                condition.before is not None
                or condition.negated is not None
                or any(pattern.operands[other].repeated for other in condition.operands if other != number)
            )
            for condition in pattern.conditions
        )
    )


def _may_pass_over_absent(pattern: KleenePattern, linearization: Linearization, number: int) -> bool:
    """Whether what must be absent may be among the events that fit an operand, between those that it takes.

    It is where the operand stands on neither side of ``!``, as ``b+ & !x & c`` has it.
    """
    beside = (gap for gap in linearization.gaps if number not in gap.left and number not in gap.right)
    absent = {one for gap in beside for part in gap.negated for one in part.operands}
    mine = pattern.operands[number].names
    theirs = [pattern.operands[one].names for one in absent]
    return any(mine is None or names is None or not mine.isdisjoint(names) for names in theirs)


def _without(linearization: Linearization, out: frozenset[int]) -> Linearization:
    """A linearization without some of its operands, but in its gaps: a side without events is a side."""
    if not out:
        return linearization
    stages = [tuple(number for number in stage if number not in out) for stage in linearization.stages]
    return replace(
        linearization,
        operands=tuple(number for number in linearization.operands if number not in out),
        before=frozenset(pair for pair in linearization.before if not out & {*pair}),
        adjacent=tuple(
            (left - out, right - out) for left, right in linearization.adjacent if left - out and right - out
        ),
        stages=tuple(stage for stage in stages if stage),
    )


class _Laying:
    """Lays out the slots of a linearization whose operands take certain shares."""

    def __init__(self, pattern: KleenePattern, whole: Linearization, shares: Mapping[int, _Share]) -> None:
        self.pattern = pattern
        self.whole = whole
        self.shares = shares
        self.left_out = tuple(number for number, share in shares.items() if share.how == "none")
        self.linearization = _without(whole, frozenset(self.left_out))
        self.slots: list[Slot] = []
        self.stages: list[tuple[int, ...]] = []
        self.of_operand: dict[int, tuple[int, ...]] = {}

    def layout(self) -> Layout:
        for at, stage in enumerate(self.linearization.stages):
            for operand in stage:
                self.lay(at, operand)
        inside = set(self.linearization.operands)
        conditions = [part for part in self.pattern.conditions if set(part.operands) <= inside]
        slots, of_operand = self.slots, self.of_operand
        made = [
            part
            for condition in conditions
            if condition.negated is None
            for part in _place(condition, slots, of_operand)
        ]
        groups = [sum(slots[slot].kind != "one" for slot in part.slots) for part in made]
        layout = Layout(
            linearization=self.linearization,
            whole=self.whole,
            slots=tuple(slots),
            of_operand=of_operand,
            stages=tuple(self.stages),
            before=_before(self.linearization, slots, of_operand),
            next_to=frozenset(),
            left_out=() if self.pattern.every else self.left_out,
            joins=tuple(part for part, n in zip(made, groups, strict=True) if n == 0),
            candidates=tuple(part for part, n in zip(made, groups, strict=True) if n == 1 and part.chain is None),
            chains=tuple(part for part in made if part.chain is not None),
            pairs=tuple(part for part, n in zip(made, groups, strict=True) if n == 2),
            negations=tuple(part for part in conditions if part.negated is not None),
            outside=tuple(
                part
                for part in self.pattern.conditions
                if part.negated is None and not {*self.left_out}.isdisjoint(part.operands)
            ),
            needed={
                number: max(slot.count, self.pattern.needed[slot.operand])
                if slot.kind in ("group", "choice")
                else slot.count
                for number, slot in enumerate(slots)
                if slot.kind != "one"
            },
            ending=frozenset(
                number
                for number in self.linearization.operands
                if self.pattern.operands[number].until
                and (len(of_operand[number]) > 1 or slots[of_operand[number][0]].kind != "one")
            ),
        )
        met = [layout._meeting(left, right) for left, right in layout.touching]
        return replace(layout, next_to=frozenset(pair for pair in met if pair is not None))

    def lay(self, at: int, operand: int) -> None:
        """Add the slots of an operand of a stage."""
        share = self.shares[operand]
        if share.how != "any":
            self.add(operand, "group" if share.how == "added" else "choice", share.least, share.most)
            return
        front, back = int(share.front), int(share.back)
        if share.least == share.most:
            first, last = self.ends(at, operand, share.least)
            front, back = max(first, front), max(last, back)
            if front + back > share.least:
                front, back = share.least, 0
        # As many as there are of them where all have slots of their own.
        rest = None if share.most is None else max(0, share.most - front - back)
        if rest == 0 and share.most is not None:
            front, back = share.most, 0
        for _ in range(front):
            self.add(operand, "one", 1, 1)
        if rest != 0:
            self.add(operand, "pick", max(0, share.least - front - back), rest)
        for _ in range(back):
            self.add(operand, "one", 1, 1)

    def ends(self, at: int, operand: int, count: int) -> tuple[int, int]:
        """Of an operand that takes so many events, how many have slots of their own: first ones, and last ones."""
        linearization, stages = self.linearization, self.linearization.stages
        if count == 1:
            return 1, 0
        after = self.slots[-1].kind if self.slots else "one"

        def collects(stage: int) -> bool:
            return 0 <= stage < len(stages) and self.shares[stages[stage][0]].how in ("added", "listed")

        last = len(stages) - 1
        windowed = self.pattern.within is not None
        both = bool(linearization.gaps) or _ends_matter(self.pattern, self.whole, operand)
        # What can be added to an operand without events depends on where those beside it begin and end.
        both = both or (bool(self.left_out) and not self.pattern.every)
        share = self.shares[stages[last][0]]
        front = int(both or after != "one" or (windowed and at == 0 and not share.least == share.most == 1))
        back = int(both or collects(at + 1) or (windowed and at == last and collects(0)))
        if _needs_all(self.pattern, self.whole, operand) or count <= front + back:
            front, back = count, 0
        if len(self.slots) + front + back > MOST_SLOTS:
            _refuse(self.pattern, operand)
        return front, back

    def add(self, operand: int, kind: str, count: int, most: int | None) -> None:
        joined = kind == "one" and self.stages and self.slots[self.stages[-1][0]].kind == "one"
        if joined:
            self.stages[-1] += (len(self.slots),)
        else:
            self.stages.append((len(self.slots),))
        self.of_operand[operand] = (*self.of_operand.get(operand, ()), len(self.slots))
        self.slots.append(Slot(operand, kind, count, most))


def _refuse(pattern: KleenePattern, operand: int) -> None:
    shown = pattern.operands[operand].text
    message = (
        f"{shown} needs each of its events on its own here, and a pattern has at most {MOST_SLOTS} such; repeat it "
        "less often, or compare it with plain operands only"
    )
    raise pattern.query.unsupported(message)


def _place(condition: Condition, slots: list[Slot], of_operand: Mapping[int, tuple[int, ...]]) -> list[SlotCondition]:
    """A condition over operands as conditions over their slots."""
    number_of = dict(zip(condition.names, condition.operands, strict=True))
    choices: list[list[tuple[int, int]]] = []
    chain: int | None = None
    for operand in condition.operands:
        own = of_operand[operand]
        if operand != condition.before:
            choices.append([(slot, slot) for slot in own])
        elif slots[own[0]].kind in ("group", "choice"):
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
