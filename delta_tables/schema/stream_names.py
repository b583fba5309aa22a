"""Names of streams and objects, and the numbers that may stand for them in partitions."""

from __future__ import annotations

import zlib

from patternlake.udfs.errors import ArgumentError

LONGEST_NAME = 255
CANDIDATES = 8
"""How many numbers a name may have: those that follow its CRC-32."""

_BITS = 0x7FFFFFFF


def candidates(name: str) -> tuple[int, ...]:
    """Return the numbers that a name may have, the most wanted first; table `object_numbers` says which it has."""
    first = zlib.crc32(name.encode())
    return tuple((first + number) & _BITS for number in range(CANDIDATES))


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
