"""What Spark would misread in files of text is seen in their bytes; what it reads whole, or quarantines, is not."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.sources import text_files
from patternlake.jobs.sources.bad_files import SEVERAL, show_line
from patternlake.jobs.sources.csv_lines import OPEN_QUOTE, Quotes
from patternlake.jobs.sources.json_lines import OVER_LINES, missing_fields
from patternlake.jobs.sources.text_encodings import find_undecoded
from patternlake.jobs.sources.text_files import Faults, TextCheck
from patternlake.jobs.sources.unfit_files import _make_text_check

LINES = TextCheck(json_lines=True)
CSV = TextCheck(quotes=Quotes('"', '"'))


def wrong(check: TextCheck, *lines: str) -> str | None:
    return check.look(["".join(f"{line}\n" for line in lines).encode()]).wrong


def several(line: str) -> str:
    return f"{SEVERAL}: {line!r}"


def opened(line: str) -> str:
    return f"{OPEN_QUOTE}: {line!r}"


@pytest.mark.parametrize(
    "line",
    [
        '{"a": 1}{"b": 2}',
        '{"a": 1},{"b": 2}',
        '{"a": {"b": {}}} {"c": 1}',
        '{"a": 1} xyz',
        '{"a": 1}}',
        '{"a": "}{"}{"b": 1}',
        "{'a': 1}{'b': 2}",
        '{"a": 1} // {"b": 2}',
        '[{"a": 1}]{"b": 2}',
        '{"a": NaN}\t{"b": 2}',
        '{"a": 1}\0{"b": 2}',
    ],
)
def test_a_json_line_of_which_spark_would_read_the_first_value_alone_is_told(line: str) -> None:
    good = '{"a": 1}'
    assert wrong(LINES, line) == several(line)
    # Whether its neighbours are of one kind, or have blank lines between them that make up for its second object.
    assert wrong(LINES, good, line, good) == several(line)
    assert wrong(LINES, good, line, "", good) == several(line)
    assert wrong(LINES, f"\ufeff{line}") == several(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"a": {"b": [1, {}]}, "text": "}{]\\" [", "odd": NaN}',
        "{'single': '}{'}",
        ' {"a": 1} \r',
        "",
        '[{"a": 1}, {"b": 2}]',
        f'{{"deep": {"[" * 5000}{"]" * 5000}}}',
        f'{{"long": {"1" * 5000}}}',
        # Spark keeps each of these whole, for quarantine.
        '{"a": 1',
        '{"a": "} {',
        "{bad} {worse}",
        "[12:30] started {",
        '"text" {"a": 1}',
        "no json",
    ],
)
def test_a_json_line_that_spark_reads_whole_or_not_at_all_is_fine(line: str) -> None:
    assert wrong(LINES, line) is None
    assert wrong(LINES, '{"a": 1}', line, '{"a": 1}') is None


@pytest.mark.parametrize(
    "lines",
    [
        json.dumps({"a": {"b": 1}}, indent=2).split("\n"),
        json.dumps([{"a": 1}, {"a": 2}], indent=2).split("\n"),
        ['[{"a": 1},', '{"a": 2}]'],
        ["", "{", '"a": 1', "}", "{", '"a": 2', "}"],
        ['{"a": "x",', '"b": 1}'],
    ],
)
def test_json_that_goes_on_over_lines_is_told(lines: list[str]) -> None:
    first = next(filter(None, lines))
    assert wrong(LINES, *lines) == f"{OVER_LINES}: {first!r}"


def test_json_that_goes_on_over_lines_is_told_behind_a_mark_of_unicode() -> None:
    assert wrong(LINES, "\ufeff{", '"a": 1}') == f"{OVER_LINES}: '{{'"


def test_a_json_line_that_is_cut_off_goes_to_quarantine_alone() -> None:
    assert wrong(LINES, '{"a": "x', '{"a": 1}') is None
    assert wrong(LINES, '{"a": 1}', "{") is None
    assert wrong(LINES, "{") is None


def test_options_of_the_stream_let_pass_what_they_allow() -> None:
    lenient = TextCheck(json_lines=True, lenient=True)
    assert wrong(lenient, '{"a": 1} // said', "{a: 1} /* said */") is None
    assert wrong(lenient, "{a: 1}{b: 2}") == several("{a: 1}{b: 2}")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=8,
)


@given(st.lists(st.lists(st.dictionaries(st.text(), _JSON), max_size=2), max_size=6))
def test_lines_with_two_objects_are_told_whatever_the_objects(lines: list[list[dict[str, object]]]) -> None:
    texts = ["".join(json.dumps(each, ensure_ascii=False) for each in line) for line in lines]
    told = wrong(LINES, *texts)
    first = next((text for text, line in zip(texts, lines, strict=True) if len(line) > 1), None)
    assert told == (None if first is None else f"{SEVERAL}: {show_line(first)}")


@pytest.mark.parametrize("line", ['a,"b', '"a', 'a,"5"" x', 'a,"b""', 'a,"b"",c'])
def test_a_csv_line_that_ends_inside_quotes_is_told(line: str) -> None:
    assert wrong(CSV, "x,y", line) == opened(line)


@pytest.mark.parametrize("line", ['5" x,"abc"', 'a,"b ""c""",d', '"a",b"', 'a,"b"', 'a,""', '5" disk', "a,'b"])
def test_a_csv_line_whose_quotes_are_closed_or_no_quotes_is_fine(line: str) -> None:
    assert wrong(CSV, line, line) is None


