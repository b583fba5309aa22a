"""Sizes of a sketch's filters: fitted to the first events, and again as finished segments are denser or sparser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from patternlake.jobs.configuration.file import SketchConfiguration
from patternlake.udfs.sketch.batch import token_columns
from patternlake.udfs.sketch.kernels.build import build_segment, mean_distinct
from patternlake.udfs.sketch.sizing.heaps import fit_heaps
from patternlake.udfs.sketch.sizing.planning import plan, refit, shrunk
from patternlake.udfs.sketch.sizing.sizes import KeyList, Sizing
from patternlake.udfs.sketch.tokens import tokenise

SAMPLE_EVENTS = 102_400
"""Events that the number of levels is chosen from, at most: a full segment of the default shape."""

MARGIN = 1.1
"""A segment counts as denser than planned, and is planned for anew, with this factor of room."""

SPARSE_SEGMENTS = 4
"""So many sparse segments in a row make the sizes smaller, twice as many each time that it happens again."""


@dataclass(frozen=True)
class Sparse:
    """The last finished segments of a plan, where half of its bytes would do for them.

    Attributes
    ----------
    segments
        How many.
    most
        The most distinct tokens per node that any of them has, by level.
    """

    segments: int = 0
    most: tuple[float, ...] = ()

    def then(self, found: Sequence[float], sizing: Sizing) -> Sparse:
        """The same after one more segment."""
        most = tuple(map(max, self.most, found)) if self.segments else tuple(found)
        if _saves_half(sizing, most):
            return Sparse(self.segments + 1, most)
        return Sparse(1, tuple(found)) if _saves_half(sizing, found) else Sparse()


def _saves_half(sizing: Sizing, found: Sequence[float]) -> bool:
    return 2 * shrunk(sizing, [MARGIN * value for value in found]).node_bytes <= sizing.node_bytes


def next_sizes(
    measured: Sequence[tuple[int, Mapping[int, float]]], plans: Sequence[Sizing], sparse: Sparse
) -> tuple[tuple[int, Sizing] | None, Sparse]:
    """Where the sizes change, and what is known of sparse segments after that.

    Sizes rise after one segment that is denser than planned. They fall after some in a row for which half of the bytes
    would do; that these are more each time bounds how often a stream that comes and goes changes its sizes.

    Parameters
    ----------
    measured
        (segment, level → mean distinct tokens per node) of finished segments, in their order: those that were not
        looked at before. How they are cut into calls doesn't matter.
    plans
        All sizes so far; the segments were built with the last one.
    sparse
        Of the segments of that plan before these.

    Returns
    -------
    (the last segment of the old sizes and the new ones, if they change; the sparse segments at the end)
    """
    sizing = plans[-1]
    needed = SPARSE_SEGMENTS << sum(after.node_bytes < before.node_bytes for before, after in pairwise(plans))
    for segment, levels in measured:
        raised = denser([(segment, levels)], sizing)
        if raised is not None:
            return raised, Sparse()
        sparse = sparse.then([levels.get(level, 0.0) for level in range(sizing.height)], sizing)
        if sparse.segments >= needed:
            return (segment, shrunk(sizing, [MARGIN * value for value in sparse.most])), Sparse()
    return None, sparse


def first_plan(
    sample: pa.Table, configuration: SketchConfiguration, expected_events: int, expressions: int, height: int | None
) -> Sizing:
    """Fit the first plan to the events of the first segment.

    Parameters
    ----------
    sample
        The stream's first events in their order, `SAMPLE_EVENTS` at most: ``position``, ``tokens`` and, of a keyed
        sketch, ``key``.
    configuration
        The sketch's section.
    expected_events
        N.
    expressions
        Number of token expressions.
    height
        The number of levels where an earlier batch has chosen it.

    Raises
    ------
    SizingError
        The memory does not allow the wanted rate.
    """
    chosen = _fit(sample, configuration, expected_events, expressions, height or configuration.levels)
    first = sample.slice(0, chosen.segment_events)
    fitted = _fit(first, configuration, expected_events, expressions, chosen.height)
    # Heaps' law is a straight line in logarithms, and few streams are: what the first segment really holds corrects it.
    again = denser([(0, _distinct(first, configuration, expressions, fitted))], fitted)
    return fitted if again is None else again[1]


def denser(measured: Sequence[tuple[int, Mapping[int, float]]], sizing: Sizing) -> tuple[int, Sizing] | None:
    """The first finished segment that is denser than planned, and the sizes for all later ones.

    Parameters
    ----------
    measured
        (segment, level → mean distinct tokens per node), in the order of the segments.
    sizing
        The plan that they were built with.
    """
    for segment, levels in measured:
        found = [levels.get(level, 0.0) for level in range(sizing.height)]
        planned = [level.expected for level in sizing.levels]
        if any(value > MARGIN * sizes for value, sizes in zip(found, planned, strict=True)):
            fresh = refit(sizing, [MARGIN * value for value in found])
            if fresh != sizing:
                return segment, fresh
    return None


def _fit(
    sample: pa.Table, configuration: SketchConfiguration, expected_events: int, expressions: int, height: int | None
) -> Sizing:
    keys = sample["key"].combine_chunks() if configuration.keyed else None
    codes = tokenise(token_columns(sample, expressions), keys, configuration.seed).codes
    law = (
        {}
        if configuration.structure == "uniform"
        else dict(zip(("heaps_k", "heaps_beta"), fit_heaps(codes), strict=True))
    )
    return plan(
        configuration.structure,
        expected_events=expected_events,
        memory=configuration.memory,
        leaf_events=configuration.events_per_leaf,
        fpq=configuration.fpq,
        query_length=configuration.query_length,
        height=height,
        fanout=configuration.fanout,
        expansion=codes.shape[1],
        keys=None if keys is None else _key_list(keys),
        **law,
    )


def _distinct(
    events: pa.Table, configuration: SketchConfiguration, expressions: int, sizing: Sizing
) -> dict[int, float]:
    """Mean distinct tokens per node of the first segment, by level."""
    keys = events["key"].combine_chunks() if configuration.keyed else None
    found = tokenise(token_columns(events, expressions), keys, configuration.seed)
    positions = events["position"].to_numpy()
    nodes = build_segment(sizing, 1, positions, positions, found.codes, found.hashes)
    return dict(enumerate(mean_distinct(nodes)))


def _key_list(keys: pa.Array) -> KeyList:
    encoded = keys.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    heaps_k, heaps_beta = fit_heaps(codes)
    lengths = [len(key.encode()) for key in encoded.dictionary.to_pylist()]
    return KeyList(heaps_k, heaps_beta, float(np.mean(lengths)) if lengths else 0.0)
