"""Units of rows by key: each finds its own partitions in the files, whole, and no others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing.unlisted_files import Place, write_portions
from patternlake.delta_tables.gathering import gather as gathering
from patternlake.delta_tables.gathering.gather import Gather, Known, PortionReader
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import CACHE, TableCache
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import Layout
from patternlake.udfs.partitions import PART, ByPartition
from patternlake.udfs.record_batches import as_blob

MANY = 12_000
COLUMNS = ("position", "key", "name")


def events(keys: int, names: int, first: int) -> pa.Table:
    """Many events at random of so many keys, NULL among them, and of so many names."""
    random = np.random.default_rng(keys)
    mine = [None if key == keys else f"k{key}" for key in random.integers(0, keys + 1, MANY).tolist()]
    return pa.table(
        {
            "stream_id": pa.array([1] * MANY, pa.int32()),
            "position": pa.array(range(first, first + MANY), pa.int64()),
            "key": pa.array(mine, pa.string()),
            "name": pa.array([f"n{name}" for name in random.integers(0, names, MANY).tolist()], pa.string()),
        }
    )


@pytest.fixture(params=["small files", "large files"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> pa.Table:
    """Events of two files by key in a table below `tmp_path`; small ones are read as a whole, whoever asks."""
    keys, names = (3, 1) if request.param == "small files" else (400, 50)
    both = [events(keys, names, 1), events(keys, names, MANY + 1)]
    place = str(tmp_path / "events_log")
    write_deltalake(place, both[0].slice(0, 0), partition_by=["stream_id"])
    for rows in both:
        actions = [*write_portions(Place.at(place, layout=Layout.BY_KEY), [partial(rows.slice, 0)])]
        table = DeltaTable(place)
        table.create_write_transaction(actions, "append", pa.schema(table.schema().to_arrow()), ["stream_id"])
    CACHE.drop(lambda key: True)  # the rows that were just written
    return pa.concat_tables(both)


@pytest.mark.parametrize("portions", [1, 2, 8, 32])
@pytest.mark.parametrize("units", [1, 2, 8, 16])
@pytest.mark.parametrize("where", [(), (Condition("key", "in", ("k0", "k1", "k2")),)], ids=["all keys", "some keys"])
def test_units_find_each_row_once_and_partitions_whole(
    given: pa.Table, tmp_path: Path, portions: int, units: int, where: tuple[Condition, ...]
) -> None:
    units = min(units, portions)
    listed = DirectReader(str(tmp_path), TableCache()).list_files("events")
    assert listed is not None
    gather = Gather("events", COLUMNS, where, ("key",))
    none = gather.made(given.select(COLUMNS).slice(0, 0))
    reader = PortionReader((Known(listed, gather, ByPartition(portions), none),), units)
    blob = as_blob(listed.files)

    def read(numbers: list[int]) -> list[tuple[int, pa.Table]]:
        """What one task reads that is given these units."""
        given = dict.fromkeys(gathering._BLOB_SCHEMA.names, [0] * len(numbers)) | {gathering.PORTION: numbers}
        given |= {gathering.ROWS: [blob] * len(numbers), gathering.LISTED: [True] * len(numbers)}
        batch = pa.RecordBatch.from_pydict(given, schema=gathering._BLOB_SCHEMA)
        return [(portion, rows) for portion, (rows,) in reader.read([batch])]

    found = []
    for unit in range(units):
        for portion, rows in read([unit]):
            assert portion % units == unit
            assert set(ByPartition(portions)(rows)[1].tolist()) <= {portion}
            found.append(rows)
    together = read([*range(units)])
    assert [portion for portion, _ in together] == [*dict.fromkeys(portion for portion, _ in together)]
    assert pa.concat_tables([rows for _, rows in together]).equals(pa.concat_tables(found))
    wanted = {"k0", "k1", "k2"} if where else {*given["key"].to_pylist()}
    expected = given.select(COLUMNS).filter(pa.array([key in wanted for key in given["key"].to_pylist()]))
    assert pa.concat_tables(found).drop_columns([PART]).sort_by("position").equals(expected)


@pytest.mark.parametrize("coded", [(), ("name", "key")], ids=["texts", "coded texts"])
def test_one_unit_finds_rows_that_nothing_partitions(given: pa.Table, tmp_path: Path, coded: tuple[str, ...]) -> None:
    listed = DirectReader(str(tmp_path), TableCache()).list_files("events")
    assert listed is not None
    gather = Gather("events", ("position", "name"), (Condition("name", "in", ("n0", "n1")),), coded=coded)
    none = gather.made(given.select(gather.columns).slice(0, 0))
    reader = PortionReader((Known(listed, gather, ByPartition(1), none),), 1)
    columns = {gathering.SOURCE: [0], gathering.PORTION: [0], gathering.ROWS: [as_blob(listed.files)]}
    batch = pa.RecordBatch.from_pydict({**columns, gathering.LISTED: [True]}, schema=gathering._BLOB_SCHEMA)
    ((portion, (rows,)),) = reader.read([batch])
    assert portion == 0
    assert pa.types.is_dictionary(rows.schema.field("name").type) == bool(coded)
    assert rows.schema == none.schema
    expected = given.select(gather.columns).filter(pc.is_in(given["name"], pa.array(["n0", "n1"])))
    found = rows.drop_columns([PART]).sort_by("position")
    assert found.cast(expected.schema).equals(expected)


def test_a_unit_reads_a_share_of_its_keys_when_it_is_wanted(
    given: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = DirectReader(str(tmp_path), TableCache()).list_files("events")
    assert listed is not None
    gather = Gather("events", COLUMNS, (), ("key",))
    none = gather.made(given.select(COLUMNS).slice(0, 0))
    read: list[tuple[int, ...]] = []
    known = Known.read

    def note(self: Known, files: pa.Table, buckets: tuple[int, ...] = ()) -> pa.Table:
        read.append(buckets)
        return known(self, files, buckets)

    monkeypatch.setattr(Known, "read", note)
    late = gather.made(given.select(COLUMNS).filter(pa.array([key == "k0" for key in given["key"].to_pylist()])))
    dealing = ByPartition(8)
    (own,) = {*dealing(late)[1].tolist()}
    unit = own % 2
    columns = {
        gathering.SOURCE: [0, 0],
        gathering.PORTION: [unit, own],
        gathering.ROWS: [as_blob(listed.files), as_blob(late)],
        gathering.LISTED: [True, False],
    }
    reader = PortionReader((Known(listed, gather, dealing, none),), 2)
    seen = []
    for portion, (rows,) in reader.read([pa.RecordBatch.from_pydict(columns, schema=gathering._BLOB_SCHEMA)]):
        seen.append(portion)
        assert [*dict.fromkeys(read)][-1] == (portion,)
        mine = given.filter(pa.array(dealing(gather.made(given.select(COLUMNS)))[1] == portion))
        # What was dealt out to the portion comes with what is read for it.
        assert rows.num_rows == mine.num_rows + (late.num_rows if portion == own else 0)
    assert own in seen
