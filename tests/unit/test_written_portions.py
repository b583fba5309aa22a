"""Rows of a table made portion by portion: files that nobody sees until one commit, which is made once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake import write_deltalake as write

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.committing.unlisted_files import Place, write_portions
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.writing import direct_writer

SCHEMA = pa.schema([("stream_id", pa.int32()), ("block", pa.int32()), ("position", pa.int64()), ("name", pa.string())])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A Delta table without rows, by stream and block."""
    place = str(tmp_path / "table")
    write(
        place,
        SCHEMA.empty_table(),
        partition_by=["stream_id", "block"],
        configuration={"delta.dataSkippingStatsColumns": "position"},
    )
    return place


def portion(*positions: int) -> pa.Table:
    """Events of stream 1 in blocks of ten."""
    columns = [[1] * len(positions), [at // 10 for at in positions], list(positions), [f"n{at}" for at in positions]]
    return pa.table({field.name: pa.array(column, field.type) for field, column in zip(SCHEMA, columns, strict=True)})


def stored(folder: str) -> list[int]:
    return sorted(pa.table(DeltaTable(folder).to_pyarrow_table())["position"].to_pylist())


def test_a_portion_gives_a_file_for_each_partition_and_the_log_tells_of_each(folder: str) -> None:
    portions = [partial(portion, 8, 9, 10, 11), partial(portion, 12), partial(portion, 30)]
    actions = write_portions(Place.at(folder, layout=Layout.PACKED), portions)
    assert [action.partition_values["block"] for action in actions] == ["0", "1", "1", "3"]
    assert stored(folder) == [], "nobody sees the files yet"
    assert direct_writer.add(TableFolder(folder), actions, application="a", version=1)
    assert stored(folder) == [8, 9, 10, 11, 12, 30]
    told = pa.table(DeltaTable(folder).get_add_actions(flatten=True)).sort_by("min.position").to_pylist()
    assert [(row["partition.block"], row["num_records"], row["min.position"], row["max.position"]) for row in told] == [
        (0, 2, 8, 9),
        (1, 2, 10, 11),
        (1, 1, 12, 12),
        (3, 1, 30, 30),
    ]


def test_files_are_added_once_however_often_that_is_tried(folder: str) -> None:
    assert not direct_writer.is_appended(TableFolder(folder), application="a", version=1)
    for position in (1, 2):
        actions = write_portions(Place.at(folder, layout=Layout.PLAIN), [partial(portion, position)])
        assert direct_writer.add(TableFolder(folder), actions, application="a", version=1) == (position == 1)
    assert direct_writer.is_appended(TableFolder(folder), application="a", version=1)
    assert not direct_writer.is_appended(TableFolder(folder), application="a", version=2)
    assert stored(folder) == [1]


def test_of_rivals_with_one_version_one_adds_its_files(folder: str) -> None:
    def rival(number: int) -> bool:
        actions = write_portions(Place.at(folder, layout=Layout.PACKED), [partial(portion, number)])
        return direct_writer.add(TableFolder(folder), actions, application="a", version=1)

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(rival, range(8)))
    assert added.count(True) == 1
    assert stored(folder) == [added.index(True)]


def test_an_error_in_one_portion_is_the_error_of_all(folder: str) -> None:
    def fail() -> pa.Table:
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        write_portions(Place.at(folder, layout=Layout.PACKED), [partial(portion, 1), fail])
    assert stored(folder) == []
