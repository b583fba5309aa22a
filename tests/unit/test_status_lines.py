"""The status of objects as text, and what stands in it."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta, timezone

import pytest

from patternlake.jobs.command_line import status_lines
from patternlake.jobs.reports.status import ObjectStatus, dictionary_bytes
from patternlake.jobs.terminal import text_columns


def test_columns_are_aligned_by_their_width_on_screen() -> None:
    assert list(text_columns.align(["name", "n"], [["東京", "7"], ["a\nb", "12"]], right=[1])) == [
        "name   n",
        "----  --",
        "東京   7",
        "a\\nb  12",
    ]


@pytest.mark.parametrize(
    ("events", "columns", "taken"),
    [
        (1000, [(1, 5)], 5),  # one name needs no code
        (1000, [(2, 10)], 125 + 10),
        (1000, [(5, 20)], 375 + 20),  # 5 names: 3 bits
        (1000, [(8, 20)], 375 + 20),
        (1000, [(9, 20), (1000, 4000)], 500 + 1250 + 20 + 4000),
        (3, [(2, 2)], 1 + 2),  # whole bytes
    ],
)
def test_a_dictionary_coded_log_takes_a_code_per_event_and_each_text_once(
    events: int, columns: list[tuple[int, int]], taken: int
) -> None:
    assert dictionary_bytes(events, columns) == taken


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.23 MB"), (999_999, "1 MB")]
)
def test_sizes_have_three_digits(count: int, text: str) -> None:
    assert status_lines.size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "1 h"), (86_400 * 400, "400 d")]
)
def test_spans_are_told_in_their_greatest_unit(seconds: int, text: str) -> None:
    assert status_lines.span_text(timedelta(seconds=seconds)) == text


def test_status_shows_lag_open_batches_and_what_is_configured_no_more() -> None:
    now = datetime(2024, 1, 2, tzinfo=timezone.utc)
    then = now - timedelta(hours=3)
    found = [
        ObjectStatus("ingest", "flights", "flights", True, batch_id=4, published_at=then, watermark=then, bytes=2048),
        ObjectStatus("sketch", "flights", "flights", True, lag_rows=1200, lag_batches=2, open_batch=0),
        ObjectStatus("sketch", "old", "old", False, batch_id=0, published_at=then, lag_rows=0, lag_batches=0),
    ]
    lines = list(status_lines.as_table(found, now))
    assert "2024-01-01 21:00:00" in lines[2]
    assert "watermark 3 h old" in lines[2]
    assert "2.05 kB" in lines[2]
    assert "never" in lines[3]
    assert "1,200 rows, 2 batches" in lines[3]
    assert lines[5] == (
        "sketch flights: batch 0 was begun and is not published; if no run is at work, the next one takes it over"
    )
    assert lines[6] == "sketch old: published once, configured no more"
    rows = list(csv.DictReader(status_lines.as_csv(found)))
    assert rows[0]["watermark"] == "2024-01-01T21:00:00+00:00"
    assert rows[1]["published_at"] == ""


def test_no_character_of_a_name_ends_a_line_of_csv() -> None:
    name = "a\u2028b\x85c\nd"
    lines = status_lines.as_csv([ObjectStatus("alerts", name, "flights", True)])
    assert [row["object"] for row in csv.DictReader(io.StringIO("\n".join(lines), newline=""))] == [name]


@pytest.mark.parametrize(("of_events", "told"), [(None, False), (8.1, False), (1.94, True)])
def test_a_sketch_that_exact_answers_do_not_use_has_a_line(of_events: float | None, told: bool) -> None:
    now = datetime(2024, 1, 2, tzinfo=timezone.utc)
    sketch = ObjectStatus(
        "sketch", "clicks", "clicks", True, batch_id=0, published_at=now, lag_rows=0, lag_batches=0,
        bytes_per_event=4.35, events_bytes_per_event=of_events,
    )  # fmt: skip
    lines = list(status_lines.as_table([sketch], now))
    expected = (
        "sketch clicks: exact answers about the whole stream read its events instead, 1.94 bytes each; "
        "the sketch serves a key, a window and verify => false"
    )
    assert (expected in lines) is told
    assert len(lines) == 3 + told


def test_alerts_that_wait_or_were_given_up_have_lines() -> None:
    now = datetime(2024, 1, 2, tzinfo=timezone.utc)
    found = [
        ObjectStatus(
            "alerts", "all well", "flights", True, batch_id=1, published_at=now, undelivered=0, dead_letters=0
        ),
        ObjectStatus("alerts", "soon", "flights", True, batch_id=1, published_at=now, undelivered=1200, dead_letters=1),
    ]
    assert list(status_lines.as_table(found, now))[4:] == [
        "alerts soon: 1,200 alerts waiting for delivery",
        "alerts soon: 1 dead letter; alert_deliveries says why, and a greater dead_letter_after tries them again",
    ]


def test_quiet_alerts_that_held_something_back_have_a_line() -> None:
    now = datetime(2024, 1, 2, tzinfo=timezone.utc)
    counts = {"loud": (0, 0), "counted": (1, 0), "open": (1200, 7)}
    found = [
        ObjectStatus("alerts", name, "s", True, 1, now, held_back=held, held_back_uncounted=uncounted)
        for name, (held, uncounted) in counts.items()
    ]
    assert list(status_lines.as_table(found, now))[5:] == [
        "alerts counted: 1 alert held back",
        "alerts open: 1,200 alerts held back; 7 of them no alert has counted yet",
    ]


def test_status_says_what_kept_patterns_read_again() -> None:
    now = datetime(2024, 1, 2, tzinfo=timezone.utc)
    found = [
        ObjectStatus("patterns", "runs", "s", True, batch_id=1, published_at=now, kept_events=1200, kept_since=now),
        ObjectStatus("patterns", "pairs", "s", True, batch_id=1, published_at=now, kept_events=1),
    ]
    assert list(status_lines.as_table(found, now))[-2:] == [
        "patterns runs: 1,200 events, those since 2024-01-02 00:00:00, may still take part in an open match",
        "patterns pairs: 1 event may still take part in an open match",
    ]
