"""What matching on the sketch takes and gives: hits on nodes, and matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hits:
    """Nodes that (may) hold names of a pattern, sorted by position, not overlapping.

    Attributes
    ----------
    pos_lo, pos_hi
        int64[n]: first and last position of each node, inclusive.
    time_lo, time_hi
        int64[n]: least and greatest event time, microseconds since the epoch.
    level
        int8[n]: 0 for leaves.
    present
        bool[n, t]: the filter says that the node holds name t of `SketchPattern.names`. Never false where it does.
    fp
        float64[n, t]: upper bound of the probability that a ``present`` is false.

    Nodes that are not listed hold none of the names. Of several keys: sorted by (key, position), see
    `match_nodes_by_key`.
    """

    pos_lo: NDArray[np.int64]
    pos_hi: NDArray[np.int64]
    time_lo: NDArray[np.int64]
    time_hi: NDArray[np.int64]
    level: NDArray[np.int8]
    present: NDArray[np.bool_]
    fp: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.pos_lo)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Hits:
        """Some of the nodes, in their order."""
        return Hits(**{name: column[rows] for name, column in vars(self).items()})


def joined(*hits: Hits) -> Hits:
    """All of them, one after the other."""
    return Hits(**{name: np.concatenate([getattr(one, name) for one in hits]) for name in vars(hits[0])})


@dataclass(frozen=True)
class Matches:
    """Rows of an answer, ordered by (key, first position, …): row i is match number i + 1.

    Attributes
    ----------
    key
        int64[r]: index of the key; 0 where there is only one.
    operand
        int32[r, s]: for each step, which of `SketchPattern.labels` it is. An OR without alias shows the first
        alternative, in text order, that is there.
    step_lo, step_hi
        int64[r, s]: positions of each step, in text order; equal on events.
    first_position, last_position
        int64[r]: from the first step's node to the last one's, inclusive.
    first_time, last_time
        int64[r]: on nodes, the least time of the first node and the greatest of the last; on events, their times.
    level
        int8[r]: the coarsest level that the row rests on.
    fp_bound
        float64[r]: upper bound of the probability that the row is false; 0 on events.
    total
        How many rows there are (2**62 stands for that many or more); more than r where the answer is truncated. On
        events under ``skip_till_any`` and WHERE over several operands only r + 1 is counted then.
    truncated
        True where rows beyond `max_matches` were left out.
    """

    key: NDArray[np.int64]
    operand: NDArray[np.int32]
    step_lo: NDArray[np.int64]
    step_hi: NDArray[np.int64]
    first_position: NDArray[np.int64]
    last_position: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    level: NDArray[np.int8]
    fp_bound: NDArray[np.float64]
    total: int
    truncated: bool

    def __len__(self) -> int:
        return len(self.key)


class Found(Protocol):
    """What matches of any engine have, named as of `Matches`."""

    @property
    def key(self) -> NDArray[np.int64]:
        """int64[r]."""

    @property
    def first_position(self) -> NDArray[np.int64]:
        """int64[r]."""

    @property
    def last_position(self) -> NDArray[np.int64]:
        """int64[r]."""

    @property
    def first_time(self) -> NDArray[np.int64]:
        """int64[r]."""

    @property
    def last_time(self) -> NDArray[np.int64]:
        """int64[r]."""

    @property
    def truncated(self) -> bool:
        """Whether rows were left out."""

    def __len__(self) -> int: ...


class OperandMatches(Found, Protocol):
    """Matches whose operands have any number of events: r matches, p operands, b events."""

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the operands that take events, in text order."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64[r·p + 1]: operand o of match i has ``positions[offsets[i·p + o]:offsets[i·p + o + 1]]``."""

    @property
    def positions(self) -> NDArray[np.int64]:
        """int64[b]: positions, each operand's in the order of events."""

    @property
    def event_offsets(self) -> NDArray[np.int64]:
        """int64[r + 1]: match i has the events ``event_offsets[i]:event_offsets[i + 1]``, in order."""

    @property
    def bound_positions(self) -> NDArray[np.int64]:
        """int64[b]: position of each of these."""

    @property
    def bound_operands(self) -> NDArray[Any]:
        """integer[b]: number of the operand that takes each, negated ones counted in text order, too."""


@dataclass(frozen=True)
class Bound:
    """The events of some matches.

    Attributes
    ----------
    offsets
        int64[r + 1]: match i has the events ``offsets[i]:offsets[i + 1]``.
    positions
        int64[e]: of each event.
    operands
        integer[e]: number of the operand that binds each; not filled where there are no measures.
    """

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]
    operands: NDArray[Any]
