"""The kernels of funnels and paths on one core, and `windowFunnel` of ClickHouse on the same events.

    python benchmarks/kernel_funnels.py [--quick] [--chdb PYTHON]

- **steps**: 12 steps over 10 million events of 100,000 partitions with 20 names, 64 over 1 and 10 million with 80, in
  every mode: the kernel alone, and from columns of events to counts.
- **paths**: around one of 500 names, and of whole partitions, from columns of events to rows.
- **chdb**: with the path of a Python that has the package `chdb`: levels of `windowFunnel` beside the kernel's, which
  has one microsecond more of a window, as `windowFunnel` takes its end in. How many partitions agree, in each mode that
  both have: where the first step may recur; where it begins each partition and never comes again; and where the events
  of each name stand side by side, so that modes mean the same and all must agree. No two events have one time, so
  `strict_increase` says what the default does.

Three of four events have the name that follows the one before, the others any name. Seconds are of CPU time, the least
of three; compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from patternlake.udfs.funnels.kernels.chains import MODES, furthest_chains
from patternlake.udfs.funnels.query import FunnelQuery, compile_query
from patternlake.udfs.funnels.request import FunnelRequest
from patternlake.udfs.funnels.result import merge as merge_funnels
from patternlake.udfs.funnels.task import parts_of_partitions as funnel_parts
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.tree import Extent
from patternlake.udfs.paths.request import PathsRequest
from patternlake.udfs.paths.result import merge as merge_paths
from patternlake.udfs.paths.task import parts_of_partitions as path_parts

SEED = 49
EVENTS_OF_A_PARTITION = 100
PORTION = 200_000
IN_CHDB = """
import json, sys, time, chdb
file, within, steps, modes = sys.argv[1], *json.loads(sys.argv[2])
conditions = ", ".join(f"name = {step}" for step in range(steps))
found = {}
for extra in modes:
    query = (
        f"SELECT windowFunnel({within}{extra})(time, {conditions}) AS level FROM "
        f"file('{file}', Parquet, 'key UInt32, time UInt64, name UInt8') GROUP BY key ORDER BY key "
        "SETTINGS max_threads = 1"
    )
    begun = time.process_time()
    levels = chdb.query(query, "ArrowTable")["level"].to_pylist()
    found[extra] = [time.process_time() - begun, levels]
print(json.dumps(found))
"""
CHDB_MODES = {
    "": "any_order_between",
    ", 'strict_increase'": "any_order_between",
    ", 'strict_order'": "strict_order",
    ", 'strict_deduplication'": "once",
    ", 'strict_deduplication', 'strict_order'": "strict",
}
"""Further arguments of `windowFunnel`, and the mode of ours beside them."""


@dataclass(frozen=True)
class Stream:
    """Events, those of each key in the order of time, and a window that ends some chains."""

    keys: np.ndarray
    times: np.ndarray
    names: np.ndarray
    vocabulary: int
    within: int

    def by_key(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places in the order of keys, ends of partitions and the steps that events fit."""
        order = np.argsort(self.keys, kind="stable")
        offsets = np.searchsorted(self.keys[order], np.arange(self.keys.max() + 2)).astype(np.int64)
        return order, offsets, self.names[order]

    def portions(self) -> Iterator[dict[str, pa.Array]]:
        """Columns of events as tasks get them, some partitions at a time."""
        words = pa.array([f"n{number:03}" for number in range(self.vocabulary)])
        portion = self.keys * EVENTS_OF_A_PARTITION // PORTION
        order = np.argsort(portion, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(portion[order])) + 1):
            keys = pa.array(self.keys[rows]).cast(pa.string())
            yield {
                "part": pa.ListArray.from_arrays(pa.array(np.arange(len(rows) + 1, dtype=np.int32)), keys),
                "position": pa.array(rows),
                "time": pa.array(self.times[rows]).cast(pa.timestamp("us", "UTC")),
                "name": words.take(pa.array(self.names[rows])),
                "key": keys,
            }


