"""Near misses: what began and is not complete, what it awaits, until when, and whether that is past."""

from __future__ import annotations

import random

import pytest
import test_kept_patterns
from naive.absence_random import Pattern, random_events
from naive.kleene import Event
from naive.kleene_begun import near_misses
from naive.kleene_kernels import compiled, events_of, rows_of
from naive.kleene_orders import TooManyError, UndefinedError
from naive.kleene_random import TYPES, Language
from naive.kleene_random import random_events as language_events
from naive.kleene_steps import NoSkipError
from test_absence import minutes

from patternlake.udfs.errors import ArgumentError, PatternError
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.beginnings import WHOLE
from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.from_config import arguments_of
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.near_misses import NEVER, Begun, check_partial, with_near_misses
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.limits import TooManyMatchesError

MINUTE = 60_000_000
KNOWN = {**TYPES, "y": "double"}
FORMS = (
    "absence",
    "deadline",
    "directly",
    "optional",
    "bounded",
    "until",
    "conjunction",
    "some_of",
    "steering",
    "group",
)


def begun(
    text: str, streams: list[list[Event]], policy: str, after_match: str = "next", repetition: str = "maximal"
) -> tuple[Begun, list[tuple[str, str]]]:
    """What began, and each row as its positions and the operand that it awaits."""
    pattern = compiled(text, KNOWN, policy=policy, repetition=repetition)
    check_partial(pattern, policy)
    given = events_of(streams, KNOWN)
    found = match_events(pattern, given, policy=policy, after_match=after_match)
    made = with_near_misses(
        pattern,
        given,
        found,
        lambda part: match_events(part, given, policy=policy),
        policy=policy,
        after_match=after_match,
        max_matches=1_000_000,
        truncate=False,
    )
    names = ["" if number == WHOLE else pattern.operands[number].name for number in made.missing.tolist()]
    return made, [(repr(row), name) for (_, row), name in zip(rows_of(made.matches), names, strict=True)]


def told(
    text: str, events: str, policy: str, watermark: float, after_match: str = "next", repetition: str = "maximal"
) -> list[str]:
    """The rows as words: events, the operand awaited and the minute of the deadline, and ``final``."""
    known = minutes(events)
    pattern = compiled(text, TYPES, policy=policy, repetition=repetition)
    made, rows = begun(text, [known], policy, after_match, repetition)
    given, moment = events_of([known], TYPES), Moment(int(watermark * MINUTE))
    sure = final(pattern, made.matches, given, moment, policy=policy, after_match=after_match)
    sure = made.final(pattern, given, moment, sure, policy=policy)
    name = {event.position: event.name for event in known}
    found = []
    for (_, row), (_, missing), end, past in zip(
        rows_of(made.matches), rows, made.deadlines(pattern).tolist(), sure.tolist(), strict=True
    ):
        words = " ".join(f"{name[place]}{place}" for place in sorted(p for run in row.values() for p in run))
        awaits = f" awaits {missing}" if missing else ""
        until = "" if end == NEVER else f" until {end // MINUTE}"
        found.append(f"{words}{awaits}{until}{' final' if past else ''}")
    return found


