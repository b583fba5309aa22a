"""Names of streams and objects, and the numbers that stand for streams in partitions."""

from __future__ import annotations

import zlib

from patternlake.udfs.errors import ArgumentError

LONGEST_NAME = 255


def stream_id(name: str) -> int:
    """Return a stream's number."""
    return zlib.crc32(name.encode()) & 0x7FFFFFFF


def stream_id_text(name: str) -> str:
    """Return the same as SQL text, of the text of an expression that gives the name."""
    return f"CAST(crc32({name}) & 2147483647 AS INT)"


def check_name(what: str, name: str) -> None:
    """Refuse a name that is empty or too long.

    Raises
    ------
    ArgumentError
        It has no character, or more than 255.
    """
    if not name or len(name) > LONGEST_NAME:
        begin = name if len(name) <= 40 else name[:40] + "…"
        raise ArgumentError(f"the {what} name '{begin}' has {len(name)} characters; 1 to {LONGEST_NAME} would be right")
