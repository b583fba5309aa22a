"""Random questions of the whole language as a stream is asked them: some of its events, with or without partitions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from naive.kleene import Event, Row, matches
from naive.kleene_kernels import compiled, final_rows
from naive.kleene_random import FORMS, TYPES, Language

from patternlake.udfs.errors import PredicateError, UnsupportedOperatorError
from patternlake.udfs.kleene.query import KleenePattern

POLICIES = ("skip_till_any", "skip_till_next", "strict")
UNTAKEN = {"skip_till_any": {"conjunction", "steering", "after_match"}}


class Found(NamedTuple):
    """A row of an answer; `first` and `last` are (time, position)."""

    key: str | None
    row: Row
    first: tuple[int, int]
    last: tuple[int, int]
    final: bool


def looks_further(pattern: KleenePattern) -> bool:
    """Whether matches depend on events that they have not taken."""
    adjacent = any(linearization.adjacent for linearization in pattern.linearizations)
    return adjacent or bool(pattern.gaps) or any(operand.until for operand in pattern.operands)


class Question:
    """A random pattern of the language and what it is asked of; most have a window and look at what they do not take.

    `partitions`: columns of PARTITION BY, one of which is drawn; None among them is no partition. `times`: those that
    ``from_time`` and ``to_time`` are drawn from.
    """

    def __init__(self, rng: random.Random, partitions: Sequence[str | None], times: Sequence[int]) -> None:
        self.policy = rng.choice(POLICIES)
        forms = [form for form in FORMS if form not in UNTAKEN.get(self.policy, ()) and rng.random() < 0.6]
        plain = rng.random() < 0.2
        while True:
            drawn = Language(rng, policy=self.policy, forms=forms, most=3)
            try:
                self.pattern = compiled(drawn.text, TYPES, policy=self.policy, repetition=drawn.repetition)
            except (PredicateError, UnsupportedOperatorError):
                continue
            if (plain or looks_further(self.pattern)) and (self.pattern.within is not None or rng.random() < 0.2):
                break
        self.alone = drawn.text
        self.how = {"policy": self.policy, "after_match": drawn.after_match, "repetition": drawn.repetition}
        self.partition = rng.choice(partitions)
        head, within, behind = drawn.text.partition(" WITHIN ")
        self.text = head + (f" PARTITION BY {self.partition}" if self.partition else "") + within + behind
        low, high = sorted(rng.choice(times) for _ in range(2))
        self.from_time = low if rng.random() < 0.2 else None
        self.to_time = high if rng.random() < 0.2 else None

    def __repr__(self) -> str:
        return f"{self.text!r} {self.how}, {self.from_time} to {self.to_time}"

    def asked_of(self, events: Sequence[Event]) -> list[Event]:
        """Those of the events that are read, in order."""
        low, high = self.from_time, self.to_time
        read = [e for e in events if (low is None or low <= e.time) and (high is None or e.time <= high)]
        return sorted(read, key=lambda event: (event.time, event.position))

    def wanted(self, events: Sequence[Event], watermark: int) -> list[Found]:
        """The oracle's matches of each partition by itself; which are final is said of all its events at once."""
        if self.to_time is not None and any(not gap.right for gap in self.pattern.gaps):
            # Behind what is read, nothing is known.
            watermark = min(watermark, self.to_time + 1)
        parts: dict[str | None, list[Event]] = {}
        for event in self.asked_of(events):
            parts.setdefault(event.values[self.partition] if self.partition else None, []).append(event)
        found = []
        for part, own in parts.items():
            at = {event.position: (event.time, event.position) for event in own}
            rows = matches(self.alone, own, TYPES, **self.how)
            _, sure = final_rows(self.alone, own, watermark, TYPES, **self.how)
            for row in rows:
                taken = [at[position] for positions in row.values() for position in positions]
                found.append(Found(part, row, min(taken), max(taken), row in sure))
        return sorted(found, key=str)
