"""Commits to tables in stores without Spark: what only Spark can read is left to Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing import store_objects
from patternlake.delta_tables.committing.store_commits import StoreCommits
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.log_copies import LogCopy
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


def test_a_log_is_not_read_anew_behind_a_commit_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, begun = tmp_path / INTENTS.log, list[str]()
    write_deltalake(str(place), pa.table({"name": ["view"]}))
    put_on_disk(monkeypatch)
    begin = LogCopy._begin
    monkeypatch.setattr(LogCopy, "_begin", lambda copy: (begun.append(copy._table), begin(copy)))
    commits = commits_to(tmp_path)
    for _ in range(3):
        commits.commit(lambda given: write_deltalake(given.folder, pa.table({"name": ["pay"]}), mode="append"))
    assert len(begun) == 1
    assert DeltaTable(str(place)).version() == 3


def test_a_value_may_have_what_unicode_takes_for_the_end_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["view\u0085", "pay\u2028", "leave\u2029"]
    place = tmp_path / INTENTS.log
    write_deltalake(str(place), pa.table({"name": ["view"]}))
    put_on_disk(monkeypatch)
    commits_to(tmp_path).commit(lambda given: write_deltalake(given.folder, pa.table({"name": names}), mode="append"))
    assert sorted(DeltaTable(str(place)).to_pyarrow_table()["name"].to_pylist()) == sorted(["view", *names])


def put_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put objects as a store does, without Spark."""

    def put_commit(session: object, path: str, lines: Iterable[str]) -> bool:
        Path(path.removeprefix("file://")).write_text("".join(f"{line}\n" for line in lines))
        return True

    def put_object(session: object, path: str, content: bytes) -> None:
        Path(path.removeprefix("file://")).write_bytes(content)

    monkeypatch.setattr(store_objects, "put_commit", put_commit)
    monkeypatch.setattr(store_objects, "put_object", put_object)
