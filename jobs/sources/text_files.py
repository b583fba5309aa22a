"""What is wrong with files of text that Spark's readers would read in part, or with other characters, and say nothing.

They take the first object of a JSON line and leave the rest, put U+FFFD where bytes are no text, and end a quoted value
at the end of its line. The bytes of a batch's files are looked through before they are read, which takes some
hundredths of what reading takes.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.json
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from patternlake.jobs.sources.bad_files import MISREAD, SEVERAL, UNDECODED
from patternlake.jobs.sources.json_values import TOKEN, end_of_value, is_blank

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKED = (".gz", ".gzip", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz", ".lzo", ".br")
FAULTS = "file string, undecoded boolean, wrong string, has array<boolean>, alike array<boolean>"
"""The columns of `Faults`, each behind its file."""
FEW_BYTES = 16 << 20
"""Bytes of text, at most, that the driver looks at, and whose rows it takes in, itself."""
OVER_LINES = f"{MISREAD}: a JSON value goes on in the next line, which needs `multiLine: true`"
OPEN_QUOTE = f"{MISREAD}: a value in quotes goes on in the next line, which needs `multiLine: true`"
_CHUNK = 4 << 20
_SHOWN = 80
_MOST_LINES = 1000
"""Lines of a block that have a field's name at other places, at most, before it is taken for missing: the records are
asked then."""
_WIDE = re.compile(r"utf[-_ ]?(16|32)|ucs[-_ ]?[24]", re.I)
_BLANK = " \t\r\n"
_LOOSE = string.punctuation.replace('"', " ").encode()
_BREAKS = re.compile(rb"\r\n?")
# Bytes 80 to 9F are text in the one and control characters in the other, so that Windows' is the likelier.
_LIKELIEST = "windows-1252"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
    quote, escape, separator
        Of CSV whose records are lines; without a quote, values may go on in the next line.
    blanks
        Whether blanks before a quote are left out.
    """

    encoding: str = ""
    json_lines: bool = False
    lenient: bool = False
    fields: tuple[tuple[str, ...], ...] = ()
    quote: str = ""
    escape: str = ""
    separator: str = ","
    blanks: bool = False

    def look(self, blocks: Iterable[bytes]) -> Faults:
        """Look at whole lines, a few at a time."""
        wrong, has = None, [False] * len(self.fields)
        letters = [f'"{_letters(field[-1])}"'.encode() for field in self.fields]
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
                wrong = self._lost_json(lines) if self.json_lines else self._open_quote(lines)
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
                lines = rows.filter(pa.compute.equal(rows.column("file"), file)).column("value")
                block = b"\n".join(lines.cast(pa.binary()).to_pylist()) + b"\n"
                yield _row(file.as_py(), self.look([block]))

    def _has(self, field: tuple[str, ...], lines: bytes) -> bool:
        """Whether a line has a field; False, too, where many have its name at other places."""
        name = json.dumps(field[-1], ensure_ascii=False).encode()
        at = lines.find(name)
        if not self.json_lines:
            return at >= 0
        for _ in range(_MOST_LINES):
            if at < 0:
                return False
            end = lines.find(b"\n", at)
            if _stands_in(field, lines[lines.rfind(b"\n", 0, at) + 1 : end]):
                return True
            at = lines.find(name, end)
        return False

    def _lost_json(self, lines: bytes) -> str | None:
        """What is wrong where Spark would read one JSON value of a line and leave the rest, or none of many lines."""
        count = lines.count(b"\n")
        # So many objects, each from a line's beginning to its end: Arrow alone would take two on one line as well.
        if lines.startswith(b"{") and lines.endswith(b"}\n") and lines.count(b"}\n{") == count - 1:
            try:
                if _objects(lines) == count:
                    return None
            except pa.ArrowInvalid:
                pass  # One line may be no JSON, or what Spark alone takes for it, such as 'a' for "a".
        texts = [line for line in lines.decode().split("\n") if line.strip(_BLANK)]
        if _goes_on(texts[:2]):
            return f"{OVER_LINES}: {shown(texts[0])}"
        return next((f"{SEVERAL}: {shown(line)}" for line in texts if self._loses(line)), None)

    def _loses(self, line: str) -> bool:
        if _is_json(line):
            return False
        end = end_of_value(line)
        if end is None or "{" not in line[:end] or is_blank(line[end:], comments=self.lenient):
            return False
        # What Spark cannot read it keeps, with the whole line, for quarantine.
        value = TOKEN.sub(lambda token: '""' if token[0][0] == "'" else token[0], line[:end])
        return self.lenient or _is_json(value)

    def _open_quote(self, lines: bytes) -> str | None:
        """What is wrong where a CSV line ends inside quotes."""
        quote = self.quote.encode()
        if not quote or quote not in lines:
            return None
        data = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        at, counts = np.unique(np.searchsorted(ends, np.flatnonzero(data == quote[0])), return_counts=True)
        if self.escape == self.quote and len(quote) == 1:
            at = at[counts % 2 == 1]  # Quotes that are closed, or doubled, are even in number.
        begins = np.concatenate(([0], ends + 1))
        for begin, end in zip(begins[at].tolist(), ends[at].tolist(), strict=True):
            line = lines[begin:end].decode()
            if self._opened.search(line):
                return f"{OPEN_QUOTE}: {shown(line)}"
        return None

    @cached_property
    def _opened(self) -> re.Pattern[str]:
        """A line in which a value begins with a quote, and none closes it."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        inside = f"[^{quote}{escape}]" + (f"|{escape}{quote if escape == quote else '.'}" if escape else "")
        blanks = r"\s*" if self.blanks else ""
        return re.compile(f"(?:^|{re.escape(self.separator)}){blanks}{quote}(?:{inside})*$")


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


def _objects(lines: bytes) -> int:
    """How many JSON objects stand one behind the other."""
    whole = pa.json.ReadOptions(block_size=len(lines) + 1)
    nothing = pa.json.ParseOptions(explicit_schema=pa.schema([]), unexpected_field_behavior="ignore")
    return int(pa.json.read_json(pa.BufferReader(lines), read_options=whole, parse_options=nothing).num_rows)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=str)  # Numbers may be longer than Python's.
    except ValueError:
        return False
    except RecursionError:
        pass  # As deep as it is, it is not told that it is none.
    return True


def _stands_in(field: Sequence[str], line: bytes) -> bool:
    """Whether a JSON value has a field; what is none may have it, for all that is known."""
    try:
        value = json.loads(line, parse_int=str)
    except (ValueError, RecursionError):
        return True
    for name in field:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _goes_on(lines: Sequence[str]) -> bool:
    """Whether the first of two lines begins a JSON value that goes on in the second; a line may also be cut off."""
    first = lines[0].strip(_BLANK) if lines else ""
    if first[:1] not in ("[", "{") or end_of_value(first) is not None or len(lines) < 2:
        return False
    return first[0] == "[" or not lines[1].strip(_BLANK).startswith("{")


def shown(line: str) -> str:
    """A line for a message."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")


