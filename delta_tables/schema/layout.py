"""How rows lie in the files that are written without Spark: as they come, packed, or by key.

A file by key has row groups for each bucket of keys, and in them the rows of a key beside each other. Who asks for some
keys reads the row groups that can hold them; tasks that take a bucket each need no shuffle. The name of such a file
says so, as those of Spark's bucketed tables do; its footer says which bucket each of its row groups holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.partitions import lists_of, number_values, order_of, portions_by_partition

KEY = "key"
BUCKETS = 8
"""A power of two, so that so many portions as another one take whole buckets, or parts of one."""
GROUP_ROWS = 1 << 14
"""About so many rows has a row group of a file by key, at most: fewer are read hardly faster, and of more a question of
few rows, or of a key, would read many for each that it finds."""
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
    """The rows of each row group, as `by_key` ordered and counted them, with a footer that names their buckets."""
    sizes = [
        (bucket, high - low)
        for bucket, count in counts.items()
        for low, high in equal_shares(count, max(1, round(count / GROUP_ROWS)))
    ]
    marked = rows.replace_schema_metadata({_FOOTER: ",".join(str(bucket) for bucket, _ in sizes).encode()})
    ends = np.cumsum([size for _, size in sizes]).tolist()
    return [marked.slice(end - size, size) for end, (_, size) in zip(ends, sizes, strict=True)]


def buckets_of_unit(unit: int, units: int) -> list[int]:
    """The buckets that hold all keys of one of so many units, a power of two."""
    alike = min(units, BUCKETS)
    return [bucket for bucket in range(BUCKETS) if bucket % alike == unit % alike]


def lies_by_key(path: str) -> bool:
    """Tell whether a file lies by key."""
    return path.rpartition("/")[2].startswith(_BY_KEY)


@dataclass(frozen=True)
class Part:
    """What is read of a file by key: the row groups of some buckets, or those of some numbers."""

    buckets: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()


def describe_groups(metadata: pq.FileMetaData) -> pa.Table:
    """The row groups of a file by key: ``bucket``, ``rows``, the ``least`` and ``greatest`` key, where known."""
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    place = metadata.schema.names.index(KEY)
    told = [group.column(place).statistics for group in groups]
    bounds = [(each.min, each.max) if each is not None and each.has_min_max else (None, None) for each in told]
    return pa.table(
        {
            "bucket": pa.array(_buckets(metadata), pa.int64()),
            "rows": pa.array([group.num_rows for group in groups], pa.int64()),
            "least": pa.array([least for least, _ in bounds], pa.string()),
            "greatest": pa.array([greatest for _, greatest in bounds], pa.string()),
        }
    )


def part_of_keys(groups: pa.Table, keys: Sequence[str], buckets: Sequence[int] = ()) -> Part:
    """The row groups, as `describe_groups` tells of them, that can hold one of some keys; perhaps of some buckets."""
    by_bucket: dict[int, list[str]] = {}
    for key, bucket in sorted(zip(keys, buckets_of(pa.array(keys, pa.string())).tolist(), strict=True)):
        by_bucket.setdefault(bucket, []).append(key)

    def may_hold(bucket: int, least: str | None, greatest: str | None) -> bool:
        mine = by_bucket.get(bucket, []) if not buckets or bucket in buckets else []
        if least is None or greatest is None:
            return bool(mine)  # of long texts no bounds are kept
        first = bisect_left(mine, least)
        return first < len(mine) and mine[first] <= greatest

    columns = (groups[name].to_pylist() for name in ("bucket", "least", "greatest"))
    return Part(groups=tuple(number for number, each in enumerate(zip(*columns, strict=True)) if may_hold(*each)))


def groups_of(metadata: pq.FileMetaData, part: Part | None) -> list[int]:
    """The row groups that are read of a file; None: all."""
    if part is None:
        return list(range(metadata.num_row_groups))
    if part.buckets:
        return [group for group, bucket in enumerate(_buckets(metadata)) if bucket in part.buckets]
    return list(part.groups)


def rows_in(metadata: pq.FileMetaData, part: Part | None) -> int:
    """How many rows these are."""
    return sum(metadata.row_group(group).num_rows for group in groups_of(metadata, part))


def _buckets(metadata: pq.FileMetaData) -> list[int]:
    """The bucket that each row group of a file by key holds."""
    return [*map(int, (metadata.metadata or {})[_FOOTER].split(b","))]
