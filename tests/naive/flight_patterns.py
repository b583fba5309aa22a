"""The demo's exact questions, slow and obviously right: loops over the flights of one aircraft."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

HOUR = 3600
LATE = ("late", "very_late")


class Flight(NamedTuple):
    at: float
    position: int
    name: str
    delay: float | None


Chosen = tuple[Flight, ...]


def given_up(flights: Sequence[Flight]) -> Iterator[Chosen]:
    """On time, then every flight that was later than those before, then cancelled, within a day."""
    for number, first in enumerate(flights):
        worse: list[Flight] = []
        for flight in flights[number + 1 :] if first.name == "on_time" else ():
            if flight.at - first.at >= 24 * HOUR:
                break
            if flight.name == "cancelled" and worse:
                yield (first, *worse, flight)
            if flight.name in LATE and all(flight.delay > before.delay for before in worse):
                worse.append(flight)


def everything(flights: Sequence[Flight]) -> Iterator[Chosen]:
    """One late, one cancelled, one very late, within a day, in any order."""
    kinds = [[flight for flight in flights if flight.name == name] for name in ("late", "cancelled", "very_late")]
    for chosen in product(*kinds):
        times = [flight.at for flight in chosen]
        if max(times) - min(times) < 24 * HOUR:
            yield chosen


def nothing_between(flights: Sequence[Flight]) -> Iterator[Chosen]:
    """More than two hours late, and the next one cancelled, within twelve hours."""
    for flight, following in pairwise(flights):
        delayed = flight.delay is not None and flight.delay > 120
        if delayed and following.name == "cancelled" and following.at - flight.at < 12 * HOUR:
            yield flight, following
