"""match_seq takes what match_pattern takes, and says the same: of patterns beyond what the sketch engine matches."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn import SEEDED, SMALL
from hypothesis import given, settings
from naive.kleene import Event
from naive.kleene_random import TYPES, Language, random_events
from unit.sketch.sketch_in_memory import Tree

from patternlake.sql_ext.sketches import exact_existence, exact_sequences
from patternlake.sql_ext.sketches.exact_sequences import events_that_matter, matched_here
from patternlake.udfs import blocks
from patternlake.udfs.errors import ArgumentError, PatternError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan
from patternlake.udfs.kleene.query import compile_pattern
from patternlake.udfs.kleene.request import KleeneRequest, Portions
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.engines import is_matched_by_itself
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.limits import MAX_MATCHES
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.sketch import result
from patternlake.udfs.sketch.task import match_exactly

ANY, NEXT, STRICT = POLICIES = ("skip_till_any", "skip_till_next", "strict")
FORMS = ("absence", "deadline", "directly", "optional", "bounded", "until", "some_of", "after_match")
SCANNED = (*FORMS, "conjunction", "group", "steering")
KEYS = ("k", "l")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two leaves."""
    for module in (blocks, exact_sequences, result):
        monkeypatch.setattr(module, "BLOCK_BITS", 2)


def tree_of(events: Sequence[Event], keys: Sequence[str] = KEYS, **how: Any) -> Tree:
    """A sketch of a stream whose events are at positions 1, 2, …"""
    return Tree(
        [event.name for event in events],
        keys=keys,
        x=[event.values.get("x") for event in events],
        times=[event.time for event in events],
        block_bits=2,
        others={name: (TYPES[name], [event.values.get(name) for event in events]) for name in "ns"},
        **how,
    )


def match_seq(tree: Tree, text: str, **arguments: Any) -> pa.Table:
    reads = tree.request(text, **arguments)
    assert reads.request.pattern.lent is not None, text
    rows = matched_here(tree, reads, events_that_matter(tree, reads))
    assert rows is not None
    return rows


def match_pattern(
    tree: Tree,
    text: str,
    policy: str,
    after_match: str,
    key: str | None = None,
    from_time: int | None = None,
    to_time: int | None = None,
    max_matches: int = MAX_MATCHES,
    truncate: bool = False,
) -> pa.Table:
    """The rows of match_pattern, with the columns of match_seq."""
    pattern = compile_pattern(parse(text), Scope(attributes=TYPES, key="who"), policy=policy)
    request = KleeneRequest(
        pattern=pattern,
        plan=choose_plan(pattern, Statistics({})).plan,
        types=TYPES,
        policy=policy,
        after_match=after_match,
        max_matches=max_matches,
        truncate=truncate,
        key=key,
        watermark=None,
        before=None,
        portions=Portions(),
    )
    columns = dict(columns_of(tree.stored))
    times = np.asarray(columns["time"].cast(pa.int64()))
    inside = np.ones(len(times), np.bool_)
    if from_time is not None:
        inside &= times >= from_time
    if to_time is not None:
        inside &= times <= to_time
    if key is not None:
        inside &= np.asarray(columns["key"]) == key
    read = {name: column.filter(pa.array(inside)) for name, column in columns.items()}
    read["part"] = pa.array([[value] for value in read["key"].to_pylist()], pa.list_(pa.string()))
    rows = pa.concat_tables(match_partitions(request, 0, read))
    steps = [
        [{"operand": name, "from_position": at, "to_position": at} for name, positions in bindings for at in positions]
        for bindings in rows["bindings"].to_pylist()
    ]
    rows = rows.drop_columns(["bindings", "final"])
    exact = {
        "steps": pa.array(steps, pa.list_(result.STEP_TYPE)),
        "level": pa.array([0] * len(rows), pa.int32()),
        "exact": pa.array([True] * len(rows), pa.bool_()),
        "fp_bound": pa.array([0.0] * len(rows), pa.float64()),
    }
    for name, column in exact.items():
        rows = rows.append_column(name, column)
    return rows


