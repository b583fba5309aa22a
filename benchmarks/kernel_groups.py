"""The kernels of groups on one core: the paper's generator and grid, beside the enumeration of possible worlds.

    python benchmarks/kernel_groups.py [--quick]

- **stream**: Sugiura et al. 2015, section 6: a true name from {a, b, c, d} in every step; each of the three others has
  a probability drawn evenly from 0 to 0.1, the true one the rest. A step counts as one event, as in the paper.
- **grid**: `a, b+, c` for every θ and w of the paper's Table 1 and both overlaps, in million events a second.
- **length**: time per event from 10 thousand to 1 million events: it should stay flat.
- **window**: time per event at θ = 0, where nothing is pruned and w tells.
- **keys**: the same events as one key, and dealt out over a thousand.
- **runs**: the same events in a hundred runs, with the state saved and restored between them.
- **naive**: the same groups with their probabilities from all possible worlds (numpy; the paper's baseline), for as
  many groups as take a second; where a group has too many worlds its column is empty.
- **exactness**: the greatest difference from the worlds over those groups.

Seconds are the least of the repeats; compiled, and the automaton built, before the clock starts. The time is from
name codes and probabilities to rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from named_events import named_events

from patternlake.udfs.groups.kernels.groups import GroupRows, Groups, joined
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.groups.state import from_bytes, no_state
from patternlake.udfs.language.query.parser import parse

SEED = 2015
NAMES = ["a", "b", "c", "d"]
PATTERN = "a, b+, c"
THRESHOLDS = [0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1]
WINDOWS = [5, 10, 15, 20, 25, 50]
OVERLAPS = ["single", "complete"]
MOST_WORLDS = 4**11


@dataclass(frozen=True)
class Stream:
    """Four rows for each step."""

    keys: np.ndarray
    steps: np.ndarray
    names: np.ndarray
    chances: np.ndarray

    def take(self, low: int, high: int) -> Stream:
        return Stream(*(column[4 * low : 4 * high] for column in vars(self).values()))


def paper(n: int, keys: int = 1) -> Stream:
    rng = np.random.default_rng(SEED)
    chances = rng.uniform(0, 0.1, (n, 4))
    true = rng.integers(0, 4, n)
    chances[np.arange(n), true] = 0
    chances[np.arange(n), true] = 1 - chances.sum(axis=1)
    key = np.arange(n) * keys // n
    step = np.arange(n) - np.searchsorted(key, key)
    return Stream(np.repeat(key, 4), np.repeat(step, 4), np.tile(np.arange(4), n), chances.ravel())


def engine(overlap: str, threshold: float, within: int) -> Groups:
    built = Groups(compile_query(parse(PATTERN), overlap=overlap, threshold=threshold, within=within))
    answered(built, paper(100))
    return built


def answered(groups: Groups, stream: Stream) -> GroupRows:
    classes = groups.query.alphabet.classes(named_events(stream.names, NAMES))
    return groups.answer(stream.keys, stream.steps, classes, stream.chances)


def in_runs(groups: Groups, stream: Stream, runs: int) -> GroupRows:
    """The answer after many runs, with the state as bytes between them."""
    state, closed = no_state(), []
    n = len(stream.steps) // 4
    for run in range(runs):
        part = stream.take(n * run // runs, n * (run + 1) // runs)
        classes = groups.query.alphabet.classes(named_events(part.names, NAMES))
        state = from_bytes(state.keys, state.to_bytes())
        state, rows = groups.advance(state, part.keys, part.steps, classes, part.chances)
        closed.append(rows)
    return joined(*closed, groups.tail(state))


def best(work: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def grid(n: int, repeats: int) -> None:
    stream = paper(n)
    for overlap in OVERLAPS:
        print(f"\n{'grid ' + overlap:>14}, M events/s, {n:,} events")
        print(f"{'theta':>14}" + "".join(f"{f'w={within}':>9}" for within in WINDOWS))
        for threshold in THRESHOLDS:
            rates = []
            for within in WINDOWS:
                asked = engine(overlap, threshold, within)
                rates.append(n / best(lambda asked=asked: answered(asked, stream), repeats) / 1e6)
            print(f"{threshold:>14}" + "".join(f"{rate:>9.2f}" for rate in rates), flush=True)


def length(sizes: list[int], repeats: int) -> None:
    print(f"\n{'length':>14}" + "".join(f"{overlap + ' ns/event':>20}" for overlap in OVERLAPS))
    for n in sizes:
        stream, times = paper(n), []
        for overlap in OVERLAPS:
            asked = engine(overlap, 0.01, 15)
            times.append(best(lambda asked=asked, stream=stream: answered(asked, stream), repeats) / n * 1e9)
        print(f"{n:>14,}" + "".join(f"{one:>20.0f}" for one in times))


def window(n: int, sizes: list[int], repeats: int) -> None:
    print(f"\n{'window':>14}" + "".join(f"{overlap + ' ns/event':>20}" for overlap in OVERLAPS))
    stream = paper(n)
    for within in sizes:
        times = []
        for overlap in OVERLAPS:
            asked = engine(overlap, 0, within)
            times.append(best(lambda asked=asked: answered(asked, stream), repeats) / n * 1e9)
        print(f"{within:>14}" + "".join(f"{one:>20.0f}" for one in times), flush=True)


def keys_and_runs(n: int, repeats: int) -> None:
    print(f"\n{'ns/event':>14}" + "".join(f"{name:>14}" for name in ("one key", "1,000 keys", "100 runs", "state B")))
    one, many = paper(n), paper(n, 1000)
    for overlap in OVERLAPS:
        asked = engine(overlap, 0.01, 15)
        times = [
            best(lambda asked=asked: answered(asked, one), repeats),
            best(lambda asked=asked: answered(asked, many), repeats),
            best(lambda asked=asked: in_runs(asked, one, 100), repeats),
        ]
        whole, parts = answered(asked, one), in_runs(asked, one, 100)
        assert all(np.array_equal(getattr(whole, name), getattr(parts, name)) for name in vars(whole))
        classes = asked.query.alphabet.classes(named_events(one.names, NAMES))
        state, _ = asked.advance(no_state(), one.keys, one.steps, classes, one.chances)
        size = len(state.to_bytes()[0])
        print(f"{overlap:>14}" + "".join(f"{took / n * 1e9:>14.0f}" for took in times) + f"{size:>14,}")


def worlds_probability(chances: np.ndarray, first: int, last: int, anchor: int | None, within: int) -> float:
    """The probability of one group from all worlds of [first, last]: steps and names are places in `chances`."""
    size = last - first + 1
    worlds = np.array(list(product(range(4), repeat=size)), np.int8)
    weight = np.ones(len(worlds))
    for at in range(size):
        weight *= chances[first + at][worlds[:, at]]
    hit = np.zeros(len(worlds), np.bool_)
    for s in range(size):
        run = worlds[:, s] == 0
        for e in range(s + 1, min(size, s + within)):
            if e > s + 1 and (anchor is None or first + s <= anchor <= first + e):
                hit |= run & (worlds[:, e] == 2)
            run = run & (worlds[:, e] == 1)
    return float(weight[hit].sum())


def naive(n: int, windows: list[int]) -> None:
    head = ("naive events/s", "ours events/s", "x", "groups", "difference")
    print(f"\n{'naive':>14}" + "".join(f"{name:>16}" for name in head))
    stream = paper(n)
    chances = stream.chances.reshape(-1, 4)
    for overlap, within in product(OVERLAPS, windows):
        asked = engine(overlap, 0.01, within)
        ours = n / best(lambda asked=asked: answered(asked, stream), 3)
        rows = answered(asked, stream)
        done, difference = 0, 0.0
        start = time.perf_counter()
        for row in range(len(rows)):
            first, last = int(rows.t_start[row]), int(rows.t_end[row])
            if 4 ** (last - first + 1) > MOST_WORLDS or time.perf_counter() - start > 1:
                break
            anchor = None if overlap == "single" else int(rows.t_first[row])
            found = worlds_probability(chances, first, last, anchor, within)
            difference = max(difference, abs(found - rows.probability[row]))
            done = row + 1
        took = time.perf_counter() - start
        if not done:
            print(f"{f'{overlap} {within}':>14}{'too many worlds':>16}{ours:>16,.0f}")
            continue
        slow = (int(rows.t_end[done - 1]) + 1) / took
        numbers = f"{slow:>16,.0f}{ours:>16,.0f}{ours / slow:>16,.0f}{done:>16,}{difference:>16.1e}"
        print(f"{f'{overlap} {within}':>14}{numbers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    grid(10_000, 3)
    if not quick:
        grid(1_000_000, 1)
    length([10_000, 100_000] if quick else [10_000, 100_000, 1_000_000], 3)
    window(10_000 if quick else 100_000, [5, 10, 20, 40] if quick else [5, 10, 20, 40, 80, 160], 2)
    keys_and_runs(20_000 if quick else 1_000_000, 2)
    naive(10_000, [5, 10, 15])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of this process, all input included: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
