"""Which threshold a wanted precision stands for, and when there is none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.machines.wanted_precision import threshold_for

ENTRY = {"query": "a ; b", "params": {}, "smoothing": 0.0, "decay": 0.0, "lookahead": 5}


def judged(**changes: Any) -> dict[str, Any]:
    return {"configuration": json.dumps({"judged": {"subscriptions": {"ab": {**ENTRY, **changes}}}})}


def row(low: float, forecasts: int, hits: int, lookahead: int = 5, kind: str = "threshold") -> dict[str, Any]:
    return {"lookahead": lookahead, "kind": kind, "low": low, "forecasts": forecasts, "hits": hits}


def wanted(precision: float, lookahead: int = 5) -> dict[str, Any]:
    return {"subscription": "ab", "precision": precision, "lookahead": lookahead, "entry": ENTRY}


ROWS = [row(0.1, 100, 50), row(0.5, 40, 32), row(0.9, 10, 7), row(0.5, 9, 9, 1), row(0.0, 5, 5, kind="calibration")]


@pytest.mark.parametrize(("precision", "threshold"), [(0.3, 0.1), (0.5, 0.1), (0.51, 0.5), (0.8, 0.5)])
def test_the_least_threshold_that_is_precise_enough_holds(precision: float, threshold: float) -> None:
    assert threshold_for(wanted(precision), judged(), ROWS) == threshold


@pytest.mark.parametrize("seed", range(50))
def test_it_is_the_least_of_those_that_a_naive_look_finds(seed: int) -> None:
    rng = random.Random(seed)
    rows = [row(low / 10, n := rng.randint(0, 5), rng.randint(0, n), rng.choice([1, 5])) for low in range(10)]
    rows += [row(1.0, 1, 1)]
    precision = rng.choice([0.2, 0.5, 2 / 3, 1.0])
    good = [
        one["low"]
        for one in rows
        if one["lookahead"] == 5 and one["forecasts"] > 0 and one["hits"] >= precision * one["forecasts"] - 1e-12
    ]
    assert threshold_for(wanted(precision), judged(), rows) == min(good)


@pytest.mark.parametrize(
    ("asked", "said", "rows", "told"),
    [
        (wanted(0.81), judged(), ROWS, "which no threshold of the evaluation has reached: the best was 0.8, above 0.5"),
        (wanted(0.5), judged(), [row(0.5, 0, 0)], "no forecast was above any"),
        (wanted(0.5, 7), judged(), ROWS, "at a lookahead of 7, and forecasts were evaluated at 1, 5; add 7 to"),
        (wanted(0.5), None, [], "its forecasts were not evaluated by then; run `evaluate`"),
        (wanted(0.5), judged(query="b ; a"), ROWS, "was another query or training of it; run `evaluate`"),
        (wanted(0.5), judged(decay=0.5), ROWS, "was another query or training of it; run `evaluate`"),
    ],
)
def test_what_stands_in_the_way_is_said(
    asked: dict[str, Any], said: dict[str, Any] | None, rows: list[dict[str, Any]], told: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        threshold_for(asked, said, rows)
    assert told in str(caught.value)
    assert "the subscription 'ab' wants the threshold of precision" in str(caught.value)
    assert str(caught.value).endswith("or call with a threshold of your own")


def test_another_lookahead_or_threshold_of_the_subscription_does_not_matter() -> None:
    assert threshold_for(wanted(0.5), judged(lookahead=9, threshold={"precision": 0.1}), ROWS) == 0.1
