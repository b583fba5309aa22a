"""Scans judge conditions of any form for many events at once: how often does not grow with the number of starts."""

from __future__ import annotations

import random

import pytest
from naive.kleene import Event
from naive.kleene_kernels import answered
from naive.kleene_random import TYPES

from patternlake.udfs.kleene.kernels import judged_scans


def judgements(patch: pytest.MonkeyPatch, pattern: str, events: list[Event], policy: str) -> int:
    """How often a scan calls the evaluator."""
    calls = 0
    evaluate = judged_scans.evaluate

    def counted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        return evaluate(*arguments)  # type: ignore[arg-type]

    patch.setattr(judged_scans, "evaluate", counted)
    answered(pattern, [events], TYPES, policy=policy)
    patch.undo()
    return calls


@pytest.mark.parametrize("policy", ["skip_till_next", "strict"])
@pytest.mark.parametrize(
    "condition",
    ["c.x = a.x + b.x", "c.n * a.n > b.n - 1", "CONCAT(a.s, c.s) = CONCAT(b.s, b.s)", "(a.n = b.n OR c.s IS NULL)"],
)
def test_thousands_of_starts_are_judged_together(monkeypatch: pytest.MonkeyPatch, policy: str, condition: str) -> None:
    rng = random.Random(7)
    values = [{"x": float(rng.randint(0, 4)), "n": rng.randint(0, 4), "s": rng.choice("pq")} for _ in range(3000)]
    events = [Event(at, at * 1000, "ABC"[at % 3], own) for at, own in enumerate(values, start=1)]
    pattern = f"A AS a ; B AS b ; C AS c WHERE {condition} WITHIN 40 EVENTS"

    calls = judgements(monkeypatch, pattern, events, policy)

    # A scan meets 13 events of C in its window at most; it was a call for each start and event, thousands.
    assert 0 < calls <= 13
