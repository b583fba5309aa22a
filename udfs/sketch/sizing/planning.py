"""Chooses how large each level's Bloom filters are: from expected events, memory and wanted error rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from patternlake.udfs.errors import ArgumentError, SizingError
from patternlake.udfs.sketch.sizing.feasibility import infeasible
from patternlake.udfs.sketch.sizing.filter_size import filter_rate, row_probes, smallest_filter, thesis_filter
from patternlake.udfs.sketch.sizing.heaps import DEFAULT_BETA, DEFAULT_K, expected_distinct
from patternlake.udfs.sketch.sizing.sizes import KeyList, Level, Sizing

STRUCTURES = ("leveled", "uniform")
MOST_LEVELS = 11
"""The tallest tree that is planned where the number of levels is not given."""
UPPER_RATE = 0.02
"""False-positive rate of the nodes above the leaves in `leveled`: they only steer the descent."""

_MOST_BITS = 2**32
_MOST_TOKENS = 2**31 - 1


def plan(
    structure: str,
    *,
    expected_events: int,
    memory: int,
    leaf_events: int,
    fpq: float,
    query_length: int = 2,
    height: int | None = None,
    fanout: int = 2,
    heaps_k: float = DEFAULT_K,
    heaps_beta: float = DEFAULT_BETA,
    expansion: int = 1,
    keys: KeyList | None = None,
) -> Sizing:
    """Choose levels, bits and hashes.

    ``uniform`` is the thesis (4.5, 4.9-4.18): one m and k for all nodes, from the distinct tokens of a top node and
    q = 2(s−1)·L/f^(h−1) probed filters. ``leveled`` gives each level its own m and k for its own distinct tokens, the
    leaves carrying fpq over the 2(s−1) of them that a row rests on, and 2 % above.

    Departures from the thesis: n is capped at the tokens inserted in the node (4.16 gives 600 for 100 events); a
    fanout other than 2 takes the place of the 2 in 4.10-4.12; the number of top nodes L/f^(h−1) is at least 1; bytes
    are counted for whole segments.

    Parameters
    ----------
    structure
        ``leveled`` or ``uniform``.
    expected_events, memory, leaf_events, fpq, query_length, fanout, heaps_k, heaps_beta, expansion, keys
        See `Sizing`. Pass the thesis' K = 60 and β = 0.5 (the defaults) for ``uniform``, fitted ones for ``leveled``.
    height
        h; None is the greatest h ≤ 11 whose bytes fit `memory`.

    Raises
    ------
    SizingError
        If nothing fits; names the smallest memory that works and the fpq that the given memory reaches.
    ArgumentError
        If a parameter is out of its range.
    """
    template = Sizing(
        structure,
        leaf_events,
        fanout,
        (),
        heaps_k,
        heaps_beta,
        fpq,
        query_length,
        memory,
        expected_events,
        expansion,
        keys,
    )
    _check(template, height)
    heights = [h for h in ([height] if height else range(MOST_LEVELS, 0, -1)) if _tokens(template, h) <= _MOST_TOKENS]
    if not heights:
        least = 1 if height is None else height
        raise SizingError(
            f"{_tokens(template, least):,} tokens per segment (events_per_leaf {leaf_events}, fanout {fanout}, levels "
            f"{least}): at most {_MOST_TOKENS:,} are possible, lower one of them"
        )
    counts = {h: _planned(template, h) for h in heights}
    for h in heights:
        candidate = _sized(template, counts[h], fpq)
        if candidate is not None and candidate.total_bytes <= memory:
            return candidate
    raise SizingError(_refusal(template, counts.values()))


def refit(sizing: Sizing, measured: Sequence[float]) -> Sizing:
    """Raise the levels that a finished segment showed to be denser than planned.

    The new sizes hold from the next segment on. Height, fanout and leaf size stay; no level shrinks. In ``uniform``
    the one size is raised where a node of any level holds more distinct tokens than a top node was planned for.
    What is measured may carry a margin: it is capped at the tokens inserted in a node.

    Parameters
    ----------
    sizing
        The plan that the segment was built with.
    measured
        Mean distinct tokens per node of each level, the leaves first (`build.mean_distinct`); 0 for a level without.

    Returns
    -------
    The new plan; `sizing` itself where nothing is denser.

    Raises
    ------
    SizingError
        If the new sizes do not fit `sizing.memory`.
    ArgumentError
        If `measured` has not one value per level.
    """
    if len(measured) != sizing.height:
        raise ArgumentError(
            f"{len(measured)} measured levels for a plan of {sizing.height}: one value per level is needed"
        )
    planned = [float(level.expected) for level in sizing.levels]
    found = [float(min(math.ceil(value), _tokens(sizing, level + 1))) for level, value in enumerate(measured)]
    if sizing.structure == "uniform":
        found = [0.0] * (sizing.height - 1) + [max(found)]
    raised = [number for number in range(sizing.height) if found[number] > planned[number]]
    if not raised:
        return sizing
    counts = [max(*pair) for pair in zip(planned, found, strict=True)]
    fresh = _sized(sizing, counts, sizing.fpq)
    if fresh is not None:
        kept = sizing.structure == "leveled"
        levels = tuple(
            old if kept and number not in raised else new
            for number, (old, new) in enumerate(zip(sizing.levels, fresh.levels, strict=True))
        )
        fresh = replace(sizing, levels=levels)
        if fresh.total_bytes <= sizing.memory:
            return fresh
    denser = ", ".join(f"level {n}: {found[n]:.0f} instead of {planned[n]:.0f}" for n in raised)
    raise SizingError(
        f"a finished segment has more distinct tokens per node than planned ({denser}), and sizes for them do not fit: "
        + _refusal(sizing, [counts])
    )


def shrunk(sizing: Sizing, measured: Sequence[float]) -> Sizing:
    """Lower the levels that finished segments showed to be sparser than planned.

    The new sizes hold from the next segment on, and give the same rates. Height, fanout and leaf size stay; no level
    grows. ``uniform`` stays as it is: the thesis sizes it by a law, which most streams lie far below from the start.

    Parameters
    ----------
    sizing
        The plan that the segments were built with.
    measured
        Distinct tokens per node of each level, the leaves first; 0 for a level without nodes, which stays as it is.

    Returns
    -------
    The new plan; `sizing` itself where nothing is sparser.

    Raises
    ------
    ArgumentError
        If `measured` has not one value per level.
    """
    if len(measured) != sizing.height:
        raise ArgumentError(
            f"{len(measured)} measured levels for a plan of {sizing.height}: one value per level is needed"
        )
    planned = [float(level.expected) for level in sizing.levels]
    found = [float(math.ceil(value)) or plan for value, plan in zip(measured, planned, strict=True)]
    lowered = [number for number in range(sizing.height) if found[number] < planned[number]]
    if not lowered or sizing.structure == "uniform":
        return sizing
    fresh = _sized(sizing, [min(pair) for pair in zip(planned, found, strict=True)], sizing.fpq)
    # Smaller filters than those there are can't be too large.
    assert fresh is not None
    levels = tuple(fresh.levels[number] if number in lowered else level for number, level in enumerate(sizing.levels))
    return replace(sizing, levels=levels)


def _check(template: Sizing, height: int | None) -> None:
    if template.structure not in STRUCTURES:
        raise ArgumentError(f"structure '{template.structure}': must be one of {', '.join(STRUCTURES)}")
    least = {
        "expected_events": (template.expected_events, 1),
        "memory": (template.memory, 1),
        "events_per_leaf": (template.leaf_events, 1),
        "query_length": (template.query_length, 1),
        "levels": (1 if height is None else height, 1),
        "fanout": (template.fanout, 2),
        "expansion": (template.expansion, 1),
    }
    for name, (value, bound) in least.items():
        if value < bound:
            raise ArgumentError(f"{name} {value}: must be {bound} or more")
    if not 0.0 < template.fpq < 1.0:
        raise ArgumentError(f"fpq {template.fpq}: must be above 0 and below 1")
    if not template.heaps_k > 0.0 or not 0.0 < template.heaps_beta <= 1.0:
        raise ArgumentError(
            f"Heaps' law with K {template.heaps_k}, β {template.heaps_beta}: K must be above 0, β above 0 and up to 1"
        )


def _tokens(template: Sizing, height: int) -> int:
    return template.leaf_events * int(template.fanout ** (height - 1)) * template.expansion


def _planned(template: Sizing, height: int) -> list[float]:
    """Expected distinct tokens per node, by level."""
    return [
        expected_distinct(_tokens(template, level + 1), template.heaps_k, template.heaps_beta)
        for level in range(height)
    ]


def _sized(template: Sizing, counts: Sequence[float], fpq: float) -> Sizing | None:
    """The plan for these distinct counts and this rate, whatever its bytes; None if a filter passes 2^32 bits."""
    height = len(counts)
    probes = float(row_probes(template.query_length))
    if template.structure == "uniform":
        leaves = template.expected_events / template.leaf_events
        tops = max(1.0, leaves / template.fanout ** (height - 1))
        sizes = [thesis_filter(counts[-1], filter_rate(fpq, probes * tops))] * height
    else:
        rates = [filter_rate(fpq, probes)] + [UPPER_RATE] * (height - 1)
        sizes = [smallest_filter(count, rate) for count, rate in zip(counts, rates, strict=True)]
    if max(bits for bits, _ in sizes) >= _MOST_BITS:
        return None
    levels = tuple(Level(bits, k, math.ceil(count)) for (bits, k), count in zip(sizes, counts, strict=True))
    return replace(template, levels=levels, fpq=fpq)


def _refusal(template: Sizing, counts: Iterable[Sequence[float]]) -> str:
    """Why nothing fits and what would; `counts` holds the distinct tokens by level of each height that is allowed."""
    heights = list(counts)

    def plans(rate: float) -> list[Sizing]:
        return [sized for levels in heights if (sized := _sized(template, levels, rate)) is not None]

    return infeasible(template, plans)
