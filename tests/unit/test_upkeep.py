"""Which tables are compacted and vacuumed: those whose logs say that it is worth it."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.batches import upkeep
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import writes

_TYPES = {"INT": pa.int32(), "STRING": pa.string()}


class Files:
    """A database of tables that have nothing but their partition columns and a number, and what Spark is told to do."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for table in TABLES.values():
            self.write(table.name, 0)
        spark: Any = None
        reader = DirectReader(str(folder), TableCache())
        self.database = Database(spark, "d", str(folder), folder_on_disk=str(folder), direct=reader)
        self.asked: list[tuple[Any, ...]] = []
        for name in ("compact", "vacuum"):
            monkeypatch.setattr(writes, name, lambda spark, *given, name=name, **how: self.asked.append((name, *given)))

    def write(self, table: str, files: int, **partition: Any) -> None:
        """Write some files of one row into a partition; none at all makes the table."""
        types = {column.name: _TYPES[column.type] for column in TABLES[table].columns if column.name in partition}
        if not files:
            types = {name: _TYPES[kind] for name, kind in self.partitions(table).items()}
        for _ in range(max(files, 1)):
            columns = {name: pa.array([partition.get(name)], kind) for name, kind in types.items()}
            rows = pa.table({**columns, "number": pa.array([1], pa.int64())}).slice(0, 1 if files else 0)
            place = str(self.folder / TABLES[table].log)
            write_deltalake(place, rows, mode="append", partition_by=list(TABLES[table].partitions) or None)

    @staticmethod
    def partitions(table: str) -> dict[str, str]:
        return {column.name: column.type for column in TABLES[table].columns if column.name in TABLES[table].partitions}

    def count(self, table: str) -> int:
        return len(DeltaTable(str(self.folder / TABLES[table].log)).file_uris())

    def leave(self, table: str) -> Path:
        """A file of a run that died ten days ago."""
        file = self.folder / TABLES[table].log / "part-00000-dead.snappy.parquet"
        file.write_bytes(b"dead")
        before = time.time() - 10 * 86_400
        os.utime(file, (before, before))
        return file


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, monkeypatch)


def test_partitions_with_eight_small_files_are_merged_and_no_others(files: Files) -> None:
    files.write("events", 8, stream_id=1, block=0)
    files.write("events", 7, stream_id=1, block=1)
    files.write("events", 8, stream_id=2, block=0)
    files.write("trend_vertices", 8, trend_id=7, kind="event")
    files.write("trend_vertices", 8, trend_id=7, kind="it's")
    files.write("streams", 7)
    files.write("publications", 8)
    files.write("intents", 7)
    upkeep.tidy(files.database, {1})
    texts = {table: conditions for _, table, conditions, _ in files.asked}
    assert texts.keys() == {"`d_internal`.`events_log`", "`d_internal`.`trend_vertices_log`"}
    assert texts["`d_internal`.`events_log`"] == "(`stream_id` = 1 AND `block` = 0)"
    assert set(texts["`d_internal`.`trend_vertices_log`"].split(" OR ")) == {
        "(`trend_id` = 7 AND `kind` = 'event')",
        "(`trend_id` = 7 AND `kind` = 'it\\'s')",
    }
    assert {given[0] for given in files.asked} == {"compact"}
    assert all(settings == {"parquet.writer.version": "v2"} for *_, settings in files.asked)
    assert (files.count("publications"), files.count("intents")) == (1, 7)


def test_nothing_is_asked_of_spark_where_nothing_has_changed(files: Files) -> None:
    upkeep.tidy(files.database, {1})
    upkeep.tidy(files.database, set())
    assert files.asked == []


def test_tables_of_which_files_have_long_been_unneeded_are_vacuumed(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = {table: files.leave(table) for table in ("sketch_nodes", "intents")}
    upkeep.tidy(files.database, {1})
    assert files.asked == [], "a table that was made within the retention can have none"
    assert all(file.exists() for file in dead.values())
    monkeypatch.setattr(upkeep, "RETENTION", timedelta(0))
    upkeep.tidy(files.database, {1})
    assert files.asked == [("vacuum", "`d_internal`.`sketch_nodes_log`")]
    assert not dead["intents"].exists()
    files.asked.clear()
    dead["sketch_nodes"].unlink()
    upkeep.tidy(files.database, {1})
    assert files.asked == []