@pytest.mark.parametrize(
    ("text", "events", "policy", "watermark", "rows"),
    [
        (
            "A ; B ; C WITHIN 5 MIN",
            "A1 B2 C3 A4 B5 A8 X9",
            "skip_till_next",
            9,
            ["A1 B2 C3 final", "A4 B5 awaits C until 9 final", "A8 awaits B until 13"],
        ),
        ("A ; B", "A1 X2", "skip_till_next", 9, ["A1 awaits B"]),
        ("A ; B ; C", "A1 B2 X3 C4", "strict", 2, ["A1 B2 awaits C"]),
        ("A ; B ; C", "A1 B2 X3 C4", "strict", 3, ["A1 B2 awaits C final"]),
        ("A ; B[3] ; C WITHIN 9 MIN", "A1 B2 B3", "skip_till_next", 3, ["A1 B2 B3 awaits B until 10"]),
        ("A ; B+ ; C WITHIN 9 MIN", "A1 B2 B3", "skip_till_next", 3, ["A1 B2 B3 awaits C until 10"]),
        ("A ; B? ; C WITHIN 9 MIN", "A1", "skip_till_next", 3, ["A1 awaits C until 10"]),
        ("A ; (B & C) ; D WITHIN 9 MIN", "A1 C2", "skip_till_next", 3, ["A1 C2 awaits B until 10"]),
        (
            "A & B+ & C",
            "B1 B2 A3 B4",
            "skip_till_next",
            4,
            ["B1 B2 A3 awaits C", "B2 A3 awaits C", "A3 B4 awaits C", "B4 awaits A"],
        ),
        ("3 OF (C AS c, C AS d, A AS a)", "C1", "skip_till_next", 2, ["C1 awaits d"]),
        # Of several ways the one that came furthest.
        ("(A ; D) | (A ; B ; C) WITHIN 9 MIN", "A1 B2", "skip_till_next", 3, ["A1 B2 awaits C until 10"]),
        # None of several ways can go on, or one of them can.
        ("(A , B) | (A , C)", "A1 X2", "skip_till_next", 3, ["A1 awaits B final"]),
        ("(A , B) | (A ; C)", "A1 X2", "skip_till_next", 3, ["A1 awaits B"]),
        ("A , (B & C) WITHIN 9 MIN", "A1 X2", "skip_till_next", 3, ["A1 awaits B until 10 final"]),
        # What is ruled out awaits nothing, at the end or on the way.
        ("A ; !X ; B WITHIN 9 MIN", "A1 X2 B3 A4 X5", "skip_till_next", 5, []),
        ("A ; B ; !C WITHIN 9 MIN", "A1 B2 C3 A4 B5", "skip_till_next", 5, ["A4 B5"]),
        ("A ; B+ ; C WHERE COUNT(B.x) > 5 WITHIN 9 MIN", "A1 B2 C3", "skip_till_next", 5, []),
        # What may be left out is awaited by nobody, though a match may still have it.
        ("A ; B? ; C ; !X ; D WITHIN 9 MIN", "A1 C2 X3", "skip_till_next", 3, ["A1 awaits C until 10"]),
        ("2 OF (A, B?) ; C ; !X ; D WITHIN 9 MIN", "A1 C2 X3", "skip_till_next", 3, ["A1 awaits C until 10"]),
        # A way that came less far goes on where the one that is told does not.
        ("(A ; B ; C) | (A ; P[4]) DEFINE P AS x IS NULL OR x < 99", "A1 B2 X3", "strict", 3, ["A1 B2 awaits C"]),
        ("(A ; B ; C) | (A ; P[4]) DEFINE P AS x IS NULL OR x < 99", "A1 B2 X3", "strict", 9, ["A1 B2 awaits C"]),
        # The round at hand.
        (
            "(A ; B)+ ; C WITHIN 9 MIN",
            "A1 B2 A3",
            "skip_till_next",
            3,
            ["A1 B2 A3 awaits B until 10", "A3 awaits B until 12"],
        ),
        ("X ; (A ; B){2} ; C", "X1 A2 B3", "strict", 3, ["X1 A2 B3 awaits A"]),
        ("X ; (A ; B){2} ; C", "X1 A2 B3 X4", "strict", 4, ["X1 A2 B3 awaits A final", "X4 awaits A"]),
        # Under skip_till_any a start waits as long as some choice may still be completed.
        (
            "A ; B ; !C ; D WITHIN 9 MIN",
            "A1 B2 C3 B4 A5 A6 C7 B8 A9 D10 C11 B12 A13 B14 C15 B16",
            "skip_till_any",
            20,
            [
                "A1 B8 awaits D until 10 final",
                "A5 B8 D10 final",
                "A6 B8 D10 final",
                "A9 B16 awaits D until 18 final",
                "A13 B16 awaits D until 22",
            ],
        ),
        (
            "A ; B ; C WITHIN 5 MIN",
            "A1 B2 C3 A4 B5",
            "skip_till_any",
            9,
            ["A1 B2 C3 final", "A4 B5 awaits C until 9 final"],
        ),
        ("A ; B+ ; C", "A1 B2 B3", "skip_till_any", 9, ["A1 B2 B3 awaits C"]),
        # What must come directly next has not, and nothing else can take its place.
        ("A , B", "A1 X2 A3", "skip_till_any", 3, ["A1 awaits B final", "A3 awaits B"]),
        ("A , B", "A1 X2 A3", "skip_till_next", 3, ["A1 awaits B final", "A3 awaits B"]),
        ("A , B", "A1 X2", "skip_till_next", 1, ["A1 awaits B"]),
        ("A ; B , C", "A1 B2 X3", "skip_till_next", 3, ["A1 B2 awaits C final"]),
        ("A ; B , C", "A1 B2 X3", "skip_till_any", 3, ["A1 B2 awaits C"]),
        ("A+ , B", "A1 X2", "skip_till_next", 2, ["A1 awaits B"]),
        ("(A | A ; X) , B", "A1 X2", "skip_till_next", 2, ["A1 X2 awaits B"]),
        ("A ; B WITHIN 2 EVENTS", "A1 X2 A3", "skip_till_any", 3, ["A1 awaits B final", "A3 awaits B"]),
        # In events there is no moment, and so many events end it.
        ("A ; B WITHIN 2 EVENTS", "A1 X2 A3", "skip_till_next", 3, ["A1 awaits B final", "A3 awaits B"]),
    ],
)
def test_near_misses(text: str, events: str, policy: str, watermark: float, rows: list[str]) -> None:
    assert told(text, events, policy, watermark) == rows


