"""What to say when a sketch does not fit: the smallest memory that works, the rate that the given memory reaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from patternlake.udfs.sketch.sizing.sizes import Sizing

_HIGHEST_RATE = 0.999
_PRECISION = 1e-4


def infeasible(asked: Sizing, plans: Callable[[float], Sequence[Sizing]]) -> str:
    """One line for a request that does not fit.

    Parameters
    ----------
    asked
        The request; its levels are not looked at.
    plans
        All plans that are allowed for a false-positive rate, whatever their bytes.
    """
    request = (
        f"memory {in_bytes(asked.memory)} is too small for structure {asked.structure} with fpq {asked.fpq:g} over "
        f"{asked.expected_events:,} events"
    )
    works = "no memory works, as a node would need 2^32 bits or more: lower events_per_leaf or levels"
    if at_rate := plans(asked.fpq):
        best = min(at_rate, key=lambda plan: plan.total_bytes)
        works = f"the smallest memory that works is {in_bytes(best.total_bytes)} (levels {best.height})"
    rate = _reachable(asked, plans)
    reached = "no fpq below 1 is reachable" if rate is None else f"fpq {rate:.6g} is reachable"
    return f"{request}; {works}; with the given memory {reached}"


def in_bytes(count: int) -> str:
    """A size as the configuration takes it, rounded up, and exactly: ``65MB (64,312,345 bytes)``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= 10 * size or (count >= size and count % size == 0):
            return f"{-(-count // size)}{unit} ({count:,} bytes)"
    return f"{count:,} bytes"


def _reachable(asked: Sizing, plans: Callable[[float], Sequence[Sizing]]) -> float | None:
    """The least rate, rounded up to three digits where that fits too, whose plan fits the memory."""

    def fits(rate: float) -> bool:
        return any(plan.total_bytes <= asked.memory for plan in plans(rate))

    if not fits(_HIGHEST_RATE):
        return None
    fails, works = math.log(asked.fpq), math.log(_HIGHEST_RATE)
    while works - fails > _PRECISION:
        middle = (fails + works) / 2
        fails, works = (fails, middle) if fits(math.exp(middle)) else (middle, works)
    rate = math.exp(works)
    scale = 10.0 ** (math.floor(math.log10(rate)) - 2)
    rounded = float(f"{math.ceil(rate / scale) * scale:.3g}")
    return rounded if rounded < 1.0 and fits(rounded) else rate
