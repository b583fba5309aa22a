"""Queries for groups: what they compile to, and what a user reads whose query is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.named_events import named_events
from patternlake.udfs.errors import ArgumentError, PatternError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.groups.events import GroupEvents
from patternlake.udfs.groups.from_config import same_queries
from patternlake.udfs.groups.query import GroupQuery, compile_query
from patternlake.udfs.groups.request import GroupsReads, check_request, request_of
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.published import Published, PublishedBatch

ENGINE = "the groups engine (match_groups, group_members)"
SCOPE = Scope(attributes={"x": "double", "region": "string"}, parameters={"low": "2.5"}, key="station")


def compiled(text: str, **parameters: Any) -> GroupQuery:
    return compile_query(parse(text), SCOPE, **parameters)


def classes(query: GroupQuery, names: list[str], x: list[float | None]) -> list[list[str]]:
    """For each event the names of the symbols that hold of it."""
    words = sorted(set(names))
    values = np.array([value or 0.0 for value in x])
    known = np.array([value is not None for value in x])
    codes = np.array([words.index(name) for name in names], np.int64)
    found = query.alphabet.classes(named_events(codes, words, {"x": Column(values, known, "double")}))
    symbols = np.array([symbol.name for symbol in query.alphabet.symbols])
    return [symbols[query.alphabet.member[code]].tolist() for code in found]


def test_parameters_have_their_defaults() -> None:
    query = compiled("a, b WITHIN 7 EVENTS")
    assert (query.overlap, query.threshold, query.within) == ("single", 0.0, 7)
    assert compiled("a WITHIN 3 UNIT", within=3).within == 3


def test_equal_operands_share_a_symbol() -> None:
    query = compiled("a, b, a", within=3)
    assert [symbol.name for symbol in query.alphabet.symbols] == ["a", "b"]


def test_a_primitive_is_more_than_a_name() -> None:
    query = compiled("hot+, a DEFINE hot AS x > low", within=3)
    names, x = ["a", "a", "b", "b", "a"], [1.0, 3.0, 3.0, 2.5, None]
    assert classes(query, names, x) == [["a"], ["hot", "a"], ["hot"], [], ["a"]]
    assert query.columns == {"name", "x"}


def test_where_over_one_operand_narrows_that_operand() -> None:
    query = compiled("a AS first, a AS second, b WHERE first.x > 2", within=3)
    assert classes(query, ["a", "a", "b"], [1.0, 3.0, None]) == [["a"], ["a", "a"], ["b"]]


def test_where_without_operands_holds_for_all() -> None:
    query = compiled("a, b WHERE low > 3", within=3)
    assert classes(query, ["a", "b"], [1.0, 1.0]) == [[], []]


def test_any_event_is_any_stored_event() -> None:
    query = compiled("e DEFINE e AS TRUE", within=3)
    assert classes(query, ["a", "z"], [None, None]) == [["e"], ["e"]]
    assert not query.alphabet.member[0].any()


def test_a_negation_takes_every_other_event_and_what_is_not_stored() -> None:
    query = compiled("a, !b, _, NOT(a, b), '_', c", within=9)
    alphabet = query.alphabet
    shown = np.array([letter.shown for letter in alphabet.letters])
    assert shown.tolist() == ["a", "!b", "_", "NOT(a, b)", "_", "c"]
    words = ["a", "b", "c", "z", "_"]
    found = alphabet.classes(named_events(np.arange(5), words))
    taken = {word: shown[alphabet.member[code]].tolist() for word, code in zip(words, found, strict=True)}
    assert taken["a"] == ["a", "!b", "_"]
    assert taken["b"] == ["_"]
    assert taken["z"] == ["!b", "_", "NOT(a, b)"]
    assert taken["_"] == ["!b", "_", "NOT(a, b)", "_"]
    assert shown[alphabet.member[0]].tolist() == taken["z"]


def test_a_filter_of_a_negated_operand_says_which_events_are_missed() -> None:
    query = compiled("a, !b, c WHERE b.x > 2", within=3)
    assert classes(query, ["b", "b", "z"], [3.0, 1.0, None]) == [[], ["b"], ["b"]]


def test_a_column_that_is_missing_is_named() -> None:
    alphabet = compiled("hot DEFINE hot AS x > 1 AND step > 2", within=3).alphabet
    columns = {"x": Column(np.ones(1), np.ones(1, np.bool_), "double")}
    with pytest.raises(ArgumentError, match="column 'step' of the events is needed; given are x"):
        alphabet.classes(named_events(np.zeros(1, np.int64), ["a"], columns))


def test_partitions_are_columns() -> None:
    assert compiled("a PARTITION BY station, region", within=1).partition == ("key", "region")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a ; b", 3, f"{ENGINE} does not take ';' (then); its patterns are contiguous: write ','"),
        ("a, !b", 5, "'!' and '_' also take what is not stored, of which there is no first and no last; put a name on"),
        ("_?, a", 1, "'!' and '_' also take what is not stored"),
        ("a, (!b & c), d?", 6, "'!' and '_' also take what is not stored"),
        ("a, !_, c", 5, "'!_' takes nothing: '_' is any event"),
        ("a, !(b, c), d", 5, f"{ENGINE} does not take a run (,) inside a negation (!); only a name"),
        ("a, b @(t2 - t1 < 5 MIN)", 6, f"{ENGINE} does not take '@' (a condition on times)"),
        (
            "a, b WHERE a.x < b.x",
            12,
            f"{ENGINE} takes WHERE over one event at a time, not over several",
        ),
        ("a, b WITHIN 5 EVENTS SLIDE 2 EVENTS", 22, f"{ENGINE} does not take SLIDE"),
        ("a, b WITHIN 5 MIN", 6, f"{ENGINE} does not take WITHIN"),
    ],
)
def test_what_the_engine_does_not_take_is_named_with_its_place(text: str, column: int, message: str) -> None:
    with pytest.raises(UnsupportedOperatorError) as refusal:
        compiled(text, within=5)
    assert (refusal.value.line, refusal.value.column) == (1, column)
    assert refusal.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a WHERE a.y > 1", "y is not an attribute of the stream"),
        ("a PARTITION BY continent", "PARTITION BY continent: not an attribute of the stream"),
        ("hot DEFINE hot AS x > high", "high is not a column or a parameter"),
        ("a, b WHERE a.x = $v", "WHERE over one event at a time"),
        ("a, _ AS any, b WHERE any.x > 1", "'_' is any event, also one that is not stored and has no values"),
    ],
)
def test_names_out_of_scope_are_refused(text: str, message: str) -> None:
    with pytest.raises(PatternError) as refusal:
        compiled(text, within=5)
    assert isinstance(refusal.value, PredicateError | UnsupportedOperatorError)
    assert message in refusal.value.message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"overlap": "double"}, "overlap 'double': must be one of 'single', 'complete'"),
        ({"threshold": -0.1}, "threshold -0.1: must be from 0 to 1"),
        ({"threshold": 1.5}, "threshold 1.5: must be from 0 to 1"),
        ({"threshold": float("nan")}, "threshold nan: must be from 0 to 1"),
        ({"within": 0}, "within 0: must be 1 or more"),
        ({"within": -3}, "within -3: must be 1 or more"),
        ({"within": 4}, "within 4 contradicts WITHIN 5 EVENTS of the pattern"),
    ],
)
def test_parameters_that_cannot_be_are_refused_with_their_value(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        compiled("a, b WITHIN 5 EVENTS", **parameters)
    assert message in str(refusal.value)


def test_a_missing_window_is_refused() -> None:
    with pytest.raises(ArgumentError, match="within is missing"):
        compiled("a, b")


def test_a_name_in_quotes_is_another_query_than_the_wildcard() -> None:
    kept = configured("kept", "a, _, c", 1)
    assert same_queries({"pattern": "a , _, 'c'", "within": 3}, [kept]) == [kept]
    assert same_queries({"pattern": "a, '_', c", "within": 3}, [kept]) == []


def configured(name: str, pattern: str, read: int, **params: str) -> PublishedBatch:
    """What `groups` published of a query, which has read the stream up to a batch."""
    configuration = {"pattern": pattern, "within": 3, "params": params}
    source = {"ingest_base": 1, "ingest_batch": read}
    return PublishedBatch(2, 1, read, json.dumps(configuration), json.dumps(source), object=name)


def check(pattern: str, queries: list[PublishedBatch]) -> GroupsReads:
    """Check a call over a stream of seven batches."""
    attributes = {"v": {"type": "bigint", "expr": "v"}}
    stream = {"key": "who", "step": "t", "probability": "p", "attributes": attributes}
    at = PublishedBatch(1, 1, 7, json.dumps(stream))
    arguments = {"stream": "sensor", "pattern": pattern, "within": 3}
    return check_request(arguments, Published(at), ["sensor"], [], queries)


def test_what_is_kept_of_a_query_that_is_no_longer_configured_is_not_the_answer() -> None:
    pattern = "a, b WHERE b.v > least"
    dropped, current = configured("a dropped one", pattern, 5, least="1"), configured("current", pattern, 7, least="2")
    found = check(pattern, [dropped, current])
    assert found.kept == current.rows


def test_configured_queries_with_other_parameters_are_refused_by_name() -> None:
    pattern = "a, b WHERE b.v > least"
    low, high = (configured(name, pattern, 7, least=least) for name, least in (("low", "1"), ("high", "2")))
    with pytest.raises(ArgumentError) as refusal:
        check(pattern, [high, low])
    assert str(refusal.value) == (
        "several configured queries have this pattern, with other parameters: 'high' has params {'least': '2'}, 'low' "
        "has params {'least': '1'}; write the values into the pattern"
    )
    # A parameter that the pattern does not mention decides nothing.
    more = configured("more", pattern, 7, least="1", most="3")
    assert check(pattern, [low, more]).kept == low.rows


@pytest.mark.parametrize(
    ("key", "partition", "final"),
    [
        ("who", "", [True]),
        ("who", " PARTITION BY key", [True]),
        ("who", " PARTITION BY place", [False]),
        (None, " PARTITION BY place", [True]),
    ],
)
def test_a_group_is_final_where_steps_arrive_in_order(key: str | None, partition: str, final: list[bool]) -> None:
    attributes = {"place": {"type": "string", "expr": "place"}}
    stream = {"key": key, "step": "t", "probability": "p", "attributes": attributes}
    request = request_of({"pattern": f"a, b+{partition}", "within": 3}, stream)
    found = request.groups.query.alphabet.classes(named_events(np.arange(3), ["a", "b", "c"], {}))
    events = GroupEvents(np.array([1, 2, 4]), found, np.ones(3))
    assert request.answer(np.zeros(3, np.int64), events).final.tolist() == final
