"""Streams and patterns for the groups engine, drawn by hand and at random, and their way into the kernels."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from naive import groups as naive
from numpy.typing import NDArray

from benchmarks.named_events import named_events
from patternlake.udfs.groups.kernels.groups import GroupRows, Groups
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse

NAMES = "abc"


def stream_of(text: str, first: int = 1) -> dict[int, list[naive.Row]]:
    """A stream as SPEC writes it: ``a | b.5 c.25`` has a at step 1, b or c or another at step 2."""
    steps = {}
    for at, step in enumerate(text.split("|"), first):
        parts = [part.partition(".") for part in step.split()]
        steps[at] = [naive.Row(name, float(f"0.{digits}") if digits else 1.0) for name, _, digits in parts]
    return steps


FIG_1 = {
    step: [naive.Row(name, chance) for name, chance in zip("abc", chances, strict=True)]
    for step, chances in enumerate(
        [(1.0, 0, 0), (0.3, 0.7, 0), (0.1, 0.8, 0.1), (0.1, 0.7, 0.2), (0, 0.9, 0.1), (0, 0, 1.0)], 1
    )
}
"""The paper's Fig. 1."""


def is_named(name: str) -> Callable[[naive.Row], bool]:
    return lambda row: row.name == name


def named(pattern: str, within: int, *, regex: str = "", **parameters: Any) -> naive.Query:
    """A query over names of one letter; by default its pattern without commas is the regular expression."""
    regex = regex or pattern.replace(",", "").replace(" ", "")
    letters = {letter: is_named(letter) for letter in re.findall("[a-z]", regex)}
    return naive.Query(regex, letters, pattern, within, **parameters)


def random_step(rng: random.Random, names: str = NAMES) -> list[naive.Row]:
    """Rows of tenths that sum to at most 1, sometimes several of one name, sometimes certain."""
    if rng.random() < 0.25:
        return [naive.Row(rng.choice(names), 1.0, rng.randint(0, 1))]
    left, rows = 10, []
    for _ in range(rng.randint(0, 3)):
        tenths = rng.randint(0, left)
        rows.append(naive.Row(rng.choice(names), tenths / 10, rng.randint(0, 1)))
        left -= tenths
    if rng.random() < 0.6 and left:
        rows.append(naive.Row(rng.choice(names), left / 10, rng.randint(0, 1)))
    return rows


def dense_stream(rng: random.Random, length: int, names: str = NAMES) -> dict[int, list[naive.Row]]:
    """Consecutive steps in which everything may happen, with probabilities of all digits."""
    found = {}
    for step in range(length):
        parts = [max(rng.random(), 0.001) ** 2 for _ in range(len(names) + 1)]
        found[step] = [naive.Row(name, part / sum(parts)) for name, part in zip(names, parts, strict=False)]
        # The last step waits otherwise.
        found[step].append(naive.Row("z", 1 - sum(row.probability for row in found[step])))
    return found


def random_stream(rng: random.Random, longest: int = 7, names: str = NAMES) -> dict[int, list[naive.Row]]:
    """Consecutive steps with now and then one that is missing; steps without rows are left out."""
    step, found = rng.randint(-3, 3), {}
    for _ in range(rng.randint(1, longest)):
        step += 1 if rng.random() < 0.95 else rng.randint(2, 3)
        if rows := random_step(rng, names):
            found[step] = rows
    return found


WRITTEN = {"w": "_", "n": "!b", "m": "NOT(a, c)"}
"""Letters of regular expressions that are more than a name in the language."""
OTHERS: dict[str, Callable[[naive.Row], bool]] = {
    "w": lambda row: True,
    "n": lambda row: row.name != "b",
    "m": lambda row: row.name not in "ac",
}


