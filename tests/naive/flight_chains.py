"""Chains of delayed flights, slow and obviously right: every pair of a window is judged, every path is walked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

HOUR = 3600


class Departure(NamedTuple):
    at: float
    flight: str
    delay: int
    aircraft: str
    origin: str
    dest: str


def later_and_later(one: Departure, other: Departure) -> bool:
    return one.aircraft == other.aircraft and other.delay > one.delay


def doubled(one: Departure, other: Departure) -> bool:
    same_way = (one.origin, one.dest) == (other.origin, other.dest)
    return same_way and other.delay >= 2 * one.delay and other.at - one.at < 2 * HOUR


def chains(
    departures: Sequence[Departure], least: int, follows: Callable[[Departure, Departure], bool], width: int
) -> set[tuple[int, tuple[Departure, ...]]]:
    """Every complete chain of every window that begins at a multiple of eight hours, step by step."""
    late = [departure for departure in departures if departure.delay >= least]
    firsts = {int(one.at // (8 * HOUR)) - back for one in late for back in range(width // (8 * HOUR))}
    found = set()
    for start in (first * 8 * HOUR for first in firsts):
        inside = [one for one in late if start <= one.at < start + width]
        after = {one: [other for other in inside if one.at < other.at and follows(one, other)] for one in inside}
        followers = {other for others in after.values() for other in others}
        begun = [(one,) for one in inside if one not in followers]
        while begun:
            chain = begun.pop()
            begun += [(*chain, other) for other in after[chain[-1]]]
            if not after[chain[-1]]:
                found.add((start, chain))
    return found
