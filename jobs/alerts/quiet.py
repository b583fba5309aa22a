"""What an alert that is `quiet` tells of what is found, and what it holds back: at most one alert of a key and span."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.record_batches import in_micros

TURN, AT, RANK = "turn", "at", "rank"
"""Columns of what is found: it comes in their order, however batches and runs fall. `AT` is its event time, in
microseconds, of groups in steps."""
TIMES = {"last_time": pa.timestamp("us", "UTC"), "watermark": pa.timestamp("us", "UTC"), "t_end": pa.int64()}
"""Columns of which the first that is known says when something that was told happened; the last is in steps."""
BEFORE = pa.schema(
    [
        ("key", pa.string()),
        ("alert_id", pa.string()),
        *TIMES.items(),
        ("held_back", pa.int64()),
        ("held_by", pa.string()),
    ]
)
"""What was decided before: `held_by` is NULL of what was told, which counts `held_back`, or NULL."""

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


def decide(found: pa.Table, before: pa.Table, quiet: int) -> pa.Table:
    """Decide which new things are told, and which are held back because an alert of their key was told near them.

    Parameters
    ----------
    found
        What is found: ``key``, ``alert_id``, `TURN`, `AT`, `RANK` and columns that are kept. What is known is left out,
        and of several rows of an id all but one.
    before
        What was told and held back before, of these keys at least, as `BEFORE`. What was told at an unknown time holds
        nothing back.
    quiet
        Things less than this apart are near: microseconds, of groups steps. With 0, none is.

    Returns
    -------
    pyarrow.Table
        A row for each new thing: its columns without its order, ``held_back``, and ``held_by``, which is NULL where it
        is told.
    """
    new = found.filter(pc.invert(pc.is_in(found["alert_id"], before["alert_id"].combine_chunks())))
    new = new.take(pa.array(np.unique(new["alert_id"].to_numpy(), return_index=True)[1]))
    new = new.sort_by([(name, "ascending") for name in (TURN, AT, RANK, "alert_id")])
    keys = _read_keys(before.filter(pc.is_in(before["key"], new["key"].combine_chunks())))
    counts: list[int | None] = []
    holders: list[str | None] = []
    for key, alert_id, at in zip(*(new[name].to_pylist() for name in ("key", "alert_id", AT)), strict=True):
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
    decided = new.drop_columns([TURN, AT, RANK]).append_column("held_back", pa.array(counts, pa.int64()))
    return decided.append_column("held_by", pa.array(holders, pa.string()))


def _read_keys(before: pa.Table) -> defaultdict[str | None, _Key]:
    """What was decided before, by key."""
    keys: defaultdict[str | None, _Key] = defaultdict(_Key)
    at = pc.coalesce(*(in_micros(before[name]) for name in TIMES))
    columns = [before[name] for name in ("key", "alert_id", "held_back", "held_by")]
    rows = zip(*(column.to_pylist() for column in (*columns, at)), strict=True)
    for key, alert_id, counted, holder, moment in rows:
        if holder is not None:
            keys[key].open += 1
            continue
        keys[key].open -= counted or 0
        if moment is not None:
            keys[key].told.append((moment, alert_id))
    for of_key in keys.values():
        of_key.told.sort()
    return keys
