"""Which rows a publication makes visible is the same to Spark's columns, to SQL, and to whoever reads without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.file_rows import holding
from patternlake.delta_tables.reading.visibility import published_rows, visible, visible_text
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.arrow_rows import frame_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from patternlake.delta_tables.schema.table import Table


@dataclass(frozen=True)
class Batches:
    stream_id: int = 1
    object_id: int = 2
    base_batch: int = 2
    batch_id: int = 4
    source: Mapping[str, Any] = field(default_factory=dict)


def rows_of(table: Table) -> pa.Table:
    """A row of each stream, object, batch and end, with its number as ``n``."""
    ends = [None, 2, 3, 4, 5, 6] if table.changing else [None]
    every = list(product([1, 2], [1, 2], range(1, 6), ends))
    columns = {
        "stream_id": [row[0] for row in every],
        "from_batch" if table.changing else "batch_id": [row[2] for row in every],
        "n": list(range(len(every))),
    }
    if table.object_column:
        columns[table.object_column] = [row[1] for row in every]
    if table.changing:
        columns["to_batch"] = [row[3] for row in every]
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def expected(table: Table, publication: Batches, first: int) -> list[int]:
    return [
        row["n"]
        for row in rows_of(table).to_pylist()
        if row["stream_id"] == publication.stream_id
        and (not table.object_column or row[table.object_column] == publication.object_id)
        and first <= row["from_batch" if table.changing else "batch_id"] <= publication.batch_id
        and (not table.changing or row["to_batch"] is None or row["to_batch"] > publication.batch_id)
    ]


@pytest.mark.parametrize(
    ("name", "source", "first"),
    [
        ("events", {}, 2),  # written once, one object a stream
        ("pattern_matches", {"kept_from": 3}, 2),  # written once, several objects
        ("sketch_nodes", {}, 2),  # closed
        ("group_state", {}, 2),  # closed, several objects
        ("pattern_state", {}, 2),  # counted from where it was written anew last
        ("pattern_state", {"kept_from": 3}, 3),
    ],
)
def test_rows_are_visible_alike_to_spark_sql_and_the_driver(
    spark: SparkSession, tmp_path: Path, name: str, source: Mapping[str, Any], first: int
) -> None:
    table, publication = TABLES[name], Batches(source=source)
    rows, where = rows_of(table), published_rows(table, publication)
    numbers = expected(table, publication, first)
    assert 0 < len(numbers) < rows.num_rows

    frame = frame_of(spark, rows)
    assert sorted(row.n for row in frame.where(visible(table, publication)).collect()) == numbers

    frame.createOrReplaceTempView("visible_rows_r")
    published = {name: [value] for name, value in vars(publication).items() if name != "source"}
    frame_of(spark, pa.table({**published, "source": [json.dumps(source)]})).createOrReplaceTempView("visible_rows_p")
    asked = f"SELECT r.n FROM visible_rows_r r JOIN visible_rows_p p ON {visible_text(table, 'r', 'p')}"
    assert sorted(row.n for row in spark.sql(asked).collect()) == numbers

    write_deltalake(str(tmp_path / table.log), rows)
    read = DirectReader(str(tmp_path), TableCache()).rows(name, ("n",), where)
    assert sorted(read["n"].to_pylist()) == numbers

    held = holding([rows[each.column] for each in where], where)
    assert held is not None
    assert rows["n"].take(held).to_pylist() == numbers
