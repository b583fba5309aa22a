"""What a quiet alert tells and holds back: a worked case, and random ones in random portions beside the oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from naive.alerts import Found, quieted

from patternlake.jobs.alerts.quiet import AT, BEFORE, RANK, TURN, decide

FOUND = pa.schema(
    [("key", pa.string()), ("alert_id", pa.string()), (TURN, pa.int64()), (AT, pa.int64()), (RANK, pa.float64())]
)


def in_portions(found: Sequence[Found], quiet: int, cuts: Sequence[int]) -> tuple[dict[str, int], dict[str, str]]:
    """What is told and held back where things are looked at in portions, each in any order."""
    by_name = {one.name: one for one in found}
    told: dict[str, int] = {}
    held: dict[str, str] = {}
    for begin, end in zip([0, *cuts], [*cuts, len(found)], strict=True):
        rng = random.Random(begin)
        rows = [
            {"key": one.key, "alert_id": one.name, TURN: begin + place, AT: one.time, RANK: 0.0}
            for place, one in enumerate(found[begin:end])
        ]
        before = [
            {"key": by_name[name].key, "alert_id": name, "t_end": by_name[name].time, "held_back": count}
            for name, count in told.items()
        ]
        before += [{"key": by_name[name].key, "alert_id": name, "held_by": holder} for name, holder in held.items()]
        # What is known and what comes twice is found again.
        rows += [row for row in rows if rng.random() < 0.2]
        known = rng.sample(found[:begin], min(begin, 2))
        rows += [{"key": one.key, "alert_id": one.name, TURN: end, AT: one.time, RANK: 0.0} for one in known]
        rng.shuffle(rows)
        outcome = decide(pa.Table.from_pylist(rows, FOUND), pa.Table.from_pylist(before, BEFORE), quiet)
        assert sorted(outcome["alert_id"].to_pylist()) == sorted(one.name for one in found[begin:end])
        for row in outcome.to_pylist():
            if row["held_by"] is None:
                told[row["alert_id"]] = row["held_back"]
            else:
                held[row["alert_id"]] = row["held_by"]
    return told, held


def test_the_next_alert_of_a_key_counts_what_was_held_back_since_the_one_before() -> None:
    found = [Found(name, key, time) for name, key, time in (
        ("a", "k", 0), ("b", "k", 9), ("c", "l", 9), ("d", "k", 5), ("e", "k", 10), ("f", "k", 20), ("g", None, 20),
    )]  # fmt: skip
    told, held = in_portions(found, 10, [])
    assert told == {"a": 0, "c": 0, "e": 2, "f": 0, "g": 0}, "what is exactly as far away as that is told"
    assert held == {"b": "a", "d": "a"}


def test_what_comes_later_and_happened_earlier_is_near_as_well() -> None:
    found = [Found("late", "k", 50), Found("early", "k", 45), Found("long before", "k", 40), Found("after", "k", 60)]
    assert in_portions(found, 10, [1]) == ({"late": 0, "long before": 1, "after": 0}, {"early": "late"})


def test_without_quiet_what_was_held_back_before_is_still_counted() -> None:
    found = [Found(str(time), None, time) for time in (0, 1, 2)]
    told, held = in_portions(found, 10, [])
    assert (told, held) == ({"0": 0}, {"1": "0", "2": "0"})
    rows = pa.Table.from_pylist([{"key": None, "alert_id": "3", TURN: 0, AT: 3, RANK: 0.0}], FOUND)
    told_before = {"alert_id": "0", "t_end": 0, "held_back": None}
    held_before = [{"alert_id": name, "held_by": "0"} for name in ("1", "2")]
    before = pa.Table.from_pylist([told_before, *held_before], BEFORE)
    assert decide(rows, before, 0).to_pylist() == [{"key": None, "alert_id": "3", "held_back": 2, "held_by": None}]


def test_what_was_told_at_an_unknown_time_holds_nothing_back() -> None:
    rows = pa.Table.from_pylist([{"key": "k", "alert_id": "1", TURN: 0, AT: 3, RANK: 0.0}], FOUND)
    before = pa.Table.from_pylist([{"key": "k", "alert_id": "0", "held_back": 0}], BEFORE)
    (row,) = decide(rows, before, 10).to_pylist()
    assert (row["held_back"], row["held_by"]) == (0, None)


@pytest.mark.parametrize("seed", range(300))
def test_any_portions_tell_what_the_oracle_tells_and_nothing_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    found = [
        Found(f"{number:02}", rng.choice(["k", "l", None]), rng.choice([number * 3, rng.randint(0, 60)]))
        for number in range(rng.randint(1, 25))
    ]
    quiet = rng.choice([1, 5, 10, 100])
    cuts = sorted(rng.sample(range(len(found)), rng.randint(0, min(4, len(found)))))
    told, held = in_portions(found, quiet, cuts)
    assert (told, held) == quieted(found, quiet)
    assert told.keys() | held.keys() == {one.name for one in found}
    for one in found:
        for other in found:
            if one is not other and one.name in told and other.name in told and one.key == other.key:
                assert abs(one.time - other.time) >= quiet
