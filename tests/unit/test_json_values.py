"""JSON over lines is cut into its values; what is none comes as it is, so that it goes to quarantine."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternlake.jobs.sources.json_values import cut_files, json_values
from patternlake.udfs.errors import SourceError

OBJECT = '{\n  "a": "}{][,",\n  "b": [1, {"c": "\\\\"}]\n}'


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        (f"\ufeff{OBJECT}\n", [OBJECT]),
        (f"{OBJECT}\n{OBJECT}{OBJECT}", [OBJECT] * 3),
        (f"[\n{OBJECT},\n{OBJECT}]\n{OBJECT}\n[]", [OBJECT] * 3),
        (f"\x1e{OBJECT}\n\x1e{OBJECT}\n", [OBJECT] * 2),
        ("{'a': '}{'} {\"b\": \"'\"}", ["{'a': '}{'}", '{"b": "\'"}']),
        # Nothing is dropped: what is no object, and what does not end.
        ('{"a": 1} x, y {"b": 2}', ['{"a": 1}', "x, y", '{"b": 2}']),
        ('[{"a": 1}, 2, [3]] 4', ['{"a": 1}', "2", "[3]", "4"]),
        ('{"a": 1} {"b": {"c": "d} ', ['{"a": 1}', '{"b": {"c": "d}']),
        ('{"a": 1}} {"b": 2}', ['{"a": 1}', "}", '{"b": 2}']),
        ('[{"a": 1}', ['{"a": 1}']),
    ],
)
def test_values_are_cut_where_they_end(text: str, values: list[str]) -> None:
    assert list(json_values(text)) == values


def test_comments_are_nothing_where_they_are_allowed() -> None:
    text = '// one\n{"a": 1 /* } */} // two\n/* { */ {"b": 2}'
    assert list(json_values(text, comments=True)) == ['{"a": 1 /* } */}', '{"b": 2}']
    assert list(json_values(text)) == ["// one", '{"a": 1 /* } */}', "// two\n/* { */", '{"b": 2}']


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=8,
)


@given(
    st.lists(st.lists(st.dictionaries(st.text(), _JSON)) | st.dictionaries(st.text(), _JSON), max_size=5),
    st.sampled_from([None, 2]),
    st.sampled_from(["", "\n", ", "]),
)
def test_all_objects_and_no_others_are_found(roots: list[object], indent: int | None, between: str) -> None:
    text = between.join(json.dumps(root, indent=indent, ensure_ascii=False) for root in roots)
    objects = [each for root in roots for each in (root if isinstance(root, list) else [root])]
    assert [json.loads(value) for value in json_values(text) if value != ","] == objects


def test_files_are_decoded_and_stand_beside_their_values() -> None:
    text = "".join(f'{{"n": "ü{n}"}}\n' for n in range(4500))
    files = [pa.array([text.encode("utf-16"), b""], pa.binary()), pa.array(["x", "y"])]
    batch = pa.RecordBatch.from_arrays(files, ["value", "file"])
    rows = pa.Table.from_batches(cut_files("UTF-16", comments=False)([batch]))
    assert rows.column("value").to_pylist() == text.splitlines()
    assert set(rows.column("file").to_pylist()) == {"x"}
    with pytest.raises(SourceError, match=r"^x: encoding: .*utf-8.*0xff"):
        list(cut_files("", comments=False)([batch]))
