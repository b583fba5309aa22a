"""How large each level's Bloom filters are, their bits and hashes, and what a sketch takes in all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from patternlake.udfs.sketch.sizing.heaps import expected_distinct

_KEY_OVERHEAD = 4


@dataclass(frozen=True)
class Level:
    """The filters of one level: `bits` (a multiple of 8), `hashes` per token, `expected` distinct tokens per node."""

    bits: int
    hashes: int
    expected: int


@dataclass(frozen=True)
class KeyList:
    """What is known of a keyed sketch's keys: Heaps' K and β of the key column, mean UTF-8 bytes of a distinct key."""

    heaps_k: float
    heaps_beta: float
    bytes_per_key: float


@dataclass(frozen=True)
class Sizing:
    """The plan that all segments of a sketch are built from until it is re-fitted.

    Attributes
    ----------
    structure
        ``leveled`` or ``uniform``.
    leaf_events, fanout
        C, events per leaf; f, children per parent.
    levels
        One entry per level, the leaves first; all of one size in ``uniform``.
    heaps_k, heaps_beta
        Heaps' law over tokens inserted, n̂ = events × expansion.
    fpq, query_length
        Wanted false-positive rate of a query of s operands.
    memory
        M, a ceiling, bytes.
    expected_events
        N.
    expansion
        Tokens inserted per event: number of token expressions, times two if keyed.
    keys
        What the segments' lists of distinct keys are counted by; None without keys.
    """

    structure: str
    leaf_events: int
    fanout: int
    levels: tuple[Level, ...]
    heaps_k: float
    heaps_beta: float
    fpq: float
    query_length: int
    memory: int
    expected_events: int
    expansion: int
    keys: KeyList | None = None

    @property
    def height(self) -> int:
        """h, the number of levels."""
        return len(self.levels)

    @property
    def segment_events(self) -> int:
        """Events of a finished segment: C·f^(h−1)."""
        return self.leaf_events * int(self.fanout ** (self.height - 1))

    @property
    def segments(self) -> int:
        """Segments that the expected events fill, the last one perhaps in part."""
        return -(-self.expected_events // self.segment_events)

    @cached_property
    def node_bytes(self) -> int:
        """Bytes of all nodes that a finished segment can have."""
        return sum(
            level.bits // 8 * int(self.fanout ** (self.height - 1 - number)) for number, level in enumerate(self.levels)
        )

    @cached_property
    def segment_bytes(self) -> int:
        """Bytes of a finished segment: all nodes that can exist, and its list of keys."""
        if self.keys is None:
            return self.node_bytes
        keys = expected_distinct(self.segment_events, self.keys.heaps_k, self.keys.heaps_beta)
        return self.node_bytes + math.ceil(keys * (self.keys.bytes_per_key + _KEY_OVERHEAD))

    @property
    def total_bytes(self) -> int:
        """Bytes of all segments; what `memory` bounds."""
        return self.segments * self.segment_bytes

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Sizing:
        """The plan whose `asdict` was kept as JSON."""
        levels, keys = tuple(Level(**level) for level in values["levels"]), values["keys"]
        return cls(**{**values, "levels": levels, "keys": None if keys is None else KeyList(**keys)})
