"""Events as the kernels of machines take them."""

from __future__ import annotations

import numpy as np

from patternlake.udfs.events import Events
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.kernels.matching_primitives import Codes, matching_primitives
from patternlake.udfs.machines.kernels.stream import Stream

_DAY = 86_400_000_000


def stream_of(events: Events, group: Group, codes: Codes, now: int) -> Stream:
    """Events, by partition and in order, as the subscriptions of a group take them.

    Parameters
    ----------
    events
        The events.
    group
        The subscriptions.
    codes
        Of the values of join variables.
    now
        Microseconds: what the age of counts is measured against.
    """
    at, who = matching_primitives(group.compiled.primitives, events)
    count = len(events.times)
    weight = np.ones(count)
    if group.decay:
        weight = (1.0 - group.decay) ** ((now - events.times) / _DAY)
    joined = [codes.of(events.column(name)) for name in group.compiled.columns]
    return Stream(
        events.times,
        events.positions,
        at,
        who,
        np.array(joined, np.int64).reshape(len(joined), count),
        np.concatenate([[0.0], np.cumsum(weight)]),
    )
