"""Random questions for paths against the oracle, every column, however portions are cut."""

from __future__ import annotations

import random

import pyarrow as pa
from naive import paths as naive
from naive.funnel_cases import dealt, random_partitions, rows_of
from naive.path_cases import asked_paths, path_of, random_question, rounded_path

from patternlake.udfs.paths.result import merge
from patternlake.udfs.paths.task import parts_of_partitions
from patternlake.udfs.record_batches import columns_of


def test_paths_are_those_of_the_oracle_however_partitions_are_dealt_out() -> None:
    told_at_all = 0
    for seed in range(400):
        rng = random.Random(seed)
        names = "abcd"[: rng.randint(2, 4)]
        partitions = random_partitions(rng, names)
        given, oracle = random_question(rng, names)
        request = asked_paths(partitions, **given).request
        parts = [
            parts_of_partitions(request, columns_of(rows_of(portion, rng)))
            for portion in dealt(partitions, rng.randint(1, 3), rng)
        ]
        told = [path_of(row) for row in merge(request, pa.concat_tables(parts)).to_pylist()]
        expected = naive.paths(partitions, request.alphabet, **oracle)
        assert told == [rounded_path(path) for path in expected], (seed, given)
        told_at_all += len(told)
    assert told_at_all > 1000
