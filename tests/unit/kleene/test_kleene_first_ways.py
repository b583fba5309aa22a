"""Where groups can be filled in many ways, the first rows are the first of all rows in the answer's order."""

from __future__ import annotations

import random

import pytest
from drawn import RANDOMS
from hypothesis import given, settings
from naive.kleene import Event, Row, matches
from naive.kleene_cases import TYPES, stream
from naive.kleene_kernels import compiled, events_of, rows_of
from naive.kleene_random import TYPES as RANDOM_TYPES
from naive.kleene_random import random_events, random_runs

from patternlake.udfs.errors import ArgumentError, PatternLakeError
from patternlake.udfs.kleene.kernels.matching import match_events

ONE = " DEFINE AX AS name IN ('a', 'x')"
TWO = " DEFINE AX AS name IN ('a', 'x'), BX AS name IN ('b', 'x')"


def first_rows(text: str, given_: list[Event], most: int) -> list[Row]:
    found = match_events(compiled(text, TYPES), events_of([given_], TYPES), max_matches=most, truncate=True)
    return [row for _, row in rows_of(found)]


@pytest.mark.parametrize(
    ("text", "events", "wanted"),
    [
        pytest.param(
            "a+ AS p ; a+ AS q",
            "a1 a2 a3",
            [{"p": (1, 2), "q": (3,)}, {"p": (1,), "q": (2, 3)}],
            id="equal events come in the order of operands",
        ),
        pytest.param(
            "a+ AS q & a+ AS p",
            "a1 a2 a3",
            [
                {"q": (1, 2), "p": (3,)},
                {"q": (1,), "p": (2, 3)},
                {"q": (2, 3), "p": (1,)},
                {"q": (3,), "p": (1, 2)},
            ],
            id="operands are in the order of the text, not of the linearization",
        ),
        pytest.param(
            f"AX+ AS p ; BX+ AS q{TWO}",
            "a1 x2 a3 b4",
            [{"p": (1, 2, 3), "q": (4,)}, {"p": (1,), "q": (2, 4)}],
            id="the group that takes more may come first",
        ),
        pytest.param(
            f"AX+ AS p ; x* AS q{ONE}",
            "a1 x2 a3",
            [{"p": (1,), "q": (2,)}, {"p": (1, 2, 3)}],
            id="at the end of the linearization the shorter one comes first",
        ),
        pytest.param(
            f"AX+ AS p ; x* AS q ; c AS r{ONE}",
            "a1 x2 a3 c4",
            [{"p": (1, 2, 3), "r": (4,)}, {"p": (1,), "q": (2,), "r": (4,)}],
            id="before a plain event the shorter one comes last",
        ),
        pytest.param(
            f"d+ AS n ; d+ AS o ; c ; AX+ AS p ; BX+ AS q{TWO}",
            "d1 d2 d3 c4 a5 x6 a7 b8",
            [
                {"n": (1, 2), "o": (3,), "c": (4,), "p": (5, 6, 7), "q": (8,)},
                {"n": (1,), "o": (2, 3), "c": (4,), "p": (5, 6, 7), "q": (8,)},
                {"n": (1, 2), "o": (3,), "c": (4,), "p": (5,), "q": (6, 8)},
                {"n": (1,), "o": (2, 3), "c": (4,), "p": (5,), "q": (6, 8)},
            ],
            id="events of a later run come before operands of an earlier one",
        ),
        pytest.param(
            f"d+ AS n ; d+ AS o ; c ; AX+ AS p ; BX+ AS q{TWO} WITHIN 7 EVENTS",
            "d1 d2 d3 c4 a5 x6 a7 b8",
            [
                {"n": (1, 2), "o": (3,), "c": (4,), "p": (5,), "q": (6,)},
                {"n": (1,), "o": (2, 3), "c": (4,), "p": (5,), "q": (6,)},
                {"n": (2,), "o": (3,), "c": (4,), "p": (5, 6, 7), "q": (8,)},
                {"n": (2,), "o": (3,), "c": (4,), "p": (5,), "q": (6, 8)},
            ],
            id="each first event has a window of its own",
        ),
    ],
)
def test_the_first_rows_are_worked_out(text: str, events: str, wanted: list[Row]) -> None:
    assert matches(text, stream(events), TYPES) == wanted
    for most in range(1, len(wanted) + 1):
        assert first_rows(text, stream(events), most) == wanted[:most]


@settings(max_examples=300)
@given(RANDOMS)
def test_the_first_rows_of_runs_are_those_of_the_oracle(rng: random.Random) -> None:
    try:
        made = compiled(text := random_runs(rng), RANDOM_TYPES)
    except PatternLakeError:
        return
    streams = [random_events(rng, rng.randint(0, 8)) for _ in range(rng.choice([1, 2]))]
    wanted = [(key, row) for key, given in enumerate(streams) for row in matches(text, given, RANDOM_TYPES)]
    events, most = events_of(streams, RANDOM_TYPES, made.names), rng.randint(1, 6)
    found = match_events(made, events, max_matches=most, truncate=True)
    assert (rows_of(found), found.truncated) == (wanted[:most], most < len(wanted)), text


def test_the_first_of_very_many_rows_are_listed() -> None:
    letters = "".join("abc"[number % 3] for number in range(600))
    given_ = stream(" ".join(f"{name}{number}" for number, name in enumerate(letters, start=1)))
    found = first_rows("a+ AS p ; b+ AS q ; c+ AS r", given_, 3)
    assert len(found) == 3
    assert [row["p"][0] for row in found] == [1, 1, 1]
    with pytest.raises(ArgumentError, match="max_matches = 3"):
        match_events(compiled("a+ AS p ; b+ AS q ; c+ AS r", TYPES), events_of([given_], TYPES), max_matches=3)
