"""The status of objects as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta, timezone

from patternlake.jobs.reports.status import SOURCE_JOB, ObjectStatus
from patternlake.jobs.terminal.text_columns import align
from patternlake.udfs.shown_text import plural

_HEADER = ("job", "object", "batch", "published", "lag", "in", "out", "quarantined", "size", "bytes/event")
_RIGHT = (2, 5, 6, 7, 8)


def as_table(found: Sequence[ObjectStatus], now: datetime) -> Iterator[str]:
    """Lay statuses out for people, as of a moment."""
    if not found:
        yield "nothing is configured and nothing was published"
        return
    yield from align(_HEADER, [_row(each, now) for each in found], _RIGHT)
    for each in found:
        if each.open_batch is not None:
            yield (
                f"{each.job} {each.object}: batch {each.open_batch} was begun and is not published; "
                "if no run is at work, the next one takes it over"
            )
        if each.events_bytes_per_event is not None and each.events_bytes_per_event <= (each.bytes_per_event or 0):
            yield (
                f"{each.job} {each.object}: exact answers about the whole stream read its events instead, "
                f"{each.events_bytes_per_event:.3g} bytes each; the sketch serves a key, a window and verify => false"
            )
        if each.kept_events is not None:
            since = "" if each.kept_since is None else f", those since {each.kept_since:%Y-%m-%d %H:%M:%S},"
            yield (
                f"{each.job} {each.object}: {plural(each.kept_events, 'event')}{since} may still take part in an "
                "open match"
            )
        if each.undelivered:
            yield f"{each.job} {each.object}: {plural(each.undelivered, 'alert')} waiting for delivery"
        if each.dead_letters:
            yield (
                f"{each.job} {each.object}: {plural(each.dead_letters, 'dead letter')}; alert_deliveries says why, "
                "and a greater dead_letter_after tries them again"
            )
        if each.held_back:
            left = each.held_back_uncounted
            rest = f"; {left:,} of them no alert has counted yet" if left else ""
            yield f"{each.job} {each.object}: {plural(each.held_back, 'alert')} held back{rest}"
        if not each.configured:
            yield f"{each.job} {each.object}: published once, configured no more"


def as_csv(found: Iterable[ObjectStatus]) -> Iterator[str]:
    """Write statuses as CSV with titles; moments in ISO 8601, what is unknown empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([field.name for field in fields(ObjectStatus)])
    for each in found:
        values = asdict(each).values()
        writer.writerow([value.isoformat() if isinstance(value, datetime) else value for value in values])
    yield from buffer.getvalue().removesuffix("\n").split("\n")  # splitlines would cut at what is no end of a line


def size_text(count: int) -> str:
    """Write bytes with three digits and a decimal unit, as sizes are written in the configuration."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.3g} {unit}"


def span_text(span: timedelta) -> str:
    """Write a span of time in its greatest whole unit."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _row(each: ObjectStatus, now: datetime) -> list[str]:
    if each.batch_id is None or each.published_at is None:
        return [each.job, each.object, "-", "never", _lag(each, now), "0", "0", "0", size_text(each.bytes), ""]
    per_event = ""
    if each.bytes_per_event is not None:
        per_event = f"{each.bytes_per_event:.3g}"
        if each.dictionary_bytes_per_event is not None:
            per_event += f" (coded log: {each.dictionary_bytes_per_event:.3g})"
    moment = each.published_at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    return [
        each.job,
        each.object,
        str(each.batch_id),
        moment,
        _lag(each, now),
        f"{each.rows_in:,}",
        f"{each.rows_out:,}",
        f"{each.rows_quarantined:,}",
        size_text(each.bytes),
        per_event,
    ]


def _lag(each: ObjectStatus, now: datetime) -> str:
    if each.job == SOURCE_JOB:
        return "" if each.watermark is None else f"watermark {span_text(now - each.watermark)} old"
    if each.lag_rows is None or each.lag_batches is None:
        return "?"
    if not each.lag_batches:
        return "none"
    return f"{each.lag_rows:,} rows, {each.lag_batches} batch{'es' if each.lag_batches > 1 else ''}"
