"""The most probable matches of groups: those of the paper's Fig. 2, and of the oracle's list of all matches."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from drawn import RANDOMS
from hypothesis import given, settings
from naive import groups as naive
from naive.group_cases import FIG_1, OTHERS, WRITTEN, engine_of, is_named, named, random_query, random_stream, stream_of

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.members import check_best, members_in
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.groups.request import GroupsRequest
from patternlake.udfs.groups.task import groups_of_partitions
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse

SCOPE = Scope(attributes={"v": "bigint"})


def table(streams: dict[str, naive.Stream]) -> dict[str, pa.Array]:
    """The rows of streams by key as columns of `events`; positions count from 1."""
    rows = [(key, step, row) for key, stream in streams.items() for step in stream for row in stream[step]]
    return {
        "part": pa.array([[key] for key, _, _ in rows], pa.list_(pa.string())),
        "position": pa.array(range(1, len(rows) + 1), pa.int64()),
        "time": pa.array([step for _, step, _ in rows], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "step": pa.array([step for _, step, _ in rows], pa.int64()),
        "key": pa.array([key for key, _, _ in rows], pa.string()),
        "name": pa.array([row.name for _, _, row in rows], pa.string()),
        "probability": pa.array([row.probability for _, _, row in rows], pa.float64()),
        "v:bigint": pa.array([row.value for _, _, row in rows], pa.int64()),
    }


def asked(query: naive.Query, best: int) -> GroupsRequest:
    return GroupsRequest(engine_of(query), {"v": "bigint"}, None, None, best)


def members(query: naive.Query, stream: naive.Stream, best: int) -> list[dict[str, Any]]:
    return members_in(asked(query, best), table({"k": stream})).to_pylist()


def test_the_best_matches_of_the_paper() -> None:
    # The paper's Fig. 2 names m1 … m4; all ten by their products.
    found = members(named("a, b+, c", 6), FIG_1, 10)
    assert {(row["t_start"], row["t_first"], row["t_end"]) for row in found} == {(1, 3, 6)}
    assert [row["match_no"] for row in found] == list(range(1, 11))
    best = found[0]
    assert (best["from_step"], best["to_step"], best["items"]) == (1, 6, ["a", "b", "b", "b", "b", "c"])
    chances = {(row["from_step"], row["to_step"]): round(row["probability"], 12) for row in found}
    assert chances[1, 3] == 0.07
    assert chances[1, 6] == 0.3528
    assert chances[2, 5] == 0.0168
    assert chances[4, 6] == 0.09
    assert len(members(named("a, b+, c", 6), FIG_1, 3)) == 3


def test_positions_are_those_of_the_stored_events() -> None:
    stream = {1: [naive.Row("a", 1.0)], 2: [naive.Row("b", 0.5), naive.Row("c", 0.25), naive.Row("b", 0.25)]}
    (row,) = members(named("a, b", 2), stream, 3)
    assert (row["items"], row["positions"], row["probability"]) == (["a", "b"], [[1], [2, 4]], 0.75)


def test_what_is_not_stored_has_no_position() -> None:
    letters = {name: is_named(name) for name in "abc"} | OTHERS
    stream = stream_of("a | b.3 c.2 | c") | {5: [naive.Row("c", 1.0)]}
    found = members(naive.Query("an+c", letters, "a, (!b)+, c", 5, others=frozenset("n")), stream, 9)
    assert [(row["to_step"], row["items"], row["positions"]) for row in found] == [
        (3, ["a", "!b", "c"], [[1], [3], [4]]),
        (5, ["a", "!b", "!b", "!b", "c"], [[1], [3], [4], [], [5]]),
    ]
    assert [row["probability"] for row in found] == pytest.approx([0.7, 0.7])


def test_keys_that_exceed_a_step_of_a_partition_together_are_refused() -> None:
    certain = {step: [naive.Row("a", 1.0)] for step in (1, 2)}
    request = asked(named("a, a", 2), 1)
    of_region = replace(request, groups=Groups(compile_query(parse("a, a PARTITION BY v"), SCOPE, within=2)))
    rows = table({"k": certain, "l": certain, "m": {5: [naive.Row("a", 0.5)]}})
    both = rows | {"part": pa.array([["south"]] * len(rows["position"]), pa.list_(pa.string()))}
    message = (
        "PARTITION BY v puts the keys 'k' and 'l' into one partition, south; rows of one step exclude one another, and "
        "theirs of step 1 have a probability of 2 together: add the stream's key to PARTITION BY"
    )
    for work in (members_in, groups_of_partitions):
        with pytest.raises(ArgumentError, match=re.escape(message)):
            work(of_region, both)
    # By key, each has its own steps.
    assert [row["key"] for row in members_in(request, rows).to_pylist()] == ["k", "l"]


def test_a_word_that_the_pattern_takes_in_two_ways_is_one_match() -> None:
    found = members(named("a*, a*", 3), stream_of("a.5 | a.5 | z"), 9)
    assert [(row["from_step"], row["to_step"], row["probability"]) for row in found] == [
        (1, 1, 0.5),
        (2, 2, 0.5),
        (1, 2, 0.25),
    ]


def test_products_below_what_doubles_hold_are_ranked() -> None:
    stream = {step: [naive.Row("a", 1e-9), naive.Row("b", 1e-8)] for step in range(60)}
    found = members(named("(a | b)[50]", 50), stream | {60: [naive.Row("z", 1.0)]}, 1)
    assert found[0]["items"] == ["b"] * 50
    assert found[0]["probability"] == 0.0


def check(rng: random.Random) -> None:
    query, best = random_query(rng), rng.randint(1, 6)
    streams = {key: random_stream(rng, 6) for key in "kl"}
    rows = members_in(asked(query, best), table(streams)).to_pylist()
    for key, stream in streams.items():
        mine = [row for row in rows if row["key"] == key]
        groups = naive.groups(query, stream)
        assert {(row["t_start"], row["t_first"], row["t_end"], row["final"]) for row in mine} == {
            (group.t_start, group.t_first, group.t_end, group.final) for group in groups
        }
        for group in groups:
            wanted = naive.members(query, stream, group)
            of_group = [row for row in mine if (row["t_first"], row["t_end"]) == (group.t_first, group.t_end)]
            place = f"{query} over {stream}"
            chances = [row["probability"] for row in of_group]
            assert chances == pytest.approx([match.probability for match in wanted[:best]], rel=1e-12), place
            listed = {
                (match.start, tuple(WRITTEN.get(letter, letter) for letter in match.word)): match.probability
                for match in wanted
            }
            found = {(row["from_step"], tuple(row["items"])): row["probability"] for row in of_group}
            assert len(found) == len(of_group), place
            assert all(chance == pytest.approx(listed[word], rel=1e-12) for word, chance in found.items()), place
            assert all(row["to_step"] == row["from_step"] + len(row["items"]) - 1 for row in of_group)


@settings(max_examples=300)
@given(RANDOMS)
def test_the_best_matches_are_those_of_the_oracle(rng: random.Random) -> None:
    check(rng)


@pytest.mark.parametrize("best", [0, -1, 101])
def test_a_number_of_matches_that_cannot_be_is_refused(best: int) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"best must be from 1 to 100, not {best}")):
        check_best(best)
