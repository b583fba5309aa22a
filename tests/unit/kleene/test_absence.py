"""Absence: what must not come first, last, before a deadline, directly next, or as a group, under every policy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import test_kept_patterns
from naive.kleene import Event
from naive.kleene_cases import TYPES, stream
from naive.kleene_kernels import compiled, events_of, rows_of

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.from_config import arguments_of
from patternlake.udfs.kleene.kernels.matching import match_events

POLICIES = ["skip_till_any", "skip_till_next", "strict"]
LETTERS = "A1 B2 C3 B4 A5 A6 C7 B8 A9 D10 C11 B12 A13 B14 C15 B16"
"""One a minute."""


def minutes(text: str) -> list[Event]:
    """`stream`, its positions in minutes."""
    return [Event(event.position, event.position * 60_000_000, event.name, event.values) for event in stream(text)]


def words(pattern: str, events: str, policy: str = "skip_till_any", watermark: float | None = None) -> list[str]:
    """The rows as words; behind those that are not final at the watermark, in minutes, a question mark."""
    made = compiled(pattern, TYPES, policy=policy)
    given = events_of([minutes(events)], TYPES)
    found = match_events(made, given, policy=policy)
    moment = None if watermark is None else Moment(int(watermark * 60_000_000))
    sure = final(made, found, given, moment, policy=policy, after_match="next")
    name = {event.position: event.name for event in minutes(events)}
    return [
        " ".join(f"{name[position]}{position}" for position in sorted(p for run in row.values() for p in run))
        + ("" if watermark is None or known else "?")
        for (_, row), known in zip(rows_of(found), sure.tolist(), strict=True)
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "deadline",
    [
        "t(B) - t(A) < 4 MIN",
        "t(B) - t(A) < 4 * 1 MIN",
        "t(B) < t(A) + 8 MIN / 2",
        "NOT t(B) - t(A) >= 4 MIN",
        "t(B) - t(A) < GREATEST(1 MIN, 4 MIN)",
        "NOT NOT 4 MIN > t(B) - t(A)",
    ],
)
def test_a_deadline_replaces_within_however_it_is_written(deadline: str, policy: str) -> None:
    pattern = f"A ; !B @({deadline}) WITHIN 1 MIN"
    assert words(pattern, "A1 B3", policy, watermark=9) == []
    assert words(pattern, "A1 B5", policy, watermark=9) == ["A1"]
    assert words(pattern, "A1 X3", policy, watermark=4.9) == ["A1?"]
    assert words(pattern, "A1 X3", policy, watermark=5) == ["A1"]


@pytest.mark.parametrize(
    "condition",
    [
        "t(B) - t(A) < A.n * 1 MIN",
        "(t(B) - t(A)) / 2 < 2 MIN",
        "t(B) - t(A) <> 4 MIN",
        "t(B) < LEAST(t(A) + 4 MIN, t(A) + 9 MIN)",
        "t(B) - t(A) < t(A) - t(C)",
    ],
)
def test_a_condition_on_times_that_is_no_deadline_is_refused(condition: str) -> None:
    with pytest.raises(PredicateError, match=r"compares the time of what is absent with that of one operand, as in"):
        compiled(f"C ; A ; !B @({condition}) WITHIN 1 MIN", {**TYPES, "n": "bigint"})


@dataclass(frozen=True)
class Case:
    """A pattern, events and the rows, under any policy."""

    pattern: str
    events: str
    rows: str


CASES = [
    # The worked answers of the specification.
    Case("A ; !B WITHIN 2 MIN", LETTERS, "A5, A6, A9"),
    Case("!C ; B WITHIN 2 MIN", LETTERS, "B2, B14"),
    # Events at the deadline itself are outside.
    Case("A ; !B WITHIN 2 MIN", "A1 B3", "A1"),
    Case("A ; !B WITHIN 2 MIN", "A1 B2", ""),
    Case("!B ; A WITHIN 2 MIN", "B1 A3", "A3"),
    Case("!B ; A WITHIN 2 MIN", "B2 A3", ""),
    # Never at all, as far as is known.
    Case("A ; !B", "A1 C2 A3 B9 A10", "A10"),
    Case("!A ; B", "B1 A2 B3", "B1"),
    # A window counts from the first event of the match, also behind its last one.
    Case("A ; B ; !C WITHIN 4 MIN", "A1 B3 C4", ""),
    Case("A ; B ; !C WITHIN 3 MIN", "A1 B3 C4", "A1 B3"),
    Case("!C ; A ; B WITHIN 4 MIN", "C1 A2 B4", ""),
    Case("!C ; A ; B WITHIN 3 MIN", "C1 A2 B4", "A2 B4"),
    # A deadline of its own, from any operand before, with and without a window.
    Case("A ; B ; !C @(t(C) - t(B) < 1 MIN)", "A1 B2 C3", "A1 B2"),
    Case("A ; B ; !C @(t(C) - t(B) <= 1 MIN)", "A1 B2 C3", ""),
    Case("A ; B ; !C @(t(C) - t(A) < 3 MIN)", "A1 B2 C3", ""),
    Case("A ; B ; !C @(t(B) - t(C) > -2 MIN)", "A1 B2 C3", ""),
    Case("A ; B ; !C @(t(C) < t(A) + 2 MIN)", "A1 B2 C3", "A1 B2"),
    Case("A ; B ; !C @(t(C) - t(B) < 1 HOUR) WITHIN 2 MIN", "A1 B2 C9", ""),
    Case("!A @(t(B) - t(A) < 1 MIN) ; B", "A1 B2", "B2"),
    Case("!A @(t(B) - t(A) <= 1 MIN) ; B", "A1 B2", ""),
    Case("!A @(t(C) - t(A) < 9 MIN) ; B ; C WITHIN 2 MIN", "A1 B5 C6", ""),
    # In the middle, and what follows at or after the deadline.
    Case("A ; !B @(t(B) - t(A) < 5 MIN) ; C", "A1 B6 C7", "A1 C7"),
    Case("A ; !B @(t(B) - t(A) < 5 MIN) ; C", "A1 B5 C7", ""),
    Case("A ; !B @(t(B) - t(A) < 5 MIN) @(t(C) - t(A) >= 5 MIN) ; C", "A1 C5 B6 C7", "A1 C7"),
    Case("A ; !B @(t(B) - t(A) < 5 MIN) ; C @(t(C) - t(A) >= 5 MIN)", "A1 B2 C7", ""),
    # Several in a row, alternatives.
    Case("A ; !B ; !C WITHIN 3 MIN", "A1 B2 A5 C6 A9", "A9"),
    Case("A ; !(B | C) WITHIN 3 MIN", "A1 B2 A5 C6 A9", "A9"),
    Case("A ; NOT(B, C) WITHIN 3 MIN", "A1 B2 A5 C6 A9", "A9"),
    # Conditions between operands.
    Case("A AS a ; !B AS b WHERE b.x = a.x WITHIN 3 MIN", "A1=1 B2=2 A5=1 B6=1", "A1"),
    Case("A AS a ; !B AS b WHERE b.x > a.x WITHIN 3 MIN", "A1=1 B2=2 A5=1 B6=1", "A5"),
    Case("A AS a ; !B AS b WHERE b.x = a.x AND b.x > 1 WITHIN 3 MIN", "A1=1 B2=1 A5=2 B6=2", "A1"),
    Case("A AS a ; !B AS b WHERE [x] WITHIN 3 MIN", "A1=1 B2=2 A5=1 B6=1", "A1"),
    # Everything together.
    Case("A ; !B ; C ; !D WITHIN 5 MIN", LETTERS, "A5 C7, A9 C11"),
    Case("!D ; A ; !B ; C ; !D WITHIN 3 MIN", "A1 C2 D3 A5 C6 D9", "A5 C6"),
    # Windows of events.
    Case("A ; !B WITHIN 2 EVENTS", "A1 B2 A3 C4 B5", "A3"),
    Case("!A ; B WITHIN 2 EVENTS", "A1 B2 A3 C4 B5", "B5"),
    # A group: no such events one after another.
    Case("A ; !(B ; C) ; D", "A1 B2 C3 D4 A5 C6 B7 D8", "A5 D8"),
    Case("A ; !(B & C) ; D", "A1 C2 B3 D4 A5 C6 D8", "A5 D8"),
    Case("A ; !(B[2]) ; D", "A1 B2 B3 D4 A5 B6 D8", "A5 D8"),
    Case("A ; !(B+ ; C) ; D", "A1 B2 D4 A5 B6 C7 D8", "A1 D4"),
    Case("A ; !(B ; C) WITHIN 3 MIN", "A1 B2 C3 A5 B6 C8", "A5"),
    Case("A ; !(B AS b ; C AS c) ; D WHERE c.x > b.x", "A1 B2=1 B3=5 C4=3 D5 A6 B7=4 C8=3 D9", "A6 D9"),
    # Directly next: the one event behind, or before.
    Case("A , !X ; B", "A1 X2 B3 A5 C6 X7 B8", "A5 B8"),
    Case("A ; !X , B", "A1 X2 B3 A5 X6 C7 B8", "A5 B8"),
    Case("A , !X", "A1 X2 A3 C4 X5 A6", "A3, A6"),
]
BESIDE = [
    Case("A & !B WITHIN 2 MIN", "A1 B2 A4 B6 A7 A9", "A4, A9"),
    Case("A & !B WITHIN 2 EVENTS", "A1 B2 A4 B6 A7 A9", "A9"),
    # An event of the match is not one that must be absent.
    Case("A AS a & !(A AS other) WITHIN 2 MIN", "A1 A2 A5", "A5"),
    # In one window with the match, and not one before and one behind it.
    Case("A & !(B ; C) WITHIN 3 MIN", "B1 A3 C4 B8 A9 C10", "A3"),
    Case("(A ; !B) & C WITHIN 4 MIN", "C1 A2 B3 C6 A7", "C6 A7"),
    Case("(A ; !B) & C* WITHIN 4 MIN", "A1 D2 A6 B7", "A1"),
    Case("(A ; !B) | (C ; !D) WITHIN 3 MIN", "A1 B2 C4 D5 A8 C9 D20", "A8, C9"),
]
"""Of combinations alone, or where a scan gives the same."""
DIRECTLY = "A ; !X , B"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.pattern} on {case.events}")
def test_what_is_absent(case: Case, policy: str) -> None:
    apart = policy == "strict" and not is_contiguous(case)
    more = policy == "skip_till_any" and case.pattern == DIRECTLY
    rows = "" if apart else f"A1 B8, {case.rows}" if more else case.rows
    assert ", ".join(words(case.pattern, case.events, policy)) == rows


def is_contiguous(case: Case) -> bool:
    """Whether what stands in the rows is contiguous: the positions count up, or nothing of the stream lies between."""
    order = case.events.split()
    plain = [word.split("=")[0] for word in order]
    places = [[plain.index(word) for word in row.split()] for row in case.rows.split(", ") if row]
    return all(row == list(range(row[0], row[0] + len(row))) for row in places)


@pytest.mark.parametrize("case", BESIDE, ids=lambda case: case.pattern)
def test_what_is_absent_beside(case: Case) -> None:
    assert ", ".join(words(case.pattern, case.events)) == case.rows


@dataclass(frozen=True)
class Final:
    """A pattern, events, a watermark in minutes, and the rows; behind those that are not final a question mark."""

    pattern: str
    events: str
    watermark: float
    rows: str


FINAL = [
    # Once the watermark has passed the deadline: an event at it lies outside.
    Final("A ; !B WITHIN 2 MIN", "A1 C2", 2.9, "A1?"),
    Final("A ; !B WITHIN 2 MIN", "A1 C3", 3, "A1"),
    Final("A ; B ; !C @(t(C) - t(B) < 5 MIN)", "A1 B2 D6", 6.9, "A1 B2?"),
    Final("A ; B ; !C @(t(C) - t(B) < 5 MIN)", "A1 B2 D7", 7, "A1 B2"),
    Final("A ; B ; !C @(t(C) - t(B) <= 5 MIN)", "A1 B2 D7", 7, "A1 B2?"),
    Final("A ; B ; !C @(t(C) - t(A) < 5 MIN)", "A1 B2 D6", 6, "A1 B2"),
    Final("A ; B+ ; !C @(t(C) - t(B) < 5 MIN) WITHIN 4 MIN", "A1 B2 B3 D7", 7, "A1 B2 B3"),
    # The first of two deadlines counts, and its own in place of the window.
    Final("A ; B ; !C @(t(C) - t(B) < 1 MIN) WITHIN 9 MIN", "A1 B2 D3", 3, "A1 B2"),
    Final("A ; B ; !C @(t(C) - t(B) < 20 MIN) WITHIN 9 MIN", "A1 B2 D12", 12, "A1 B2?"),
    # Of several, all.
    Final("A ; !B @(t(B) - t(A) < 1 MIN) ; !C @(t(C) - t(A) < 3 MIN)", "A1 D3", 3, "A1?"),
    Final("A ; !B @(t(B) - t(A) < 1 MIN) ; !C @(t(C) - t(A) < 3 MIN)", "A1 D4", 4, "A1"),
    # First, and between: as soon as the match is settled.
    Final("!A ; B WITHIN 9 MIN", "B1", 0.9, "B1?"),
    Final("!A ; B WITHIN 9 MIN", "B1", 1, "B1"),
    Final("A ; !B @(t(B) - t(A) < 9 MIN) ; C", "A1 C2", 2, "A1 C2"),
    # In events: once so many have come.
    Final("A ; !B WITHIN 3 EVENTS", "A1 C2", 9, "A1?"),
    Final("A ; !B WITHIN 3 EVENTS", "A1 C2 C3", 2.5, "A1?"),
    Final("A ; !B WITHIN 3 EVENTS", "A1 C2 C3", 3, "A1"),
    Final("A , !B", "A1", 9, "A1?"),
    Final("A , !B", "A1 C2", 2, "A1"),
    # Without an end, never.
    Final("A ; !B", "A1 C9", 99, "A1?"),
    # Each way has its own.
    Final("(A ; !B @(t(B) - t(A) < 2 MIN)) | (C ; !D @(t(D) - t(C) < 9 MIN))", "A1 C2 E5", 5, "A1, C2?"),
]


@pytest.mark.parametrize("policy", ["skip_till_any", "skip_till_next"])
@pytest.mark.parametrize("case", FINAL, ids=lambda case: f"{case.pattern} at {case.watermark}")
def test_a_match_is_final_once_nothing_can_come_that_must_not(case: Final, policy: str) -> None:
    assert ", ".join(words(case.pattern, case.events, policy, case.watermark)) == case.rows


def test_behind_to_time_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the events up to minute 5 an A at 4 has no B in two minutes, whatever came at minute 5 and a half."""

    def finals(text: str) -> list[bool]:
        kept = test_kept_patterns.Kept(text)
        kept.ingest(
            [Event(at, at * 60_000_000, name, {"x": 1.0, "n": 1, "s": "k"}) for at, name in ((1, "A"), (4, "A"))]
        )
        kept.watermark = 99 * 60_000_000
        return [row["final"] for row in kept.from_scratch().values()]

    assert finals("A ; !B WITHIN 2 MIN") == [True, True]
    to_time = {"to_time": 5 * 60_000_000}
    monkeypatch.setattr(test_kept_patterns, "arguments_of", lambda of: {**arguments_of(of), **to_time})
    assert finals("A ; !B WITHIN 2 MIN") == [True, False]
    assert finals("!B ; A WITHIN 2 MIN") == [True, True]
