"""A name that never occurred is told, with the nearest that did."""

from __future__ import annotations

import json

import pytest

from patternlake.udfs.kleene.plans.planning import PlanLine
from patternlake.udfs.kleene.request import explain
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.unseen_names import MOST_NAMES, unseen_names


@pytest.mark.parametrize(
    ("names", "seen", "expected"),
    [
        (["late", "cancelled"], ["late", "cancelled"], []),
        (["late", "canceled"], ["late", "cancelled"], [("canceled", "cancelled")]),
        (["Late", "late"], ["late"], [("Late", "late")]),
        (["LATE"], ["later", "late"], [("LATE", "late")]),
        (["zebra", "zebra"], ["late"], [("zebra", None)]),
        (["x"], [], []),
    ],
)
def test_the_nearest_name_that_occurred_is_told(
    names: list[str], seen: list[str], expected: list[tuple[str, str | None]]
) -> None:
    assert unseen_names(names, seen) == expected


def test_nothing_is_said_where_it_cannot_be_known() -> None:
    assert unseen_names(["x"], ["late"], names_are_tokens=False) == []
    assert unseen_names(["x"], [f"n{number}" for number in range(MOST_NAMES)]) == []


def plan(text: str) -> list[PlanLine]:
    configuration = json.dumps({"attributes": {}, "key": None, "tokens": None})
    publication = Published(PublishedBatch(object_id=1, base_batch=0, batch_id=0, configuration=configuration), first=0)
    counts = [NameCount(name, 5, 0, 9) for name in ("late", "cancelled")]
    return explain({"stream": "s", "pattern": text}, publication, ["s"], counts)


def test_explain_pattern_has_a_line_for_each_name_that_never_occurred() -> None:
    lines = plan("late ; !diverted ; canceled ; b DEFINE b AS name IN ('late', 'lat')")
    assert [(line.text, line.cost, line.rows) for line in lines[1:4]] == [
        ("  'diverted' never occurred in the stream", None, None),
        ("  'canceled' never occurred in the stream; did you mean 'cancelled'?", None, None),
        ("  'lat' never occurred in the stream; did you mean 'late'?", None, None),
    ]
    assert not any("never occurred" in line.text for line in plan("late ; cancelled"))
