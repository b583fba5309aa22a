"""Which threshold a wanted precision stands for, and when there is none."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import comb
from typing import Any

import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.machines.wanted_precision import WantedPrecision, threshold_for
from patternlake.udfs.published import PublishedBatch

ENTRY = {"query": "a ; b", "params": {}, "smoothing": 0.0, "decay": 0.0, "lookahead": 5}


def judged(**changes: Any) -> PublishedBatch:
    configuration = {"judged": {"subscriptions": {"ab": {**ENTRY, **changes}}}}
    return PublishedBatch(object_id=1, base_batch=1, batch_id=1, configuration=json.dumps(configuration))


def row(low: float, forecasts: int, hits: int, lookahead: int = 5, kind: str = "threshold") -> dict[str, Any]:
    return {"lookahead": lookahead, "kind": kind, "low": low, "forecasts": forecasts, "hits": hits}


def wanted(precision: float, lookahead: int = 5) -> WantedPrecision:
    return WantedPrecision("ab", precision, {**ENTRY, "lookahead": lookahead})


ROWS = [row(0.1, 100, 50), row(0.5, 40, 32), row(0.9, 10, 7), row(0.5, 9, 9, 1), row(0.0, 5, 5, kind="calibration")]
"""One-sided 95 % bounds of the precisions: .4139, .6673, .3934, and .7169 at a lookahead of 1."""


@pytest.mark.parametrize(("precision", "threshold"), [(0.3, 0.1), (0.4, 0.1), (0.42, 0.5), (0.66, 0.5)])
def test_the_least_threshold_that_is_surely_precise_enough_holds(precision: float, threshold: float) -> None:
    assert threshold_for(wanted(precision), judged(), ROWS) == threshold


def test_one_forecast_that_came_true_shows_next_to_nothing() -> None:
    with pytest.raises(ArgumentError) as caught:
        threshold_for(wanted(0.99), judged(), [row(0.9, 1, 1)])
    assert (
        "the best is 0.9, above which 1 of 1 forecasts came true, which shows a precision of 0.05 with 95% confidence, "
        "and it takes 299 forecasts or more to show 0.99; want less, let `test` under `evaluate` have more events"
    ) in str(caught.value)
    assert threshold_for(wanted(0.99), judged(), [row(0.9, 299, 299)]) == 0.9
    with pytest.raises(ArgumentError, match="298 of 298"):
        threshold_for(wanted(0.99), judged(), [row(0.9, 298, 298)])


@pytest.mark.parametrize("seed", range(50))
def test_it_is_the_least_of_those_that_a_naive_look_finds(seed: int) -> None:
    rng = random.Random(seed)
    rows = [row(low / 10, n := rng.randint(0, 40), rng.randint(0, n), rng.choice([1, 5])) for low in range(10)]
    rows += [row(1.0, 99, 99)]
    precision = rng.choice([Fraction(1, 5), Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)])

    def surely(forecasts: int, hits: int) -> bool:
        """Whether so many hits would be too many, if the precision were less than is wanted."""
        chances = (comb(forecasts, k) * precision**k * (1 - precision) ** (forecasts - k)
                   for k in range(hits, forecasts + 1))  # fmt: skip
        return sum(chances, Fraction(0)) <= Fraction(1, 20)

    good = [one["low"] for one in rows if one["lookahead"] == 5 and surely(one["forecasts"], one["hits"])]
    assert threshold_for(wanted(float(precision)), judged(), rows) == min(good)


@pytest.mark.parametrize(
    ("asked", "said", "rows", "told"),
    [
        (wanted(0.7), judged(), ROWS, "has shown: the best is 0.5, above which 32 of 40 forecasts came true"),
        (wanted(1.0), judged(), ROWS, "and no number of forecasts shows a precision of 1"),
        (wanted(0.5), judged(), [row(0.5, 0, 0)], "no forecast was above any"),
        (wanted(0.5, 7), judged(), ROWS, "at a lookahead of 7, and forecasts were evaluated at 1, 5; add 7 to"),
        (wanted(0.5), None, [], "its forecasts were not evaluated by then; run `evaluate`"),
        (wanted(0.5), judged(query="b ; a"), ROWS, "was another query or training of it; run `evaluate`"),
        (wanted(0.5), judged(decay=0.5), ROWS, "was another query or training of it; run `evaluate`"),
    ],
)
def test_what_stands_in_the_way_is_said(
    asked: WantedPrecision, said: PublishedBatch | None, rows: list[dict[str, Any]], told: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        threshold_for(asked, said, rows)
    assert told in str(caught.value)
    assert "the subscription 'ab' wants the threshold of precision" in str(caught.value)
    assert str(caught.value).endswith("or call with a threshold of your own")


def test_another_lookahead_or_threshold_of_the_subscription_does_not_matter() -> None:
    assert threshold_for(wanted(0.4), judged(lookahead=9, threshold={"precision": 0.1}), ROWS) == 0.1
