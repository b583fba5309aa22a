"""What an alert that is `quiet` tells of what is found, and what it holds back: at most one alert of a key and span."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field

import pyarrow as pa

TURN, AT, RANK = "turn", "at", "rank"
"""Columns of what is found: it comes in their order, however batches and runs fall. `AT` is its event time, in
microseconds, of groups in steps."""
BEFORE = pa.schema([("key", pa.string()), ("alert_id", pa.string()), (AT, pa.int64()), ("open", pa.int64())])
"""What was decided before. `AT` is when something was told, NULL where that is unknown, and of what was held back.
`open` is how many of the key a row adds to those that no alert counts yet: of an alert minus what it counts."""
OUTCOME = pa.schema([("alert_id", pa.string()), ("held_back", pa.int64()), ("held_by", pa.string())])
"""What becomes of what is found: `held_by` is NULL where it is told."""

_LAST = "\U0010ffff"


@dataclass
class _Key:
    """What was told of a key, by time and id; and how many were held back that no alert counts yet."""

    told: list[tuple[int, str]] = field(default_factory=list)
    open: int = 0

    def near(self, at: int, quiet: int) -> str | None:
        """Of what was told less than `quiet` away, the last one up to a time, else the first one after it."""
        place = bisect_right(self.told, (at, _LAST))
        if place and self.told[place - 1][0] > at - quiet:
            return self.told[place - 1][1]
        if place < len(self.told) and self.told[place][0] < at + quiet:
            return self.told[place][1]
        return None


def hold_back(found: pa.Table, before: pa.Table, quiet: int) -> pa.Table:
    """Decide which things are told, and which are held back because an alert of their key was told near them.

    Parameters
    ----------
    found
        What is found: ``key``, ``alert_id``, `TURN`, `AT` and `RANK`; each id once, and none that is known.
    before
        What was told and held back before, as `BEFORE`, of these keys at least. What was told at an unknown time holds
        nothing back.
    quiet
        Things less than this apart are near: microseconds, of groups steps. With 0, none is.

    Returns
    -------
    pyarrow.Table
        A row for each thing, as `OUTCOME`.
    """
    keys: defaultdict[str | None, _Key] = defaultdict(_Key)
    for key, alert_id, at, more in zip(*(before[name].to_pylist() for name in BEFORE.names), strict=True):
        keys[key].open += more
        if at is not None:
            keys[key].told.append((at, alert_id))
    for of_key in keys.values():
        of_key.told.sort()
    in_turn = found.sort_by([(name, "ascending") for name in (TURN, AT, RANK, "alert_id")])
    ids = in_turn["alert_id"].to_pylist()
    counts: list[int | None] = []
    holders: list[str | None] = []
    for key, alert_id, at in zip(in_turn["key"].to_pylist(), ids, in_turn[AT].to_pylist(), strict=True):
        of_key = keys[key]
        holder = of_key.near(at, quiet)
        holders.append(holder)
        if holder is None:
            counts.append(of_key.open)
            of_key.open = 0
            insort(of_key.told, (at, alert_id))
        else:
            counts.append(None)
            of_key.open += 1
    return pa.table([ids, counts, holders], schema=OUTCOME)
