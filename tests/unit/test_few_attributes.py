"""How attributes lie, counted in the driver: events, known and distinct values, quantiles by name."""

from __future__ import annotations

import pyarrow as pa

from patternlake.jobs.maintain.few_attributes import count_values
from patternlake.udfs.kept_attributes import read_attributes

TYPES = {"delay": "double", "seats": "int", "tail": "string", "day": "date"}


def events(*rows: tuple[str, str | None, str | None, str | None, str | None, str | None]) -> pa.Table:
    """Rows of name, key and the texts of the attributes."""
    columns = list(zip(*rows, strict=True))
    maps = [list(zip(TYPES, values, strict=True)) for values in zip(*columns[2:], strict=True)]
    written = pa.table(
        {
            "name": pa.array(columns[0], pa.string()),
            "key": pa.array(columns[1], pa.string()),
            "attributes": pa.array(maps, pa.map_(pa.string(), pa.string())),
        }
    )
    return read_attributes(written, TYPES)


def test_each_name_is_told_of_by_itself() -> None:
    found = count_values(
        events(
            ("late", "k", "3.0", "10", "a", "1970-01-02"),
            ("late", "k", "1.5", None, "b", None),
            ("gone", None, None, "7", None, "1970-01-01"),
            ("late", None, "3.0", "20", "a", None),
        ),
        TYPES,
        steps=2,
    )
    by_name = {row["name"]: {each["attribute"]: each for each in row["attributes"]} for row in found.to_pylist()}
    assert list(by_name) == ["late", "gone"]
    late, gone = by_name["late"], by_name["gone"]
    assert late["key"] == {"attribute": "key", "events": 3, "known": 2, "distinct": 1, "quantiles": None}
    assert late["delay"] == {
        "attribute": "delay", "events": 3, "known": 3, "distinct": 2, "quantiles": [1.5, 3.0, 3.0]
    }  # fmt: skip
    assert late["seats"] == {
        "attribute": "seats", "events": 3, "known": 2, "distinct": 2, "quantiles": [10.0, 10.0, 20.0]
    }  # fmt: skip
    assert late["tail"]["distinct"] == 2
    assert late["day"]["quantiles"] == [86_400_000_000.0] * 3, "moments count microseconds"
    assert (gone["key"]["known"], gone["key"]["distinct"], gone["delay"]["quantiles"]) == (0, 0, None)
    assert gone["seats"]["quantiles"] == [7.0, 7.0, 7.0]


def test_what_is_no_number_has_no_place_among_the_quantiles() -> None:
    found = count_values(
        events(("a", None, "NaN", None, None, None), ("a", None, "2", None, None, None)), {"delay": "double"}, steps=1
    )
    (row,) = found.to_pylist()
    assert row["attributes"][1] == {
        "attribute": "delay", "events": 2, "known": 2, "distinct": 2, "quantiles": [2.0, 2.0]
    }  # fmt: skip
