"""Columns of one Parquet file, what they take in it, and files that are written in the driver's process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from patternlake.delta_tables.schema.layout import Layout, Part, groups_of, row_groups, rows_in

_DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LOOKED_AT = 8192
"""Rows of a file that tell whether its texts repeat."""
_OFTEN = 8
"""So often a value of a column comes, at least, for which a dictionary is worth its time."""
_FEW_ROWS = 1000
"""Rows of a file that one thread reads."""
_MANY_ROWS = 10_000
"""Of more, columns are looked at before they are written."""
_NO_DICTIONARY = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
"""Encodings of texts that Arrow does not read as numbers of a dictionary."""


def columns_of_file(
    source: pa.NativeFile,
    columns: Sequence[str],
    schema: pa.Schema,
    part: Part | None = None,
    *,
    threads: bool = True,
) -> tuple[dict[str, pa.ChunkedArray], int]:
    """Read columns, texts as numbers of a dictionary where they are stored so; those that lack are NULL.

    Parameters
    ----------
    source
        The file.
    columns, schema
        Which columns, and the types of all of the table.
    part
        Of a file by key: which of its rows. None: all rows.
    threads
        Whether other threads may decode columns of many rows.

    Returns
    -------
    (columns by name, bytes)
        In the types of `schema`, and the bytes that they take in the file.
    """
    metadata = pq.read_metadata(source)
    groups, rows = groups_of(metadata, part), rows_in(metadata, part)
    chunks = _chunks(metadata, groups, columns)
    coded = [name for name in columns if schema.field(name).type == pa.string() and _is_coded(chunks.get(name, []))]
    file = open_parquet(source, metadata=metadata, coded=coded)
    there = [name for name in columns if name in file.schema_arrow.names]
    # To hand so little to threads takes longer than to read it.
    read = file.read_row_groups(groups, columns=there, use_threads=threads and rows > _FEW_ROWS)
    found = {
        name: _cast(read.column(name), schema.field(name).type)
        if name in there
        else pa.chunked_array([pa.nulls(rows, schema.field(name).type)])
        for name in columns
    }
    return found, _stored_bytes(chunks, there)


def open_parquet(
    source: pa.NativeFile, *, metadata: pq.FileMetaData | None = None, coded: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file to read rows of it.

    Arrow lets other threads fetch what will be read, which a store is worth. Measured: of a file that is in memory, or
    mapped into it, that costs up to twice of what it takes to read a column of numbers.

    Parameters
    ----------
    source
        The file.
    metadata
        What its footer says, where that is known.
    coded
        Columns of texts to give as numbers of a dictionary.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=[*coded] or None,
        pre_buffer=not isinstance(source, (pa.MemoryMappedFile, pa.BufferReader)),
        coerce_int96_timestamp_unit="us",
    )


def sizes_of_columns(source: pa.NativeFile) -> pa.Table:
    """The bytes that each column takes in a file: ``name``, ``bytes``."""
    metadata = pq.read_metadata(source)
    names = sorted({metadata.schema.column(place).path.split(".")[0] for place in range(metadata.num_columns)})
    chunks = _chunks(metadata, range(metadata.num_row_groups), names)
    return pa.table({"name": names, "bytes": [_stored_bytes(chunks, [name]) for name in names]})


def write_file(
    rows: pa.Table, place: str | pa.NativeFile, layout: Layout, buckets: Mapping[int, int] | None = None
) -> None:
    """Write a file; packed, whole numbers and moments as differences from their neighbours, as by Spark.

    What lies by key gets row groups for each of `buckets`, of which `by_key` counted the rows.

    Columns of which all values are NULL are left out, which readers take for the same: each takes a millisecond.
    Packed texts that hardly repeat are written by their lengths. Measured: a dictionary that is given up after a while
    makes Spark take twice as long to read them. What is not packed has dictionaries where values come often: of 90,000
    kept events, with these alone, the file is written in 16 ms instead of 30, and takes four fifths of the bytes.

    Floats get no bounds, see `names_of_floats`.
    """
    rows = rows.select([name for name in rows.column_names if _is_told(rows[name])] or rows.column_names[:1])
    unbounded = names_of_floats(rows.schema)
    # To learn the paths takes a Parquet file without rows, which most small ones do without.
    paths = _paths(rows) if unbounded or layout is not Layout.PLAIN else []
    bounded = [path for path in paths if path not in unbounded] if unbounded else True
    if layout is Layout.PLAIN:
        often = _often_repeating(_first(rows)) if rows.num_rows > _MANY_ROWS else True
        pq.write_table(rows, place, use_dictionary=often or False, write_statistics=bounded or False)
        return
    numbers = [
        field.name for field in rows.schema if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
    ]
    plain = _hardly_repeating(_first(rows))
    others = [path for path in paths if path not in numbers and path not in plain]
    encoded = dict.fromkeys(numbers, "DELTA_BINARY_PACKED") | dict.fromkeys(plain, "DELTA_LENGTH_BYTE_ARRAY")
    groups = [rows] if buckets is None else row_groups(rows, buckets)
    writing = {"use_dictionary": others or False, "column_encoding": encoded, "data_page_version": "2.0"}
    with pq.ParquetWriter(place, groups[0].schema, write_statistics=bounded or False, **writing) as writer:
        for group in groups:
            writer.write_table(group)


def names_of_floats(schema: pa.Schema) -> list[str]:
    """The columns of floats, of which files keep no least and greatest value.

    To Spark, NaN is greater than all numbers, and bounds in a Parquet file leave it out: by them, Spark would pass over
    a file whose numbers are below 5 where it looks for what is above 100, with all NaNs that are in it.
    """
    return [field.name for field in schema if pa.types.is_floating(field.type)]


def _paths(rows: pa.Table) -> list[str]:
    """The paths that columns, and what lists and maps hold, have in a file."""
    blank = pa.BufferOutputStream()
    pq.write_table(rows.slice(0, 0), blank)
    leaves = pq.read_metadata(pa.BufferReader(blank.getvalue())).schema
    return [leaves.column(place).path for place in range(len(leaves))]


def _is_told(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count < len(column))


def _first(rows: pa.Table) -> pa.Table:
    return rows.slice(0, _LOOKED_AT).combine_chunks()


def _hardly_repeating(rows: pa.Table) -> list[str]:
    """The paths of texts, and of texts in lists and maps, more than half of which are distinct."""
    return [
        path
        for path, values in _leaves(rows)
        if pa.types.is_string(values.type) and 2 * len(values.unique()) > len(values) - values.null_count
    ]


def _often_repeating(rows: pa.Table) -> list[str]:
    """The paths of columns, and of what lists and maps hold, whose values come often."""
    return [path for path, values in _leaves(rows) if _OFTEN * len(values.unique()) <= len(values)]


def _leaves(rows: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """What columns hold, by their paths in a file."""
    for name in rows.column_names:
        yield from _within(name, rows[name].combine_chunks())


def _within(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if pa.types.is_struct(values.type):
        for field, of_field in zip(values.type, values.flatten(), strict=True):
            yield from _within(f"{path}.{field.name}", of_field)
    elif pa.types.is_map(values.type) or pa.types.is_list(values.type):
        # What the lists of a slice hold is part of what those of all rows do.
        first, last = (values.offsets[place].as_py() for place in (0, -1))
        if pa.types.is_list(values.type):
            held = {"list.element": values.values}
        else:
            held = {"key_value.key": values.keys, "key_value.value": values.items}
        for name, each in held.items():
            yield from _within(f"{path}.{name}", each.slice(first, last - first))
    else:
        yield path, values


@dataclass
class _Chunk:
    """What a column takes in a row group of a file, and how it is stored."""

    bytes: int
    encodings: tuple[str, ...]


def _chunks(file: pq.FileMetaData, groups: Iterable[int], columns: Sequence[str]) -> dict[str, list[_Chunk]]:
    """The chunks of some columns in some row groups, by their paths in the file."""
    paths = {place: file.schema.column(place).path for place in range(file.num_columns)}
    mine = {place: path for place, path in paths.items() if path.split(".")[0] in columns}
    found: dict[str, list[_Chunk]] = {path: [] for path in mine.values()}
    for group in map(file.row_group, groups):
        for place, path in mine.items():
            chunk = group.column(place)
            found[path].append(_Chunk(chunk.total_compressed_size, chunk.encodings))
    return found


def _stored_bytes(chunks: Mapping[str, list[_Chunk]], columns: Sequence[str]) -> int:
    """The bytes that columns take in a file."""
    return sum(chunk.bytes for path, each in chunks.items() if path.split(".")[0] in columns for chunk in each)


def _is_coded(chunks: Sequence[_Chunk]) -> bool:
    """Whether a column of texts is stored by numbers of a dictionary, and can be read as such."""
    encodings = [set(chunk.encodings) for chunk in chunks]
    return bool(encodings) and all(given & _DICTIONARY and not given & _NO_DICTIONARY for given in encodings)


def _cast(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """A column in the type of the table; moments of Spark's files have no zone of their own, and are in UTC."""
    same = column.type == type_ or (pa.types.is_dictionary(column.type) and column.type.value_type == type_)
    return column if same else column.cast(type_)
