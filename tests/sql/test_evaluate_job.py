"""The job `evaluate`: forecasts judged on events that they were not trained on, as the oracle judges them."""

from __future__ import annotations

import random

import pytest
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import A, B, C, then
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sql.machine_lake import MachineStream
from sql.sketch_lake import DATABASE, E, SketchLake, shared
from unit.machines.test_trials import predictions

from patternlake.jobs.terminal.messages import message
from patternlake.udfs.binomials import least_share

CHAIN = naive.Subscription(then(A, B, C), "a ; b ; c PARTITION BY key", partition=("key",))
HALF = 40
EVALUATION = {
    "train": ["2024-01-01 00:00:00", f"2024-01-01 00:00:{HALF}"],
    "test": [f"2024-01-01 00:00:{HALF}", "2024-01-01 00:10:00"],
    "lookaheads": [1, 3],
    "thresholds": [0.2, 0.6],
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def test_forecasts_are_judged_as_by_the_oracle(lake: SketchLake) -> None:
    rng = random.Random(5)
    events = [E(at * 1000, rng.choice("abcx"), rng.choice("kl")) for at in range(90)]
    stream = MachineStream(lake, "m_judged", {"chain": CHAIN.text})
    stream.evaluation = EVALUATION
    stream.write(events)
    stream.ingest()
    stream.run("evaluate")
    given = [naive.Event(at + 1, event.time * 1000, event.name, event.key) for at, event in enumerate(events)]
    chain = chains.Chain(chains.train(CHAIN, given[:HALF]), "N3")
    rows = lake.rows(f"SELECT * FROM {DATABASE}.forecast_evaluation WHERE stream = 'm_judged' AND kind = 'threshold'")
    found = {(row["lookahead"], row["low"]): row for row in rows}
    assert found.keys() == {(1, 0.2), (1, 0.6), (3, 0.2), (3, 0.6)}
    for lookahead in (1, 3):
        made, hits = predictions(CHAIN, given[HALF:], lookahead)
        told = {bound: chain.within(chains.Cell(chains.name_of(CHAIN.root, bound)), lookahead) for bound in made}
        squares = sum(made[b] * told[b] ** 2 - 2 * hits[b] * told[b] + hits[b] for b in made)
        for threshold in (0.2, 0.6):
            row = found[lookahead, threshold]
            above = [bound for bound in made if told[bound] > threshold]
            assert row["forecasts"] == sum(made[bound] for bound in above)
            assert row["hits"] == sum(hits[bound] for bound in above)
            assert row["brier"] == pytest.approx(squares / made.total())
            assert (row["recall"] or 0) == pytest.approx(sum(hits[bound] for bound in above) / max(1, hits.total()))


def test_a_change_of_what_is_judged_is_judged_anew(lake: SketchLake) -> None:
    stream = lake.streams["m_judged"]
    assert isinstance(stream, MachineStream)
    assert stream.run("evaluate").batches == 0
    stream.evaluation = {**EVALUATION, "lookaheads": [2]}
    stream.run("evaluate")
    rows = lake.rows(f"SELECT DISTINCT lookahead FROM {DATABASE}.forecast_evaluation WHERE stream = 'm_judged'")
    assert [row["lookahead"] for row in rows] == [2]


def test_a_wanted_precision_is_the_least_threshold_that_is_shown_to_reach_it(lake: SketchLake) -> None:
    rng = random.Random(8)
    events = [E(at * 1000, rng.choice("abx"), rng.choice("kl")) for at in range(90)]
    stream = MachineStream(lake, "m_precise", {"precise": {"query": "a ; b PARTITION BY key", "lookahead": 3}})
    stream.evaluation = {**EVALUATION, "thresholds": [0.0, 0.1, 0.2, 0.99]}
    stream.queries["precise"]["threshold"] = {"precision": 0.2}
    stream.deliver(events)
    with pytest.raises(PySparkException) as raised:
        stream.forecasts("precise")
    assert "its forecasts were not evaluated by then; run `evaluate`" in message(raised.value)
    stream.run("evaluate")
    measured = {
        row["low"]: least_share(row["hits"], row["forecasts"])
        for row in lake.rows(
            f"SELECT low, hits, forecasts FROM {DATABASE}.forecast_evaluation "
            "WHERE stream = 'm_precise' AND kind = 'threshold' AND lookahead = 3"
        )
    }
    least = min(low for low, precision in measured.items() if precision >= 0.2)
    assert stream.forecasts("precise") == stream.forecasts("precise", threshold=least)
    (row,) = lake.rows(f"SELECT threshold FROM {DATABASE}.subscriptions WHERE stream = 'm_precise'")
    assert row["threshold"] is None
    with pytest.raises(PySparkException) as raised:
        stream.forecasts("precise", lookahead=2)
    assert "at a lookahead of 2, and forecasts were evaluated at 1, 3" in message(raised.value)


def test_waits_that_are_still_open_have_lasted_up_to_the_watermark(lake: SketchLake) -> None:
    rng = random.Random(3)
    events = [E(at * 1000 + rng.randrange(1000), rng.choice("abx"), rng.choice("klmnop")) for at in range(90)]
    stream = MachineStream(lake, "m_open", {"m_open": "a ; b PARTITION BY key WITHIN 8 SEC"})
    stream.write(events)
    stream.ingest()
    judged = []
    for end in ("2024-01-01 00:01:31", "2030-01-01 00:00:00"):
        train, test = ["2024-01-01 00:00:40", end], ["2024-01-01 00:00:00", "2024-01-01 00:00:40"]
        stream.evaluation = {**EVALUATION, "train": train, "test": test}
        stream.run("evaluate")
        judged.append(
            lake.rows(
                f"SELECT lookahead, kind, low, forecasts, hits, brier FROM {DATABASE}.forecast_evaluation "
                "WHERE stream = 'm_open' ORDER BY ALL"
            )
        )
    assert judged[0] == judged[1]
    assert judged[0]
