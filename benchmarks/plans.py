"""What an executed query read: files and bytes by table, from its physical plan and the footers of the files.

Spark's own input metrics leave out what Parquet's vectored reads fetch, so bytes are counted where they are certain:
for each file of each executed scan, the compressed size of the chunks of the columns that the scan asks for. Row groups
that statistics or dictionaries let the reader skip are counted as read, for every engine alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from pyspark.sql import DataFrame


@dataclass
class Read:
    """What was read of the tables under a folder."""

    files: set[str] = field(default_factory=set)
    bytes: int = 0

    def partitions(self, column: str) -> set[str]:
        """Distinct values of a partition column among the files read."""
        mark = f"{column}="
        return {part.removeprefix(mark) for file in self.files for part in file.split("/") if part.startswith(mark)}


def read_by(frame: DataFrame) -> dict[str, Read]:
    """By table folder (its last name), what a frame read when it was collected."""
    reads: dict[str, Read] = {}
    seen: set[int] = set()
    for scan in _scans(frame._jdf.queryExecution().executedPlan()):
        if scan.id() in seen or scan.metrics().apply("numFiles").value() == 0:
            continue
        seen.add(scan.id())
        columns = {entry["name"] for entry in json.loads(scan.requiredSchema().json())["fields"]}
        table = unquote(scan.relation().location().rootPaths().head().toString()).rstrip("/").rsplit("/", 1)[-1]
        read = reads.setdefault(table, Read())
        for partition in scan.inputRDDs().head().partitions():
            for part in partition.files():
                file = unquote(urlparse(part.urlEncodedPath()).path)
                read.files.add(file)
                read.bytes += _chunk_bytes(file, frozenset(columns), part.start(), part.start() + part.length())
    return reads


def _scans(plan: Any) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield plan
    if kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    elif kind in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        return
    for inner in (plan.children(), plan.subqueries()):
        for index in range(inner.size()):
            yield from _scans(inner.apply(index))


@lru_cache(maxsize=100_000)
def _chunk_bytes(file: str, columns: frozenset[str], start: int, end: int) -> int:
    total = 0
    footer = pq.read_metadata(file)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(index) for index in range(group.num_columns)]
        sizes = [chunk.total_compressed_size for chunk in chunks]
        offsets = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        # A row group belongs to the split that its middle lies in.
        if start <= min(offsets) + sum(sizes) // 2 < end:
            total += sum(
                size for chunk, size in zip(chunks, sizes, strict=True) if chunk.path_in_schema.split(".")[0] in columns
            )
    return total
