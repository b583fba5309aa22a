"""Which alerts must exist, from the definition in docs/alerts.md and nothing else; slow and obviously right.

A match of a subscription and a closed group are told once, when they are first published. A forecast is what a
subscription says of one partition, values of its join variables and set of bound operands; it is told at the batch at
which it passes its predicate, unless it did so at the batch before, too. An alert that is quiet for a span tells at
most one thing of a key and span.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

Thing = Hashable
Forecasts = Mapping[Thing, float]
"""Probability by what is forecast, at one batch."""


def told_of_forecasts(batches: Sequence[Forecasts], passes: Callable[[float], bool]) -> set[tuple[Thing, int]]:
    """What is told of forecasts: (thing, number of the batch)."""
    told = set()
    for number, forecasts in enumerate(batches):
        before = batches[number - 1] if number else {}
        for thing, probability in forecasts.items():
            passed_before = thing in before and passes(before[thing])
            if passes(probability) and not passed_before:
                told.add((thing, number))
    return told


def told_once(published: Sequence[Collection[Thing]], chosen: Callable[[Thing], bool]) -> dict[Thing, int]:
    """What is told of matches or closed groups, with the number of the publication that showed it first.

    Each publication shows all that there is at its time.
    """
    told: dict[Thing, int] = {}
    for number, things in enumerate(published):
        for thing in things:
            if chosen(thing) and thing not in told:
                told[thing] = number
    return told


@dataclass(frozen=True)
class Found:
    """What would be told: its name, its key, and its event time (microseconds, or steps)."""

    name: str
    key: str | None
    time: int


def quieted(found: Sequence[Found], quiet: int) -> tuple[dict[str, int], dict[str, str]]:
    """What is told of things that were found in this order, and what is held back.

    A thing is held back where an alert of its key was told whose time is less than `quiet` before or after its own;
    the next one of the key that is told counts it.

    Returns
    -------
    (dict, dict)
        Of each that is told, how many were held back since the one before it; of each that is held back, which of
        those that are told it is near to: the last one up to its time, else the first one after it.
    """
    told: dict[str, int] = {}
    held: dict[str, str] = {}
    for number, one in enumerate(found):
        before = [other for other in found[:number] if other.key == one.key]
        near = [other for other in before if other.name in told and abs(one.time - other.time) < quiet]
        if near:
            order = sorted((other.time, other.name) for other in near)
            earlier = [name for time, name in order if time <= one.time]
            held[one.name] = earlier[-1] if earlier else order[0][1]
        else:
            counted = sum(told[other.name] for other in before if other.name in told)
            told[one.name] = sum(other.name in held for other in before) - counted
    return told, held
