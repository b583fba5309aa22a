"""Exact matching of a pattern on the events of many partitions.

Source: SPEC section 3 and Behravesh et al. (FAEM). For each linearization of the pattern partial matches of the plain
operands are joined along the plan's tree; then ``+``, ``*`` and ``[n]`` take their events; negated events are tested;
last come the combinations of ``[n]``. Work goes through ranges of first events, so that what is held at once does not
grow with the stream: a range that gives too many partial matches is cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

import numpy as np

from patternlake.udfs.arrays import BoolArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import Stream, agreeing_pairs, stream_of
from patternlake.udfs.kleene.kernels import bindings, combining
from patternlake.udfs.kleene.kernels.bindings import Matches, Rows
from patternlake.udfs.kleene.kernels.course import Course
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.kernels.linearized import (
    EVERY,
    MOST_COUNTED,
    PlannedLinearization,
    combined,
    matches_of,
    planned_linearizations,
)
from patternlake.udfs.kleene.kernels.pieces import possible_events, precedes
from patternlake.udfs.kleene.kernels.ranges import first_event_ranges, positions_rise, whole_parts
from patternlake.udfs.kleene.kernels.scanning import per_start
from patternlake.udfs.kleene.kernels.walking import walk_ways
from patternlake.udfs.kleene.plans.replanning import Replanning
from patternlake.udfs.kleene.plans.trees import Plan
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import MATCHES, Work, held, tried
from patternlake.udfs.policies import check_arguments


def match_events(
    pattern: KleenePattern,
    events: Events,
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
    plan: Plan | None = None,
    max_matches: int = 1_000_000,
    truncate: bool = False,
    work: Work | None = None,
    begins: BoolArray | None = None,
    takes: Mapping[int, BoolArray] | None = None,
    replanning: Replanning | None = None,
) -> Matches:
    """Match a pattern.

    Parameters
    ----------
    pattern
        Compiled for `policy`.
    events
        All events of each partition that the pattern can take; with ``ordinals`` where others are left out and windows
        or ``strict`` count events.
    policy
        ``skip_till_any``, ``skip_till_next`` or ``strict``.
    after_match
        ``next``, ``past_last``, ``first b`` or ``last b``, b an operand; it means nothing under ``skip_till_any``.
    plan
        Which tree to join along (`planning.planned`, `trees.forced_plan`); None: left-deep. Rows do not depend on it.
    max_matches
        Greatest number of rows.
    truncate
        True: beyond it the first rows, in order, are the answer; False: an error.
    work
        Filled with what the run did, along all plans that it had; under other policies than ``skip_till_any`` with how
        often conditions over one event held.
    begins
        bool[n]: only matches whose first event is one of these are wanted; None: all. With ``next`` only, and not
        of a pattern with `KleenePattern.choice_first`.
    takes
        By number of an operand of `KleenePattern.always_one` bool[n]: only matches in which it takes one of these are
        wanted. Under ``skip_till_any``.
    replanning
        How `plan` may be changed on the way; None: it stays.

    Returns
    -------
    Matches
        Each match once.

    Raises
    ------
    ArgumentError
        An argument has no such value; `after_match` names an operand of which a match has no event, or which it begins
        with; events are not in order; there are more than `max_matches` rows (the message says
        how many so far); they bind more than `bindings.MOST_BOUND` events together; ``+`` and ``*`` operands can be
        filled in too many ways around one partial match.
    """
    names = [pattern.operands[number].name for number in pattern.positive]
    check_arguments(policy, after_match, max_matches, names)
    stream = stream_of(pattern, events)
    if takes is not None:
        stream = stream.taking(takes)
    if work is not None:
        _note_classes(pattern, stream, len(events), work)
    keeper = Keeper(events, max_matches, truncate)
    if policy == "skip_till_any" and pattern.ways:
        walk_ways(pattern, stream, keeper, begins)
    elif policy == "skip_till_any":
        _every(pattern, stream, keeper, plan, begins, work, replanning)
    else:
        rows = per_start(pattern, stream, strict=policy == "strict", after_match=after_match)
        keeper.add(rows if begins is None else rows.take(np.flatnonzero(begins[rows.events[rows.offsets[:-1]]])))
    rows, total = keeper.result()
    return bindings.answer(names, pattern.positive, rows, events, total)


def observed(
    pattern: KleenePattern, events: Events, *, plan: Plan | None = None, begins: BoolArray | None = None
) -> Work:
    """What `match_events` does under ``skip_till_any``, measured; its rows are counted and let go.

    Parameters
    ----------
    pattern, events, plan, begins
        As for `match_events`.

    Notes
    -----
    Combinations of ``[n]`` are counted, not listed, but where `_may_repeat`.
    """
    work, begun = Work(), perf_counter()
    stream = stream_of(pattern, events)
    _note_classes(pattern, stream, len(events), work)
    linearizations = planned_linearizations(pattern, stream, plan, begins)
    if _may_repeat(pattern):
        everything = Keeper(events, MOST_COUNTED, truncate=False)
        total = sum(len(rows) for rows in _listed_ranges(stream, linearizations, work, everything))
    else:
        total = sum(
            combining.total_of(found, linearization.picks)
            for linearization in linearizations
            for begin, end in first_event_ranges(stream)
            for found in matches_of(linearization, stream, begin, end, work, EVERY)
        )
    work.add(MATCHES, total, perf_counter() - begun)
    return work


def _note_classes(pattern: KleenePattern, stream: Stream, events: int, work: Work) -> None:
    """Tell how often what is asked of events held before they are joined: filters of those that would be taken, DEFINEs
    of all, each ``[attr]`` of all pairs in a window, as if several had an equal part in it.
    """
    found: dict[str, tuple[int, int]] = {}
    for number, operand in enumerate(pattern.operands):
        if operand.define is not None:
            found[operand.define.sql()] = events, stream.unfiltered[number]
        if operand.filter is not None:
            found[operand.filter.sql()] = stream.unfiltered[number], len(stream.members[number])
    if pattern.along:
        pairs, agreeing = agreeing_pairs(pattern, stream)
        share = (agreeing / max(1, pairs)) ** (1 / len(pattern.along))
        found |= {f"[{name}]": (pairs, round(pairs * share)) for name in pattern.along}
    for text, (judged, holding) in found.items():
        work.add(tried(text), judged, 0.0)
        work.add(held(text), holding, 0.0)


def _may_repeat(pattern: KleenePattern) -> bool:
    """Whether two linearizations may give one row: only where an operand of theirs may be without events."""
    optional = any(operand.least == 0 for operand in pattern.operands if not operand.negated)
    return len(pattern.linearizations) > 1 and optional


def _every(
    pattern: KleenePattern,
    stream: Stream,
    keeper: Keeper,
    plan: Plan | None,
    begins: BoolArray | None,
    work: Work | None,
    replanning: Replanning | None,
) -> None:
    """skip_till_any."""
    first = keeper.truncate
    linearizations = planned_linearizations(pattern, stream, plan, begins, first=first)
    if _may_repeat(pattern) and not first:
        for rows in _listed_ranges(stream, linearizations, work, keeper):
            keeper.add(rows)
        return
    in_order = positions_rise(stream)
    sure = precedes(stream) if first else None
    counts = [0] * len(linearizations)
    course = None if replanning is None or plan is None else Course(pattern, stream, plan, replanning)
    for begin, end in first_event_ranges(stream) if course is None else course.ranges():
        own = work if course is None else course.work
        for number, linearization in enumerate(linearizations):

            def enough(number: int = number) -> bool:
                return first and counts[number] > keeper.most

            # Its rows come in order: later ones are behind as many as are asked for.
            if linearization.order.by_first and enough():
                continue
            limits = keeper.limits(linearization, in_order)
            for found in matches_of(linearization, stream, begin, end, own, limits, enough, keeper.beyond):
                keeper.count(combining.total_of(found, linearization.picks))
                if sure is not None and found.ones:
                    before = np.logical_and.reduce([sure[events] for events in found.ones.values()])
                    counts[number] += combining.total_of(found.take(before), linearization.picks)
                ranged = any(pick.least != pick.most for pick in linearization.picks.values())
                # Where positions do not rise, the first choices of several sizes are known when all are.
                for rows in combined(linearization, stream, found, keeper.limit if in_order or not ranged else None):
                    keeper.keep(rows)
        done = end == len(stream) or stream.key[stream.part[end]] != stream.key[stream.part[end - 1]]
        # What comes later is behind everything that is kept.
        if first and keeper.full and (done or (in_order and _rising(linearizations))):
            break
        if course is not None and end < len(stream) and course.turned(end):
            linearizations = planned_linearizations(pattern, stream, course.plan, begins, first=first)
    if course is not None and work is not None:
        work.take(course.whole)


def _rising(linearizations: list[PlannedLinearization]) -> bool:
    """Whether matches of later first plain events always come later in the answer, also beside other linearizations."""
    return all(one.order.by_first and one.layout.slots[0].kind == "one" for one in linearizations)


def _listed_ranges(
    stream: Stream, linearizations: list[PlannedLinearization], work: Work | None, keeper: Keeper
) -> Iterator[Rows]:
    """The distinct rows of all linearizations, a range of partitions at a time; no more than show that there are too
    many.
    """
    most = keeper.most + 1
    in_order = positions_rise(stream)
    fitting = linearizations
    if work is None:
        # Operands that may be without events give many, most of them with more slots than events fit.
        fitting = [one for one in fitting if all(map(len, possible_events(stream, one.layout).values()))]
    for begin, end in whole_parts(stream):
        parts, held = [bindings.no_rows()], 0
        for linearization in fitting:
            for low, high in first_event_ranges(stream, begin, end):
                for found in matches_of(linearization, stream, low, high, work, keeper.limits(linearization, in_order)):
                    for rows in combined(linearization, stream, found, most):
                        parts.append(rows)
                        held += len(rows)
                        if held > 4 * most:
                            parts = [bindings.first_rows(parts, keeper.events, most)]
                            held = len(parts[0])
        yield bindings.first_rows(parts, keeper.events, most)
