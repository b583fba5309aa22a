"""The scan of ``skip_till_next`` and ``strict`` with conditions that only the evaluator can judge.

Source: SPEC section 3. It goes event by event in Python, so it is slow; comparisons are judged first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.scans import Scan, qualifies
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import Condition
from patternlake.udfs.language.predicate.references import Reference


def slowly(
    scan: Scan, joiner: Joiner, linearization: Linearization, rest: Sequence[Condition], most: int
) -> tuple[IntArray, IntArray, IntArray]:
    """As `scans.scanned`, with conditions that only the evaluator can judge."""
    place_of = {number: place for place, number in enumerate(linearization.operands)}
    operands = len(linearization.operands)
    offsets: list[int] = [0]
    events: list[int] = []
    places: list[int] = []
    nothing = np.zeros(0, np.int64)

    def judged(kept: list[list[int]], place: int, event: int) -> bool:
        for condition in rest:
            own = [place_of[number] for number in condition.operands]
            others = [kept[other] for other in own if other != place]
            if place not in own or not all(others):
                continue
            before = condition.before is not None and place_of[condition.before]
            pairs: list[list[tuple[int, int]]] = []
            for other in own:
                if condition.before is not None and other == before:
                    run = [*kept[other], event] if other == place else kept[other]
                    both = list(pairwise(run))
                    pairs.append(both[-1:] if other == place else both)
                else:
                    pairs.append([(one, one) for one in ([event] if other == place else kept[other])])
            chosen = list(product(*pairs))
            if not chosen:
                continue
            table = np.array(chosen, np.int64)
            at = dict(zip(condition.names, range(len(own)), strict=True))
            event_of: dict[Reference, IntArray] = {
                reference: table[:, at[reference.operand or ""], 0 if reference.index == "i-1" else 1]
                for reference in condition.predicate.references
            }
            if not joiner.judged(condition.predicate, event_of, len(table)).all():
                return False
        return True

    for start in range(scan.mask.shape[1]):
        kept: list[list[int]] = [[] for _ in range(operands)]
        at = 0
        event, limit = start, min(int(scan.reach[start]), int(scan.stop[start]))
        while event < limit:
            flat = np.array([one for run in kept for one in run], np.int64) if start < event else nothing
            count = np.array([len(run) for run in kept], np.int64)
            begin = np.cumsum(count) - count
            matching_operand = -1
            for place in range(at, operands):
                may = count[place] < scan.most[place] and qualifies(scan, flat, begin, count, place, event)
                if may and judged(kept, place, event):
                    matching_operand = place
                if count[place] < scan.least[place]:
                    break
            if matching_operand < 0:
                if scan.strict or event == start:
                    break
                event += 1
                continue
            at = matching_operand
            kept[at].append(event)
            if at == operands - 1 and len(kept[at]) == scan.most[at]:
                break
            if scan.strict and (event + 1 >= limit or scan.ordinal[event + 1] != scan.ordinal[event] + 1):
                break
            event += 1
        if any(kept) and all(len(run) >= least for run, least in zip(kept, scan.least.tolist(), strict=True)):
            for place, run in enumerate(kept):
                events += run
                places += [place] * len(run)
            offsets.append(len(events))
            if len(events) > most:
                return nothing, nothing, nothing
    return np.array(offsets, np.int64), np.array(events, np.int64), np.array(places, np.int64)
