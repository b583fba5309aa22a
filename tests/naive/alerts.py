"""Which alerts must exist, from the definition in docs/alerts.md and nothing else; slow and obviously right.

A match of a subscription and a closed group are told once, when they are first published. A forecast is what a
subscription says of one partition, values of its join variables and set of bound operands; it is told at the batch at
which it passes its predicate, unless it did so at the batch before, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

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
