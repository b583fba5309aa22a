"""Numbers in a row, dealt out in equal shares."""

from __future__ import annotations


def equal_shares(total: int, count: int) -> list[tuple[int, int]]:
    """Numbers 0 to `total` in `count` shares [low, high) whose sizes differ by one at most."""
    return [(total * at // count, total * (at + 1) // count) for at in range(count)]
