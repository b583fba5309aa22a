"""What the sketch engine asks of a pattern that another engine matches for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from patternlake.udfs.events import Events
from patternlake.udfs.sketch.kernels.hits import OperandMatches


class LentPattern(Protocol):
    """A pattern beyond what the sketch engine matches by itself: on events, in the order of time."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns of events that matching reads."""

    @property
    def operands(self) -> Sequence[str]:
        """The operands that take events, at which the search may go on behind a match."""

    @property
    def ranked(self) -> bool:
        """Whether it matters, under any policy, how many events lie between two, those of other names among them."""

    @property
    def reach(self) -> int | None:
        """Microseconds that what changes a match lies from its events at most; None: any number."""

    def match(
        self, events: Events, *, policy: str, after_match: str, max_matches: int, truncate: bool
    ) -> OperandMatches:
        """Match events.

        Parameters
        ----------
        events
            In (partition, time, position) order, with their ordinals.
        policy, after_match, max_matches, truncate
            As for `matching.match_nodes_by_key`; `after_match` may name one of the operands.

        Raises
        ------
        ArgumentError
            What matching itself raises.
        """
