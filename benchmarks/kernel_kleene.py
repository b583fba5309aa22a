"""The kernels of exact patterns on one core: the workloads of FAEM's Figures 7 to 11 by plan, and sequences by key.

    python benchmarks/kernel_kleene.py [--quick] [--only PART …]

- **stream**: Behravesh et al., Table 1: a million events, of which the four classes have as many as there, placed
  uniformly (seeded); t147073, t56437, t189820 and t531386 are called G, M, D and I. Only these events are given, with
  their ranks among all.
- **plans**: for each query of a figure the seconds and the partial matches of the plans that it names, and of the
  planner's choice by the counts of names (and, in Figure 9, by the selectivity that was asked for). *x best* is the
  planner's time beside the best plan's; the goal is 1.2.
- **keys**: 20 names by Zipf's law, 1,000 keys, one attribute: sequences and rising repetitions within 100 events of a
  key, listed under skip_till_next and counted under skip_till_any, at a million events also listed, in million events a
  second.
- **first**: the first 1,000 rows of a b c a b c …, one key, with `truncate`; the goal is 2 s for a million events.
- **groups**: 200,000 events of the names a, b, c and d, one a minute, in one key or 1,000: repeated groups by policy;
  the goal is about a second. **rare**: the same with one c in a hundred and no d, where most starts end in nothing.
- **steps**: patterns of 64 steps, planned for a million events and for 10^9; the goal is 0.1 s.

Seconds are medians of the repeats, in turn; compiled before the clock starts. They are from arrays to rows, or to the
number of rows where more than `MOST_ROWS` would be listed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from patternlake.udfs.events import Events
from patternlake.udfs.kleene.kernels.matching import match_events, observed
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan
from patternlake.udfs.kleene.plans.trees import NAMED, Plan, forced_plan, named_plan, plan_text
from patternlake.udfs.kleene.query import KleenePattern, compile_pattern
from patternlake.udfs.kleene.work import MATCHES, Work
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.limits import TooManyMatchesError

SEED = 2015
PARTS = ("plans", "first", "groups", "steps", "keys")
POPULATIONS = {"G": 1661, "M": 1350, "D": 1325, "I": 1268}
MOST_ROWS = 2_000_000
WITHIN = "PARTITION BY key WITHIN 100 EVENTS"
SEQUENCE = f"A ; B ; C {WITHIN}"
FIRST = ("A ; B", "A ; B ; C", "A & B & C", "A ; B+ ; C", "A+ ; B", "A ; (B | C)", "A ; !C ; B", "2 OF (A, B, C)")
GROUPS = (
    "(a , b)+ ; c WITHIN 12 EVENTS",
    "(a , b)+ ; c PARTITION BY key WITHIN 12 EVENTS",
    "(a , b)+ ; c WHERE a.x < b.x WITHIN 12 EVENTS",
    "(a , b)+ ; c WHERE ABS(a.x - b.x) > 0.1 WITHIN 12 EVENTS",
    "(a ; b)+ ; c WITHIN 12 EVENTS",
    "(a , b){2,5} ; c WITHIN 1 HOUR",
    "a ; (b , c)+ ; d",
    "a ; (b , c)+ ; d PARTITION BY key",
)
ASKED = (
    ("skip_till_next", "maximal"),
    ("strict", "maximal"),
    ("skip_till_next", "all"),
    ("strict", "all"),
    ("skip_till_any", "all"),
)
RISING = f"A ; B+ b[] ; C WHERE b[i].x > b[i-1].x {WITHIN}"
SCOPE = Scope(attributes={"x": "double"})


@dataclass(frozen=True)
class Query:
    """A query of a figure; `share`: of a condition, how often it holds."""

    figure: str
    text: str
    share: float | None = None


def queries() -> list[Query]:
    plain = ["G ; M ; D ; I+", "G+ ; M ; D ; I", "G ; M ; D ; I"]
    found = [Query("7", f"{text} WITHIN 5000 UNIT") for text in plain]
    sizes = ["I ; D ; M ; G+", "I+ ; D ; M ; G", "G+ ; M ; D ; I", "G ; M ; D"]
    found += [Query("8", f"{text} WITHIN 5000 UNIT") for text in sizes]
    for share in (0.1, 0.5, 0.9):
        found.append(Query("9", f"G ; M ; D ; I+ WHERE M.x < {share} + 0 * G.x WITHIN 5000 UNIT", share))
        found.append(Query("9", f"G ; M ; D ; I+ WHERE I.x < {share} + 0 * D.x WITHIN 5000 UNIT", share))
    found += [Query("10", f"{text} WITHIN {within} UNIT") for text in plain for within in (2500, 10_000)]
    for form in ("[3]", "+", "*"):
        for place in range(4):
            names = [name + (form if at == place else "") for at, name in enumerate("GMDI")]
            found.append(Query("11", f"{' ; '.join(names)} WITHIN 10000 UNIT"))
    return found


def populations(n: int) -> dict[str, int]:
    """Table 1 for n events."""
    return {name: count * n // 1_000_000 for name, count in POPULATIONS.items()}


def table_one(n: int) -> Events:
    rng = np.random.default_rng(SEED)
    names = np.full(n, len(POPULATIONS))
    places = rng.permutation(n)
    begin = 0
    for code, count in enumerate(populations(n).values()):
        names[places[begin : begin + count]] = code
        begin += count
    rank = np.flatnonzero(names < len(POPULATIONS))
    values = Column(rng.random(len(rank)), np.ones(len(rank), np.bool_), "double")
    zeros = np.zeros(len(rank), np.int64)
    return Events(
        positions=rank + 1,
        times=rank * 1000,
        names=names[rank].astype(np.int64),
        vocabulary=[*POPULATIONS],
        keys=zeros,
        columns={"x": values},
        ordinals=rank,
    )


def zipf(n: int, keys: int = 1000) -> Events:
    rng = np.random.default_rng(SEED)
    shares = 1 / np.arange(1, 21)
    names = rng.choice(20, n, p=shares / shares.sum())
    key, position = rng.integers(0, keys, n), np.arange(1, n + 1)
    order = np.lexsort((position, key))
    key = key[order].astype(np.int64)
    begins = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    rank = np.arange(n) - np.repeat(begins, np.diff(np.append(begins, n)))
    values = Column(rng.random(n), np.ones(n, np.bool_), "double")
    vocabulary = [chr(65 + code) for code in range(20)]
    return Events(
        positions=position[order],
        times=position[order] * 1000,
        names=names[order],
        vocabulary=vocabulary,
        keys=key,
        columns={"x": values},
        ordinals=rank,
    )


def seconds(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Medians of actions that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(repeats):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def runner(pattern: KleenePattern, events: Events, plan: Plan, listed: bool) -> Callable[[], object]:
    if listed:
        return lambda: match_events(pattern, events, plan=plan, max_matches=MOST_ROWS)
    return lambda: count_matches(pattern, events, plan)


def count_matches(pattern: KleenePattern, events: Events, plan: Plan | None = None) -> int:
    return observed(pattern, events, plan=plan).done[MATCHES].rows


def by_plan(n: int, repeats: int) -> None:
    events = table_one(n)
    print(f"FAEM's queries on {n:,} events: seconds and thousand partial matches by plan")
    print(
        f"{'fig':>3} {'query':<62}{'rows':>11}" + "".join(f"{name:>17}" for name in NAMED) + f"{'planner':>17} x best"
    )
    worst = 0.0
    for query in queries():
        pattern = compile_pattern(parse(query.text), SCOPE)
        known = {} if query.share is None else {c.predicate.sql(): query.share for c in pattern.conditions}
        choice = choose_plan(pattern, Statistics(populations(n), events=n, selectivities=known)).plan
        rows = count_matches(pattern, events)
        plans = {name: named_plan(name, pattern.positive) for name in NAMED} | {"planner": choice}
        listed = rows <= MOST_ROWS
        taken = seconds({name: runner(pattern, events, plan, listed) for name, plan in plans.items()}, repeats)
        best = min(taken[name] for name in NAMED)
        worst = max(worst, taken["planner"] / best)
        partial = {name: partial_matches(pattern, events, plan) if listed else "-" for name, plan in plans.items()}
        cells = [f"{taken[name]:>9.3f}{partial[name]:>8}" for name in plans]
        ratio = f"{taken['planner'] / best:>7.2f}"
        print(f"{query.figure:>3} {query.text:<62}{rows:>11,}{''.join(cells)}{ratio} {plan_text(pattern, choice)}")
    print(f"planner beside the best plan, at worst: {worst:.2f} (goal 1.2)\n")


def partial_matches(pattern: KleenePattern, events: Events, plan: Plan) -> str:
    """Partial matches of a plan, of all nodes, in thousands."""
    work = Work()
    match_events(pattern, events, plan=plan, max_matches=MOST_ROWS, work=work)
    return f"{sum(done.rows for (node, *_), done in work.done.items() if isinstance(node, int)) / 1e3:,.0f}k"


def by_key(n: int, repeats: int) -> None:
    events = zipf(n)
    print(f"{n:,} events in 1,000 keys, within 100 events of a key: million events a second")
    for text in (SEQUENCE, RISING):
        scanned = compile_pattern(parse(text), SCOPE, policy="skip_till_next")
        pattern = compile_pattern(parse(text), SCOPE)
        plan = forced_plan(pattern, "left")
        found = match_events(scanned, events, policy="skip_till_next", max_matches=n)
        total = count_matches(pattern, events, plan)
        taken = seconds(
            {
                "skip_till_next": lambda p=scanned: match_events(p, events, policy="skip_till_next", max_matches=n),
                "counted": lambda p=pattern, q=plan: count_matches(p, events, q),
            },
            repeats,
        )
        scan, count = (n / taken[name] / 1e6 for name in ("skip_till_next", "counted"))
        print(f"  {text.split(' PARTITION')[0]}")
        print(f"    skip_till_next, listed: {scan:6.2f} ({len(found):,} rows)")
        print(f"    skip_till_any, counted: {count:6.2f} ({total:,} rows)")
    print(peak())


def all_listed(n: int, repeats: int) -> None:
    """List what `by_key` counts; last, as the rows take more memory than anything else here."""
    events = zipf(n)
    print(f"{n:,} events in 1,000 keys, all combinations listed: million events a second")
    for text in (SEQUENCE, RISING):
        pattern = compile_pattern(parse(text), SCOPE)
        plan = forced_plan(pattern, "left")
        total = count_matches(pattern, events, plan)
        taken = seconds(
            {text: lambda p=pattern, q=plan, m=total: match_events(p, events, plan=q, max_matches=m)}, repeats
        )
        print(f"  {text.split(' PARTITION')[0]}: {n / taken[text] / 1e6:6.2f} ({total:,} rows)")
    print(peak())


def first_rows(n: int, repeats: int) -> None:
    known, positions = np.ones(n, np.bool_), np.arange(1, n + 1)
    events = Events(
        positions=positions,
        times=positions * 1000,
        names=(positions - 1) % 3,
        vocabulary=["A", "B", "C"],
        keys=np.zeros(n, np.int64),
        columns={"x": Column(positions.astype(np.float64), known, "double")},
    )
    print(f"{n:,} events of one key: seconds for the first 1,000 rows")
    for text in FIRST:
        pattern = compile_pattern(parse(text), SCOPE)
        taken = seconds({text: lambda p=pattern: match_events(p, events, max_matches=1000, truncate=True)}, repeats)
        print(f"  {text:<20}{taken[text]:>9.3f}")
    print(peak())


def of_minutes(n: int, keys: int, shares: tuple[float, ...]) -> Events:
    """Events of a, b, c and d with these shares, one a minute."""
    rng = np.random.default_rng(SEED)
    positions = np.arange(1, n + 1)
    return Events(
        positions=positions,
        times=positions * 60_000_000,
        names=rng.choice(4, n, p=shares),
        vocabulary=["a", "b", "c", "d"],
        keys=np.arange(n, dtype=np.int64) * keys // n,
        columns={"x": Column(rng.random(n), np.ones(n, np.bool_), "double")},
    )


def groups(n: int, repeats: int) -> None:
    for title, shares in {"alike": (0.25, 0.25, 0.25, 0.25), "rare": (0.5, 0.49, 0.01, 0.0)}.items():
        print(f"{n:,} events, {title}: seconds of repeated groups by policy (x: too many rows)")
        head = "".join(f"{', '.join(asked):>24}" for asked in ASKED)
        print(f"  {'':<58}{head}")
        for text in GROUPS:
            events = of_minutes(n, 1000 if "PARTITION" in text else 1, shares)
            cells = []
            for policy, repetition in ASKED:
                pattern = compile_pattern(parse(text), SCOPE, policy=policy, repetition=repetition)
                asked = {"policy": policy, "max_matches": MOST_ROWS}
                try:
                    rows = len(match_events(pattern, events, **asked))
                except TooManyMatchesError:
                    cells.append("x")
                    continue
                taken = seconds({text: lambda p=pattern, e=events, a=asked: match_events(p, e, **a)}, repeats)
                cells.append(f"{rows:,} rows {taken[text]:.2f}")
            print(f"  {text:<58}{''.join(f'{cell:>24}' for cell in cells)}")


def steps(repeats: int) -> None:
    names = [f"N{number}" for number in range(64)]
    plain = " ; ".join(names)
    texts = {
        "64 steps": plain,
        "within an hour": f"{plain} WITHIN 1 HOUR",
        "each above the one before": plain
        + " WHERE "
        + " AND ".join(f"{one}.x < {next_}.x" for one, next_ in pairwise(names)),
        "every second one repeated": " ; ".join(name + "+" * (number % 2) for number, name in enumerate(names)),
    }
    print("Seconds of planning")
    for title, text in texts.items():
        pattern = compile_pattern(parse(text), SCOPE)
        cells = []
        for events in (1e6, 1e9):
            known = Statistics(dict.fromkeys(names, events / 64), events=events, duration=30 * 24 * 3.6e9)
            taken = seconds({title: lambda p=pattern, s=known: choose_plan(p, s)}, repeats)
            cells.append(f"{events:>9.0e} events {taken[title]:.3f}")
        print(f"  {title:<28}{''.join(cells)}")


def peak() -> str:
    return f"  peak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer events and repeats: does it work?")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="some of the parts")
    given = parser.parse_args()
    quick, only = given.quick, given.only
    repeats = 1 if quick else 3
    if "plans" in only:
        by_plan(100_000 if quick else 1_000_000, 1 if quick else 5)
    if "first" in only:
        first_rows(30_000 if quick else 999_999, repeats)
    if "groups" in only:
        groups(20_000 if quick else 200_000, repeats)
    if "steps" in only:
        steps(repeats)
    if "keys" in only:
        for n in (100_000,) if quick else (1_000_000, 10_000_000):
            by_key(n, repeats)
        all_listed(100_000 if quick else 1_000_000, repeats)


if __name__ == "__main__":
    main()
