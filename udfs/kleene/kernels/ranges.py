"""Ranges of first events that matching goes through, so that what is held at once does not grow with the stream."""

from __future__ import annotations

from collections.abc import Iterator

from patternlake.udfs.kleene.events import Stream

FIRST_EVENTS_AT_ONCE = 1 << 16
"""First events of one range, before it is cut."""


def whole_parts(stream: Stream) -> Iterator[tuple[int, int]]:
    """Ranges of events that cut no part in two."""
    begin = 0
    for end in stream.offsets[1:].tolist():
        if end - begin >= FIRST_EVENTS_AT_ONCE or end == len(stream):
            yield begin, end
            begin = end


def first_event_ranges(stream: Stream, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of first events."""
    stop = len(stream) if end is None else end
    for low in range(begin, stop, FIRST_EVENTS_AT_ONCE):
        yield low, min(low + FIRST_EVENTS_AT_ONCE, stop)


def positions_rise(stream: Stream) -> bool:
    """Whether positions rise inside every part, so that the order of events is that of the answer."""
    positions = stream.events.positions[stream.source]
    return bool(((stream.part[1:] != stream.part[:-1]) | (positions[1:] > positions[:-1])).all())