def test_a_start_inside_of_a_match_is_no_near_miss_where_the_search_goes_on_behind_it() -> None:
    assert told("A ; B ; C", "A1 A2 B3 C4 A5", "skip_till_next", 5, "past_last") == ["A1 B3 C4 final", "A5 awaits B"]


@pytest.mark.parametrize(
    ("text", "events", "policy", "watermark", "rows"),
    [
        (
            "A ; B+ ; C WITHIN 9 MIN",
            "A1 B2 B3 A4 B5 B6 C7 A8 B9",
            "skip_till_next",
            9,
            [
                "A1 B2 B3 B5 B6 C7 final",
                "A1 B2 B3 B5 C7 final",
                "A1 B2 B3 C7 final",
                "A1 B2 C7 final",
                "A4 B5 B6 C7 final",
                "A4 B5 C7 final",
                "A8 B9 awaits C until 17",
            ],
        ),
        # The stop that came furthest is past; another one still goes on.
        ("A+ AS f ; A AS g ; B", "A1 A2 A3", "strict", 3, ["A1 A2 A3 awaits B", "A2 A3 awaits B", "A3 awaits g"]),
        ("A ; B+ ; !X ; C WITHIN 9 MIN", "A1 B2 X3 C4", "skip_till_next", 4, []),
    ],
)
def test_near_misses_of_every_place_to_stop(
    text: str, events: str, policy: str, watermark: float, rows: list[str]
) -> None:
    assert sorted(told(text, events, policy, watermark, repetition="all")) == sorted(rows)


def check(rng: random.Random, *extra: str) -> bool:
    """Whether a random question, with some forms in any case, is one that can be asked; its rows are those of the
    oracle.
    """
    policy = rng.choice(["skip_till_next", "strict"])
    if not extra and rng.random() < 0.5:
        text, after = Pattern(rng, scan=True).text, rng.choice(["next", "past_last"])
        events = random_events(rng, rng.randint(0, 8))
        events = [Event(e.position, e.time, e.name, {**e.values, "n": 1, "s": "a"}) for e in events]
        repetition = "maximal"
    else:
        forms = [form for form in (*FORMS, *extra) if form in extra or rng.random() < 0.5]
        asked = Language(rng, policy=policy, forms=forms, most=3 if "all" in extra else 4)
        text, after, repetition = asked.text, asked.after_match, asked.repetition
        events = language_events(rng, rng.randint(0, 6 if repetition == "all" else 9))
    try:
        _, rows = begun(text, [events], policy, after, repetition)
        wanted = near_misses(text, events, KNOWN, policy=policy, after_match=after, repetition=repetition)
    except (PatternError, ArgumentError, NoSkipError, UndefinedError, TooManyError):
        return False
    told = [(row, missing) for row, missing in rows if missing]
    assert sorted(told) == sorted((repr(row), missing) for row, missing in wanted), (
        text,
        policy,
        after,
        repetition,
        events,
    )
    return True


