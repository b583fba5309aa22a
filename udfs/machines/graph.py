"""The states of many subscriptions in one graph, equal prefixes shared.

Source: Muthusamy et al. 2010, section 4.3: two states are one if the same links lead to both from states that are one
(and both, or neither, have a self link). So ``a;b;c``, ``a;b;d`` and ``a`` share two states, and the ``a`` that ends
a subscription is not the ``a`` that waits for ``b``.

Departure from the paper: two states are one only if later conditions, joins and window let their instances live equally
long as well. So whoever shares a state shares what is counted of it, and a merged state never keeps an instance
for one subscription that another has lost.

Only subscriptions with the same partition, the same window and the same decay of counts can share states.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.time_gaps import UNBOUNDED
from patternlake.udfs.language.tree import Conjunction
from patternlake.udfs.machines.cuts import START, Cut, complete, moves, pending
from patternlake.udfs.machines.liveness import FIRST, NOW, Outlook, outlooks
from patternlake.udfs.machines.subscription import Primitive, Subscription, TimeBound

MOST_CUTS = 4_096
"""Greatest number of states of one subscription; only ``&`` multiplies them."""


ALWAYS = Outlook((), 0, ())
"""The outlook that nothing ends."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link: from state `source` to `target` by an event that the primitive takes as operand `operand`.

    Attributes
    ----------
    primitive
        Number in `Graph.primitives`.
    direct
        The event directly follows the last one that was bound.
    bounds
        Time conditions between `operand` and operands that are bound before it.
    """

    source: int
    target: int
    primitive: int
    operand: int
    direct: bool
    bounds: tuple[TimeBound, ...]


@dataclass
class Graph:
    """The states of subscriptions.

    Attributes
    ----------
    primitives
        All primitives, each once.
    links
        All links; those into a state come before those out of it.
    waits
        For each state whether it has a self link. State 0 is the initial one, and waits.
    bound
        For each state the operands that may be bound.
    asked
        For each state the operands whose times later links ask for.
    earliest
        For each state those of them of which later links and outlooks ask only that they be early enough.
    outlooks
        For each state the ways in which its instances may be completed; none of a complete one.
    ids
        For each state a name that does not depend on what other subscriptions there are.
    final
        For each state the subscriptions that it matches.
    states
        For each subscription its states by cut.
    """

    primitives: list[Primitive] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    waits: list[bool] = field(default_factory=lambda: [True])
    bound: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    asked: list[frozenset[int]] = field(default_factory=list)
    earliest: list[frozenset[int]] = field(default_factory=list)
    outlooks: list[frozenset[Outlook]] = field(default_factory=lambda: [frozenset({ALWAYS})])
    ids: list[str] = field(default_factory=lambda: ["0"])
    final: list[list[int]] = field(default_factory=lambda: [[]])
    states: list[dict[Cut, int]] = field(default_factory=list)


def graph_of(subscriptions: Sequence[Subscription], *, root: str = "0", merge: bool = True) -> Graph:
    """The graph of subscriptions that have one partition and one window.

    Parameters
    ----------
    subscriptions
        Compiled.
    root
        Id of the initial state: those of all others follow from it.
    merge
        False: no state but the initial one is shared, for comparison.

    Raises
    ------
    UnsupportedOperatorError
        A subscription has more than `MOST_CUTS` states.
    """
    builder = _Builder(merge, root)
    for number, subscription in enumerate(subscriptions):
        builder.add(number, subscription)
    builder.ask()
    return builder.made


class _Builder:
    def __init__(self, merge: bool, root: str) -> None:
        self.merge = merge
        self.made = Graph(ids=[root])
        self.primitives: dict[Hashable, int] = {}
        self.states: dict[Hashable, int] = {}

    def primitive(self, given: Primitive) -> int:
        """The number of a primitive; equal ones have one, whatever they are called."""
        own = (given.takes if given.define is None else given.define, given.joins)
        if own not in self.primitives:
            self.primitives[own] = len(self.made.primitives)
            self.made.primitives.append(given)
        return self.primitives[own]

    def add(self, number: int, subscription: Subscription) -> None:
        """Add the states and links of one subscription."""
        chain, made = subscription.master, self.made
        numbers = [self.primitive(primitive) for primitive in subscription.primitives]
        states = {START: 0}
        bound: dict[Cut, frozenset[int]] = {START: frozenset()}
        for cut, into in _links_into(subscription).items():
            waits = not pending(chain, cut) and not complete(chain, cut)
            links = [
                (states[step.source], numbers[step.operand], step.operand, step.direct, step.bounds) for step in into
            ]
            bound[cut] = frozenset().union(*(bound[step.source] | {step.operand} for step in into))
            ahead = None if complete(chain, cut) else _ahead(subscription, cut, bound[cut])
            signature: Hashable = (waits, frozenset(links), ahead) if self.merge else (number, cut)
            if signature not in self.states:
                state = self.states[signature] = len(made.waits)
                made.waits.append(waits)
                made.bound.append(bound[cut])
                made.outlooks.append(ahead or frozenset())
                made.ids.append(self.identity(waits, links, ahead))
                made.final.append([])
                made.links += [
                    Link(source, state, primitive, operand, direct, bounds)
                    for source, primitive, operand, direct, bounds in links
                ]
            states[cut] = self.states[signature]
            if complete(chain, cut):
                made.final[states[cut]].append(number)
        made.states.append(states)

    def identity(self, waits: bool, links: Sequence[_LinkSignature], ahead: frozenset[Outlook] | None) -> str:
        """A digest of all that makes a state what it is."""
        made = self.made
        parts = [
            repr((made.ids[source], _text(made.primitives[primitive]), operand, direct, bounds))
            for source, primitive, operand, direct, bounds in links
        ]
        shown = [
            repr((one.bounds, one.missing, [(sorted(a), sorted(b)) for a, b in one.joined])) for one in ahead or ()
        ]
        whole = repr((waits, sorted(parts), ahead is not None, sorted(shown)))
        return blake2b(whole.encode(), digest_size=12).hexdigest()

    def ask(self) -> None:
        """Find what later links ask for, from the last states back."""
        made = self.made
        asked: list[set[int]] = [set() for _ in made.waits]
        exactly: list[set[int]] = [
            {operand for one in ahead for bound in one.bounds for operand in _late_or_early(bound)}
            for ahead in made.outlooks
        ]
        for link in reversed(made.links):
            named = {operand for bound in link.bounds for operand in (bound.later, bound.earlier)}
            asked[link.source] |= (asked[link.target] | named) - {link.operand}
            exact = {operand for bound in link.bounds for operand in _exactly(bound, link.operand)}
            exactly[link.source] |= (exactly[link.target] | exact) - {link.operand}
        made.asked = [frozenset(operands) for operands in asked]
        made.earliest = [frozenset(named - exact) for named, exact in zip(asked, exactly, strict=True)]


_LinkSignature = tuple[int, int, int, bool, tuple[TimeBound, ...]]


def _text(primitive: Primitive) -> str:
    """What a primitive takes, whatever it is called."""
    return repr((primitive.takes if primitive.define is None else (primitive.define.sql(),), primitive.joins))


def _ahead(subscription: Subscription, cut: Cut, bound: frozenset[int]) -> frozenset[Outlook]:
    """The outlooks of a state, as far as instances could tell them apart."""
    counted = subscription.within is not None and subscription.within.counted
    found = frozenset(one if counted else replace(one, missing=0) for one in outlooks(subscription, cut, bound))
    return frozenset({ALWAYS}) if ALWAYS in found else found


def _exactly(bound: TimeBound, operand: int) -> set[int]:
    """The other operand of a link's bound, unless an earlier time of it is always as good."""
    if bound.later == operand:
        earlier_is_as_good = bound.high >= UNBOUNDED and not bound.absolute
        return set() if earlier_is_as_good else {bound.earlier}
    earlier_is_as_good = bound.low <= -UNBOUNDED and not bound.absolute
    return set() if earlier_is_as_good else {bound.later}


