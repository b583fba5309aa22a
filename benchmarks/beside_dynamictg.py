"""The kernels of trends beside the paper's own program, same events, same two cores.

    python benchmarks/beside_dynamictg.py --class-path PATH [--quick] [--case KIND:EVENTS ...]

The program is DynamicTG (github.com/CGCL-codes/DynamicTG, its part for one machine) in a copy that is already built:
PATH, or the environment variable PATTERNLAKE_DYNAMICTG, is its class path, dependencies included. Needs Linux and Java.

- **stock**: `price > previous * 2.8` on prices drawn evenly from 5 to 15, in cents, one window.
- **kiting**: `src = previous dest` on names of a quarter as many accounts as there are events, one window.
- **rising**: `price > previous` in one window of few events, where nearly all time goes into listing trends.

Each of the two runs in a process of its own, one after the other, and reads the same file (lines of `time name price`
or `time src dest`) before its clock starts. `build s` is from events in memory to the finished graph, `extract s` from
there to the last trend, so that finding the starts and ends of trends is part of it. Theirs are the times that they
print, with two threads, the selectivity of anchors that they have by default, and a JVM that starts cold; they count
trends as they find them. Ours are with kernels compiled before, the build on one core; extraction includes the count
that shares it out and the processes that list the shares (two, or one where trends are few), which write every trend's
positions and drop them batch by batch. `peak MB` is read from outside: a process' greatest resident memory; while there
are several, the sum of their proportional shares, sampled. On a machine that is busy two threads get more of the cores
than one, and the ratios mean little: look at the load that is printed.

`exact` is a third count: backwards over the events, summed by price or account. Their `>` on prices asks for their
precision as the least difference, so it finds fewer; the same count with that difference must give theirs. `pairs` is
the conventional graph, in which each event is compared with all before it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import astuple, dataclass, replace
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from kernel_trends import KITING, RISING, STOCK, best, checks, events, listed, pair_graph, question, uniform

from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import typed_column
from patternlake.udfs.trends.kernels import trends as counted_trends
from patternlake.udfs.trends.kernels.graph import Graph, graph_of
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import vertices_of

CORES = 2
RATIOS = {"stock": 2.8, "rising": 1.0}
TEXTS = {"stock": STOCK, "kiting": KITING, "rising": RISING}
RISING_SEED = 2030  # Its 100 events have tens of millions of trends.
PRECISION = 0.01  # Of their prices, unless told.
GOALS = {"build 5x": 5, "Mtrends/s 3x": 3, "peak MB lower": 1}

QUICK = ("stock:10000", "kiting:10000", "rising:80")
FULL = ("stock:10000", "stock:100000", "stock:200000", "kiting:100000", "kiting:1000000", "rising:100")
PAIRS = 10_000  # The largest of the conventional graphs.
FEW = 1_000_000  # Fewer trends are listed sooner than processes start.
TIMEOUT = 900
INTERVAL = 0.01


@dataclass(frozen=True)
class Figures:
    build: float
    extract: float
    trends: int
    peak: float
    resting: float = 0.0  # Memory before events are read.


def write_events(kind: str, n: int, path: Path) -> None:
    if kind == "kiting":
        columns = checks(n).columns
        rows = zip(columns["src"].values, columns["dest"].values, strict=True)
        lines = (f"{at} {src} {dest}\n".replace("account ", "account") for at, (src, dest) in enumerate(rows))
    else:
        prices = uniform(n) if kind == "stock" else np.random.default_rng(RISING_SEED).uniform(5.0, 15.0, n)
        lines = (f"{at} stock {price:.2f}\n" for at, price in enumerate(prices))
    with path.open("w") as file:
        file.writelines(lines)


def read_accounts(path: Path) -> tuple[list[str], list[str]]:
    src, dest = [], []
    with path.open() as file:
        for line in file:
            words = line.split()
            src.append(sys.intern(words[1]))
            dest.append(sys.intern(words[2]))
    return src, dest


def read_events(kind: str, path: Path) -> Events:
    if kind != "kiting":
        return events(np.loadtxt(path, usecols=2))
    src, dest = read_accounts(path)
    # As Spark hands texts over: each event's own, in Arrow.
    columns = {name: typed_column(side, "string") for name, side in (("src", src), ("dest", dest))}
    given = events(np.zeros(len(src)))
    return replace(given, vocabulary=["check"], columns=columns)


def count_prices(prices: np.ndarray, ratio: float, margin: float = 0.0) -> int:
    """Trends of `price > previous * ratio`, or of `price >= previous * ratio + margin`, without a graph."""
    levels = np.unique(prices)
    bounds = prices * ratio + margin
    first = np.searchsorted(levels, bounds, "left" if margin else "right")
    # A price follows an earlier one if it follows the least of them.
    least = np.minimum.accumulate(np.concatenate([[np.inf], bounds[:-1]]))
    starts = prices >= least if margin else prices > least
    leading = np.zeros(len(levels), np.int64)
    total = 0
    for at in range(len(prices) - 1, -1, -1):
        trends = int(leading[first[at] :].sum()) or 1
        leading[np.searchsorted(levels, prices[at])] += trends
        total += 0 if starts[at] else trends
    return total


def count_accounts(src: list[str], dest: list[str]) -> int:
    """Trends of `src = previous dest`, without a graph."""
    first = {account: len(dest) - 1 - at for at, account in enumerate(reversed(dest))}
    leading: defaultdict[str, int] = defaultdict(int)
    total = 0
    for at in range(len(src) - 1, -1, -1):
        trends = leading[dest[at]] or 1
        leading[src[at]] += trends
        total += trends if first.get(src[at], at) >= at else 0
    return total


def resident(process: int, field: str) -> int:
    """VmHWM or VmRSS of a process, in bytes."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return 1024 * int(found.group(1)) if found else 0


