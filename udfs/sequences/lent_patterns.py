"""Patterns of `match_seq` that the kleene engine matches: those that go beyond what the sketch engine does by itself.

The sketch says where such a match can be, and the events there are read, as for any exact answer. They are matched in
the order of time, as `match_pattern` does, in which repetitions, absences and what else there is have their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.errors import PatternError, UnsupportedOperatorError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan
from patternlake.udfs.kleene.query import Ending, KleenePattern, Operand
from patternlake.udfs.kleene.query import compile_pattern as compile_kleene
from patternlake.udfs.language.predicate.predicates import Scope, names_admitted
from patternlake.udfs.language.query import engines
from patternlake.udfs.language.query.tree import Query
from patternlake.udfs.pattern_names import names_asked
from patternlake.udfs.sketch.kernels.hits import OperandMatches
from patternlake.udfs.sketch.query import Alternative, SketchPattern, Slot
from patternlake.udfs.sketch.request import compile_own


@dataclass(frozen=True)
class OfKleene:
    """A pattern that the kleene engine matches: a `LentPattern`.

    Attributes
    ----------
    pattern
        Compiled by that engine.
    """

    pattern: KleenePattern

    @property
    def columns(self) -> frozenset[str]:
        """The columns of events that matching reads."""
        return self.pattern.columns

    @property
    def operands(self) -> Sequence[str]:
        """The operands that take events."""
        return [self.pattern.operands[number].name for number in self.pattern.positive]

    @property
    def ranked(self) -> bool:
        """Whether it matters how many events lie between two."""
        return self.pattern.ranked

    @property
    def reach(self) -> int | None:
        """The length of its window, and how far beyond it deadlines look."""
        within = self.pattern.within
        return None if within is None or within.counted else within.amount + self.pattern.beyond_window

    def match(
        self, events: Events, *, policy: str, after_match: str, max_matches: int, truncate: bool
    ) -> OperandMatches:
        """Match events, along the tree that is the cheapest for them; as of `LentPattern`."""
        # Here and not above: most questions do without these kernels.
        from patternlake.udfs.kleene.kernels.matching import match_events

        return match_events(
            self.pattern,
            events,
            policy=policy,
            after_match=after_match,
            plan=choose_plan(self.pattern, self._statistics(events)).plan if policy == "skip_till_any" else None,
            max_matches=max_matches,
            truncate=truncate,
        )

    def _statistics(self, events: Events) -> Statistics:
        taken = {
            operand.takes: events.named(operand.takes) if operand.define is None else events.truth(operand.define)
            for operand in self.pattern.operands
        }
        return Statistics(
            counts={name: float(np.count_nonzero(mask)) for name, mask in taken.items()},
            events=len(events),
            keys=max(1, len(np.unique(events.keys))),
            duration=float(np.ptp(events.times)) if len(events) else 0.0,
        )


def compile_asked(query: Query, *, verify: bool, scope: Scope, policy: str, names_are_tokens: bool) -> SketchPattern:
    """Compile a query for the engine that matches it.

    Parameters
    ----------
    query, verify, scope, policy, names_are_tokens
        As of `request.Compile`.

    Raises
    ------
    PatternError
        As of `query.compile_pattern`; with `verify` what the kleene engine refuses.
    """
    own: PatternError | None = None
    if not verify or engines.is_matched_by_itself(query, "sketch"):
        try:
            return compile_own(query, verify=verify, scope=scope, policy=policy, names_are_tokens=names_are_tokens)
        except PatternError as refusal:
            # An AND of many names, aggregates of A[3]: what the sketch engine has no room for.
            if not verify:
                raise
            own = refusal
    engines.check(query, "sketch")
    try:
        return lend(compile_kleene(query, scope, policy=policy), names_are_tokens=names_are_tokens)
    except PatternError:
        # Of predicates the kleene engine takes more, and so has more to say.
        if isinstance(own, UnsupportedOperatorError):
            raise own from None
        raise


def lend(pattern: KleenePattern, *, names_are_tokens: bool) -> SketchPattern:
    """What the sketch is asked of a pattern that the kleene engine matches."""
    asking = [part for operand in pattern.operands for part in operand.asking]
    admitted = {
        part.takes: names_admitted(part.define) if names_are_tokens else None
        for part in asking
        if part.define is not None
    }
    # A primitive that may also equal another token names no event.
    told = (part for part in asking if names_are_tokens or part.define is None)

    def slot(parts: list[Operand | Ending]) -> Slot:
        takes = dict.fromkeys((part.takes, part.define is not None) for part in parts)
        return Slot(tuple(Alternative(name, name, name, primitive) for name, primitive in takes))

    slots = (slot(asking), *(slot([pattern.operands[number] for number in kind]) for kind in _kinds(pattern)))
    return SketchPattern(
        names=names_asked((part.takes, part.define) for part in told),
        slots=slots,
        blocks=(0, len(slots)),
        terms=(0, 1),
        gaps=(),
        admitted=admitted,
        define={},
        where=None,
        partition=pattern.query.partition,
        within=pattern.query.within,
        measures=pattern.measures,
        lent=OfKleene(pattern),
    )


def _kinds(pattern: KleenePattern) -> list[list[int]]:
    """Sets of operands of each of which every match has an event: those that it may begin with, and those that it
    always has.
    """
    always = {n for n in pattern.positive if pattern.operands[n].always}
    always = always.intersection(*(linearization.operands for linearization in pattern.linearizations))
    return [sorted(pattern.beginnings), *([number] for number in sorted(always))]