def test_quotes_of_csv_are_those_of_the_options() -> None:
    slashed = TextCheck(quotes=Quotes(quote='"', escape="\\"))
    assert wrong(slashed, r'a,"b \"c\"",d') is None
    assert wrong(slashed, r'a,"b\"') == opened(r'a,"b\"')
    assert wrong(TextCheck(quotes=Quotes(quote="'", escape="'", separator="\t")), "a\t'b") == opened("a\t'b")
    assert wrong(TextCheck(quotes=Quotes(quote="«", escape="«")), "a,«b«", "a,«b") == opened("a,«b")
    assert wrong(TextCheck(quotes=Quotes(quote='"')), r'a,"b\"', 'a,"b') == opened('a,"b')
    assert wrong(TextCheck(), 'a,"b') is None
    assert wrong(CSV, 'a, "b') is None
    assert wrong(TextCheck(quotes=Quotes(quote='"', escape='"', blanks=True)), 'a, "b') == opened('a, "b')


def test_a_quote_in_a_comment_opens_nothing() -> None:
    commented = TextCheck(quotes=Quotes(quote='"', escape='"', comment="#"))
    line = '#2024-01-01,"taken out'
    assert wrong(CSV, "x,y", line) == opened(line)
    assert wrong(commented, "x,y", line) is None
    assert wrong(commented, line, 'a,"b') == opened('a,"b')
    assert wrong(commented, f" {line}") == opened(f" {line}"), "Spark reads it as a row"


def test_comments_are_those_of_the_sources_options() -> None:
    options = {"path": "data", "format": "csv", "options": {"header": True, "COMMENT": "#"}}
    configuration = Configuration.from_text(
        json.dumps({"streams": {"s": {"source": options, "time": "at", "name": "what"}}})
    )
    source: Any = SimpleNamespace(kind="csv", configuration=configuration.streams["s"].source)
    assert wrong(_make_text_check(source, []), '#a,"b') is None


def test_fields_are_looked_for_in_quotes_and_by_their_letters() -> None:
    check = TextCheck(json_lines=True, fields=(("userId",), ("größe",), ('q"',), ("x",)))
    one = check.look([b'{"userId": 1, "users": 2}\n', '{"größe": 1, "User_ID": 2}\n'.encode()])
    assert (one.has, one.alike) == ([True, True, False, False], [True, True, False, False])
    # What Python writes: it is not in the text, and may yet be the field.
    two = check.look([b'{"user.id": "userId:", "q\\"": 1, "gr\\u00f6\\u00dfe": 1, "X ": 2}\n'])
    assert (two.has, two.alike) == ([False, False, True, False], [True, True, True, True])
    both = one.and_of(two)
    assert (both.has, both.alike) == ([True, True, True, False], [True, True, True, True])


def test_fields_are_looked_for_at_their_places() -> None:
    check = TextCheck(json_lines=True, fields=(("id",), ("user", "id"), ("user", "account", "id")))

    def has(*lines: Any) -> list[bool]:
        return check.look(["".join(json.dumps(line) + "\n" for line in lines).encode()]).has

    assert has({"id": 1, "user": {"id": 2, "account": {"id": 3}}}) == [True, True, True]
    assert has({"item": {"id": 1}, "user": {"uid": 2}}) == [False, False, False]
    assert has({"user": [{"id": 1}]}, {"user": "id"}, {"user": {"account": {"id": None}}}) == [False, False, True]
    assert has(*[{"item": {"id": 1}}] * 999, {"id": 1}) == [True, False, False]
    # Who has the name so often at other places is asked record by record.
    assert has(*[{"item": {"id": 1}}] * 1000, {"id": 1}) == [False, False, False]
    # What is no JSON by the grammar may have it.
    assert check.look([b"{'user': {\"id\": 1}}\n"]).has == [True, True, True]
    over_lines = TextCheck(fields=(("user", "id"),))
    assert over_lines.look([b'{"item":\n{"id": 1}}\n']).has == [True]