def _late_or_early(bound: tuple[int, int, int]) -> set[int]:
    """The operands of an outlook's bound that an earlier time could end: those that others are measured from."""
    _, reference, _ = bound
    return {reference} - {NOW, FIRST}


@dataclass(frozen=True, slots=True)
class _Step:
    """A link of one subscription before its states have numbers."""

    source: Cut
    operand: int
    direct: bool
    bounds: tuple[TimeBound, ...]


def _links_into(subscription: Subscription) -> dict[Cut, list[_Step]]:
    """For each cut but the first the links into it; all that lead to a cut come before it."""
    chain = subscription.master
    onward = {START: moves(chain, START)}
    missing: dict[Cut, int] = {}
    found = [START]
    for cut in found:
        for move in onward[cut]:
            if move.target not in onward:
                onward[move.target] = moves(chain, move.target)
                found.append(move.target)
            missing[move.target] = missing.get(move.target, 0) + 1
        if len(found) > MOST_CUTS:
            raise _too_many(subscription)
    into: dict[Cut, list[_Step]] = {cut: [] for cut in missing}
    bound: dict[Cut, frozenset[int]] = {START: frozenset()}
    ready, order = [START], []
    for cut in ready:
        order.append(cut)
        for move in onward[cut]:
            target, operand = move.target, move.primitive
            into[target].append(_Step(cut, operand, move.direct, _bounds(subscription, operand, bound[cut])))
            bound[target] = bound.get(target, frozenset()) | bound[cut] | {operand}
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return {cut: into[cut] for cut in order[1:]}


def _bounds(subscription: Subscription, operand: int, before: frozenset[int]) -> tuple[TimeBound, ...]:
    """The time conditions that can be judged when an operand is bound after some of these."""
    return tuple(
        bound
        for bound in subscription.bounds
        if (bound.later == operand and bound.earlier in before) or (bound.earlier == operand and bound.later in before)
    )


def _too_many(subscription: Subscription) -> UnsupportedOperatorError:
    query = subscription.query
    place = next(node.sign for node in query.pattern.walk() if isinstance(node, Conjunction))
    message = f"'&' gives this subscription more than {MOST_CUTS:,} states; join fewer operands by it"
    return UnsupportedOperatorError(message, query.text, place.start, place.end)
