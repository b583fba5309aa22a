"""Near misses under skip_till_any: of all choices of events the one that came furthest."""

from __future__ import annotations

import random

import pytest
from naive.absence_random import Pattern, random_events
from naive.kleene import Event
from naive.kleene_begun_any import near_misses
from naive.kleene_kernels import compiled, events_of, rows_of
from naive.kleene_orders import UndefinedError
from naive.kleene_random import SIGNS, TYPES, Language
from naive.kleene_random import random_events as language_events
from test_near_misses import FORMS, KNOWN, MINUTE, begun

from patternlake.udfs.errors import ArgumentError, PatternError
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.near_misses import check_partial

GROUPS = (
    "(A AS a ; B AS b)+ ; C AS c",
    "(A AS a ; B AS b){2} ; C AS c",
    "(A AS a ; B AS b){2,3}",
    "(A AS a , B AS b)+ ; C AS c",
    "(A+ AS a ; B AS b)+ ; C AS c",
    "(A+ AS a){2} ; C AS c",
    "(A{2} AS a ; B AS b)+ ; !C AS z ; C AS c",
    "(A AS a ; B AS b){2,} ; !C AS z ; A AS c",
    "(A AS a ; B AS b)+ UNTIL C ; C AS c",
    "(A AS a & B AS b)+ UNTIL C ; C AS c",
    "A AS a ; (B AS b ; C AS c)? ; A AS d",
    "C AS c ; (A AS a ; B AS b)* ; C AS d",
    "C AS c ; (A AS a & B AS b){2} ; C AS d",
    "(A AS a ; B AS b){2} & C AS c",
    "B AS b & (A{2} AS a){2} & C AS c",
    "((A AS a ; B AS b)+ | C AS c) ; B AS d",
    "2 OF ((A AS a ; B AS b){2}, C AS c, B AS d)",
)


def random_groups(rng: random.Random) -> str:
    """A pattern with a repeated group, with conditions and a window or without."""
    body = rng.choice(GROUPS)
    names = [name for name in "abcd" if f" AS {name}" in body]
    where = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        one, other, sign = rng.choice(names), rng.choice(names), rng.choice(SIGNS)
        where.append(rng.choice([f"{one}.x {sign} {other}.x", f"ABS({one}.n - {other}.n) <= 1", f"{one}.x > 0", "[s]"]))
    if "+ AS a" in body and rng.random() < 0.2:
        where.append("a[i].x >= a[i-1].x")
    window = rng.choice(["", f" WITHIN {rng.randint(3, 7)} EVENTS", f" WITHIN {rng.randint(3, 8)} MILLISECOND"])
    return body + (f" WHERE {' AND '.join(where)}" if where else "") + window


def check(rng: random.Random, *, grouped: bool = False) -> bool:
    """Whether a random question is one that can be asked; its rows are those of the oracle, in every partition."""
    repetition = "maximal"
    if grouped:
        text, repetition = random_groups(rng), "all"
        streams = [language_events(rng, rng.randint(2, 7)) for _ in range(2)]
    elif rng.random() < 0.4:
        text = Pattern(rng, scan=False).text
        streams = [random_events(rng, rng.randint(0, 7)) for _ in range(2)]
        streams = [
            [Event(e.position, e.time, e.name, {**e.values, "n": 1, "s": "a"}) for e in events] for events in streams
        ]
    else:
        forms = [form for form in FORMS if form not in ("group", "steering") and rng.random() < 0.5]
        asked = Language(rng, policy="skip_till_any", forms=[*forms, "all"])
        text, repetition = asked.text, asked.repetition
        streams = [language_events(rng, rng.randint(0, 7)) for _ in range(2)]
    try:
        made, rows = begun(text, streams, "skip_till_any", "next", repetition)
        wanted = [
            (key, repr(row), missing)
            for key, events in enumerate(streams)
            for row, missing in near_misses(text, events, KNOWN)
        ]
    except (PatternError, ArgumentError, UndefinedError):
        return False
    told = [(key, row, missing) for key, (row, missing) in zip(made.matches.key.tolist(), rows, strict=True) if missing]
    assert sorted(told) == sorted(wanted), (text, repetition, streams)
    complete = [(key, row) for key, (row, missing) in zip(made.matches.key.tolist(), rows, strict=True) if not missing]
    given = events_of(streams, KNOWN)
    pattern = compiled(text, KNOWN, policy="skip_till_any", repetition=repetition)
    assert complete == [(key, repr(row)) for key, row in rows_of(match_events(pattern, given))]
    return True


@pytest.mark.parametrize("seed", range(4))
def test_near_misses_of_choices_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check(rng) for _ in range(100)) > 70


@pytest.mark.parametrize("seed", range(4))
def test_near_misses_of_repeated_groups_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    assert all(check(rng, grouped=True) for _ in range(60))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_more(seed: int) -> None:
    test_near_misses_of_choices_are_those_of_the_oracle(seed)
    test_near_misses_of_repeated_groups_are_those_of_the_oracle(seed)


def test_choices_are_not_listed() -> None:
    """Fifty thousand A's before as many B's, and a run of B's that something rules out, have no end of choices."""
    half = 50_000
    events = [Event(at + 1, at * MINUTE, "A" if at < half else "B", {}) for at in range(2 * half)]
    made, rows = begun("A ; B ; C", [events], "skip_till_any")
    assert len(rows) == half
    assert set(made.matches.last_position.tolist()) == {half + 1}
    some = [*events[half - 1 : half + 40], Event(2 * half + 1, 2 * half * MINUTE, "X", {})]
    _, rows = begun("A ; B+ ; !X ; C", [some], "skip_till_any")
    assert [missing for _, missing in rows] == ["B"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A ; (B | C)+", "takes no '.', OF, '\\?'"),
        ("A ; (B ; C?)+", "takes no '.', OF, '\\?'"),
        ("A ; ((B ; C)+ ; D)+", "no further group in a repeated group"),
        (" & ".join("ABCDEFGHI"), "begin in more than 500 ways"),
        (" & ".join(f"A AS a{at}" for at in range(40)), "begin in more than 500 ways"),
    ],
)
def test_what_has_no_near_misses_is_refused(text: str, wanted: str) -> None:
    pattern = compiled(text, TYPES, repetition="all")
    with pytest.raises(PatternError, match=wanted):
        check_partial(pattern, "skip_till_any")
