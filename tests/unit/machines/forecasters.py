"""What a subscription forecasts, of one instance at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from patternlake.udfs.arrays import FloatArray
from patternlake.udfs.machines.forecasts.grids import Limits, limits_of
from patternlake.udfs.machines.forecasts.passage import Counts, Forecaster, Waited
from patternlake.udfs.machines.forecasts.waiting_times import ANY_PACE
from patternlake.udfs.machines.graph.ages import NEVER, ages_of
from patternlake.udfs.machines.graph.composite_states import CompositeState, complete
from patternlake.udfs.machines.graph.merged import graph_of
from patternlake.udfs.machines.query import Subscription


def trained(
    subscription: Subscription, counts: Counts, lookahead: int, smoothing: float = 0.0, *,
    waited: Waited | None = None, time: int | None = None,
) -> Forecaster:  # fmt: skip
    """The forecaster of a subscription that is alone in its group."""
    return Forecaster(
        subscription, counts, lookahead, smoothing, waited=waited, time=time, limits=limits_alone(subscription)
    )


def limits_alone(subscription: Subscription) -> Mapping[CompositeState, Limits]:
    """What can be left of the deadlines of a subscription that is alone in its group."""
    graph = graph_of([subscription])
    return limits_of(graph, ages_of(graph, [subscription]), 0, subscription.master)


def spot(
    forecaster: Forecaster, composite_state: CompositeState, left: int = NEVER, events: int = NEVER, closed: int = 0
) -> int:
    """Where an instance stands of which so much is left: microseconds, events, microseconds of lower bounds."""
    return forecaster.grids.spot(composite_state, left, events, closed)


def probability(
    forecaster: Forecaster, composite_state: CompositeState, at: int = 0, quiet: int = 0, *,
    left: int | None = None, last: int | None = None,
) -> FloatArray:  # fmt: skip
    """Matched within n events, or slots of a time (β), for each n from 0."""
    if complete(forecaster.chain, composite_state):
        return np.ones(forecaster.passage.units + 1)
    rest = None if left is None else np.array([left])
    spots = np.array([at])
    return forecaster.passage.within(composite_state, spots, np.array([quiet]), ANY_PACE, left=rest, last=last)[0]


def exactly_at(forecaster: Forecaster, composite_state: CompositeState) -> FloatArray:
    """Matched at exactly the n-th event (α), for each n from 0: float64[lookahead + 1]."""
    return np.diff(probability(forecaster, composite_state), prepend=0.0)
