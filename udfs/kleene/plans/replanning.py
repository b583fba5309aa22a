"""Another plan for what is left of a run, once it shows that what was expected is far off.

Source: Behravesh et al. plan once, by rates that are given; SPEC section 3 asks for "the selectivity seen so far". A
run goes through ranges of first events. After each, what the nodes gave is laid beside what their share of the events
was expected to give; where one is off by more than a factor, the classes and the shares of conditions that were seen
take the place of what was estimated, and the trees are compared anew. Rows do not depend on the plan, only time does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.observations import LEAST_JUDGED
from patternlake.udfs.kleene.plans.planning import choose_plan, node_keys
from patternlake.udfs.kleene.plans.trees import Plan, plan_text
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import Work

logger = logging.getLogger(__name__)

LEAST_ROWS = 1000
"""A node that neither gave nor was expected to give so many rows costs nothing that another plan could save."""


@dataclass(frozen=True)
class Replanning:
    """How a run may change its plan.

    Attributes
    ----------
    statistics
        What its plan was chosen by.
    factor
        Greatest ratio of what is found and what was expected, above 1.
    """

    statistics: Statistics
    factor: float


def replanned(
    pattern: KleenePattern, plan: Plan, replanning: Replanning, classes: Mapping[int, int], work: Work, done: float
) -> tuple[Plan, Replanning] | None:
    """The plan for the rest of a run; None where the one at hand stays.

    Parameters
    ----------
    pattern, plan
        What is matched, and along which tree so far.
    replanning
        What was expected.
    classes
        The events of each operand in the whole run.
    work
        What was done along `plan`.
    done
        The share of the run's first events that it was done for, above 0.

    Returns
    -------
    (plan, replanning) or None
        The cheapest tree by what is known by then, which may be the same one, and what is known.
    """
    known = replace(replanning.statistics, classes=classes)
    if not _off(pattern, plan, known, replanning.factor, work, done):
        return None
    shares = {text: holding / judged for text, (judged, holding) in work.shares.items() if judged >= LEAST_JUDGED}
    seen = replace(known, selectivities={**known.selectivities, **shares})
    better = choose_plan(pattern, seen).plan
    if better != plan:
        logger.info("planned anew: %s in the place of %s", plan_text(pattern, better), plan_text(pattern, plan))
    return better, replace(replanning, statistics=seen)


def _off(pattern: KleenePattern, plan: Plan, statistics: Statistics, factor: float, work: Work, done: float) -> bool:
    """Whether some node gave far more, or far fewer rows than expected."""
    for node in choose_plan(pattern, statistics, plan).nodes:
        expected, found = node.rows * done, work.of(node_keys(pattern, node.plan)).rows
        few, many = sorted((expected, float(found)))
        if many >= LEAST_ROWS and many > factor * few:
            return True
    return False
