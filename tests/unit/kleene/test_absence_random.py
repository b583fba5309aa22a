"""Random absences: the kernels answer as the oracle does, what is final stays, and kept patterns give the whole."""

from __future__ import annotations

import random

import pytest
from naive.absence_random import Pattern, random_events
from naive.kleene import Event, matches
from naive.kleene_kernels import Keyed, answered, compiled, events_of, rows_of
from test_kept_patterns import Kept, check

from patternlake.udfs.errors import PatternError
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.kernels.matching import match_events

TYPES = {"x": "double", "y": "double"}
MINUTE = 60_000_000


def case(rng: random.Random, *, kept: bool = False) -> tuple[str, str, str]:
    """A pattern that the engine takes, a policy, and where it goes on."""
    while True:
        policy = rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"])
        text = Pattern(rng, scan=policy != "skip_till_any", kept=kept).text
        try:
            compiled(text, TYPES, policy=policy)
        except PatternError:
            continue
        return text, policy, rng.choice(["next", "past_last"])


@pytest.mark.parametrize("seed", range(4))
def test_absences_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        text, policy, after = case(rng)
        events = random_events(rng, rng.randint(0, 8))
        wanted = [(0, row) for row in matches(text, events, TYPES, policy=policy, after_match=after)]
        assert answered(text, [events], TYPES, policy=policy, after_match=after) == wanted, (text, policy, after)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_more_absences(seed: int) -> None:
    test_absences_are_those_of_the_oracle(seed)


def at_moment(text: str, policy: str, after: str, events: list[Event], watermark: int) -> list[tuple[Keyed, bool]]:
    """The rows of what is known at a watermark, and whether each is final."""
    pattern = compiled(text, TYPES, policy=policy)
    known = events_of([events], TYPES)
    found = match_events(pattern, known, policy=policy, after_match=after)
    sure = final(pattern, found, known, Moment(watermark), policy=policy, after_match=after)
    return list(zip(rows_of(found), sure.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_final_stays_whatever_comes(seed: int) -> None:
    """Of a stream's events some at or behind the watermark are not known yet: they come later, with later positions."""
    rng = random.Random(seed)
    final_rows = 0
    for _ in range(80):
        text, policy, after = case(rng)
        events = random_events(rng, 10)
        watermark = rng.randint(0, events[-1].time // MINUTE + 1) * MINUTE
        late = [event for event in events if event.time >= watermark and rng.random() < 0.7]
        known = [event for event in events if event not in late]
        rest = [Event(100 + at, event.time, event.name, event.values) for at, event in enumerate(late)]
        before = at_moment(text, policy, after, known, watermark)
        later = {repr(row): sure for row, sure in at_moment(text, policy, after, known + rest, watermark)}
        for row, sure in before:
            if sure:
                final_rows += 1
                assert later.get(repr(row)), (text, policy, after, known, rest, watermark, row)
    assert final_rows > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_more_final_rows_stay(seed: int) -> None:
    test_what_is_final_stays_whatever_comes(seed)


@pytest.mark.parametrize("seed", range(3))
def test_kept_absences_are_those_of_the_whole_stream(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    done = early = 0
    while done < 20:
        monkeypatch.setattr(request, "TASK_EVENTS", rng.choice([2, 100_000]))
        monkeypatch.setattr(request, "MARGINS", 1)
        text, policy, after = case(rng, kept=True)
        by = rng.choice([None, "s"])
        if by is not None:
            text = text.replace(" WITHIN ", f" PARTITION BY {by} WITHIN ")
        try:
            kept = Kept(text, policy, after, MINUTE * rng.choice([0, 1, 3]), by, most=rng.choice([1, 4, 1_000_000]))
        except PatternError:
            continue
        if kept.unfit is not None:
            continue
        events = [
            Event(event.position, event.time, event.name, {**event.values, "s": rng.choice(["k", "l"]), "n": None})
            for event in random_events(rng, 13)
        ]
        early += check(kept, events, rng) > 0
        done += 1
    assert early > 0, "matches are written as the stream goes on"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_more_kept_absences(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    test_kept_absences_are_those_of_the_whole_stream(seed, monkeypatch)
