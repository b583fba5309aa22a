"""Questions for paths, drawn at random, and their way into the tasks of the paths engine."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from naive import paths as naive
from naive.funnel_cases import STREAM, Partitions
from naive.funnels import Window

from patternlake.udfs.paths.request import PathsRequest, check_request
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.requests import PartitionReads


def asked_paths(partitions: Partitions, **arguments: Any) -> PartitionReads[PathsRequest]:
    """The checked request of a call over a stream of these events."""
    names = [event.name for events in partitions.values() for event in events]
    counts = [NameCount(name, names.count(name), None, None) for name in sorted(set(names))]
    batch = PublishedBatch(1, 1, 1, json.dumps(STREAM))
    return check_request({"stream": "s", **arguments}, Published(batch), ["s"], counts)


def random_question(rng: random.Random, names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same question as arguments of a call, and as those of the oracle."""
    around = rng.choice([None, *names])
    fold, by, most = rng.random() < 0.6, rng.choice([None, "via"]), rng.choice([1, 2, 100])
    within, amount, unit = rng.choice(
        [(None, 0, ""), (rng.randint(1, 8), 1000, "ms"), (rng.randint(1, 6), 1, "EVENTS")]
    )
    given: dict[str, Any] = {
        "around": around, "fold": fold, "by": by, "max_paths": most, "top": rng.randint(1, 4),
        "within": None if within is None else f"{within} {'EVENTS' if amount == 1 else 'MILLISECOND'}",
    }  # fmt: skip
    oracle: dict[str, Any] = {
        "around": around, "fold": fold, "most": most,
        "within": None if within is None else Window(within * amount, unit == "EVENTS"),
        "by": None if by is None else lambda event: event.values["via"],
    }  # fmt: skip
    if around is not None:
        ends = {"before": rng.randint(0, 3), "after": rng.randint(0, 3)}
        given |= ends
        oracle |= ends
    return given, oracle


def path_of(row: Mapping[str, Any]) -> naive.Path:
    """A row of match_paths as the oracle has it."""
    seconds = row["seconds_p50"]
    return naive.Path(
        tuple(row["path"]), row["partitions"], row["occurrences"], round(row["share"], 9),
        None if seconds is None else round(seconds, 9), row["group"],
    )  # fmt: skip


def rounded_path(path: naive.Path) -> naive.Path:
    """Without the last digits of fractions, which depend on the order of sums."""
    seconds = None if path.seconds_p50 is None else round(path.seconds_p50, 9)
    return naive.Path(
        path.path, path.partitions, path.occurrences, round(path.share, 9), seconds, path.group
    )  # fmt: skip
