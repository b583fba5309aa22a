"""Encodings of files of text: which are known, and where bytes are no text of theirs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from patternlake.jobs.sources.bad_files import UNDECODED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WIDE = re.compile(r"utf[-_ ]?(16|32)|ucs[-_ ]?[24]", re.I)
# Bytes 80 to 9F are text in the one and control characters in the other, so that Windows' is the likelier.
_LIKELIEST = "windows-1252"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_utf8(encoding: str) -> bool:
    """Whether the name of an encoding means UTF-8, as none does."""
    return encoding.strip().lower().replace("_", "-") in ("", "utf-8", "utf8")


def is_wide(encoding: str) -> bool:
    """Whether lines of the encoding cannot be told by the byte of a line break."""
    return _WIDE.match(encoding.strip()) is not None


def begins_as_utf16(head: bytes) -> bool:
    """Whether a text begins with the mark of UTF-16."""
    return head.startswith(_MARKS)


def is_known(spark: SparkSession, encoding: str) -> bool:
    """Whether an encoding is known to Java, which reads it, and to Python, which bytes are held against."""
    machine: Any = spark._jvm
    try:
        codecs.lookup(encoding)
        return bool(machine.java.nio.charset.Charset.isSupported(encoding))
    except (LookupError, Py4JJavaError):
        return False


def find_undecoded(chunks: Iterable[bytes], encoding: str) -> str | None:
    """The first bytes that are no text of an encoding, and where; None where all are."""
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
    before = line = 0
    for chunk in (*chunks, b""):
        held = decoder.getstate()[0]
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            place = before - len(held) + error.start
            line += error.object[: error.start].count(b"\n") + 1
            value = error.object[error.start]
            name = "UTF-8" if is_utf8(encoding) else encoding
            advice = "UTF-16`, `multiLine: true" if begins_as_utf16(error.object) and not place else _LIKELIEST
            return (
                f"{UNDECODED} {name}: byte 0x{value:02X} at {place:,} (line {line:,}) is no text; name its encoding in "
                f"the source's options, such as `encoding: {advice}`"
            )
        before += len(chunk)
        line += chunk.count(b"\n")
    return None


def decode_lines(encoding: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of Spark's does with lines, ``value`` and their files, that Spark has not decoded."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            lines = [line.decode(encoding, "replace") for line in rows.column(0).cast(pa.binary()).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string()), rows.column(1)], rows.schema.names)

    return decode
