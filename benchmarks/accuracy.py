"""How often rows of the sketch are false, beside the rate asked for and the bound that rows carry; bytes per event.

A row is false if one of its leaves holds no event of the step's name. Names of three kinds are asked for in pairs (the
sketch is planned for questions of two operands): rare ones, middling ones, and names that the stream does not have,
of which every row is false.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import NAMES, RARE
from benchmarks.lakes import Lake, make_lake, new_folder, sketch_configuration
from benchmarks.questions import STREAM
from benchmarks.sessions import spark_session
from patternlake.jobs.reports.status import dictionary_bytes

SEED = 20210
KINDS = ("rare", "middling", "absent")


def measure(events: int, pairs: int) -> dict[str, Any]:
    """Both structures on the same events, `pairs` questions of each kind of name."""
    with new_folder(f"accuracy_{events}") as folder, spark_session(folder) as spark:
        lake = make_lake(spark, folder, events)
        structures = {}
        for structure in ("leveled", "uniform"):
            configuration = sketch_configuration(events, structure=structure)
            lake.build(configuration)
            structures[structure] = {
                "fpq": configuration.fpq,
                "events_per_leaf": configuration.events_per_leaf,
                **_bytes(spark, lake),
                "kinds": {kind: _rows(spark, lake, kind, pairs, configuration.events_per_leaf) for kind in KINDS},
            }
        return {"events": events, "pairs": pairs, "structures": structures}


def _pairs(kind: str, count: int) -> Iterator[tuple[str, str]]:
    known = {
        "rare": list(RARE),
        "middling": [f"n{rank}" for rank in range(100, NAMES + 1)],
        "absent": [f"absent{number}" for number in range(10 * count)],
    }[kind]
    ordered = [(first, second) for first in known for second in known if first != second] if kind == "rare" else None
    chosen = random.Random(SEED)
    if ordered is not None:
        yield from chosen.sample(ordered, min(count, len(ordered)))
        return
    for _ in range(count):
        first, second = chosen.sample(known, 2)
        yield first, second


def _rows(spark: SparkSession, lake: Lake, kind: str, pairs: int, leaf_events: int) -> dict[str, Any]:
    """Rows, false rows, mean bound, and questions with a false row."""
    asked = list(_pairs(kind, pairs))
    names = ", ".join(f"'{name}'" for name in sorted({name for pair in asked for name in pair}))
    held = {
        row.name: set(row.leaves)
        for row in spark.sql(
            f"SELECT name, collect_set((position - 1) DIV {leaf_events}) AS leaves FROM {lake.db.log('events')} "
            f"WHERE {lake.rows} AND name IN ({names}) GROUP BY name"
        ).collect()
    }
    rows = wrong = questions_wrong = 0
    bound = 0.0
    for first, second in asked:
        false_here = 0
        found = spark.sql(
            f"SELECT steps, fp_bound FROM match_seq('{STREAM}', '{first} ; {second}', after_match => 'next', "
            "verify => false)"
        ).collect()
        for row in found:
            rows += 1
            bound += row.fp_bound
            leaves = [(step.operand, (step.from_position - 1) // leaf_events) for step in row.steps]
            false_here += any(leaf not in held.get(name, ()) for name, leaf in leaves)
        wrong += false_here
        questions_wrong += false_here > 0
    return {
        "questions": len(asked),
        "rows": rows,
        "false_rows": wrong,
        "questions_with_false_rows": questions_wrong,
        "mean_fp_bound": bound / rows if rows else None,
    }


def _bytes(spark: SparkSession, lake: Lake) -> dict[str, Any]:
    """Bytes per event: the filters, their files, and the same events' names as a dictionary-coded log."""
    published = lake.published("sketch")
    current = (
        f"stream_id = {published.stream_id} AND to_batch IS NULL "
        f"AND from_batch BETWEEN {published.base_batch} AND {published.batch_id}"
    )
    nodes = lake.db.log("sketch_nodes")
    filters, rows = spark.sql(f"SELECT sum(length(bits)), sum(size(node)) FROM {nodes} WHERE {current}").collect()[0]
    files = spark.sql(
        "SELECT sum(size) FROM (SELECT DISTINCT _metadata.file_path, _metadata.file_size AS size "
        f"FROM {nodes} WHERE {current})"
    ).collect()[0][0]
    distinct, texts = spark.sql(
        "SELECT count(*), sum(octet_length(name)) "
        f"FROM (SELECT DISTINCT name FROM {lake.db.log('events')} WHERE {lake.rows})"
    ).collect()[0]
    return {
        "filters_per_event": filters / lake.events,
        "files_per_event": files / lake.events,
        "dictionary_log_per_event": dictionary_bytes(lake.events, [(distinct, texts)]) / lake.events,
        "nodes": rows,
        "levels": len(published.state["plans"][-1]["sizing"]["levels"]),
    }
