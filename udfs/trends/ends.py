"""When windows that count events begin and end, from the panes that lie in them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from patternlake.udfs.trends.panes import Windows

_MOMENT = pa.timestamp("us", "UTC")
ENDS = pa.schema([("window", pa.int64()), ("first_time", _MOMENT), ("last_time", _MOMENT), ("final", pa.bool_())])
PANE_COLUMNS = ("pane", "position", "time", "last_time", "greatest_time")


def window_ends(
    windows: Windows,
    panes: Mapping[str, pa.Array],
    *,
    watermark: int | None,
    last_position: int,
    from_time: int | None,
    to_time: int | None,
) -> pa.Table:
    """The windows that hold an event and lie inside the asked times.

    Parameters
    ----------
    windows
        They count events.
    panes
        `PANE_COLUMNS` of n panes.
    watermark, last_position
        As of `Windows.final`.
    from_time, to_time
        Bounds of the times of a window's first and last event, microseconds; None: any.

    Returns
    -------
    Rows of `ENDS`: the times of a window's first and last event, by position, and whether they can't change any more.
    """
    row, window = windows.spread(panes["pane"].to_numpy())
    order = np.lexsort((panes["position"].to_numpy()[row], window))
    row, window = row[order], window[order]
    times = {name: panes[name].cast(pa.int64()).to_numpy()[row] for name in PANE_COLUMNS[2:]}
    by_window = pd.DataFrame({"window": window, **times}).groupby("window", sort=True)
    found = by_window.agg({"time": "first", "last_time": "last", "greatest_time": "max"})
    number = found.index.to_numpy(np.int64)
    begins, ends, greatest = (found[name].to_numpy(np.int64) for name in times)
    final = windows.final(number, watermark, last_position, greatest)
    inside = np.ones(len(number), np.bool_)
    # Late events let a window begin after its end.
    if from_time is not None:
        inside &= np.minimum(begins, ends) >= from_time
    if to_time is not None:
        inside &= np.maximum(begins, ends) <= to_time
    columns = [pa.array(number[inside]), *(pa.array(moments[inside]).cast(_MOMENT) for moments in (begins, ends))]
    return pa.Table.from_arrays([*columns, pa.array(final[inside])], schema=ENDS)
