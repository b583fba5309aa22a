"""Commits to tables in stores without Spark: what only Spark can read is left to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing.store_commits import StoreCommits
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.table_logs import TableLogs
from patternlake.delta_tables.tables.catalogue import TABLES

INTENTS = TABLES["intents"]


def commits_to(folder: Path) -> StoreCommits:
    """To the table of intents in a folder that is read as a store is."""
    reader = DirectReader(str(folder), TableCache())
    reader._logs = TableLogs(f"file://{folder}", {})
    return StoreCommits(cast(Any, None), reader, f"file://{folder}", INTENTS)


def test_a_log_whose_checkpoint_is_of_another_kind_is_left_to_spark(tmp_path: Path) -> None:
    place = tmp_path / INTENTS.log
    write_deltalake(str(place), pa.table({"batch_id": [1]}))
    seen: list[str] = []
    commits_to(tmp_path).look(lambda given: seen.append(given.folder))
    assert len(seen) == 1
    DeltaTable(str(place)).create_checkpoint()
    (checkpoint,) = (place / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.rename(checkpoint.with_name("00000000000000000000.checkpoint.c0ffee.parquet"))
    assert commits_to(tmp_path).commit(lambda given: seen.append(given.folder)) is None
    assert len(seen) == 1