@pytest.mark.parametrize("seed", range(4))
def test_near_misses_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check(rng) for _ in range(80)) > 40


@pytest.mark.parametrize("form", ["group", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_near_misses_of_groups_and_of_every_place_to_stop_are_those_of_the_oracle(seed: int, form: str) -> None:
    rng = random.Random(seed)
    assert sum(check(rng, form) for _ in range(60)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_more_near_misses(seed: int) -> None:
    test_near_misses_are_those_of_the_oracle(seed)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["group", "all"])
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_more_near_misses_of_groups_and_of_every_place_to_stop(seed: int, form: str) -> None:
    test_near_misses_of_groups_and_of_every_place_to_stop_are_those_of_the_oracle(seed, form)


def answered(
    monkeypatch: pytest.MonkeyPatch, text: str, policy: str, events: list[Event], task_events: int
) -> list[tuple[str, ...]]:
    """The rows of an answer that is dealt out to tasks of so many events."""
    monkeypatch.setattr(request, "TASK_EVENTS", task_events)
    monkeypatch.setattr(request, "MARGINS", 1)
    monkeypatch.setattr(test_kept_patterns, "arguments_of", lambda of: {**arguments_of(of), "partial": True})
    kept = test_kept_patterns.Kept(text, policy)
    kept.ingest(events)
    rows = kept.from_scratch().values()
    return sorted(
        (str(row["bindings"]), str(row["missing"]), str(row["deadline"]), str(row["final"]), str(row["first_position"]))
        for row in rows
    )


@pytest.mark.parametrize("policy", ["skip_till_next", "skip_till_any"])
def test_tasks_tell_of_the_near_misses_of_their_own_starts(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    events = [
        Event(at, at * MINUTE, name, {"x": 1.0, "n": 1, "s": "k"}) for at, name in enumerate("ABAXABCAXXXA", start=1)
    ]
    whole = answered(monkeypatch, "A ; B ; C WITHIN 3 MIN", policy, events, 100_000)
    assert [(row[1], row[2], row[3], row[4]) for row in sorted(whole, key=lambda row: int(row[4]))] == [
        ("C", "1970-01-01 00:04:00+00:00", "True", "1"),
        ("B", "1970-01-01 00:06:00+00:00", "True", "3"),
        ("None", "None", "True", "5"),
        ("B", "1970-01-01 00:11:00+00:00", "True", "8"),
        ("B", "1970-01-01 00:15:00+00:00", "False", "12"),
    ]
    assert answered(monkeypatch, "A ; B ; C WITHIN 3 MIN", policy, events, 2) == whole


@pytest.mark.parametrize("policy", ["skip_till_next", "skip_till_any"])
def test_near_misses_count_as_rows(policy: str) -> None:
    """`max_matches` bounds whole matches and near misses together."""
    pattern, events = compiled("A ; B", TYPES, policy=policy), events_of([minutes("A1 B2 A3 A4")], TYPES)

    def match(part: KleenePattern) -> Matches:
        return match_events(part, events, policy=policy)

    def limited(*, truncate: bool) -> Begun:
        return with_near_misses(
            pattern,
            events,
            match(pattern),
            match,
            policy=policy,
            after_match="next",
            max_matches=2,
            truncate=truncate,
        )

    with pytest.raises(TooManyMatchesError):
        limited(truncate=False)
    cut = limited(truncate=True)
    assert (cut.missing.tolist(), cut.matches.first_position.tolist(), cut.matches.truncated) == ([-1, 1], [1, 3], True)
