"""Groups of probable matches, slow and obviously right: every word and every possible world is looked at (SPEC 4).

A pattern is given as a regular expression over one-letter operands beside its text, so that nothing of the language
and no automaton is used here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Row:
    """One stored event of a step: the step has this name and this value with this probability."""

    name: str
    probability: float
    value: int = 0


Stream = Mapping[int, Sequence[Row]]
"""Step to its rows, which exclude one another."""
Interval = tuple[int, int]


@dataclass(frozen=True)
class Query:
    """A pattern with its parameters.

    Attributes
    ----------
    regex
        Over letters; all that is no letter is regular expression.
    letters
        Letter to the rows that it takes.
    pattern, clauses
        The same in the pattern language; the clauses are DEFINE and WHERE.
    others
        Letters that also take the event that is missing from a step, or a whole step.
    """

    regex: str
    letters: Mapping[str, Callable[[Row], bool]]
    pattern: str
    within: int
    overlap: str = "single"
    threshold: float = 0.0
    clauses: str = ""
    others: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        return f"{self.pattern} {self.clauses}".strip()

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of letters that the pattern takes, up to the window."""
        return words(self.regex, "".join(sorted(self.letters)), self.within)

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """Whatever a word of `words` begins with, the whole word left out."""
        return frozenset(word[:size] for word in self.words for size in range(1, len(word)))


@lru_cache(maxsize=256)
def words(regex: str, letters: str, longest: int) -> frozenset[str]:
    found = (
        "".join(word) for size in range(1, longest + 1) for word in itertools.product(letters, repeat=size)
    )  # fmt: skip
    return frozenset(word for word in found if re.fullmatch(regex, word))


@dataclass(frozen=True)
class Match:
    start: int
    end: int
    word: str
    probability: float


@dataclass(frozen=True)
class Group:
    t_start: int
    t_first: int
    t_end: int
    probability: float
    final: bool


def seen(stream: Stream) -> dict[int, list[Row]]:
    """The steps that count: all but a last one whose probabilities do not reach 1 yet; bad steps are empty."""
    steps = {step: list(rows) for step, rows in stream.items()}
    if steps and total(steps[max(steps)]) < 1 - TOLERANCE:
        del steps[max(steps)]
    for step, rows in steps.items():
        if total(rows) > 1 + TOLERANCE or any(not 0 <= row.probability <= 1 for row in rows):
            steps[step] = []
        elif total(rows) > 1:
            steps[step] = [Row(row.name, row.probability / total(rows), row.value) for row in rows]
    return steps


def total(rows: Sequence[Row]) -> float:
    return sum(row.probability for row in rows)


def probability(query: Query, steps: Stream, at: int, letter: str) -> float:
    """How probable an event is that a letter takes."""
    rows = steps.get(at, ())
    missing = 1 - total(rows) if letter in query.others else 0.0
    found = sum(row.probability for row in rows if query.letters[letter](row))
    return found + missing if missing > TOLERANCE else found


def product(query: Query, steps: Stream, start: int, word: str) -> float:
    return prod(probability(query, steps, start + at, letter) for at, letter in enumerate(word))


def passes(query: Query, value: float) -> bool:
    return value > 0 and value >= query.threshold * (1 - 1e-9)


def matches(query: Query, stream: Stream) -> list[Match]:
    """All matches that exist."""
    steps = seen(stream)
    found = []
    for start in sorted(steps):
        for word in sorted(query.words):
            value = product(query, steps, start, word)
            if passes(query, value):
                found.append(Match(start, start + len(word) - 1, word, value))
    return found


def overlapping(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def components(intervals: Sequence[Interval]) -> list[list[Interval]]:
    """Those that hang together by overlaps."""
    found: list[list[Interval]] = []
    left = set(intervals)
    while left:
        group = [left.pop()]
        for one in group:
            near = {other for other in left if overlapping(one, other)}
            left -= near
            group += near
        found.append(group)
    return found


def cliques(intervals: Sequence[Interval]) -> list[list[Interval]]:
    """The maximal sets of pairwise overlapping ones (Bron and Kerbosch)."""
    near = {one: {other for other in intervals if other != one and overlapping(one, other)} for one in intervals}
    found: list[list[Interval]] = []

    def grow(group: list[Interval], allowed: set[Interval], done: set[Interval]) -> None:
        if not allowed and not done and group:
            found.append(group)
        for one in sorted(allowed):
            grow([*group, one], allowed & near[one], done & near[one])
            allowed, done = allowed - {one}, done | {one}

    grow([], set(intervals), set())
    return found


def worlds(steps: Stream, first: int, last: int) -> Iterator[tuple[list[Row | None], float]]:
    """Every way in which the steps can have gone, with its probability; None is any other event."""
    choices: list[list[tuple[Row | None, float]]] = []
    for at in range(first, last + 1):
        rows = [row for row in steps.get(at, ()) if row.probability > 0]
        rest = max(0.0, 1 - total(rows))
        choices.append([*((row, row.probability) for row in rows), (None, rest)])
    for world in itertools.product(*choices):
        weight = prod(chance for _, chance in world)
        if weight > 0:
            yield [row for row, _ in world], weight


def occurs(query: Query, steps: Stream, first: int, last: int, anchor: int | None) -> float:
    """How probable it is that a match lies in [first, last], and holds the anchor where there is one."""
    kinds = sorted({(row.name, row.value) for rows in steps.values() for row in rows})
    sign = {kind: chr(ord("A") + number) for number, kind in enumerate(kinds)}

    def taken(letter: re.Match[str]) -> str:
        signs = "".join(sign[name, value] for name, value in kinds if query.letters[letter[0]](Row(name, 1, value)))
        signs += r"\-" if letter[0] in query.others else ""
        return f"[{signs}]" if signs else "(?!)"

    regex = re.compile(re.sub("[a-z]", taken, query.regex))
    bounds = [
        (s - first, e - first + 1)
        for s in range(first, last + 1)
        for e in range(s, min(last, s + query.within - 1) + 1)
        if anchor is None or s <= anchor <= e
    ]
    found = 0.0
    for world, weight in worlds(steps, first, last):
        text = "".join("-" if row is None else sign[row.name, row.value] for row in world)
        if any(regex.fullmatch(text, s, e) for s, e in bounds):
            found += weight
    return found


def is_open(query: Query, steps: Stream, latest: int) -> bool:
    """Whether a match that starts at `latest` or before can still end after the last step."""
    last = max(steps)
    for start in range(last - query.within + 2, min(latest, last) + 1):
        size = last - start + 1
        for word in query.beginnings:
            if len(word) == size and passes(query, product(query, steps, start, word)):
                return True
    return False


def groups(query: Query, stream: Stream) -> list[Group]:
    """All groups, by their earliest end."""
    steps = seen(stream)
    intervals = sorted({(match.start, match.end) for match in matches(query, stream)})
    single = query.overlap == "single"
    found = []
    for group in components(intervals) if single else cliques(intervals):
        start, end = min(s for s, _ in group), max(e for _, e in group)
        first = min(e for _, e in group)
        chance = occurs(query, steps, start, end, None if single else first)
        found.append(Group(start, first, end, chance, not is_open(query, steps, end if single else first)))
    return sorted(found, key=lambda group: group.t_first)


def members(query: Query, stream: Stream, group: Group) -> list[Match]:
    """The matches of a group, the most probable first; those that are equally probable in no order."""
    single = query.overlap == "single"
    found = [
        match
        for match in matches(query, stream)
        if group.t_start <= match.start and match.end <= group.t_end
        if single or match.start <= group.t_first <= match.end
    ]
    return sorted(found, key=lambda match: -match.probability)