def clauses(rng: random.Random, asked: Language) -> str:
    """The text of a random question, perhaps by key and with measures."""
    body, window, within = asked.text.partition(" WITHIN ")
    measures = [
        f"{rng.choice(['COUNT', 'FIRST', 'LAST', 'MAX'])}({name}.{rng.choice('xn')}) AS m{number}"
        for number, name in enumerate(asked.names)
        if rng.random() < 0.3
    ]
    body += f" MEASURES {', '.join(measures)}" if measures else ""
    return body + (" PARTITION BY key" if rng.random() < 0.3 else "") + window + within


def question(rng: random.Random, policy: str) -> tuple[str, str]:
    """A random pattern that match_pattern takes and the sketch engine does not match by itself, and its after_match."""
    while True:
        forms = [form for form in (FORMS if policy == ANY else SCANNED) if rng.random() < 0.5]
        asked = Language(rng, policy=policy, forms=forms)
        text = clauses(rng, asked)
        try:
            compile_pattern(parse(text), Scope(attributes=TYPES, key="who"), policy=policy)
        except (PredicateError, UnsupportedOperatorError):
            continue
        if not is_matched_by_itself(parse(text), "sketch"):
            return text, asked.after_match


def check(rng: random.Random) -> None:
    policy = rng.choice(POLICIES)
    text, after_match = question(rng, policy)
    events = random_events(rng, rng.randint(1, 12), names=rng.choice(["ABC", "ABCDEFGH"]))
    if rng.random() < 0.5:
        # Some of them far from the others, for windows to tell apart.
        far = rng.randint(0, len(events))
        events = [
            Event(e.position, e.time + (100_000 if place >= far else 0), e.name, e.values)
            for place, e in enumerate(events)
        ]
    how: dict[str, Any] = {"policy": policy, "after_match": after_match}
    if rng.random() < 0.2 and "PARTITION" not in text:
        how["key"] = "k"
    low, high = sorted(rng.choice(events).time for _ in range(2))
    how |= {name: at for name, at in (("from_time", low), ("to_time", high)) if rng.random() < 0.2}
    if rng.random() < 0.2:
        how |= {"max_matches": rng.randint(1, 3), "truncate": rng.random() < 0.5}
    tree = tree_of(events, fpq=rng.choice([1e-9, 0.3]))
    try:
        wanted = match_pattern(tree, text, **how)
    except ArgumentError as error:
        with pytest.raises(ArgumentError, match=f"^{re.escape(str(error))}$"):
            match_seq(tree, text, **how)
        return
    found = match_seq(tree, text, **how)
    assert found.column_names[: len(result.ROWS)] == result.ROWS.names
    # As texts: NaN is itself.
    assert str(found.select(wanted.column_names).to_pylist()) == str(wanted.to_pylist()), f"{text}, {how}"
    exists = exact_existence.occurs_here(
        tree, tree.request(**exact_existence.as_sequences({"pattern": without_measures(text), **how}))
    )
    assert exists == bool(wanted.num_rows), f"{text}, {how}"


def without_measures(text: str) -> str:
    body, _, rest = text.partition(" MEASURES ")
    clause = next((word for word in (" PARTITION BY ", " WITHIN ") if word in rest), None)
    return body if clause is None else body + clause + rest.split(clause, 1)[1]


@settings(max_examples=50)
@given(SMALL)
def test_it_says_what_match_pattern_says(rng: random.Random) -> None:
    check(rng)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_it_says_what_match_pattern_says_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng)


def steps(rows: pa.Table) -> list[str]:
    return [" ".join(f"{step['operand']}{step['from_position']}" for step in row) for row in rows["steps"].to_pylist()]


def letters(text: str, **how: Any) -> Tree:
    """One event a minute, of the key k."""
    return tree_of(
        [Event(at, at * 60_000_000, name, {"x": float(at)}) for at, name in enumerate(text.split(), 1)], ("k",), **how
    )


