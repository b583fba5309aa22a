"""The threshold of a subscription that wants a precision: the least one that has reached it in the evaluation.

Source: Muthusamy et al. 2010, section 5 (Figs. 10 and 11: precision by threshold and lookahead).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from patternlake.udfs.errors import ArgumentError

EVALUATION_COLUMNS = ("lookahead", "kind", "low", "forecasts", "hits")
"""Of `forecast_evaluation`, whose rows of one subscription are read."""
_MEANING = ("query", "params", "smoothing", "decay")
_WAYS = "or call with a threshold of your own"


def threshold_for(
    wanted: Mapping[str, Any],
    judged: Mapping[str, Any] | None,
    rows: Sequence[Mapping[str, Any]],
) -> float:
    """The least threshold above which forecasts were at least as precise as is wanted.

    Parameters
    ----------
    wanted
        ``subscription``, ``precision``, ``lookahead``, and its ``entry`` as published.
    judged
        The publication of the evaluation at that moment, with ``configuration``; None: there was none.
    rows
        Rows of `EVALUATION_COLUMNS` that it shows of the subscription.

    Raises
    ------
    ArgumentError
        Nothing was evaluated that tells it, or no threshold was precise enough.
    """
    name, precision, lookahead = wanted["subscription"], wanted["precision"], wanted["lookahead"]
    asked = f"the subscription {name!r} wants the threshold of precision {precision:g}"
    entries = {} if judged is None else json.loads(judged["configuration"])["judged"]["subscriptions"]
    if name not in entries:
        raise ArgumentError(f"{asked}, and its forecasts were not evaluated by then; run `evaluate`, {_WAYS}")
    if any(entries[name][part] != wanted["entry"][part] for part in _MEANING):
        raise ArgumentError(
            f"{asked}, and what was evaluated by then was another query or training of it; run `evaluate`, {_WAYS}"
        )
    mine = [row for row in rows if row["kind"] == "threshold"]
    ahead = sorted({row["lookahead"] for row in mine})
    if lookahead not in ahead:
        raise ArgumentError(
            f"{asked} at a lookahead of {lookahead}, and forecasts were evaluated at {', '.join(map(str, ahead))}; add "
            f"{lookahead} to `lookaheads` under `evaluate` and run it, {_WAYS}"
        )
    found = {
        row["low"]: row["hits"] / row["forecasts"] for row in mine if row["lookahead"] == lookahead and row["forecasts"]
    }
    reached = [low for low, share in found.items() if share >= precision]
    if reached:
        return float(min(reached))
    best = max(found, key=lambda low: (found[low], -low), default=None)
    told = "no forecast was above any" if best is None else f"the best was {found[best]:.3g}, above {best:g}"
    raise ArgumentError(
        f"{asked} at a lookahead of {lookahead}, which no threshold of the evaluation has reached: {told}; want less, "
        f"add greater `thresholds` under `evaluate` and run it, {_WAYS}"
    )
