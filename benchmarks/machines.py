"""The job `predict`, `match_subscription` and `predict_match` through Spark: on one core and on two, cold and warm.

Events of `benchmarks.events`: 100,000 accounts, so about 10 events of each at a million. Four subscriptions by account,
with conditions and a window; one of them has a Boolean item.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from benchmarks.lakes import Lake, make_lake, new_folder
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session
from patternlake.jobs.configuration.file import SubscriptionConfiguration
from patternlake.jobs.predict.job import predict

CORES = (1, 2)
QUERIES = {
    "chain": "n1 ; n2 ; n3 PARTITION BY key",
    "timed": "n1 ; n2 @(t(n2) - t(n1) < 2 DAY) ; n4 @(t(n4) - t(n1) < 5 DAY) PARTITION BY key",
    "either": "n1 ; (n2 & (n3 | n5)) PARTITION BY key",
    "large": "low ; high DEFINE low AS amount < 100, high AS amount > 900 PARTITION BY key WITHIN 5 EVENTS",
}
CALLS = {
    "match_subscription": "SELECT count(*), sum(last_position), count(DISTINCT key) FROM match_subscription('chain')",
    "match_subscription, one key": "SELECT count(*), sum(last_position), count(key) FROM match_subscription('chain', "
    "key => '{key}')",
    "predict_match": "SELECT count(*), sum(probability), count(DISTINCT key) FROM predict_match('chain')",
    "predict_match, one key": "SELECT count(*), sum(probability), count(key) FROM predict_match('chain', "
    "key => '{key}')",
}


def measure(events: int, repeats: int) -> dict[str, Any]:
    """The job beside a plain copy of the events, and the functions, by cores."""
    figures: dict[str, Any] = {"events": events, "repeats": repeats, "cores": {}}
    for cores in CORES:
        with new_folder(f"machines_{events}_{cores}") as folder, spark_session(folder, cores=cores) as spark:
            figures["cores"][str(cores)] = _through_spark(spark, make_lake(spark, folder, events), repeats)
    return figures


def subscriptions() -> dict[str, SubscriptionConfiguration]:
    """The subscriptions, by name."""
    return {
        name: SubscriptionConfiguration.model_validate({"stream": STREAM, "query": text})
        for name, text in QUERIES.items()
    }


def _through_spark(spark: SparkSession, lake: Lake, repeats: int) -> dict[str, Any]:
    asked = subscriptions()
    predict(lake.db, STREAM, asked)
    rows = spark.table(lake.db.log("events")).where(lake.rows)
    job, plain = [], []
    with PeakMemory(spark) as peak:
        for number in range(repeats):
            job.append(seconds(lambda: predict(lake.db, STREAM, asked, rebuild=True), "job predict"))
            copy = lake.folder / f"copy{number}"
            plain.append(seconds(lambda copy=copy: rows.write.format("delta").save(str(copy)), "plain copy"))  # type: ignore[misc]
    matches = spark.table(lake.db.log("subscription_matches")).where("subscription = 'chain' AND to_batch IS NULL")
    key = matches.selectExpr("min(part[0])").collect()[0][0]
    calls = {}
    for name, text in CALLS.items():
        text = text.format(key=key)
        cold = seconds(lambda text=text: spark.sql(text).collect(), f"{name}, first")  # type: ignore[misc]
        answer = [float(value or 0) for value in spark.sql(text).collect()[0]]
        warm = [seconds(lambda text=text: ask(spark, text), name) for _ in range(repeats)]  # type: ignore[misc]
        calls[name] = {"first": cold, "seconds": warm, "answer": answer}
    instances = spark.table(lake.db.log("machine_instances")).where("to_batch IS NULL").count()
    return {"job": job, "plain": plain, "memory": peak.peaks, "calls": calls, "instances": instances}
