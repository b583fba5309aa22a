"""Aggregates of what matches have collected, and the conditions on them.

Source: `aggregate_conditions`: judged of whole matches, beside ``!X``, never steering what is collected.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.layout import Layout
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import Work, aggregate
from patternlake.udfs.language.predicate.aggregates import aggregated, place_of
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Aggregate
from patternlake.udfs.language.predicate.predicates import Reference, evaluate


def holding(
    pattern: KleenePattern, stream: Stream, layout: Layout, matches: Collected, work: Work | None = None
) -> BoolArray:
    """bool[k]: the matches for which all conditions on aggregates hold.

    Parameters
    ----------
    pattern, stream
        What is matched.
    layout, matches
        Of one linearization; an operand with aggregates has no pick.
    work
        Is told how many matches are left at each condition.
    """
    holds = np.ones(len(matches), np.bool_)
    made: dict[Aggregate, Column] = {}
    for number, condition in enumerate(pattern.aggregate_conditions):
        begun = perf_counter()
        applies = np.ones(len(matches), np.bool_)
        columns: dict[Reference, Column] = {}
        for reference, operand in condition.operands.items():
            # It takes one event, where it takes any.
            match, events = _collected_by(layout, matches, operand)
            own = np.zeros(len(matches), np.int64)
            own[match] = events
            applies &= np.bincount(match, minlength=len(matches)) > 0
            columns[reference] = stream.column(reference.column, own)
        for reference, one in condition.aggregates.items():
            match, events = _collected_by(layout, matches, pattern.aggregates[one])
            if (place := place_of(one)) is not None:
                applies &= np.bincount(match, minlength=len(matches)) >= max(1, place)
            if one not in made:
                made[one] = aggregated(one, partial(stream.column, numbers=events), match, len(matches))
            columns[reference] = made[one]
        if len(matches):
            holds &= evaluate(condition.predicate, columns.__getitem__).true | ~applies
        if work is not None:
            work.add(aggregate(number), int(holds.sum()), perf_counter() - begun)
    return holds


def _collected_by(layout: Layout, matches: Collected, operand: int) -> tuple[IntArray, IntArray]:
    """(match, event) of all events of an operand, by match and in order."""
    match, events = matches.events_of(layout.of_operand.get(operand, ()), np.arange(len(matches), dtype=np.int64))
    order = np.argsort(match, kind="stable")
    return match[order], events[order]