def watch(command: list[str]) -> tuple[str, str, float]:
    """Output, errors and peak memory in MB of a program and the processes that it starts."""
    peak = 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # The kernel's maximum for children (ru_maxrss) can't be used: it counts this process, which they begin as.
        child = psutil.Popen(command, stdout=out, stderr=err)
        deadline = time.monotonic() + TIMEOUT
        while child.poll() is None:
            try:
                peak = max(peak, resident(child.pid, "VmHWM"))
                if several := child.children(recursive=True):
                    peak = max(peak, sum(process.memory_full_info().pss for process in [child, *several]))
            except (psutil.Error, OSError):
                pass  # One of them has just ended.
            if time.monotonic() > deadline:
                child.kill()
            time.sleep(INTERVAL)
        for file in (out, err):
            file.seek(0)
        return out.read(), err.read(), peak / 1e6


def run_theirs(kind: str, n: int, path: Path, class_path: str, heap: str) -> Figures:
    java = ["java", f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError", "-cp", class_path, "tg.dtg.main.Main"]
    query = ["kite"] if kind == "kiting" else [f"stock{RATIOS[kind]}", "-simple", "-r", f"[0,50,{PRECISION})"]
    out, err, peak = watch([*java, *query, "-i", str(path), "-wl", str(n), "-sl", str(n), "-p", str(CORES)])
    marks = ("begin graph construction.* time", "finish manage time", "begin detect time", "finish detect time")
    found = [re.search(rf"{mark} (\d+)", out) for mark in (*marks, "cet number")]
    if None in found or "Exception" in err:
        raise RuntimeError(out + err)
    begin, managed, detect, ended, trends = (int(part.group(1)) for part in found if part is not None)
    return Figures((managed - begin) / 1e3, (ended - detect) / 1e3, trends, peak)


def run_ours(kind: str, path: Path) -> Figures:
    out, err, peak = watch([sys.executable, __file__, "--ours", kind, str(path)])
    if not out:
        raise RuntimeError(err)
    return Figures(peak=peak, **json.loads(out))


def extract(trends: Trends) -> int:
    """List all trends, half of them in each of two processes: the kernels hold the interpreter's lock."""
    if sum(trends.counts().trends) < FEW:
        return listed(trends)[0]
    context = multiprocessing.get_context("fork")
    found: SimpleQueue[int] = context.SimpleQueue()

    def work(low: int, high: int) -> None:
        found.put(sum(len(batch) for batch in trends.extract(low, high)))

    workers = [context.Process(target=work, args=share) for share in equal_shares(sum(trends.counts().trends), CORES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    return sum(found.get() for _ in workers)


def ours(kind: str, path: Path) -> None:
    asked = question(TEXTS[kind])
    small = checks(500) if kind == "kiting" else events(uniform(60))
    warm = Trends(asked, vertices_of(asked, small))
    warm.counts()
    listed(warm)
    resting = resident(os.getpid(), "VmRSS") / 1e6
    given = read_events(kind, path)
    finished = []

    def noted(*arguments: Any) -> Graph:
        graph = graph_of(*arguments)
        finished.append(time.perf_counter())
        return graph

    # The clock is read within `Trends`, after the graph and before it looks for starts and ends.
    counted_trends.graph_of = noted  # type: ignore[assignment, attr-defined]
    start = time.perf_counter()
    trends = Trends(asked, vertices_of(asked, given))
    found = extract(trends)
    ended = time.perf_counter()
    assert found == sum(trends.counts().trends)
    build, rest = finished[0] - start, ended - finished[0]
    print(json.dumps({"build": build, "extract": rest, "trends": found, "resting": resting}))


def least(runs: list[Figures]) -> Figures:
    """The best times and the greatest memory."""
    build, extract, trends, peak, resting = zip(*map(astuple, runs), strict=True)
    return Figures(min(build), min(extract), trends[0], max(peak), max(resting))


def line(*cells: str) -> None:
    print(f"{cells[0]:>18}{cells[1]:>9}" + "".join(f"{cell:>13}" for cell in cells[2:]))


def compare(kind: str, n: int, class_path: str, heap: str, repeats: int) -> bool:
    """Print the rows of one case; whether both came to their end and found what they should."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events")
        write_events(kind, n, path)
        prices = None if kind == "kiting" else np.loadtxt(path, usecols=2)
        exact = count_accounts(*read_accounts(path)) if prices is None else count_prices(prices, RATIOS[kind])
        try:
            own = least([run_ours(kind, path) for _ in range(repeats)])
            their = least([run_theirs(kind, n, path, class_path, heap) for _ in range(repeats)])
        except RuntimeError as error:
            print(f"{kind} {n:,} failed:\n{str(error)[-2000:]}")
            return False
    for name, who, run in ((f"{kind} {n:,}", "theirs", their), ("", "ours", own)):
        rate = run.trends / run.extract / 1e6
        line(name, who, f"{run.build:.3f}", f"{run.extract:.3f}", f"{run.trends:,}", f"{rate:.2f}", f"{run.peak:,.0f}")
    rates = (own.trends / own.extract) / (their.trends / their.extract)
    ratios = (their.build / own.build, rates, their.peak / own.peak)
    line("", "x", f"{ratios[0]:.2f}", "", "", f"{ratios[1]:.2f}", f"{ratios[2]:.2f}")
    if kind == "stock" and prices is not None and n <= PAIRS:
        line("", "pairs", f"{best(lambda: pair_graph(prices), 1):.3f}")
    missed = [goal for goal, ratio in zip(GOALS, ratios, strict=True) if ratio < GOALS[goal]] or ["none"]
    print(f"{'':>22}goals missed: {', '.join(missed)}; ours holds {own.resting:,.0f} MB before it reads events")
    # Their comparisons forgive a ten-thousandth of the precision.
    wider = exact if prices is None else count_prices(prices, RATIOS[kind], PRECISION * (1 - 1e-4))
    first, second = ("equal" if good else "DIFFERS" for good in (own.trends == exact, their.trends == wider))
    print(f"{'':>22}exact {exact:,}, ours {first}; with their precision {wider:,}, theirs {second}")
    return own.trends == exact and their.trends == wider


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--class-path", default=os.environ.get("PATTERNLAKE_DYNAMICTG"))
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--case", action="append", metavar="KIND:EVENTS", help="these instead; may be repeated")
    parser.add_argument("--heap", default="6g", help="of the JVM (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each program, the least time counts")
    parser.add_argument("--ours", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours:
        ours(given.ours[0], Path(given.ours[1]))
        return 0
    if not given.class_path:
        print("missing: the class path of a built DynamicTG (--class-path or PATTERNLAKE_DYNAMICTG)", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}, JVM heap {given.heap}, least of {given.repeats} run(s) each")
    line("events", "", "build s", "extract s", "trends", "Mtrends/s", "peak MB")
    right = True
    for case in given.case or (QUICK if given.quick else FULL):
        kind, _, n = case.partition(":")
        right &= compare(kind, int(n), given.class_path, given.heap, given.repeats)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