@pytest.mark.parametrize(
    ("pattern", "how", "rows"),
    [
        ("A ; B+ ; C", {}, ["A1 B2 C3", "A5 B8 C11", "A13 B14 C15"]),
        ("A ; B+ ; C", {"after_match": "first B"}, ["A1 B2 C3", "A5 B8 C11", "A9 B12 B14 C15", "A13 B14 C15"]),
        ("(A | (B ; C)) ; B AS e", {}, ["A1 e2", "B4 C7 e8", "A9 e12", "A13 e14"]),
        ("A ; B? , C", {"policy": "strict"}, ["A1 B2 C3", "A6 C7", "A13 B14 C15"]),
        ("A ; !B WITHIN 2 MIN", {"after_match": "next"}, ["A5", "A6", "A9"]),
        ("2 OF (B, C, D) ; A", {}, ["B2 C3 D10 A13"]),
        ("A ; B+ AS b ; D WHERE SUM(b.x) = 14", {}, ["A1 b2 b4 b8 D10"]),
    ],
)
def test_worked_answers(pattern: str, how: dict[str, Any], rows: list[str]) -> None:
    assert steps(match_seq(letters("A B C B A A C B A D C B A B C B"), pattern, **how)) == rows


def test_only_events_near_every_kind_that_a_match_needs_are_read() -> None:
    tree = letters(" ".join(["A", "x", "x", "x"] * 20 + ["A", "B", "x", "D"] + ["x", "B", "x", "x"] * 20))
    assert steps(match_seq(tree, "A ; B+ ; !C ; D WITHIN 4 MIN")) == ["A81 B82 D84"]
    assert set(tree.blocks_read) == {20, 21}
    tree.blocks_read.clear()
    assert steps(match_seq(tree, "A ; B+ ; E")) == []
    assert tree.blocks_read == []


def test_bounds_of_positions_hide_events_and_do_not_number_them_anew() -> None:
    tree = letters("A x B A B")
    assert steps(match_seq(tree, "A+ , B", from_position=4)) == ["A4 B5"]
    assert steps(match_seq(tree, "A+ ; B WITHIN 3 EVENTS", to_position=3)) == ["A1 B3"]
    assert steps(match_seq(tree, "A+ ; B WITHIN 2 EVENTS", to_position=3)) == []


def test_names_are_those_of_all_tokens() -> None:
    tree = letters("A B C")
    tokens = pa.array([["A", "t"], ["B", "u"], ["C", "t"]], pa.list_(pa.string()))
    tree.stored = tree.stored.set_column(tree.stored.column_names.index("tokens"), "tokens", tokens)
    for policy in (ANY, NEXT):
        asked = tree.request("A ; t+ ; !b DEFINE b AS name = 'B'", policy=policy)
        request = replace(asked.request, tokens_are_names=False, expressions=2)
        assert steps(pa.concat_tables(match_exactly(request, columns_of(tree.stored)))) == ["A1 t3"]


@pytest.mark.parametrize(
    ("pattern", "how", "says"),
    [
        ("(A ; B)+", {"policy": "skip_till_any"}, "skip_till_next and strict repeat groups"),
        ("A ; B+ WITHIN 5 MIN SLIDE 1 MIN", {}, "does not take SLIDE; leave it out"),
        ("A ; B @(t(B) - t(A) < 5 MIN)", {}, "WHERE takes conditions on times"),
        ("!A", {}, "'!' .not. stands alone; a match takes an event"),
        ("A ; B+ WHERE SUM(A.x) > 1", {}, "A"),
        ("A ; B+ PARTITION BY n", {}, "write PARTITION BY who, or ask match_pattern, which takes any column"),
        ("A ; B+", {"after_match": "last C"}, "C is not an operand that takes events"),
        ("A ; B", {"after_match": "last B"}, "after_match must be one of past_last, next"),
        (" ; ".join(["A"] * 201), {}, "a pattern has at most 200 operands"),
        ("A ; B+", {"verify": False}, "ask match_seq or match_exists without verify => false"),
    ],
)
def test_refusals_say_what_to_write(pattern: str, how: dict[str, Any], says: str) -> None:
    with pytest.raises((ArgumentError, PatternError), match=says):
        letters("A B").request(pattern, **how)


def test_a_column_called_like_a_built_in_one_does_not_name_the_key() -> None:
    tree = letters("A B")
    tree.key = "name"
    with pytest.raises(ArgumentError, match=r"PARTITION BY name: .* partition by the stream's key only; write .* key,"):
        tree.request("A ; B PARTITION BY name")
