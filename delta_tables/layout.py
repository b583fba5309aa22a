"""How rows lie in the files that are written without Spark: as they come, packed, or by key.

A file by key has a row group for each bucket of keys, and in it the rows of a key beside each other. Who asks for some
keys reads the row groups of their buckets; tasks that take a bucket each need no shuffle. The name of such a file says
so, as those of Spark's bucketed tables do; its footer says which bucket each of its row groups holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import lists_of, number_values, order_of, portions_by_partition

KEY = "key"
BUCKETS = 8
"""A power of two, so that so many portions as another one take whole buckets, or parts of one."""
_BY_KEY = "by-key-"
_FEW_ROWS = 10_000
"""A file of fewer rows is read almost as fast as a row group."""
_FOOTER = b"patternlake.buckets"


class Layout(Enum):
    """How rows lie in the files of a table."""

    PLAIN = auto()
    PACKED = auto()
    """Whole numbers and moments are written as differences from their neighbours. Measured for events in the order of
    their positions: files are half as large; positions, times and names are read in a third of the time."""
    BY_KEY = auto()
    """Packed, and files of more than a few rows by key."""


def is_by_key(rows: pa.Table, layout: Layout) -> bool:
    """Tell whether a file of these rows is to lie by key: where there are some, and keys."""
    return layout is Layout.BY_KEY and rows.num_rows >= _FEW_ROWS and rows[KEY].null_count < rows.num_rows


def should_lie_by_key(files: pa.Table, layout: Layout) -> pa.ChunkedArray:
    """Tell which files, as delta-rs flattens what the log says of them, are to lie by key, and do not: bool[n]."""
    if layout is not Layout.BY_KEY or f"null_count.{KEY}" not in files.column_names:
        return pa.chunked_array([pa.repeat(False, files.num_rows)])
    keys = pc.less(files[f"null_count.{KEY}"], files["num_records"])
    many = pc.greater_equal(files["num_records"], _FEW_ROWS)
    return pc.and_(pc.fill_null(pc.and_(keys, many), False), pc.invert(lie_by_key(files["path"])))


def file_name(unique: str, *, by_key: bool) -> str:
    """Name a file."""
    return f"{_BY_KEY if by_key else ''}{unique}.parquet"


def lie_by_key(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tell which files lie by key: bool[n]."""
    return pc.match_substring_regex(paths, f"(^|/){_BY_KEY}[^/]*$")


def buckets_of(keys: pa.Array) -> IntArray:
    """int64[n]: the bucket of each key, NULL among them."""
    return portions_by_partition(lists_of([keys], len(keys)), BUCKETS)


def by_key(rows: pa.Table) -> tuple[pa.Table, dict[int, int]]:
    """Rows in the order in which they lie by key: by bucket, key, and position; and how many are of each bucket."""
    keys = rows[KEY].cast(pa.string()).combine_chunks()
    codes, _ = number_values(keys)
    mine = buckets_of(keys)
    order = order_of(mine, codes, rows["position"].to_numpy())
    buckets, counts = np.unique(mine, return_counts=True)
    return rows.combine_chunks().take(pa.array(order)), dict(zip(buckets.tolist(), counts.tolist(), strict=True))


def row_groups(rows: pa.Table, counts: Mapping[int, int]) -> list[pa.Table]:
    """The rows of each bucket, as `by_key` ordered and counted them, with a footer that names the buckets."""
    marked = rows.replace_schema_metadata({_FOOTER: ",".join(map(str, counts)).encode()})
    ends = np.cumsum([*counts.values()]).tolist()
    return [marked.slice(end - count, count) for end, count in zip(ends, counts.values(), strict=True)]


def buckets_of_unit(unit: int, units: int) -> list[int]:
    """The buckets that hold all keys of one of so many units, a power of two."""
    alike = min(units, BUCKETS)
    return [bucket for bucket in range(BUCKETS) if bucket % alike == unit % alike]


def lies_by_key(path: str) -> bool:
    """Tell whether a file lies by key."""
    return path.rpartition("/")[2].startswith(_BY_KEY)


def of_buckets(path: str, buckets: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The buckets that are read of a file, where some are wanted; None: all of it is."""
    return buckets if lies_by_key(path) else None


def groups_of(metadata: pq.FileMetaData, buckets: Sequence[int] | None) -> list[int]:
    """The row groups of a file by key that hold some buckets; None: of any file, all."""
    if buckets is None:
        return list(range(metadata.num_row_groups))
    return [group for group, bucket in enumerate(rows_by_bucket(metadata)) if bucket in buckets]


def rows_by_bucket(metadata: pq.FileMetaData) -> dict[int, int]:
    """How many rows a file by key has of each bucket, in its order."""
    held = map(int, (metadata.metadata or {})[_FOOTER].split(b","))
    return {bucket: metadata.row_group(group).num_rows for group, bucket in enumerate(held)}


def rows_in(metadata: pq.FileMetaData, buckets: Sequence[int] | None) -> int:
    """How many rows these are."""
    return sum(metadata.row_group(group).num_rows for group in groups_of(metadata, buckets))