def random_pattern(rng: random.Random, letters: str, depth: int = 2) -> tuple[str, str]:
    """A pattern as (text of the language, regular expression), both in parentheses where needed."""
    if depth == 0 or rng.random() < 0.25:
        letter = rng.choice(letters)
        return WRITTEN.get(letter, letter), letter
    kind = rng.random()
    parts = [random_pattern(rng, letters, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
    if kind < 0.45:
        return f"({', '.join(text for text, _ in parts)})", f"(?:{''.join(regex for _, regex in parts)})"
    if kind < 0.6:
        return f"({' | '.join(text for text, _ in parts)})", f"(?:{'|'.join(regex for _, regex in parts)})"
    if kind < 0.7:
        (one, first), (other, second) = parts[:2]
        return f"({one} & {other})", f"(?:{first}{second}|{second}{first})"
    text, regex = parts[0]
    low = rng.randint(0, 2)
    high = max(1, low + rng.randint(0, 1))
    forms = ["+", "+", "*", "?", f"{{{low},{high}}}", f"{{{low},}}", f"{{{high}}}"]
    form = rng.choice(forms)
    written = f"[{high}]" if form == f"{{{high}}}" and rng.random() < 0.5 else form
    return f"({text}){written}", f"(?:{regex}){form}"


def random_query(rng: random.Random) -> naive.Query:
    """A query over names, or over names with predicates."""
    letters: dict[str, Callable[[naive.Row], bool]] = {name: is_named(name) for name in NAMES}
    defined: dict[str, str] = {}
    if rng.random() < 0.3:
        limit = rng.randint(0, 1)
        letters["d"] = lambda row: row.value == limit
        letters["e"] = lambda row: row.name in "ab"
        defined = {"d": f"v = {limit}", "e": "name IN ('a', 'b')"}
    pattern, regex = random_pattern(rng, "".join(letters))
    if rng.random() < 0.35:
        # What need not be stored stands between two names.
        ends = [rng.choice(NAMES) for _ in range(2)]
        inner = random_pattern(rng, "".join([*letters, *OTHERS, *OTHERS]))
        pattern, regex = f"{ends[0]}, {inner[0]}, {ends[1]}", f"{ends[0]}{inner[1]}{ends[1]}"
        letters |= OTHERS
    used = set(re.findall("[a-z]", regex))
    definitions = ", ".join(f"{letter} AS {text}" for letter, text in defined.items() if letter in used)
    return naive.Query(
        regex=regex,
        letters={letter: takes for letter, takes in letters.items() if letter in used},
        pattern=pattern,
        within=rng.randint(1, 5),
        overlap=rng.choice(["single", "complete"]),
        threshold=rng.choice([0.0, 0.0, 0.02, 0.1, 0.25, 0.5, 1.0]),
        clauses=f"DEFINE {definitions}" if definitions else "",
        others=frozenset(used & OTHERS.keys()),
    )


ATTRIBUTES = {"v": "bigint"}
Streams = Mapping[int, naive.Stream]
"""Code of the key to its stream."""


def engine_of(query: naive.Query) -> Groups:
    return Groups(
        compile_query(
            parse(query.text),
            Scope(attributes=ATTRIBUTES),
            overlap=query.overlap,
            threshold=query.threshold,
            within=query.within,
        )
    )


@dataclass(frozen=True)
class Arrays:
    """Rows as the kernels take them."""

    keys: NDArray[np.int64]
    steps: NDArray[np.int64]
    classes: NDArray[np.int32]
    probabilities: NDArray[np.float64]

    def take(self, rows: Any) -> Arrays:
        return Arrays(self.keys[rows], self.steps[rows], self.classes[rows], self.probabilities[rows])

    def parts(self) -> tuple[Any, ...]:
        return self.keys, self.steps, self.classes, self.probabilities


def arrays_of(engine: Groups, streams: Streams) -> Arrays:
    """All rows, by key and step."""
    rows = [
        (key, step, row) for key in sorted(streams) for step in sorted(streams[key]) for row in streams[key][step]
    ]  # fmt: skip
    words = sorted({row.name for _, _, row in rows})
    names = np.array([words.index(row.name) for _, _, row in rows], np.int64)
    values = np.array([row.value for _, _, row in rows], np.int64)
    columns = {"v": Column(values, np.ones(len(rows), np.bool_), "bigint")}
    return Arrays(
        np.array([key for key, _, _ in rows], np.int64),
        np.array([step for _, step, _ in rows], np.int64),
        engine.query.alphabet.classes(named_events(names, words, columns)),
        np.array([row.probability for _, _, row in rows], np.float64),
    )


def tuples(rows: GroupRows) -> list[tuple[int, int, int, int, float, bool]]:
    """The rows of an answer."""
    columns = (rows.key, rows.t_start, rows.t_first, rows.t_end, rows.probability, rows.final)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def answer(query: naive.Query, stream: naive.Stream) -> list[naive.Group]:
    """The kernels' groups of one key."""
    engine = engine_of(query)
    rows = engine.answer(*arrays_of(engine, {7: stream}).parts())
    assert set(rows.key.tolist()) <= {7}
    return [naive.Group(*row[1:]) for row in tuples(rows)]


def cliques_by_ends(intervals: list[naive.Interval]) -> list[list[naive.Interval]]:
    """Maximal sets of overlapping intervals as SPEC writes them: by distinct ends."""
    found: list[list[naive.Interval]] = []
    before = None
    for end in sorted({e for _, e in intervals}):
        if any((before is None or before < s) and s <= end for s, _ in intervals):
            found.append([(s, e) for s, e in intervals if s <= end <= e])
        before = end
    return found
