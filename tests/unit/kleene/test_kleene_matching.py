"""The kernels give the worked answers of SPEC 3, whatever the plan."""

from __future__ import annotations

import pytest
from naive.kleene_cases import TYPES, WORKED, Worked, stream, words
from naive.kleene_kernels import answered

PLANS = [None, "left", "right", "bushy", "inner"]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("case", WORKED, ids=lambda case: f"{case.pattern} on {case.events}")
def test_worked_answers(case: Worked, plan: str | None) -> None:
    events = stream(case.events)
    names = {event.position: event.name for event in events}
    rows = answered(case.pattern, [events], TYPES, plan=plan)
    assert sorted(words(row, names) for _, row in rows) == sorted(case.rows)