def undecoded(chunks: Iterable[bytes], encoding: str) -> str | None:
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


def decoded(encoding: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of Spark's does with lines, ``value`` and their files, that Spark has not decoded."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            lines = [line.decode(encoding, "replace") for line in rows.column(0).cast(pa.binary()).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string()), rows.column(1)], rows.schema.names)

    return decode


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


def missing_fields(
    there: Sequence[str], lacked: Sequence[str], schema: Sequence[str], used: Mapping[str, bool], *, closed: bool
) -> list[str]:
    """The columns that a JSON file has under other names, by what its records hold.

    A record may lack a field. A file in which none of the records has it, while they have fields that the stream does
    not know, is taken for one in which it was renamed: where it is the key or the event's id, or where a new field has
    its name but for case and punctuation.

    Parameters
    ----------
    there, lacked
        The fields of the file's records, and columns that none of them seems to have.
    schema
        The stream's columns.
    used
        The columns that the stream's expressions read, and whether the key or the event's id does.
    closed
        Whether the stream's schema was written by hand, and need not know all fields.
    """
    new = [field for field in there if field not in schema]
    plain = {_letters(field) for field in new}
    absent = [name for name in lacked if name not in there]
    return [name for name in absent if _letters(name) in plain or (new and used[name] and not closed)]


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