def stream(events: int, vocabulary: int, *, once: bool = False) -> Stream:
    """A stream; `once`: the first name begins each partition and never comes again."""
    rng = np.random.default_rng(SEED)
    keys = rng.integers(0, events // EVENTS_OF_A_PARTITION, events)
    order = np.argsort(keys, kind="stable")
    begins = np.searchsorted(keys[order], keys[order])
    rank = np.arange(events) - begins
    walk = np.where(rng.random(events) < 0.75, rank % vocabulary, rng.integers(0, vocabulary, events))
    if once:
        walk = np.where(rank == 0, 0, np.where(walk == 0, vocabulary - 1, walk))
    names = np.empty(events, np.int64)
    names[order] = walk
    times = np.cumsum(rng.integers(1, 2000, events))
    return Stream(keys, times, names, vocabulary, int(times[-1] // 4))


def stream_of_runs(partitions: int, steps: int, vocabulary: int) -> Stream:
    """A stream in which the events of a key and a name stand side by side; names mostly come in order."""
    rng = np.random.default_rng(SEED)
    names = np.arange(vocabulary)
    # Where each name stands in its key: a step near its number, any other name anywhere.
    places = np.where(
        names < steps,
        names + rng.normal(0, 0.4, (partitions, vocabulary)),
        rng.uniform(0, steps, (partitions, vocabulary)),
    )
    counts = rng.choice(3, (partitions, vocabulary), p=(0.03, 0.9, 0.07))
    counts[:, steps:] *= rng.random((partitions, vocabulary - steps)) < 0.03
    order = np.argsort(places, axis=1)
    counts = np.take_along_axis(counts, order, 1).ravel()
    keys = np.repeat(np.repeat(np.arange(partitions), vocabulary), counts)
    times = np.cumsum(rng.integers(1, 2000, len(keys)))
    return Stream(keys, times, np.repeat(order.ravel(), counts), vocabulary, steps * 1000)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU time of some work, the least of the repeats."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def query_of(steps: int, within: int) -> FunnelQuery:
    made = compile_query(parse(" ; ".join(f"n{number:03}" for number in range(steps))))
    return FunnelQuery(made.steps, Extent(within, counted=False), made.partition)


def measure_steps(events: int, steps: int, vocabulary: int) -> None:
    given = stream(events, vocabulary)
    within = given.within
    order, offsets, names = given.by_key()
    table = np.zeros(vocabulary, np.uint64)
    table[:steps] = np.uint64(1) << np.arange(steps, dtype=np.uint64)
    fits, spans = table[names], given.times[order]
    portions = list(given.portions())
    for mode, number in MODES.items():
        request = FunnelRequest(query_of(steps, within), {}, mode)

        def answer(request: FunnelRequest = request) -> list[int]:
            parts = pa.concat_tables([funnel_parts(request, rows) for rows in portions])
            reached = merge_funnels(request, parts)["reached"]
            return reached.to_pylist()  # type: ignore[no-any-return]

        def kernel(number: int = number) -> object:
            return furthest_chains(fits, spans, offsets, steps, within, number)

        reached = answer()
        print(
            f"{steps} steps, {events:,} events, {mode}: kernel {seconds(kernel):.3f} s, from columns "
            f"{seconds(answer, 1):.1f} s; {reached[0]:,} enter, {reached[-1]:,} reach the last step"
        )


def measure_paths(events: int, vocabulary: int) -> None:
    given = stream(events, vocabulary)
    portions = list(given.portions())
    alphabet = tuple(f"n{number:03}" for number in range(20))
    for around in ("n000", None):
        request = PathsRequest(around, 2, 3, None, True, None, alphabet, 100)
        merge_paths(request, path_parts(request, portions[0]))

        def answer(request: PathsRequest = request) -> object:
            return merge_paths(request, pa.concat_tables([path_parts(request, rows) for rows in portions]))

        print(f"paths around {around}, {events:,} events, {vocabulary} names: from columns {seconds(answer, 1):.1f} s")


def beside_chdb(python: str, events: int, steps: int, vocabulary: int) -> None:
    streams = {
        "first step anywhere": stream(events, vocabulary),
        "first step once": stream(events, vocabulary, once=True),
        "each name side by side": stream_of_runs(events // EVENTS_OF_A_PARTITION, steps, vocabulary),
    }
    for shape, given in streams.items():
        order, offsets, names = given.by_key()
        fits = np.where(names < steps, np.uint64(1) << np.minimum(names, 63).astype(np.uint64), np.uint64(0))
        columns = {"key": given.keys.astype(np.uint32), "time": given.times.astype(np.uint64)}
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/events.parquet"
            pq.write_table(pa.table({**columns, "name": given.names.astype(np.uint8)}), file)
            asked = json.dumps([given.within, steps, list(CHDB_MODES)])
            outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            done = subprocess.run(
                [python, "-c", IN_CHDB, file, asked], capture_output=True, text=True, check=True, env=outside
            )
        for extra, (taken, levels) in json.loads(done.stdout).items():
            mode = CHDB_MODES[extra]
            mine = furthest_chains(fits, given.times[order], offsets, steps, given.within + 1, MODES[mode]).reached
            theirs = np.array(levels)
            print(
                f"{steps} steps, {len(given.keys):,} events, {shape}, {mode}: windowFunnel(window{extra}) "
                f"{taken:.1f} s; of {len(mine):,} partitions {np.sum(mine == theirs):,} agree, windowFunnel goes "
                f"further in {np.sum(theirs > mine):,}, less far in {np.sum(theirs < mine):,}; levels "
                f"{np.bincount(mine, minlength=steps + 1).tolist()}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--chdb", metavar="PYTHON")
    given = parser.parse_args()
    scale = 100 if given.quick else 1
    if given.chdb:
        beside_chdb(given.chdb, 10_000_000 // scale, 12, 20)
    measure_steps(10_000_000 // scale, 12, 20)
    measure_steps(1_000_000 // scale, 64, 80)
    measure_steps(10_000_000 // scale, 64, 80)
    measure_paths(10_000_000 // scale, 500)


if __name__ == "__main__":
    sys.exit(main())
