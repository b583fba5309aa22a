"""The threshold of a subscription that wants a precision: the least one that the evaluation has shown to reach it.

A few forecasts that came true show little: what counts is the one-sided Clopper-Pearson bound of the precision, which
the true one exceeds with 95 % confidence (`binomials`).

Source: Muthusamy et al. 2010, section 5 (Figs. 10 and 11: precision by threshold and lookahead).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.binomials import CONFIDENCE, least_share, least_trials
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.published import PublishedBatch

EVALUATION_COLUMNS = ("lookahead", "kind", "low", "forecasts", "hits")
"""Of `forecast_evaluation`, whose rows of one subscription are read."""
_MEANING = ("query", "params", "smoothing", "decay")
_WAYS = "or call with a threshold of your own"


@dataclass(frozen=True)
class WantedPrecision:
    """What a subscription wants of its forecasts: their precision; and its entry as published, with ``lookahead``."""

    subscription: str
    precision: float
    entry: Mapping[str, Any]


def threshold_for(wanted: WantedPrecision, judged: PublishedBatch | None, rows: Sequence[Mapping[str, Any]]) -> float:
    """The least threshold above which forecasts are at least as precise as is wanted, with 95 % confidence.

    Parameters
    ----------
    wanted
        The precision, and of which subscription.
    judged
        The publication of the evaluation at that moment; None: there was none.
    rows
        Rows of `EVALUATION_COLUMNS` that it shows of the subscription.

    Raises
    ------
    ArgumentError
        Nothing was evaluated that tells it, or no threshold was shown to be precise enough.
    """
    name, precision, lookahead = wanted.subscription, wanted.precision, wanted.entry["lookahead"]
    asked = f"the subscription {name!r} wants the threshold of precision {precision:g}"
    entries = {} if judged is None else json.loads(judged.configuration)["judged"]["subscriptions"]
    if name not in entries:
        raise ArgumentError(f"{asked}, and its forecasts were not evaluated by then; run `evaluate`, {_WAYS}")
    if any(entries[name][part] != wanted.entry[part] for part in _MEANING):
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
    evaluated = [row for row in mine if row["lookahead"] == lookahead and row["forecasts"]]
    shown = {row["low"]: least_share(row["hits"], row["forecasts"]) for row in evaluated}
    reached = [low for low, share in shown.items() if share >= precision]
    if reached:
        return float(min(reached))
    best = max(evaluated, key=lambda row: (shown[row["low"]], -row["low"]), default=None)
    raise ArgumentError(
        f"{asked} at a lookahead of {lookahead}, which no threshold of the evaluation has shown: "
        f"{_best(best, shown)}{_count_needed(precision)}; want less, let `test` under `evaluate` have more events, add "
        f"other `thresholds` and run it, {_WAYS}"
    )


def _best(row: Mapping[str, Any] | None, shown: Mapping[float, float]) -> str:
    """What the evaluation has shown at best."""
    if row is None:
        return "no forecast was above any"
    return (
        f"the best is {row['low']:g}, above which {row['hits']:,} of {row['forecasts']:,} forecasts came true, which "
        f"shows a precision of {shown[row['low']]:.3g} with {CONFIDENCE:.0%} confidence"
    )


def _count_needed(precision: float) -> str:
    """How many forecasts could show a precision; of 1 no number can."""
    if precision >= 1:
        return ", and no number of forecasts shows a precision of 1"
    return f", and it takes {least_trials(precision):,} forecasts or more to show {precision:g}"
