"""predict_match looks ahead in time: by how many events a partition has in that time, as they were counted."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from naive import machine_waits as naive
from pyspark.sql import SparkSession
from sql.machine_lake import MachineStream
from sql.sketch_lake import E, SketchLake, by_tasks, shared

SECOND = 1000
"""Times of events here are in milliseconds."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def probabilities(stream: MachineStream, subscription: str, **arguments: Any) -> dict[tuple[str, str], float]:
    rows = stream.forecasts(subscription, **arguments)
    return {(row["key"], row["state"]): row["probability"] for row in rows}


def test_a_time_is_as_many_events_as_partitions_have_in_it(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_time", {"m_time_ab": "a ; b ; c PARTITION BY key"})
    # Gaps of 2 s three times, of 6 s once: of partitions, not of the stream.
    times = {"k": [0, 2, 4, 10], "l": [1, 3], "m": [10]}
    names = {"k": "abca", "l": "ab", "m": "a"}
    events = sorted(
        (time, key, name) for key, some in times.items() for time, name in zip(some, names[key], strict=True)
    )
    stream.deliver([E(time * SECOND, name, key) for time, key, name in events])
    # l has waited for 7 s, and still does.
    exact = naive.waiting([2, 2, 6, 2], [0, 7, 0])
    # At the watermark, 10 s, k and m have just had an event, and l has been quiet for 7 s, longer than anything.
    steps = {n: probabilities(stream, "m_time_ab", lookahead=n) for n in range(1, 5)}
    found = probabilities(stream, "m_time_ab", lookahead="4 SEC")
    for row in (("k", "N1"), ("m", "N1")):
        alpha = [Fraction(steps[n].get(row, 0.0) - steps.get(n - 1, {}).get(row, 0.0)) for n in range(1, 5)]
        wanted = float(naive.completed(alpha, exact, 0, 4))
        assert found[row] == pytest.approx(wanted, abs=1e-6)
        assert wanted > 0
    assert ("l", "N2") in steps[4]
    assert ("l", "N2") not in found
    # alpha is about a number of events.
    assert {row["alpha"] for row in stream.forecasts("m_time_ab", lookahead="4 SEC")} == {None}
    with by_tasks(lake.spark):
        assert probabilities(stream, "m_time_ab", lookahead="4 SEC") == pytest.approx(found)
    assert probabilities(stream, "m_time_ab", lookahead="4 seconds", key="m") == {("m", "N1"): found["m", "N1"]}
    # Waiting times are counted across batches; as of the first one, there were none of 1 s.
    stream.deliver(
        [E(11 * SECOND, "x", "k"), E(12 * SECOND, "b", "k"), E(13 * SECOND, "x", "m"), E(27 * SECOND // 2, "x", "n")]
    )
    # In half seconds, of which m has been quiet for one.
    later = naive.waiting([4, 4, 12, 4, 2, 2, 6], [3, 21, 1, 0])
    steps = {n: probabilities(stream, "m_time_ab", lookahead=n) for n in range(1, 5)}
    row = ("m", "N1")
    alpha = [Fraction(steps[n].get(row, 0.0) - steps.get(n - 1, {}).get(row, 0.0)) for n in range(1, 5)]
    wanted = float(naive.completed(alpha, later, 1, 8))
    assert probabilities(stream, "m_time_ab", lookahead="4 SEC")[row] == pytest.approx(wanted, abs=1e-6)
    assert probabilities(stream, "m_time_ab", lookahead="4 SEC", as_of=stream.moments[0]) == pytest.approx(found)


def test_what_is_no_lookahead_is_refused_with_what_would_be_right(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_time_wrong", {"m_time_one": "a ; b"})
    stream.deliver([E(0, "a")])
    said = {
        "0": "lookahead => 0 is out of range; 1 to 1,000 events would be right",
        "1001": "lookahead => 1001 is out of range; 1 to 1,000 events would be right",
        "'soon'": "lookahead => 'soon' is neither a number of events nor a time to come; 1 to 1,000 events would be "
        "right, or a time such as '2 HOURS'",
        "'-1 DAY'": "lookahead => '-1 DAY' is neither a number of events nor a time to come",
        "'2 HOURS'": "lookahead => '2 HOURS': no time between two events of one partition of 'm_time_one' was counted",
    }
    calls = [f"predict_match('m_time_one', lookahead => {value})" for value in said]
    for found, wanted in zip(lake.errors(calls), said.values(), strict=True):
        assert found.startswith(wanted)
    stream.deliver([E(1, "x"), E(2, "x")])
    (error,) = lake.errors(["predict_match('m_time_one', lookahead => '2 HOURS')"])
    assert error.startswith(
        "lookahead => '2 HOURS': more than 1,000 events of a partition of 'm_time_one' come in that time"
    )