def test_bytes_are_held_against_the_encoding() -> None:
    assert TextCheck().look(["j\u00fc\n".encode("cp1252")]).undecoded
    assert not TextCheck("windows-1252").look(["j\u00fc\n".encode("cp1252")]).undecoded
    assert TextCheck("windows-1252").look([b"\x81\n"]).undecoded
    french = TextCheck("ISO-8859-1", json_lines=True, fields=(("prénom",),))
    assert french.look(['{"prénom": 1}{}\n'.encode("latin-1")]) == Faults(
        False, several('{"prénom": 1}{}'), [True], [True]
    )


def test_the_place_of_a_byte_is_told_across_chunks() -> None:
    assert find_undecoded([b"ab\nc", b"\xc3", b"\xbc"], "") is None
    assert find_undecoded([b"ab\nc\xc3", b"d"], "") == (
        "is not of the encoding UTF-8: byte 0xC3 at 4 (line 2) is no text; name its "
        "encoding in the source's options, such as `encoding: windows-1252`"
    )
    assert find_undecoded([b"ab\n", b"\xc3"], "") is not None
    told = find_undecoded(["ab".encode("utf-16")], "")
    assert told is not None
    assert told.endswith("such as `encoding: UTF-16`, `multiLine: true`")
    told = find_undecoded([b"ab\n\xfc"], "US-ASCII")
    assert told is not None
    assert told.startswith("is not of the encoding US-ASCII: byte 0xFC at 3 (line 2)")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_files_are_looked_at_in_whole_lines_however_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, chunk: int
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    text = ending.join(['{"a": "jürgen"}', "", '{"a": 1}{"b": 2}']).encode()
    plain, zipped, packed = (tmp_path / name for name in ("a b.json", "b.json.gz", "c.json.bz2"))
    plain.write_bytes(text)
    zipped.write_bytes(gzip.compress(text[:9]) + gzip.compress(text[9:]))
    packed.write_bytes(bz2.compress(text))
    files = [path.as_uri() for path in (plain, zipped, packed)]
    check = TextCheck(json_lines=True, fields=(("b",), ("c",)))
    rows = pa.Table.from_batches(check.look_at_files([pa.RecordBatch.from_arrays([pa.array(files)], ["file"])]))
    faults = {"undecoded": False, "wrong": several('{"a": 1}{"b": 2}'), "has": [True, False]}
    assert rows.drop_columns("alike").to_pylist() == [{"file": file, **faults} for file in files]
    assert text_files.are_few(files[:1])
    assert not text_files.are_few(files)
    assert all(map(text_files.is_at_hand, files))


def test_lines_of_several_files_are_looked_at_file_by_file() -> None:
    rows = [("x", b'{"a": 1}'), ("x", b"\xff"), ("y", b'{"a": 1} {}'), ("y", b"")]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    looked = pa.Table.from_batches(
        TextCheck(json_lines=True).look_at_lines([pa.RecordBatch.from_arrays(columns, ["file", "value"])])
    )
    assert [(row["file"], row["undecoded"], row["wrong"]) for row in looked.to_pylist()] == [
        ("x", True, None),
        ("y", False, several('{"a": 1} {}')),
    ]


def test_a_field_is_taken_for_renamed_by_its_letters_or_where_the_key_depends_on_it() -> None:
    used = {"userId": True, "x": False}
    columns = ["at", "userId", "x"]
    assert missing_fields(["at", "user_id"], ["userId"], columns, used, closed=True) == ["userId"]
    assert missing_fields(["at", "customer"], ["userId"], columns, used, closed=False) == ["userId"]
    # It may only be missing: no field is new, or the schema was written by hand and need not know all fields.
    assert missing_fields(["at"], ["userId"], columns, used, closed=False) == []
    assert missing_fields(["at", "customer"], ["userId"], columns, used, closed=True) == []
    # It may be there, in other letters.
    assert missing_fields(["at", "userId", "y"], ["userId"], columns, used, closed=False) == []
    assert missing_fields(["at", "userId", "y"], ["x"], columns, used, closed=False) == []
    assert missing_fields(["at", "userId", "X"], ["x"], columns, used, closed=False) == ["x"]
