"""Lines of JSON of which Spark would read a part and say nothing, and fields that stand in none of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.json

from patternlake.jobs.sources.bad_files import MISREAD, SEVERAL, show_line
from patternlake.jobs.sources.json_values import TOKEN, end_of_value, is_blank

OVER_LINES = f"{MISREAD}: a JSON value goes on in the next line, which needs `multiLine: true`"
_MOST_LINES = 1000
"""Lines of a block that have a field's name at other places, at most, before it is taken for missing: the records are
asked then."""
_BLANK = " \t\r\n"


def find_lost_values(lines: bytes, *, lenient: bool) -> str | None:
    """Say what is wrong where Spark would read one JSON value of a line and leave the rest, or none of many lines.

    Parameters
    ----------
    lines
        Whole ones, in UTF-8.
    lenient
        Whether the options let JSON be read that is none by its grammar, but for what Spark always lets pass.
    """
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
        return f"{OVER_LINES}: {show_line(texts[0])}"
    return next((f"{SEVERAL}: {show_line(line)}" for line in texts if _loses(line, lenient=lenient)), None)


def _loses(line: str, *, lenient: bool) -> bool:
    if _is_json(line):
        return False
    end = end_of_value(line)
    if end is None or "{" not in line[:end] or is_blank(line[end:], comments=lenient):
        return False
    # What Spark cannot read it keeps, with the whole line, for quarantine.
    value = TOKEN.sub(lambda token: '""' if token[0][0] == "'" else token[0], line[:end])
    return lenient or _is_json(value)


def has_field(field: Sequence[str], lines: bytes) -> bool:
    """Whether a line has a field; False, too, where many have its name at other places."""
    name = json_name(field[-1])
    at = lines.find(name)
    for _ in range(_MOST_LINES):
        if at < 0:
            return False
        end = lines.find(b"\n", at)
        if _stands_in(field, lines[lines.rfind(b"\n", 0, at) + 1 : end]):
            return True
        at = lines.find(name, end)
    return False


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
    plain = {letters_of(field) for field in new}
    absent = [name for name in lacked if name not in there]
    return [name for name in absent if letters_of(name) in plain or (new and used[name] and not closed)]


def json_name(name: str) -> bytes:
    """A field's name as it stands in JSON."""
    return json.dumps(name, ensure_ascii=False).encode()


def letters_of(name: str) -> str:
    """A name but for case and punctuation."""
    return re.sub(r"[\W_]", "", name).lower()


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
