"""Texts whose order is not that of the times or numbers that they stand for."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from patternlake.udfs.rows.text_order import better_order


@pytest.mark.parametrize(
    ("texts", "call", "example"),
    [
        (["10:00", "9:00"], "to_timestamp({}, 'H:mm')", "9:00"),
        (["10:00:07", None, "9:00:59"], "to_timestamp({}, 'H:mm:ss')", "9:00:59"),
        (["09:00 AM", "02:30 PM"], "to_timestamp({}, 'h:mm a')", "09:00 AM"),
        (["28.11.2026 07:15"], "to_timestamp({}, 'd.M.yyyy H:mm')", "28.11.2026 07:15"),
        (["3.1.2026", "28.11.2026"], "to_timestamp({}, 'd.M.yyyy')", "3.1.2026"),
        (["28/11/2026 07:15:00", "03/04/2026 07:15:00"], "to_timestamp({}, 'd/M/yyyy H:mm:ss')", "28/11/2026 07:15:00"),
        (["11/28/2026 7:15 PM"], "to_timestamp({}, 'M/d/yyyy h:mm a')", "11/28/2026 7:15 PM"),
        (["3 Mar 2026", "28 Nov 2025"], "to_timestamp({}, 'd MMM yyyy')", "3 Mar 2026"),
        (["2026-3-1 10:00", "2026-11-28 09:00"], "to_timestamp({}, 'yyyy-M-d H:mm')", "2026-3-1 10:00"),
        (["2026-03-01 9:00:00"], "to_timestamp({}, 'yyyy-M-d H:mm:ss')", "2026-03-01 9:00:00"),
        (["3.3.2025 9:00:00 +01:00"], "to_timestamp({}, 'd.M.yyyy H:mm:ss XXX')", "3.3.2025 9:00:00 +01:00"),
        (["03/03/2025 09:00+0100"], "to_timestamp({}, 'd/M/yyyy H:mmXX')", "03/03/2025 09:00+0100"),
        (["03.03.2025 09:00:07.25 CET"], "to_timestamp({}, 'd.M.yyyy H:mm:ss.SS z')", "03.03.2025 09:00:07.25 CET"),
        (
            ["03.03.2025 09:00:07", "03.03.2025 09:00:07.250 Z"],
            "to_timestamp({}, 'd.M.yyyy H:mm:ss[.SSS][ ][XXX][XX][z]')",
            "03.03.2025 09:00:07",
        ),
        (
            ["2025-03-30 01:30:00 +01:00", "2025-03-30 03:10:00 +02:00"],
            "to_timestamp({}, 'yyyy-M-d H:mm:ss XXX')",
            "2025-03-30 01:30:00 +01:00",
        ),
        (["2025-03-30T01:30:00+01:00", "2025-03-30T03:10:00Z"], "CAST({} AS TIMESTAMP)", "2025-03-30T01:30:00+01:00"),
        (["2025-03-30T01:30:00.5Z", "2025-03-30T01:30:00.55Z"], "CAST({} AS TIMESTAMP)", "2025-03-30T01:30:00.5Z"),
        (["03.03.2025 09:00"] * 99 + ["n/a"], "try_to_timestamp({}, 'd.M.yyyy H:mm')", "03.03.2025 09:00"),
        (["10", "9"] * 60 + ["?"], "TRY_CAST({} AS BIGINT)", "9"),
        (["10", "9"], "CAST({} AS BIGINT)", "9"),
        (["-10", "-20"], "CAST({} AS BIGINT)", "-10"),
        (["10.5", "9.25"], "CAST({} AS DOUBLE)", "10.5"),
    ],
)
def test_what_sorts_wrong_is_told_with_what_to_write(texts: list[str | None], call: str, example: str) -> None:
    found = better_order(texts)
    assert found is not None
    assert (found.call, found.example) == (call, example)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [None, None],
        ["09:00", "10:00"],
        ["2026-03-01", "2026-11-28"],
        ["2026-03-01T09:00:00Z", "2026-11-28T10:00:00Z"],
        ["2026-03-01 09:00:00", "2026-11-28 10:00:00"],
        ["2026-03-01 09:00:00.5", "2026-11-28 10:00:00"],
        ["2026-03-01 09:00:00 +01:00", "2026-11-28 10:00:00 +01:00"],
        ["2026-03-01T09:00:00.250Z", "2026-11-28T10:00:00.500Z"],
        ["03.03.2025 09:00", "n/a"],
        ["20260301", "20261128"],
        ["ann", "ben"],
        ["9:00", "later"],
        ["0001", "0010"],
        ["1.25", "2.5"],
        [""],
    ],
)
def test_nothing_is_told_of_what_sorts_right_or_is_something_else(texts: list[str | None]) -> None:
    assert better_order(texts) is None


@pytest.mark.parametrize(
    "written",
    ["%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M %p", "%-d/%-m/%Y %-H:%M", "%Y-%-m-%-d %-H:%M", "%d %b %Y"],
)
def test_many_texts_are_told_exactly_where_their_order_is_wrong(written: str) -> None:
    chance = random.Random(7)
    for _ in range(20):
        moments = [datetime(2024, 1, 1) + timedelta(minutes=chance.randrange(1_000_000)) for _ in range(200)]
        texts = [moment.strftime(written) for moment in moments]
        wrong = [texts[at] for at in sorted(range(200), key=lambda at: moments[at])] != sorted(texts)
        assert (better_order(texts) is not None) == wrong
