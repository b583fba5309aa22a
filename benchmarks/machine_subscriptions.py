"""Composite subscriptions and events of the generator of Muthusamy et al. 2010 (section 6 and Fig. 8).

- **Subscriptions**: each of `length` primitives, which take one event each of a pool of `pool` events; of the
  `length - 1` operators `later`, drawn uniformly, are `;` and the rest `,`.
- **Events**: with 50 % probability 1 to 100 events (uniformly) that no primitive takes; otherwise the events of a
  subscription, all of them (full match) or the first few (partial match), side by side as in Fig. 8.

What the paper leaves open is chosen here:

- A Gaussian over a range has its mean in the middle of it and a sixth of its width as standard deviation; values are
  rounded, and moved to the nearest end where they lie outside. It is so for the events of `gaussian_cs` (numbered) and
  for the lengths of partial matches of `gaussian_pub`, from 1 to `length - 1`.
- Which sequence comes next is drawn without replacement from 20 full and 20 partial matches of each subscription (the
  paper's quotas; for its Fig. 10, from 20 full and a multiple of 20 partial ones), so each is as likely as the others
  that are left; when none is left, quotas begin anew. The stream ends after the number of events that was asked for,
  mostly before quotas are used up.
- All events that no primitive takes have one name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.query import Subscription, compile_subscription

UNIFORM, GAUSSIAN = "uniform", "gaussian"
QUOTA = 20
"""Full matches of each subscription, and as many partial ones."""
LONGEST_IRRELEVANT = 100


@dataclass(frozen=True)
class Workload:
    """Parameters of the generator; those of the paper, if nothing else is given.

    Attributes
    ----------
    subscriptions, length, pool, later
        The paper's N_cs, Length_cs, N_ep, N_non_contiguous_op.
    events, partial
        How events of subscriptions, and lengths of partial matches, are distributed: `UNIFORM` or `GAUSSIAN`.
    """

    subscriptions: int = 1000
    length: int = 10
    pool: int = 50
    later: int = 2
    events: str = UNIFORM
    partial: str = UNIFORM


@dataclass(frozen=True)
class Asked:
    """Subscriptions of a workload.

    Attributes
    ----------
    workload
        What they are of.
    events
        int64[subscriptions, length]: numbers of events of the pool.
    later
        bool[subscriptions, length - 1]: `;` stands behind the event, not `,`.
    """

    workload: Workload
    events: IntArray
    later: NDArray[np.bool_]

    def compiled(self, prefix: str) -> list[Subscription]:
        """Compile them; names of events begin with `prefix`."""
        found = []
        for events, later in zip(self.events.tolist(), self.later.tolist(), strict=True):
            signs = [" ; " if sign else " , " for sign in later] + [""]
            named = zip(events, signs, strict=True)
            text = "".join(f"{prefix}{event} AS s{at}{sign}" for at, (event, sign) in enumerate(named))
            found.append(compile_subscription(parse(text)))
        return found


def asked(workload: Workload, rng: np.random.Generator) -> Asked:
    """Draw the subscriptions of a workload."""
    events = _drawn(rng, workload.events, 0, workload.pool - 1, (workload.subscriptions, workload.length))
    # The smallest of random numbers are at places drawn uniformly.
    order = rng.random((workload.subscriptions, workload.length - 1)).argsort(axis=1)
    return Asked(workload, events, order.argsort(axis=1) < workload.later)


def stream(subscriptions: Asked, n: int, rng: np.random.Generator, *, partial: int = 1) -> IntArray:
    """The numbers of n events, `pool` of one that no primitive takes; for each full match so many partial ones."""
    pieces, taken = [], 0
    sequences = _sequences(subscriptions, rng, partial)
    while taken < n:
        if rng.random() < 0.5:
            size = int(rng.integers(1, LONGEST_IRRELEVANT + 1))
            pieces.append(np.full(size, subscriptions.workload.pool, np.int64))
        else:
            pieces.append(next(sequences))
        taken += len(pieces[-1])
    return np.concatenate(pieces)[:n]


def full_matches(subscriptions: Asked, rng: np.random.Generator) -> IntArray:
    """A full match of each subscription, in random order and with nothing in between."""
    return np.concatenate(subscriptions.events[rng.permutation(len(subscriptions.events))])


def _sequences(subscriptions: Asked, rng: np.random.Generator, partial: int) -> Iterator[IntArray]:
    """Full and partial matches, forever."""
    workload = subscriptions.workload
    kinds = 1 + partial
    while True:
        order = rng.permutation(kinds * QUOTA * workload.subscriptions)
        sizes = _drawn(rng, workload.partial, 1, workload.length - 1, (len(order),))
        for number, size in zip(order.tolist(), sizes.tolist(), strict=True):
            subscription, full = number // (kinds * QUOTA), number % kinds == 0
            yield subscriptions.events[subscription, : workload.length if full else size]


def _drawn(rng: np.random.Generator, how: str, low: int, high: int, shape: tuple[int, ...]) -> IntArray:
    """Whole numbers from `low` to `high`."""
    if how == UNIFORM:
        return rng.integers(low, high + 1, shape)
    values = rng.normal((low + high) / 2, (high - low) / 6, shape)
    return np.clip(np.rint(values), low, high).astype(np.int64)
