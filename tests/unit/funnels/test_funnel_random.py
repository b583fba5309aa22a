"""Random funnels against the oracle, every column: rows of partitions, and counts however portions are cut."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from naive import funnels as naive
from naive.funnel_cases import (
    asked,
    count_of,
    dealt,
    random_funnel,
    random_partitions,
    rounded,
    rows_of,
    shown,
)

from patternlake.udfs.funnels.result import merge
from patternlake.udfs.funnels.task import parts_of_partitions, rows_of_partitions
from patternlake.udfs.record_batches import columns_of, rows_in_micros

SEEDS = range(60)


@pytest.mark.parametrize("mode", naive.MODES)
def test_rows_are_those_of_the_oracle(mode: str) -> None:
    for seed in SEEDS:
        rng = random.Random(f"{mode} {seed}")
        names = "abcd"[: rng.randint(2, 4)]
        funnel, partitions = random_funnel(rng, names), random_partitions(rng, names)
        watermark = rng.choice([None, rng.randint(0, 20_000)])
        request = asked(funnel.text, partitions, watermark, mode=mode).request
        told = rows_in_micros(rows_of_partitions(request, columns_of(rows_of(partitions, rng))))
        expected = {
            key: naive.row(events, funnel.steps, mode, funnel.within, watermark=watermark, until=request.until)
            for key, events in partitions.items()
        }
        assert {row["key"]: shown(row) for row in told} == expected, (seed, funnel.text)


def test_no_choice_of_events_goes_further_than_the_earliest_ones() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        names = "abcd"[: rng.randint(2, 4)]
        funnel = random_funnel(rng, names)
        for events in random_partitions(rng, names, 9).values():
            found = naive.row(events, funnel.steps, within=funnel.within).reached
            assert found == naive.furthest_by_hand(events, funnel.steps, funnel.within), (seed, funnel.text)


@pytest.mark.parametrize("mode", naive.MODES)
def test_counts_are_those_of_the_oracle_however_partitions_are_dealt_out(mode: str) -> None:
    for seed in SEEDS:
        rng = random.Random(f"{mode} {seed}")
        names = "abcd"[: rng.randint(2, 4)]
        funnel, partitions = random_funnel(rng, names), random_partitions(rng, names)
        by, most = rng.choice([None, "via"]), rng.randint(0, 3)
        request = asked(funnel.text, partitions, mode=mode, by=by, next=most).request
        parts = [
            parts_of_partitions(request, columns_of(rows_of(portion, rng)))
            for portion in dealt(partitions, rng.randint(1, 3), rng)
        ]
        told = [count_of(row) for row in merge(request, pa.concat_tables(parts)).to_pylist()]
        expected = naive.funnel(
            partitions, funnel.steps, mode, funnel.within,
            by=None if by is None else lambda event: event.values["via"], next_events=most,
        )  # fmt: skip
        assert told == [rounded(count) for count in expected], (seed, funnel.text)
