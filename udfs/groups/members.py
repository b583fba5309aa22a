"""One portion of an answer: the groups of some partitions with their most probable matches, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.best_members import Bounds, Members, best_members
from patternlake.udfs.groups.events import GroupEvents, check_keys, read_group_events
from patternlake.udfs.groups.kernels.groups import GroupRows, Groups
from patternlake.udfs.groups.kernels.steps import bad_steps
from patternlake.udfs.groups.request import GroupsRequest
from patternlake.udfs.groups.words import words_of
from patternlake.udfs.partitions import number_partitions
from patternlake.udfs.sort_keys import paired

MOST_BEST = 100
"""Matches of a group that are given, at most."""

ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("t_start", pa.int64()),
        ("t_first", pa.int64()),
        ("t_end", pa.int64()),
        ("match_no", pa.int32()),
        ("from_step", pa.int64()),
        ("to_step", pa.int64()),
        ("items", pa.list_(pa.string())),
        ("positions", pa.list_(pa.list_(pa.int64()))),
        ("probability", pa.float64()),
        ("final", pa.bool_()),
    ]
)


def check_best(best: int) -> None:
    """Refuse a number of matches that cannot be given.

    Raises
    ------
    ArgumentError
        Naming it.
    """
    if not 1 <= best <= MOST_BEST:
        raise ArgumentError(f"best must be from 1 to {MOST_BEST}, not {best}")


def members_in(request: GroupsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """The groups of one portion with their most probable matches.

    Parameters
    ----------
    request
        The request.
    rows
        As of `parts.groups_in`.

    Returns
    -------
    Rows of `ROWS`, by partition, t_first and match_no.

    Raises
    ------
    PatternLakeError
        What the events do not allow.
    """
    groups = request.groups
    compiled = groups.query
    keys, shown = number_partitions(rows["part"])
    events = read_group_events(compiled, request.types, rows)
    check_keys(compiled, keys, shown, events, rows["key"])
    found = request.answer(keys, events)
    wanted = request.wanted(found.t_end)
    known, steps = groups.steps(keys, events.steps, events.classes, events.probabilities)
    bounds = Bounds(
        np.searchsorted(known, found.key[wanted]), found.t_start[wanted], found.t_first[wanted], found.t_end[wanted]
    )
    plan = groups.plan
    members = best_members(
        words_of(compiled), compiled.alphabet.member, steps, bounds, plan.limit, plan.window, plan.single, request.best
    )
    positions = rows["position"].to_numpy(zero_copy_only=False).astype(np.int64)
    return _rows(groups, members, found, np.flatnonzero(wanted), _Taken(keys, events, positions), shown)


class _Taken:
    """Finds the events that a letter takes at a step of a key."""

    def __init__(self, keys: IntArray, events: GroupEvents, positions: IntArray) -> None:
        there = np.flatnonzero((events.probabilities > 0) & ~bad_steps(keys, events.steps, events.probabilities))
        order = there[np.argsort(positions[there], kind="stable")]
        self._keys, self._steps = keys[order], events.steps[order]
        self._classes, self._positions = events.classes[order], positions[order]

    def positions(self, groups: Groups, keys: IntArray, steps: IntArray, letters: IntArray) -> pa.Array:
        """The positions of the events of each key and step that each letter takes, as lists."""
        stored, asked = paired((self._keys, self._steps), (keys, steps))
        order = np.argsort(stored, kind="stable")
        low, high = (np.searchsorted(stored[order], asked, side) for side in ("left", "right"))
        count = high - low
        item = np.repeat(np.arange(len(keys)), count)
        row = order[np.arange(len(item)) - np.repeat(np.cumsum(count) - count, count) + low[item]]
        takes = groups.query.alphabet.member[self._classes[row], letters[item]]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(item[takes], minlength=len(keys)))])
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(self._positions[row[takes]]))


def _rows(
    groups: Groups, members: Members, found: GroupRows, of_group: IntArray, taken: _Taken, shown: list[str | None]
) -> pa.Table:
    group = of_group[members.group]
    size = np.diff(members.offset)
    item = np.repeat(np.arange(len(group)), size)
    step = members.start[item] + np.arange(len(item)) - members.offset[item]
    letters = members.letter.astype(np.int64)
    named = pa.array([letter.shown for letter in groups.query.alphabet.letters], pa.string())
    offsets = pa.array(members.offset.astype(np.int32))
    begins = np.ones(len(group), np.bool_)
    begins[1:] = group[1:] != group[:-1]
    first = np.flatnonzero(begins)
    number = np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group)))) + 1
    columns = {
        "key": pa.array(shown, pa.string()).take(pa.array(found.key[group])),
        **{name: pa.array(getattr(found, name)[group]) for name in ("t_start", "t_first", "t_end")},
        "match_no": pa.array(number.astype(np.int32)),
        "from_step": pa.array(members.start),
        "to_step": pa.array(members.start + size - 1),
        "items": pa.ListArray.from_arrays(offsets, named.take(pa.array(letters))),
        "positions": pa.ListArray.from_arrays(offsets, taken.positions(groups, found.key[group][item], step, letters)),
        "probability": pa.array(members.probability),
        "final": pa.array(found.final[group]),
    }
    return pa.Table.from_arrays([columns[field.name] for field in ROWS], schema=ROWS)
