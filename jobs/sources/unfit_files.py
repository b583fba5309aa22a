"""Files that Spark would read in part, or with NULL or other characters for what stands there: which, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.sources import json_lines, text_files
from patternlake.jobs.sources.bad_files import FIELDS
from patternlake.jobs.sources.csv_lines import Quotes
from patternlake.jobs.sources.errors import tell_header
from patternlake.jobs.sources.parquet_footers import missing_columns
from patternlake.jobs.sources.places import as_read
from patternlake.jobs.sources.source_files import SourceFiles
from patternlake.jobs.sources.text_encodings import find_undecoded, is_wide
from patternlake.jobs.sources.text_files import Faults, TextCheck

_READERS = 8
"""Headers read at once."""
_CHANGED = "changed while it was looked at"

Field = tuple[str, ...]
"""A column, or a field inside of one: the names that lead to it."""


def find_unfit_files(
    source: SourceFiles,
    files: Sequence[str],
    schema: T.StructType,
    used: Mapping[str, bool] | None = None,
    nested: Mapping[Field, bool] | None = None,
) -> dict[str, str]:
    """Find the files that Spark would read in part, or with NULL or other characters for what stands there.

    Parameters
    ----------
    source
        Where they stand.
    files, schema
        The files, and the stream's columns.
    used
        The columns that the stream's expressions read, and whether the key or the event's id does; None: unknown.
    nested
        The same of fields inside of columns.

    Returns
    -------
    dict
        The files, and what is wrong with each.
    """
    if source.kind == "parquet" and source.configuration.option("mergeSchema").lower() != "true":
        folders = {field.name.lower() for field in source.folder_columns()}
        wanted = [field for field in schema.fields if field.name.lower() not in folders]
        return missing_columns(source.footers.read(files), wanted, nested or ())
    if source.kind not in ("csv", "json") or not files:
        return {}
    try:
        fields = {(name,): vital for name, vital in (used or {}).items()} | dict(nested or {})
        return _find_unfit_texts(source, files, schema, fields)
    except (Py4JJavaError, PySparkException, OSError):
        return {}  # A file that cannot be read is told, or left out, where its rows are read.


def _find_unfit_texts(
    source: SourceFiles, files: Sequence[str], schema: T.StructType, used: Mapping[Field, bool]
) -> dict[str, str]:
    encoding = source.configuration.encoding
    found: dict[str, str] = {}
    if source.kind == "csv" and source.has_odd_header(schema):
        with ThreadPoolExecutor(_READERS) as pool:
            headers = zip(files, pool.map(source.header, files), strict=True)
        found = {file: tell_header(there, schema.names) for file, there in headers if there != schema.names}
    if is_wide(encoding):
        places = {file: find_undecoded(text_files.chunks(source.spark, file), encoding) for file in files}
        return found | {file: place for file, place in places.items() if place is not None}
    check = _make_text_check(source, list(used))
    lacked = {}
    for file, faults in _find_faults(source, check, files).items():
        fields = zip(used, faults.has, faults.alike, strict=True) if check.fields else ()
        missing = [field for field, has, alike in fields if not has and (alike or used[field])]
        if faults.undecoded:
            found[file] = find_undecoded(text_files.chunks(source.spark, file), encoding) or _CHANGED
        elif faults.wrong is not None:
            found.setdefault(file, faults.wrong)
        elif missing:
            lacked[file] = missing
    return found | (_find_renamed_fields(source, lacked, schema, used) if lacked else {})


def _make_text_check(source: SourceFiles, used: Sequence[Field]) -> TextCheck:
    """Say what to look for in the source's files."""
    encoding, options = source.configuration.encoding, source.configuration.read_options
    option = source.configuration.option
    if option("multiLine").lower() == "true":
        return TextCheck(encoding, fields=tuple(used) if source.goes_over_lines else ())
    if source.kind == "json":
        lenient = any(key.lower().startswith("allow") and value.lower() == "true" for key, value in options.items())
        return TextCheck(encoding, json_lines=True, lenient=lenient, fields=tuple(used))
    return TextCheck(
        encoding,
        quotes=Quotes(
            quote=option("quote", '"'),
            escape=next((value for key, value in options.items() if key.lower() == "escape"), ""),
            separator=(option("sep") or option("delimiter", ",")).replace("\\t", "\t"),
            blanks=option("ignoreLeadingWhiteSpace").lower() == "true",
            comment=option("comment"),
        ),
    )


def _find_faults(source: SourceFiles, check: TextCheck, files: Sequence[str]) -> dict[str, Faults]:
    """Look at all bytes of some files; give what is wrong, by file."""
    parted = source.configuration.option("lineSep")
    if not parted and text_files.are_few(files):
        looked = pa.Table.from_batches(check.look_at_files([pa.RecordBatch.from_arrays([pa.array(files)], ["file"])]))
    else:
        # Lines can be had from everywhere, and cost half of what Spark takes to read them as rows.
        near = [] if parted else [file for file in files if text_files.is_at_hand(file)]
        far = sorted({*files}.difference(near))
        frames = []
        if near:
            addresses = frame_of_tuples(source.spark, [(file,) for file in near], "file string")
            tasks = addresses.repartition(min(len(near), 1000))
            frames.append(tasks.mapInArrow(check.look_at_files, text_files.FAULTS))
        if far:
            frames.append(source.text_lines(far).mapInArrow(check.look_at_lines, text_files.FAULTS))
        looked = reduce(DataFrame.unionAll, frames).toArrow()
    of_plain = {as_read(file): file for file in files}
    found: dict[str, Faults] = {}
    for row in looked.to_pylist():
        file = of_plain[as_read(row.pop("file"))]
        some = Faults(**row)
        found[file] = some if file not in found else found[file].and_of(some)
    return found


def _find_renamed_fields(
    source: SourceFiles, lacked: Mapping[str, Sequence[Field]], schema: T.StructType, used: Mapping[Field, bool]
) -> dict[str, str]:
    """Find the JSON files that have fields under other names; see `json_lines.missing_fields`."""
    texts = source.json_texts(list(lacked))
    closed = source.stream.ddl is not None
    found: dict[str, str] = {}
    for above in sorted({field[:-1] for fields in lacked.values() for field in fields}):
        path = "$" + "".join(f"['{name}']" for name in above)
        value = F.get_json_object("value", path) if above else F.col("value")
        keys = texts.select("file", F.explode(F.json_object_keys(value)).alias("field")).distinct().collect()
        vital = {field[-1]: of_key for field, of_key in used.items() if field[:-1] == above}
        for file, fields in lacked.items():
            names = [field[-1] for field in fields if field[:-1] == above]
            there = sorted(row["field"] for row in keys if as_read(row["file"]) == as_read(file))
            missing = json_lines.missing_fields(there, names, _names_below(schema, above), vital, closed=closed)
            if missing:
                told, has = (", ".join(".".join((*above, name)) for name in some) for some in (missing, there))
                found.setdefault(file, f"{FIELDS} {told}; it has {has}")
    return found


def _names_below(schema: T.StructType, above: Field) -> list[str]:
    """The fields of a struct inside of the stream's columns, or these."""
    struct = schema
    for name in above:
        inner = next(field.dataType for field in struct.fields if field.name.lower() == name.lower())
        assert isinstance(inner, T.StructType)
        struct = inner
    return struct.names
