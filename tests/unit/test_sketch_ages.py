"""Which segments of a sketch are old enough for which rule of ageing: by time, by events, by both."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from patternlake.jobs.configuration.sketches import AgeRule
from patternlake.jobs.maintain.job import Finished, floors_after

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def rule(after: str, level: int | None) -> AgeRule:
    return AgeRule.model_validate({"after": after, **({"drop": True} if level is None else {"keep_level": level})})


def daily(segments: int, *, events: int, watermark: bool = True) -> Finished:
    """Segments of ten events, one a day; the watermark is at the last event."""
    ends = [(number, START + (10 * number + 9) * DAY) for number in range(segments)]
    return Finished(ends, events, 10, START + (events - 1) * DAY if watermark else None)


def levels(rules: list[AgeRule], finished: Finished) -> dict[int | None, int]:
    return {floor["level"]: floor["before_segment"] for floor in floors_after(rules, finished, [])}


def test_a_segment_is_as_old_as_the_events_behind_it() -> None:
    # 45 events: behind the segments 0 to 3 come 35, 25, 15 and 5.
    finished = daily(4, events=45, watermark=False)
    assert levels([rule("15 events", 1)], finished) == {1: 3}
    assert levels([rule("16 events", 1), rule("35 events", None)], finished) == {1: 2, None: 1}
    assert levels([rule("36 events", 1)], finished) == {}


def test_rules_by_time_wait_for_a_watermark_and_rules_by_events_do_not() -> None:
    rules = [rule("5 days", 1), rule("25 events", 2)]
    assert levels(rules, daily(4, events=45)) == {1: 4, 2: 2}
    assert levels(rules, daily(4, events=45, watermark=False)) == {2: 2}


@pytest.mark.parametrize("seed", range(50))
def test_an_event_a_day_ages_alike_by_days_and_by_events(seed: int) -> None:
    rng = random.Random(seed)
    ages = sorted(rng.sample(range(1, 120), 3))
    events = rng.randint(1, 130)
    finished = daily(events // 10, events=events)
    # The watermark is at the last event: n days behind a segment's end are n events behind it.
    by_time, by_events = (
        levels([rule(f"{age} {unit}", level) for age, level in zip(ages, (1, 2, None), strict=True)], finished)
        for unit in ("days", "events")
    )
    assert by_time == by_events
    naive = {
        level: sum(1 for number in range(events // 10) if events - 10 * (number + 1) >= age)
        for age, level in zip(ages, (1, 2, None), strict=True)
    }
    assert by_events == {level: before for level, before in naive.items() if before}


def test_what_is_removed_stays_removed_whatever_the_rules_say() -> None:
    known = [{"level": 1, "before_segment": 3}]
    found = floors_after([rule("30 events", 1)], daily(4, events=45), known)
    assert found == known
