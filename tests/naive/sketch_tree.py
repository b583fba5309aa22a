"""The sketch tree of one segment, slow and obviously right: Python sets for tokens, Python ints for filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mmh3

MASK = 2**64 - 1


@dataclass(frozen=True)
class Event:
    """One event: its names, one per token expression; its key counts only in a keyed tree."""

    position: int
    time: int
    names: tuple[str | None, ...]
    key: str | None = None


@dataclass(frozen=True)
class Node:
    """One node; `index` counts the places of its level from 0."""

    index: int
    pos_lo: int
    pos_hi: int
    time_lo: int
    time_hi: int
    tokens: frozenset[bytes]
    filter: int


def plain(expression: int, name: str) -> bytes:
    return b"\x00" + expression.to_bytes(4, "little") + name.encode()


def keyed(key: str | None, expression: int, name: str) -> bytes:
    number = expression.to_bytes(4, "little")
    if key is None:
        return b"\x02" + number + bytes(4) + name.encode()
    return b"\x01" + number + len(key.encode()).to_bytes(4, "little") + key.encode() + name.encode()


def tokens_of(event: Event, *, with_keys: bool) -> set[bytes]:
    found = {plain(number, name) for number, name in enumerate(event.names) if name is not None}
    if with_keys:
        found |= {keyed(event.key, number, name) for number, name in enumerate(event.names) if name is not None}
    return found


def filter_of(tokens: frozenset[bytes], seed: int, bits: int, hashes: int) -> int:
    """All tokens' positions as the ones of a number."""
    filled = 0
    for token in tokens:
        at, step = mmh3.hash64(token, seed, x64arch=True, signed=False)
        for _ in range(hashes):
            filled |= 1 << ((at >> 32) * bits >> 32)
            at = (at + step) & MASK
            step = (step * 6364136223846793005 + 1442695040888963407) & MASK
    return filled


def tree(
    structure: str,
    levels: Sequence[tuple[int, int]],
    leaf_events: int,
    fanout: int,
    first_position: int,
    events: Sequence[Event],
    *,
    with_keys: bool,
    seed: int,
) -> list[dict[int, Node]]:
    """All nodes by level and index; `levels` holds each level's (bits, hashes)."""
    result: list[dict[int, Node]] = []
    for level, (bits, hashes) in enumerate(levels):
        span = leaf_events * fanout**level
        nodes: dict[int, Node] = {}
        for index in {(event.position - first_position) // span for event in events}:
            inside = [event for event in events if (event.position - first_position) // span == index]
            tokens = frozenset(set().union(*(tokens_of(event, with_keys=with_keys) for event in inside)))
            filled = filter_of(tokens, seed, bits, hashes)
            if structure == "uniform" and level > 0:
                below = span // fanout
                children = {(event.position - first_position) // below for event in inside}
                if not children <= result[-1].keys() or filled.bit_count() > bits / 2:
                    continue
            positions = [event.position for event in inside]
            times = [event.time for event in inside]
            nodes[index] = Node(index, min(positions), max(positions), min(times), max(times), tokens, filled)
        result.append(nodes)
    return result
