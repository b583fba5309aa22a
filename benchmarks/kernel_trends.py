"""The kernels of trends on one core: build, count and extraction, beside a pair graph.

    python benchmarks/kernel_trends.py [--quick]

- **stock**: `price > previous * 2.8` on prices drawn evenly from 5 to 15, one event a second, one window that holds
  all events, so that the answer grows with the square of the events as in the paper's Fig. 12.
- **scaling**: the same query in windows of 10,000 events, from 100 k to 10 M events: the build is a graph of every
  window, and its time per event shows whether it stays flat.
- **kiting**: `src = previous dest` on names of a quarter as many accounts as there are events, one window.
- **dense**: `price > previous` on a few evenly drawn prices in one window, where nearly all time goes into writing
  trends.
- **rising**: one window of rising prices, where 2^(n-2) trends are counted.
- **pairs**: the conventional graph, in which each event is compared with all before it (vectorised, a row at a time).

Seconds are the least of the repeats; compiled before the clock starts. Extraction writes every trend's positions and
drops them batch by batch; `Mtrends/s` counts it alone, after build and count.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import Vertices, vertices_of
from patternlake.udfs.trends.query import TrendQuery, compile_query

SEED = 2021
STOCK = "stock+ s[] WHERE s[i].price > s[i-1].price * 2.8"
KITING = "check+ c[] WHERE c[i].src = c[i-1].dest"
RISING = "stock+ s[] WHERE s[i].price > s[i-1].price"
WINDOW = 10_000


def question(text: str) -> TrendQuery:
    return compile_query(parse(text), Scope(attributes={"price": "double", "src": "string", "dest": "string"}))


def events(prices: np.ndarray) -> Events:
    n = len(prices)
    return Events(
        positions=np.arange(1, n + 1, dtype=np.int64),
        times=np.arange(n, dtype=np.int64) * 1_000_000,
        keys=np.zeros(n, np.int64),
        names=np.zeros(n, np.int64),
        vocabulary=["stock"],
        columns={"price": Column(prices, np.ones(n, np.bool_), "double")},
    )


def checks(n: int) -> Events:
    rng = np.random.default_rng(SEED)
    names = np.array([f"account {number}" for number in range(n)], object)
    known = np.ones(n, np.bool_)
    columns = {side: Column(names[rng.integers(0, n // 4, n)], known, "string") for side in ("src", "dest")}
    given = events(np.zeros(n))
    return replace(given, vocabulary=["check"], columns=columns)


def uniform(n: int) -> np.ndarray:
    return np.random.default_rng(SEED).uniform(5.0, 15.0, n)


def best(work: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def built(asked: TrendQuery, prices: np.ndarray) -> Trends:
    return Trends(asked, vertices_of(asked, events(prices)))


def listed(trends: Trends) -> tuple[int, int]:
    """Trends and positions written."""
    count = positions = 0
    for batch in trends.extract():
        count += len(batch)
        positions += len(trends.cells.position[batch.row])
    return count, positions


def pair_graph(prices: np.ndarray) -> int:
    edges = 0
    for at in range(1, len(prices)):
        edges += len(np.flatnonzero(prices[at] > prices[:at] * 2.8))
    return edges


def stock(sizes: list[int], repeats: int) -> None:
    head = ("build s", "count s", "extract s", "trends", "Mtrends/s", "answer/extract")
    print(f"{'stock':>10}" + "".join(f"{name:>15}" for name in head))
    asked = question(STOCK)
    for n in sizes:
        prices = uniform(n)
        build = best(lambda prices=prices: built(asked, prices), repeats)
        trends = built(asked, prices)
        count = best(trends.counts, 1)
        start = time.perf_counter()
        found, _ = listed(trends)
        extract = time.perf_counter() - start
        assert sum(trends.counts().trends) == found
        rate, ratio = found / extract / 1e6, (build + count) / extract
        print(f"{n:>10,}{build:>15.3f}{count:>15.4f}{extract:>15.3f}{found:>15,}{rate:>15.1f}{ratio:>15.3f}")


def kiting(sizes: list[int], repeats: int) -> None:
    head = ("vertices s", "graph s", "count s", "extract s", "trends", "longest")
    print(f"\n{'kiting':>10}" + "".join(f"{name:>13}" for name in head))
    asked = question(KITING)
    for n in sizes:
        given = checks(n)
        first = best(lambda given=given: vertices_of(asked, given), repeats)
        vertices = vertices_of(asked, given)
        second = best(lambda vertices=vertices: Trends(asked, vertices), repeats)
        trends = Trends(asked, vertices)
        count = best(trends.counts, 1)
        start = time.perf_counter()
        found, _ = listed(trends)
        extract = time.perf_counter() - start
        longest = int(trends.counts().longest.max())
        print(f"{n:>10,}{first:>13.3f}{second:>13.3f}{count:>13.4f}{extract:>13.3f}{found:>13,}{longest:>13}")


def dense(sizes: list[int]) -> None:
    head = ("trends", "mean length", "Mtrends/s")
    print(f"\n{'dense':>10}" + "".join(f"{name:>14}" for name in head))
    asked = question(RISING)
    for n in sizes:
        trends = built(asked, uniform(n))
        start = time.perf_counter()
        found, positions = listed(trends)
        rate = found / (time.perf_counter() - start) / 1e6
        print(f"{n:>10,}{found:>14,}{positions / found:>14.1f}{rate:>14.1f}")


def scaling(sizes: list[int], repeats: int) -> None:
    print(f"\n{'scaling':>12}{'vertices s':>12}{'graph s':>10}{'ns/event':>10}")
    asked = question(f"{STOCK} WITHIN {WINDOW} EVENTS")
    for n in sizes:
        given = events(uniform(n))
        first = best(lambda given=given: vertices_of(asked, given), repeats)
        vertices: Vertices = vertices_of(asked, given)
        second = best(lambda vertices=vertices: Trends(asked, vertices), repeats)
        print(f"{n:>12,}{first:>12.3f}{second:>10.3f}{(first + second) / n * 1e9:>10.0f}")


def rising(sizes: list[int]) -> None:
    print(f"\n{'rising':>10}{'build s':>10}{'count s':>10}{'digits':>10}")
    asked = question(RISING)
    for n in sizes:
        prices = np.arange(n, dtype=np.float64)
        build = best(lambda prices=prices: built(asked, prices), 1)
        trends = built(asked, prices)
        count = best(trends.counts, 1)
        total = sum(trends.counts().trends)
        assert total == 2 ** (n - 2)
        print(f"{n:>10,}{build:>10.3f}{count:>10.3f}{int(total.bit_length() * 0.30103) + 1:>10,}")


def pairs(sizes: list[int]) -> None:
    print(f"\n{'pairs':>10}{'pair graph s':>14}{'ABI build s':>13}{'x':>8}")
    asked = question(STOCK)
    for n in sizes:
        prices = uniform(n)
        slow = best(lambda prices=prices: pair_graph(prices), 1)
        fast = best(lambda prices=prices: built(asked, prices), 3)
        print(f"{n:>10,}{slow:>14.3f}{fast:>13.4f}{slow / fast:>8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    warm = built(question(STOCK), uniform(500))
    warm.counts()
    listed(warm)
    Trends(question(KITING), vertices_of(question(KITING), checks(500))).counts()
    built(question(RISING), np.arange(500.0)).counts()
    stock([10_000] if quick else [10_000, 100_000, 200_000], 3)
    kiting([100_000] if quick else [100_000, 1_000_000], 3)
    dense([100] if quick else [100, 120])
    scaling([100_000] if quick else [100_000, 1_000_000, 10_000_000], 3 if quick else 2)
    rising([200, 1000] if quick else [200, 1000, 10_000])
    pairs([1000, 10_000])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of this process, all input included: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
