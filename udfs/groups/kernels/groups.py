"""Groups of a probabilistic stream: fed row by row or all at once, with the same answer however the rows are cut.

Source: Sugiura et al. 2015 and SPEC section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, SmallArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.automaton.subsets import Automaton, automaton_of
from patternlake.udfs.groups.kernels.complete import complete_workspace
from patternlake.udfs.groups.kernels.gathering import Gathered, Held, TooEarly, gather
from patternlake.udfs.groups.kernels.live import Plan, live_workspace, plan_of
from patternlake.udfs.groups.kernels.running import run
from patternlake.udfs.groups.kernels.steps import Rows, Steps
from patternlake.udfs.groups.kernels.sweep import Found, Tools, found_workspace, open_workspace
from patternlake.udfs.groups.kernels.vectors import vector_workspace
from patternlake.udfs.groups.query import GroupQuery
from patternlake.udfs.groups.state import GROUPS, GroupState, no_state


@dataclass(frozen=True)
class GroupRows:
    """Groups, by key and t_first; a key has one group of a t_first.

    Attributes
    ----------
    key
        int64[r]: code of the key.
    t_start, t_first, t_end
        int64[r]: the first step, the earliest end and the last step of the group's matches.
    probability
        float64[r]: that at least one match of the group occurs.
    final
        bool[r]: whether nothing that may still come can change the row.
    """

    key: IntArray
    t_start: IntArray
    t_first: IntArray
    t_end: IntArray
    probability: FloatArray
    final: BoolArray

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class Groups:
    """The groups engine for one query.

    Attributes
    ----------
    query
        The compiled query.

    Raises
    ------
    UnsupportedOperatorError
        On first use: the automaton is too large (`automaton_of`).
    """

    query: GroupQuery

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton, built once."""
        return automaton_of(self.query)

    @cached_property
    def plan(self) -> Plan:
        """The query as the kernels take it."""
        return plan_of(self.query)

    def advance(
        self, state: GroupState, keys: IntArray, steps: IntArray, classes: SmallArray, probabilities: FloatArray
    ) -> tuple[GroupState, GroupRows]:
        """Take new rows in.

        Parameters
        ----------
        state
            What is remembered: `no_state`, or what the last call gave, for all keys or only for those of the rows.
        keys
            int64[n]: codes. Fastest where rows are in the order of (key, step).
        steps
            int64[n].
        classes
            int32[n]: `Alphabet.classes`.
        probabilities
            float64[n]. A step of which one is outside [0, 1] or NaN, or whose sum exceeds 1 by more than
            `steps.TOLERANCE`, counts as one without rows.

        Returns
        -------
        GroupState
            Of all keys of `state` and of the rows. The last step of each key waits in it for more of its rows.
        GroupRows
            The groups that closed; they never change again, and no later call gives them.

        Raises
        ------
        ArgumentError
            A row's step comes before one that its key has seen.
        """
        known, rows = _by_key(keys, steps, classes, probabilities, state.keys)
        return self._run(known, rows, _held(state, known), False)

    def tail(self, state: GroupState) -> GroupRows:
        """The groups that are not closed for good: with those of `advance` they are the whole answer as it stands.

        Parameters
        ----------
        state
            As `advance` gave it.

        Returns
        -------
        GroupRows
            A last step counts where its probabilities reach 1 (within `steps.TOLERANCE`), and groups that close with
            it are final here already. What a later call of `tail` gives replaces all of it.
        """
        empty = Rows(
            np.zeros(len(state) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64)
        )
        _, rows = self._run(state.keys, empty, _held(state, state.keys), True)
        return rows

    def answer(self, keys: IntArray, steps: IntArray, classes: SmallArray, probabilities: FloatArray) -> GroupRows:
        """All groups of a stream that is given at once; parameters as of `advance`."""
        state, closed = self.advance(no_state(), keys, steps, classes, probabilities)
        return joined(closed, self.tail(state))

    def steps(
        self, keys: IntArray, steps: IntArray, classes: SmallArray, probabilities: FloatArray
    ) -> tuple[IntArray, Steps]:
        """The keys, ascending, and the steps that `answer` goes through; parameters as of `advance`."""
        known, rows = _by_key(keys, steps, classes, probabilities, keys[:0])
        gathered = gather(rows, _held(no_state(), known), True, self.plan.bridged)
        assert not isinstance(gathered, TooEarly)
        return known, gathered.steps

    def _run(self, keys: IntArray, rows: Rows, held: Held, to_the_end: bool) -> tuple[GroupState, GroupRows]:
        gathered = gather(rows, held, to_the_end, self.plan.bridged)
        if isinstance(gathered, TooEarly):
            raise ArgumentError(
                f"step {gathered.step} of key {keys[gathered.key]} comes after step {gathered.after}; "
                "the steps of a key must ascend"
            )
        at = held.integers_at[held.integers_at >= 0]
        found = found_workspace(len(gathered.steps.step) + int(held.integers[at + GROUPS].sum()))
        most = self._most_open(gathered, held)
        tools = Tools(
            self.plan,
            self.automaton.inject,
            live_workspace(self.plan, most + 2),
            vector_workspace(len(self.automaton.states)),
            complete_workspace(self.automaton, self.query.within, self.query.threshold == 0, most),
        )
        kept = run(tools, open_workspace(2 * most + 4), found, gathered, held, to_the_end)
        return GroupState(keys, *kept), _rows(keys, found)

    def _most_open(self, gathered: Gathered, held: Held) -> int:
        """Upper bound of the live starts, and of the open groups, that a key has at once."""
        # Both lie between the oldest live start, from which on all steps are there, and the newest step.
        steps = np.diff(gathered.steps.key_offset)
        return int(min(self.plan.window, steps.max(initial=0)))


