"""What a backfill is asked with; nothing here starts Spark."""

from __future__ import annotations

import pytest

from patternlake.jobs.ingest.backfill import Span, parse_span
from patternlake.jobs.runs.steps import Step, check_backfill
from patternlake.udfs.errors import ArgumentError

DAY = 86_400_000_000
NEW_YEAR = 1_704_067_200_000_000


@pytest.mark.parametrize(
    ("text", "zone", "first", "until"),
    [
        ("2024-01-01..2024-01-03", "UTC", 0, 2 * DAY),
        ("2024-01-01 .. 2024-01-01T12:00", "UTC", 0, DAY // 2),
        ("2024-01-01..2024-01-02", "+09:00", -9 * 3_600_000_000, DAY - 9 * 3_600_000_000),
        ("2024-01-01..2024-01-02", "America/New_York", 5 * 3_600_000_000, DAY + 5 * 3_600_000_000),
        ("2024-01-01T00:00:00Z..2024-01-02 00:00:00.000001+00:00", "Asia/Tokyo", 0, DAY + 1),
    ],
)
def test_a_span_is_read_in_the_zone_of_the_stream(text: str, zone: str, first: int, until: int) -> None:
    assert parse_span(text, zone) == Span(NEW_YEAR + first, NEW_YEAR + until)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2024-01-01", "'2024-01-01' is no span of time; write FROM..TO"),
        ("2024-01-01..soon", "'soon' is no day and no moment; write FROM..TO"),
        ("..2024-01-01", "'' is no day and no moment"),
        ("2024-01-02..2024-01-02", "2024-01-02 is not before 2024-01-02"),
    ],
)
def test_what_is_no_span_is_refused_with_what_is_right(text: str, told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        parse_span(text)


def test_a_backfill_needs_ingest_and_goes_without_rebuild() -> None:
    check_backfill(None, [], rebuild=True)
    check_backfill("2024-01-01..2024-01-02", [Step("ingest", "s"), Step("sketch", "s")], rebuild=False)
    with pytest.raises(ArgumentError, match="done by the job 'ingest'"):
        check_backfill("2024-01-01..2024-01-02", [Step("sketch", "s")], rebuild=False)
    with pytest.raises(ArgumentError, match="leave the backfill out"):
        check_backfill("2024-01-01..2024-01-02", [Step("ingest", "s")], rebuild=True)
