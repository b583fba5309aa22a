"""predict_match takes the quiet time of a partition into account: worked answers on a lake whose events are Poisson's.

Each user has an event a second in the mean, and a fifth of them are b, whatever came before. So of a deadline or a
lookahead that ends in t seconds, b comes in time with probability 1 - exp(-t / 5), however quiet the user has been.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from sql.machine_lake import MachineStream
from sql.sketch_lake import E, SketchLake, moment, shared

SECOND = 1_000
"""Times of events are in milliseconds."""
WATERMARK = 203_900
USERS = 100


@pytest.fixture(scope="module")
def poisson(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MachineStream:
    """Some users until second 203.9, and one of whom an a at second 200 is all that came; in two batches."""
    lake: SketchLake = shared(spark, tmp_path_factory)
    windows = {f"m_poisson_{limit}": f"a ; b PARTITION BY key WITHIN {limit} SEC" for limit in (1, 2, 4)}
    stream = MachineStream(lake, "m_poisson", windows, ingested=True)
    rng = np.random.default_rng(5)
    events = [E(200 * SECOND, "a", "quiet"), E(WATERMARK, "x", "clock")]
    for user in range(USERS):
        times = np.cumsum(rng.exponential(SECOND, 400)).astype(int)
        events += [E(int(time), str(rng.choice(list("abcdx"))), f"u{user}") for time in times if time < WATERMARK]
    events.sort(key=lambda event: event.time)
    half = len(events) // 2
    return stream.deliver(events[:half], events[half:])


def told(stream: MachineStream, limit: int, **arguments: Any) -> dict[str, float]:
    """What each user's row of a window in seconds forecasts."""
    return {row["key"]: row["probability"] for row in stream.forecasts(f"m_poisson_{limit}", **arguments)}


def left(stream: MachineStream, limit: int) -> dict[str, float]:
    """How many seconds after the watermark the window of a user's last a ends; nobody of whom it has ended."""
    last = {row["key"]: (row["at"] / 1e6 - moment(0).timestamp()) for row in stream.events() if row["name"] == "a"}
    ends = {user: at + limit - WATERMARK / SECOND for user, at in last.items()}
    return {user: end for user, end in ends.items() if end > 0}


def due(seconds: float) -> float:
    """The probability that a b comes in so many seconds."""
    return 1 - exp(-seconds / 5)


@pytest.mark.parametrize("lookahead", [10, "10 SEC"])
def test_an_a_whose_window_is_nearly_over_forecasts_little(poisson: MachineStream, lookahead: int | str) -> None:
    # A tenth of a second is left: of ten whole waits, or of ten seconds, it would be .566 and .562.
    found = told(poisson, 4, lookahead=lookahead, key="quiet")
    assert found == {"quiet": pytest.approx(due(0.1), abs=0.005)}
    assert due(0.1) == pytest.approx(0.020, abs=0.0005)


@pytest.mark.parametrize("limit", [1, 2, 4])
@pytest.mark.parametrize(
    ("lookahead", "seconds"), [("4 SEC", 4.0), ("500 MILLISECONDS", 0.5), ("20 MILLISECONDS", 0.02)]
)
def test_users_forecast_what_is_due_in_what_is_left_of_window_and_lookahead(
    poisson: MachineStream, limit: int, lookahead: str, seconds: float
) -> None:
    found = told(poisson, limit, lookahead=lookahead)
    wanted = {user: due(min(end, seconds)) for user, end in left(poisson, limit).items()}
    # However narrow the lookahead is, everybody has a row.
    assert found.keys() == wanted.keys()
    assert len(found) > 15
    assert np.mean([*found.values()]) == pytest.approx(np.mean([*wanted.values()]), rel=0.07)
    for user, probability in wanted.items():
        assert found[user] == pytest.approx(probability, rel=0.3, abs=0.02), user