def joined(*parts: GroupRows) -> GroupRows:
    """Groups of several calls, by key and t_first."""
    whole = GroupRows(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(GroupRows)))
    order = np.lexsort((whole.t_first, whole.key))
    return GroupRows(*(getattr(whole, one.name)[order] for one in fields(GroupRows)))


def _by_key(
    keys: IntArray, steps: IntArray, classes: SmallArray, probabilities: FloatArray, others: IntArray
) -> tuple[IntArray, Rows]:
    """All keys, those without rows among them, and the rows by key and step."""
    order = _unsorted(keys, steps)
    if order is not None:
        keys, steps, classes, probabilities = keys[order], steps[order], classes[order], probabilities[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(begins)
    known = np.union1d(others, keys[first])
    offset = np.full(len(known) + 1, -1, np.int64)
    offset[np.searchsorted(known, keys[first])] = first
    offset[-1] = len(keys)
    # A key without rows begins, and ends, where the next one begins.
    missing = np.flatnonzero(offset < 0)
    present = np.flatnonzero(offset >= 0)
    offset[missing] = offset[present[np.searchsorted(present, missing)]]
    rows = Rows(
        offset,
        np.ascontiguousarray(steps, np.int64),
        np.ascontiguousarray(classes, np.int32),
        np.ascontiguousarray(probabilities, np.float64),
    )
    return known, rows


def _unsorted(keys: IntArray, steps: IntArray) -> IntArray | None:
    """The order of (key, step); None where rows are in it."""
    same = keys[1:] == keys[:-1]
    if bool(np.all((keys[1:] > keys[:-1]) | (same & (steps[1:] >= steps[:-1])))):
        return None
    return np.lexsort((steps, keys))


def _held(state: GroupState, keys: IntArray) -> Held:
    """What is remembered of each of these keys."""
    place = np.searchsorted(keys, state.keys)
    integers_at, floats_at = np.full(len(keys), -1, np.int64), np.full(len(keys), -1, np.int64)
    integers_at[place] = state.integer_offset[:-1]
    floats_at[place] = state.float_offset[:-1]
    return Held(integers_at, state.integers, floats_at, state.floats)


def _rows(keys: IntArray, found: Found) -> GroupRows:
    """The rows that were found."""
    count = int(found.used[0])
    return GroupRows(
        keys[found.key[:count]],
        found.t_start[:count].copy(),
        found.t_first[:count].copy(),
        found.t_end[:count].copy(),
        found.probability[:count].copy(),
        found.final[:count].copy(),
    )
