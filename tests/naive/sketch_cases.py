"""Random patterns and streams for the tests of matching, and their way into the kernels."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from naive import sketch_matching as naive

from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.sketch.events import TokenEvents
from patternlake.udfs.sketch.kernels.hits import Hits, Matches
from patternlake.udfs.sketch.query import SketchPattern, compile_pattern

POLICIES = [
    ("strict", "past_last"),
    ("strict", "next"),
    ("skip_till_next", "past_last"),
    ("skip_till_next", "next"),
    ("skip_till_any", "next"),
]


def compiled(text: str, *, verify: bool = False) -> SketchPattern:
    return compile_pattern(parse(text), verify=verify, scope=Scope(attributes={"x": "double"}))


def random_pattern(
    rng: random.Random, *, names: str = "ABCD", negation: bool = True, conjunction: bool = True, window: bool = True
) -> naive.Pattern:
    terms: list[naive.Term] = []
    total = 0
    for _ in range(rng.choice([1, 2, 2, 2, 3])):
        term: list[naive.Block] = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            kind = rng.random()
            if kind < 0.2 and conjunction and total < 3:
                size = rng.choice([2, 2, 3])
                term.append(tuple((rng.choice(names),) for _ in range(size)))
                total += size
            elif kind < 0.4:
                term.append((tuple(rng.sample(names, 2)),))
                total += 1
            else:
                term.append(((rng.choice(names),),))
                total += 1
        terms.append(tuple(term))
        if total >= 4:
            break
    gaps = tuple(
        tuple(rng.sample(names, rng.choice([1, 2]))) if negation and rng.random() < 0.4 else ()
        for _ in range(len(terms) - 1)
    )
    within = (rng.randint(1, 9), rng.random() < 0.5) if window and rng.random() < 0.4 else None
    return naive.Pattern(tuple(terms), gaps, within)


def random_events(
    rng: random.Random, n: int, *, names: str = "ABCDE", several: bool = False, ordered: bool = True
) -> list[naive.Row]:
    """Events at positions 1, 2, …; times in milliseconds as microseconds."""
    rows = []
    time = 0
    for position in range(1, n + 1):
        time += rng.randint(0, 2)
        at = (time if ordered else rng.randint(0, 8)) * 1000
        held = frozenset(rng.sample(names, 2 if several and rng.random() < 0.4 else 1))
        rows.append(naive.Row(position, position, at, at, held, position, float(rng.randint(0, 3))))
    return rows


def leaves(rng: random.Random, events: Sequence[naive.Row], size: int, *, noise: float = 0.0) -> list[naive.Row]:
    """Nodes of `size` events; each name is falsely there with probability `noise`."""
    nodes = []
    for at in range(0, len(events), size):
        part = events[at : at + size]
        names = frozenset().union(*(event.names for event in part))
        names |= {name for name in "ABCD" if rng.random() < noise}
        times = [event.time_lo for event in part]
        nodes.append(naive.Row(part[0].lo, part[-1].hi, min(times), max(times), frozenset(names)))
    return nodes


def hits_of(pattern: SketchPattern, nodes: Sequence[naive.Row], *, fp: float = 0.0) -> Hits:
    """Nodes that hold some name of the pattern."""
    held = [node for node in nodes if node.names & set(pattern.names)]
    present = np.array([[name in node.names for name in pattern.names] for node in held], np.bool_)
    present = present.reshape(len(held), len(pattern.names))
    return Hits(
        pos_lo=np.array([node.lo for node in held], np.int64),
        pos_hi=np.array([node.hi for node in held], np.int64),
        time_lo=np.array([node.time_lo for node in held], np.int64),
        time_hi=np.array([node.time_hi for node in held], np.int64),
        level=np.zeros(len(held), np.int8),
        present=present,
        fp=np.where(present, fp, 0.0),
    )


def events_of(pattern: SketchPattern, rows: Sequence[naive.Row], offsets: Sequence[int] | None = None) -> TokenEvents:
    n = len(rows)
    present = np.array([[name in row.names for name in pattern.names] for row in rows], np.bool_)
    names, vocabulary = [min(row.names) for row in rows], sorted({min(row.names) for row in rows})
    return TokenEvents(
        positions=np.array([row.lo for row in rows], np.int64),
        times=np.array([row.time_lo for row in rows], np.int64),
        names=np.array([vocabulary.index(name) for name in names], np.int64),
        vocabulary=vocabulary,
        keys=np.zeros(n, np.int64),
        asked=pattern.names,
        present=present.reshape(n, len(pattern.names)),
        columns={
            "x": Column(
                np.array([row.x or 0.0 for row in rows], np.float64),
                np.array([row.x is not None for row in rows], np.bool_),
                "double",
            ),
        },
        offsets=None if offsets is None else np.array(offsets, np.int64),
    )


def random_conditions(rng: random.Random, pattern: naive.Pattern) -> naive.Pattern:
    """The pattern with one to three conjuncts over attribute x."""
    found: list[naive.Condition] = []
    slots = pattern.slots
    for _ in range(rng.randint(1, 3)):
        a, b = rng.randrange(len(slots)), rng.randrange(len(slots))
        ka, kb = rng.randrange(len(slots[a])), rng.randrange(len(slots[b]))
        sign, test = rng.choice([("<", operator.lt), ("<=", operator.le), ("=", operator.eq), ("<>", operator.ne)])
        taken = tuple((slot, k) for slot, k in ((a, ka), (b, kb)) if len(slots[slot]) > 1)
        gap = rng.randrange(len(pattern.gaps)) if pattern.gaps and rng.random() < 0.3 else None
        if gap is not None and pattern.gaps[gap]:
            k = rng.randrange(len(pattern.gaps[gap]))
            text = f"s{a}a{ka}.x {sign} n{gap}b{k}.x"
            found.append(naive.Condition((a,), known(test), text, taken[:1] if len(slots[a]) > 1 else (), gap, k))
        elif rng.random() < 0.2:
            constant = float(rng.randint(0, 3))
            taken = taken[:1] if len(slots[a]) > 1 else ()
            found.append(naive.Condition((a,), known(test, constant), f"s{a}a{ka}.x {sign} {constant}", taken))
        elif (a, ka) != (b, kb):
            found.append(naive.Condition((a, b), known(test), f"s{a}a{ka}.x {sign} s{b}a{kb}.x", taken))
    if rng.random() < 0.2 and len(slots) > 1:
        text = "[x]"
        for slot in range(len(slots) - 1):
            found.append(naive.Condition((slot, slot + 1), known(operator.eq), text))
            text = "TRUE"
        for gap, names in enumerate(pattern.gaps):
            found += [naive.Condition((0,), known(operator.eq), "TRUE", (), gap, k) for k in range(len(names))]
    return replace(pattern, conditions=tuple(found))


def known(test: Callable[[Any, Any], bool], *constant: float) -> Callable[..., bool]:
    """A comparison in which NULL never holds."""
    return lambda *values: None not in values and test(*values, *constant)


def by_key(
    rng: random.Random, events: Sequence[naive.Row], keys: int
) -> tuple[list[naive.Row], list[int], list[list[naive.Row]]]:
    """Events dealt to keys: in (key, position) order, the keys' offsets, and each key's events with their numbers."""
    dealt: list[list[naive.Row]] = [[] for _ in range(keys)]
    for event in events:
        key = rng.randrange(keys)
        dealt[key].append(replace(event, ordinal=len(dealt[key])))
    offsets = [0]
    for part in dealt:
        offsets.append(offsets[-1] + len(part))
    return [event for part in dealt for event in part], offsets, dealt


def rows_of(matches: Matches) -> list[tuple[int, ...]]:
    """First positions of the steps of each match, in the order of the answer."""
    return [tuple(row) for row in matches.step_lo.tolist()]


def naive_rows(rows: Sequence[naive.Row], found: Sequence[naive.Chosen]) -> list[tuple[int, ...]]:
    return [tuple(rows[i].lo for i, _ in match) for match in found]


def naive_operands(pattern: naive.Pattern, found: Sequence[naive.Chosen]) -> list[tuple[int, ...]]:
    """For each step, its place among all alternatives of the pattern."""
    sizes = [len(slot) for slot in pattern.slots]
    before = [sum(sizes[:place]) for place in range(len(sizes))]
    return [tuple(k + first for (_, k), first in zip(match, before, strict=True)) for match in found]


def operands_of(matches: Matches) -> list[tuple[int, ...]]:
    return [tuple(row) for row in matches.operand.tolist()]
