"""Build rate of the sketch kernels on one core, beside the thesis' rates and a plain Python build.

    python benchmarks/kernel_sketch_build.py [--quick]

The thesis (5.2) builds its tree over four texts, D1 to D4, with M = 2 GB, C = 100, fpq = 0.0001 and s = 3. The texts
are not published; their twins here have the same number of events and the same vocabulary, names drawn from Zipf's law
(exponent 1) with a fixed seed. Timed is the whole way from an Arrow string array, segment by segment: dictionary
encoding, hashing each segment's distinct names, all nodes of all levels. Not timed: making the data, compiling
(one small segment is built first), fitting Heaps' law (printed apart) and writing to disk.

The ratio to the thesis compares other hardware and another language (2 vCPUs at 2.7 GHz); the ratio to plain Python is
measured here, same run, same plan, on the first events of D1.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Iterator

import mmh3
import numpy as np
import pyarrow as pa

from patternlake.udfs.sketch.kernels.build import LevelNodes, build_segment
from patternlake.udfs.sketch.sizing.heaps import fit_heaps
from patternlake.udfs.sketch.sizing.planning import plan
from patternlake.udfs.sketch.sizing.sizes import Sizing
from patternlake.udfs.sketch.tokens import tokenise

DATASETS = {  # events, vocabulary, the thesis' seconds (Tables 5.3 and 5.4)
    "D1": (511_178, 30_439, 4.58),
    "D2": (2_489_295, 38_793, 11.09),
    "D3": (5_489_709, 52_451, 51.04),
    "D4": (1_705_977, 87_130, 14.78),
}
SAMPLE = 200_000
NAIVE_EVENTS = 25_600
KEYS = 4_000
SEED = 20210
MASK = 2**64 - 1


def zipf_codes(events: int, vocabulary: int) -> np.ndarray:
    weights = np.cumsum(1.0 / np.arange(1, vocabulary + 1))
    return np.searchsorted(weights, np.random.default_rng(SEED).random(events) * weights[-1])


def names(codes: np.ndarray, prefix: str) -> pa.Array:
    words = pa.array([f"{prefix}{number}" for number in range(int(codes.max()) + 1)])
    return words.take(pa.array(codes))


def segments(sizing: Sizing, column: pa.Array, keys: pa.Array | None, times: np.ndarray) -> Iterator[list[LevelNodes]]:
    for begin in range(0, len(column), sizing.segment_events):
        count = min(sizing.segment_events, len(column) - begin)
        part = None if keys is None else keys.slice(begin, count)
        tokens = tokenise([column.slice(begin, count)], part, seed=0)
        positions = np.arange(begin + 1, begin + count + 1, dtype=np.int64)
        yield build_segment(sizing, begin + 1, positions, times[begin : begin + count], tokens.codes, tokens.hashes)


def time_build(sizing: Sizing, column: pa.Array, keys: pa.Array | None, repeats: int) -> tuple[float, float, int, int]:
    """Median seconds, least seconds, bytes of filters, nodes."""
    times = np.arange(len(column), dtype=np.int64) * 1_000_000
    seconds, size, count = [], 0, 0
    for _ in range(repeats):
        size = count = 0
        start = time.perf_counter()
        for levels in segments(sizing, column, keys, times):
            size += sum(level.bits.nbytes for level in levels)
            count += sum(len(level) for level in levels)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds), size, count


def naive_seconds(sizing: Sizing, events: list[str]) -> float:
    """Plain Python, one event after the other: names hashed once each, filters as bytearrays and ints."""

    def fill(filled: bytearray, tokens: set[str], bits: int, hashes: int) -> None:
        for token in tokens:
            at, step = known[token]
            for _ in range(hashes):
                place = (at >> 32) * bits >> 32
                filled[place >> 3] |= 1 << (place & 7)
                at = (at + step) & MASK
                step = (step * 6364136223846793005 + 1442695040888963407) & MASK

    start = time.perf_counter()
    known: dict[str, tuple[int, int]] = {}
    level: list[tuple[set[str], bytearray]] = []
    size = sizing.levels[0]
    for begin in range(0, len(events), sizing.leaf_events):
        tokens = set()
        for name in events[begin : begin + sizing.leaf_events]:
            if name not in known:
                # Five zeros: a plain token of the first expression.
                known[name] = mmh3.hash64(bytes(5) + name.encode(), 0, x64arch=True, signed=False)
            tokens.add(name)
        filled = bytearray(size.bits // 8)
        fill(filled, tokens, size.bits, size.hashes)
        level.append((tokens, filled))
    for size in sizing.levels[1:]:
        parents = []
        for first in range(0, len(level), sizing.fanout):
            children = level[first : first + sizing.fanout]
            tokens = set().union(*(child[0] for child in children))
            if sizing.structure == "uniform":
                union = 0
                for child in children:
                    union |= int.from_bytes(child[1], "little")
                filled = bytearray(union.to_bytes(size.bits // 8, "little"))
            else:
                filled = bytearray(size.bits // 8)
                fill(filled, tokens, size.bits, size.hashes)
            parents.append((tokens, filled))
        level = parents
    return time.perf_counter() - start


def plan_sizes(structure: str, column: pa.Array, keys: pa.Array | None) -> tuple[Sizing, float]:
    """The plan, and the seconds that fitting Heaps' law took; `uniform` takes the thesis' K and β."""
    start = time.perf_counter()
    heaps = (60.0, 0.5)
    if structure == "leveled":
        sample = tokenise([column.slice(0, SAMPLE)], None if keys is None else keys.slice(0, SAMPLE), seed=0)
        heaps = fit_heaps(sample.codes)
    sizing = plan(
        structure,
        expected_events=len(column),
        memory=2 * 10**9,
        leaf_events=100,
        fpq=1e-4,
        query_length=3,
        heaps_k=heaps[0],
        heaps_beta=heaps[1],
        expansion=1 if keys is None else 2,
    )
    return sizing, time.perf_counter() - start


def measure(data: str, structure: str, column: pa.Array, keys: pa.Array | None, repeats: int) -> None:
    """Print one row, and beside D1's rows the rate of plain Python."""
    sizing, fit = plan_sizes(structure, column, keys)
    some = None if keys is None else keys.slice(0, 1000)
    for _ in segments(sizing, column.slice(0, 1000), some, np.arange(1000, dtype=np.int64)):
        pass
    median, least, size, nodes = time_build(sizing, column, keys, repeats)
    rate = len(column) / median
    python = ""
    if data == "D1" and keys is None:
        alone = NAIVE_EVENTS / naive_seconds(sizing, column.slice(0, NAIVE_EVENTS).to_pylist())
        python = f"{rate / alone:.0f}"
    thesis = "" if keys is not None else f"{DATASETS[data][2] / median:.1f}"
    print(
        f"{data:6}{structure if keys is None else structure + '+keys':14}{thesis:>9}{python:>9}"
        f"{rate / 1e6:8.2f} [{len(column) / least / 1e6:5.2f}]{median:9.3f}{sizing.height:8}"
        f"{size / 1e6:12.1f}{size / len(column):13.1f}{nodes:11,}{fit:8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="D1 only")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    repeats = 5
    print(f"one core, median of {repeats} (best in brackets); compiled before the clock starts")
    print(
        f"{'data':6}{'structure':14}{'x thesis':>9}{'x Python':>9}{'M events/s':>16}{'seconds':>9}{'levels':>8}"
        f"{'filters MB':>12}{'bytes/event':>13}{'nodes':>11}{'fit s':>8}"
    )
    for data, (events, vocabulary, _) in DATASETS.items():
        if quick and data != "D1":
            break
        column = names(zipf_codes(events, vocabulary), "w")
        measure(data, "leveled", column, None, repeats)
        measure(data, "uniform", column, None, repeats)
        if data == "D1":
            keys = names(np.random.default_rng(SEED).integers(0, KEYS, events), "key")
            measure(data, "leveled", column, keys, repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process, all input included: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
