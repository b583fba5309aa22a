"""How many rows of the sketch are false, beside what `sketch_error` says: `python -m benchmarks.answer_errors`.

One stream is sketched again with each of many seeds of the hashes. Rare names are in a fiftieth of the leaves, middling
ones in a quarter and frequent ones in nine tenths. A row is false if one of its leaves holds no event of the step's
name. No Spark is needed: trees, walks and answers come from the code that the functions run.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.udfs.sketch.answer_error import answer_error
from patternlake.udfs.sketch.batch import TOP_BUCKET, SegmentPlan, segment_rows
from patternlake.udfs.sketch.descent import node_hits, top_hits
from patternlake.udfs.sketch.possible_claims import possible_claims
from patternlake.udfs.sketch.request import SketchRequest, SketchState, check_call
from patternlake.udfs.sketch.result import answer
from patternlake.udfs.sketch.sizing import planning
from patternlake.udfs.sketch.sizing.heaps import fit_heaps

LEAF, KEYS = 20, 8
KINDS = {
    "rare": ("rare1", "rare2"),
    "middling": ("middling1", "middling2"),
    "frequent": ("frequent1", "frequent2"),
    "frequent ; rare": ("frequent1", "rare1"),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "next": {"after_match": "next"},
    "strict": {"policy": "strict"},
    "any": {"policy": "skip_till_any"},
    "key": {"key": "k3"},
    "every key": {},
    "a third": {"from_position": 1_001, "to_position": 2_400},
}
STRUCTURES = (("leveled", 4), ("leveled", 7), ("uniform", 4))
RATES = (0.01, 0.1, 0.3)
_EVENT = pa.schema(
    [
        ("position", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("tokens", pa.list_(pa.string())),
    ]
)


def stream(seed: int, events: int) -> list[tuple[str, str]]:
    """Name and key of each event."""
    rng = random.Random(seed)
    shares = {"rare": 1 / (50 * LEAF), "middling": 1 / (3.5 * LEAF), "frequent": 2.3 / LEAF}
    found = []
    for _ in range(events):
        drawn = rng.random()
        name = f"n{min(int(rng.paretovariate(0.7)), 3_000)}"
        for kind, share in shares.items():
            for number in (1, 2):
                if 0 <= drawn < share:
                    name = f"{kind}{number}"
                drawn -= share
        found.append((name, f"k{rng.randrange(KEYS)}"))
    return found


class Trees:
    """The trees of one stream under one seed of the hashes, asked without Spark."""

    def __init__(self, events: Sequence[tuple[str, str]], fpq: float, structure: str, height: int, seed: int) -> None:
        self._events = len(events)
        position = np.arange(1, self._events + 1)
        names, keys = [name for name, _ in events], [key for _, key in events]
        columns = [position, pa.array(position * 1_000_000).cast(_EVENT.field("time").type), keys, [[x] for x in names]]
        table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, _EVENT, strict=True)], schema=_EVENT)
        _, codes = np.unique([token for name, key in events for token in (name, f"{key} {name}")], return_inverse=True)
        heaps_k, heaps_beta = fit_heaps(codes)
        self._plan = planning.plan(
            structure, expected_events=self._events, memory=1 << 34, leaf_events=LEAF, fpq=fpq, height=height,
            heaps_k=heaps_k, heaps_beta=heaps_beta, expansion=2,
        )  # fmt: skip
        self._seed, self._structure = seed, structure
        self._rows = pa.Table.from_batches(segment_rows(table, SegmentPlan(self._plan, seed, True, 1, 0, 1, 0)))
        self._rows = self._rows.combine_chunks()
        self._walks: dict[tuple[object, ...], tuple[pa.Array, pa.Table]] = {}
        self._held: dict[tuple[str, str | None], set[int]] = {}
        for at, (name, key) in enumerate(events):
            for whose in (key, None):
                self._held.setdefault((name, whose), set()).add(at // LEAF)

    def request(self, pattern: str, **arguments: Any) -> SketchRequest:
        """A question without verify."""
        configuration = {
            "stream": {"attributes": {}, "key": "k", "tokens": None}, "structure": self._structure, "fanout": 2,
            "events_per_leaf": LEAF, "keyed": True, "seed": self._seed,
        }  # fmt: skip
        state = json.dumps({"plans": [{"sizing": asdict(self._plan)}], "events": self._events}, default=str)
        sketch = SketchState(json.dumps(configuration), state)
        asked = {"stream": "s", "pattern": pattern, "verify": False, **arguments}
        return check_call(asked, sketch, ["s"])

    def ask(self, request: SketchRequest) -> dict[str, float]:
        """Rows and false rows of the sketch's answer, and what `sketch_error` says of it."""
        # What is done with the nodes (policy, after_match) changes nothing of the walk.
        walk = (tuple(request.pattern.names), request.key, request.every_key, request.window)
        if walk not in self._walks:
            self._walks[walk] = self._hits(request), possible_claims(request, self._rows)
        hits, claims = self._walks[walk]
        rows = answer(request, hits)
        false = int(self._are_false(rows).sum())
        (told,) = answer_error(request, hits, claims, set()).to_pylist()
        assert told["rows"] == rows.num_rows
        return {
            "rows": rows.num_rows,
            "false": false,
            "expected": told["expected_false"],
            "any": float(false > 0),
            "bound": told["any_false_bound"],
        }

    def _hits(self, request: SketchRequest) -> pa.Array:
        """What the walk finds."""
        top = np.asarray(self._rows["bucket"]) == TOP_BUCKET
        tops = self._rows.filter(pa.array(top))
        found = top_hits(request, _structs(tops))
        segments = tops["segment"].to_pylist()
        kept = {s: row["keys"] for s, row in zip(segments, found.to_pylist(), strict=True) if row["hit"]}
        mine = np.isin(np.asarray(self._rows["segment"]), list(kept))
        body = self._rows.filter(pa.array(mine & ~top))
        numbers = body["segment"].to_numpy()
        keys = pa.array([kept[number] for number in numbers.tolist()], pa.list_(pa.string()))
        return node_hits(request, numbers, _structs(body), keys)

    def _are_false(self, rows: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """bool[rows]: a step's leaf holds no event of its name, of the row's key."""
        steps = rows["steps"].combine_chunks()
        each = len(steps.flatten()) // max(1, len(steps))
        operands, places = (steps.flatten().field(name).to_pylist() for name in ("operand", "from_position"))
        keys = np.repeat(np.array(rows["key"].to_pylist(), object), each).tolist()
        held = [
            (place - 1) // LEAF in self._held.get((name, key), ())
            for name, place, key in zip(operands, places, keys, strict=True)
        ]
        return ~np.array(held, np.bool_).reshape(-1, max(1, each)).all(axis=1)


def _structs(rows: pa.Table) -> pa.StructArray:
    names = ["level", "k", "node", "ones", "pos_lo", "pos_hi", "time_lo", "time_hi", "topmost", "keys", "bits"]
    return pa.StructArray.from_arrays([rows[name].combine_chunks() for name in names], names=names)


def measure(
    events: int, seeds: int, structure: str, height: int, rate: float, questions: Sequence[str] = tuple(QUESTIONS)
) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Means over seeds, by kind of name and question."""
    sums: dict[tuple[str, str], list[dict[str, float]]] = {}
    names = stream(1, events)
    for seed in range(seeds):
        trees = Trees(names, rate, structure, height, seed)
        for kind, (first, second) in KINDS.items():
            for question in questions:
                text = f"{first} ; {second}" + (" PARTITION BY key" if question == "every key" else "")
                found = trees.ask(trees.request(text, **QUESTIONS[question]))
                sums.setdefault((kind, question), []).append(found)
    for (kind, question), each in sums.items():
        yield kind, question, {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def main() -> None:
    """Print a table; docs/sketch_error.md has some of its lines."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--events", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument(
        "--structures", type=int, nargs="*", default=range(len(STRUCTURES)), help="places in STRUCTURES"
    )
    parser.add_argument("--questions", nargs="*", default=list(QUESTIONS))
    given = parser.parse_args()
    print(
        "| structure | levels | fpq | names | question | rows | false | expected_false | any false | any_false_bound |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for structure, height in (STRUCTURES[place] for place in given.structures):
        for rate in RATES:
            for kind, question, found in measure(given.events, given.seeds, structure, height, rate, given.questions):
                cells = [f"{found[name]:.3f}" for name in ("rows", "false", "expected", "any", "bound")]
                print(f"| {structure} | {height} | {rate} | {kind} | {question} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
