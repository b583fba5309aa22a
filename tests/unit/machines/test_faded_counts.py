"""Counts that `decay` has made smaller than any number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patternlake.jobs.predict.machine_rows import move_rows
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.request import forecast, question_of

ENTRY = {"query": "a ; b ; c PARTITION BY key", "params": {}, "smoothing": 0.0, "decay": 0.9, "lookahead": 1}
STREAM: dict[str, Any] = {"attributes": {}, "key": None}
LOST = [0.0, 5e-324]


@pytest.mark.parametrize("lost", LOST)
def test_counts_that_have_faded_away_are_kept_no_longer(lost: float) -> None:
    group = question_of("s", ENTRY, STREAM).group
    former = {("s", "N1", 0, "N2", 0): lost, ("s", "N1", 0, "N1", 0): 1e-300}
    assert [(row["following_state"], row["moves"]) for row in move_rows(former, [group], [None]).to_pylist()] == [
        ("N1", 1e-300)
    ]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("lost", LOST)
def test_moves_whose_counts_have_faded_away_forecast_as_if_they_never_were(lost: float, smoothing: float) -> None:
    question = question_of("s", {**ENTRY, "smoothing": smoothing}, STREAM)
    names = ("state", "age", "next_state", "next_age", "moves")
    lasting = [("N2", 0, "N3", 0, 1e-300)]
    faded = [("N1", 0, "N2", 0, lost), ("N2", 0, "N2", 0, lost)]

    def within(rows: list[tuple[str, int, str, int, float]]) -> list[float]:
        told = forecast(question, [dict(zip(names, row, strict=True)) for row in rows], Waited())
        one = np.zeros(1, np.int64)
        return [float(told.passage.within(CompositeState(state), one)[0, -1]) for state in (1, 2)]

    assert within(lasting + faded) == within(lasting)
