"""What is wrong with files of text that Spark's readers would read in part, or with other characters, and say nothing.

They take the first object of a JSON line and leave the rest, put U+FFFD where bytes are no text, and end a quoted value
at the end of its line. The bytes of a batch's files are looked through before they are read, which takes some
hundredths of what reading takes.
"""

from __future__ import annotations

import codecs
import os
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.jobs.sources.csv_lines import Quotes
from patternlake.jobs.sources.json_lines import find_lost_values, has_field, json_name, letters_of
from patternlake.jobs.sources.text_encodings import is_utf8

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKED = (".gz", ".gzip", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz", ".lzo", ".br")
FAULTS = "file string, undecoded boolean, wrong string, has array<boolean>, alike array<boolean>"
"""The columns of `Faults`, each behind its file."""
FEW_BYTES = 16 << 20
"""Bytes of text, at most, that the driver looks at, and whose rows it takes in, itself."""
_CHUNK = 4 << 20
_LOOSE = string.punctuation.replace('"', " ").encode()
_BREAKS = re.compile(rb"\r\n?")


class Faults(NamedTuple):
    """What was found in a file, or in some of its lines.

    Parameters
    ----------
    undecoded
        Whether bytes are no text of the encoding; no more was looked at then.
    wrong
        What is wrong with the first line of which Spark would read a part; None where it reads all.
    has
        For each field that is looked for, whether it stands anywhere.
    alike
        For each, whether something may have its name but for case and punctuation.
    """

    undecoded: bool
    wrong: str | None
    has: list[bool]
    alike: list[bool]

    def and_of(self, other: Faults) -> Faults:
        """Of two parts of a file."""
        has, alike = (
            [one or two for one, two in zip(ours, theirs, strict=True)]
            for ours, theirs in ((self.has, other.has), (self.alike, other.alike))
        )
        return Faults(self.undecoded or other.undecoded, self.wrong or other.wrong, has, alike)


@dataclass(frozen=True)
class TextCheck:
    """What is looked for in files of text.

    Parameters
    ----------
    encoding
        As the source's options name it; empty for UTF-8.
    json_lines
        Whether each line is one JSON value.
    lenient
        Whether the options let JSON be read that is none by its grammar, but for what Spark always lets pass.
    fields
        JSON fields that are looked for, each by the names that lead to it; where values go over lines, by the last.
    quotes
        Of CSV whose records are lines; None: values may go on in the next line.
    """

    encoding: str = ""
    json_lines: bool = False
    lenient: bool = False
    fields: tuple[tuple[str, ...], ...] = ()
    quotes: Quotes | None = None

    def look(self, blocks: Iterable[bytes]) -> Faults:
        """Look at whole lines, a few at a time."""
        wrong, has = None, [False] * len(self.fields)
        letters = [f'"{letters_of(field[-1])}"'.encode() for field in self.fields]
        # Letters beyond ASCII may be written as numbers.
        alike = [not field[-1].isascii() for field in self.fields]
        for number, block in enumerate(blocks):
            if not number:
                block = block.removeprefix(codecs.BOM_UTF8)  # As Spark's readers do.
            try:
                text = block.decode(self.encoding or "utf-8")
            except UnicodeDecodeError:
                return Faults(True, None, has, alike)
            lines = block if is_utf8(self.encoding) else text.encode()
            if b"\r" in lines:
                lines = _BREAKS.sub(b"\n", lines)
            if wrong is None:
                wrong = self._find_wrong(lines)
            has = [known or self._has(field, lines) for known, field in zip(has, self.fields, strict=True)]
            if not all(has):
                loose = lines.lower().translate(None, _LOOSE)
                alike = [known or name in loose for known, name in zip(alike, letters, strict=True)]
        return Faults(False, wrong, has, alike)

    def look_at_files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Look at local files, whose addresses are given; a task of Spark's."""
        for files in batches:
            for file in files.column(0).to_pylist():
                yield _row(file, self.look(_blocks(file)))

    def look_at_lines(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Look at lines, each ``value`` beside its ``file``; a task of Spark's."""
        for rows in batches:
            for file in rows.column("file").unique():
                lines = rows.filter(pc.equal(rows.column("file"), file)).column("value")
                block = b"\n".join(lines.cast(pa.binary()).to_pylist()) + b"\n"
                yield _row(file.as_py(), self.look([block]))

    def _find_wrong(self, lines: bytes) -> str | None:
        if self.json_lines:
            return find_lost_values(lines, lenient=self.lenient)
        return None if self.quotes is None else self.quotes.find_open_one(lines)

    def _has(self, field: tuple[str, ...], lines: bytes) -> bool:
        return has_field(field, lines) if self.json_lines else json_name(field[-1]) in lines


def are_few(files: Sequence[str]) -> bool:
    """Whether files stand on a disk of this machine, unpacked, and hold so little that the driver looks at it."""
    paths = [_local_path(file) for file in files]
    if None in paths or any(file.lower().endswith(_PACKED) for file in files):
        return False
    return sum(os.path.getsize(path) for path in paths if path) <= FEW_BYTES


def is_at_hand(file: str) -> bool:
    """Whether a file can be opened without Spark."""
    return _local_path(file) is not None and (
        file.lower().endswith((".gz", ".bz2")) or not file.lower().endswith(_PACKED)
    )


def _local_path(file: str) -> str | None:
    """The path of a file of this machine; None for other addresses."""
    path = unquote(urlsplit(file).path) if file.startswith("file:") else ""
    return path if path and os.path.isfile(path) else None


def _row(file: str, faults: Faults) -> pa.RecordBatch:
    types = [pa.string(), pa.bool_(), pa.string(), pa.list_(pa.bool_()), pa.list_(pa.bool_())]
    columns = [pa.array([value], kind) for value, kind in zip((file, *faults), types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, ["file", *Faults._fields])


def _blocks(file: str) -> Iterator[bytes]:
    """The whole lines of a local file, some millions of bytes at a time; the last one has an end, too."""
    held: list[bytes] = []
    with pa.input_stream(_local_path(file), compression="detect") as source:
        while chunk := source.read(_CHUNK):
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if end:
                yield b"".join([*held, chunk[:end]])
                held = []
            held.append(chunk[end:])
    last = b"".join(held)
    if last:
        yield last + b"\n"


def chunks(spark: SparkSession, file: str) -> Iterator[bytes]:
    """The bytes of a file, unpacked, from any place that Spark reads."""
    machine: Any = spark._jvm
    hadoop, conf = machine.org.apache.hadoop, spark._jsc.hadoopConfiguration()
    path = hadoop.fs.Path(unquote(file))
    stream = path.getFileSystem(conf).open(path)
    try:
        codec = hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
        opened = machine.java.io.BufferedInputStream(stream if codec is None else codec.createInputStream(stream))
        while chunk := bytes(opened.readNBytes(_CHUNK)):
            yield chunk
    finally:
        stream.close()
