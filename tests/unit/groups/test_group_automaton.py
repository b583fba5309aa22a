"""Automata: the paper's own transducers, ages where they matter, and what is too large."""

from __future__ import annotations

import pytest

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.groups.automaton.subsets import Automaton, automaton_of
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.query.parser import parse


def automaton(text: str, within: int, overlap: str = "single") -> Automaton:
    return automaton_of(compile_query(parse(text), within=within, overlap=overlap))


def test_moves_are_those_of_the_paper_s_matrix() -> None:
    # Fig. 8: {} -a-> 1, 1 -b-> 2, 2 -b-> 2 one step older, 2 -c-> final, any -a-> 1, all else -> {}.
    found = automaton("a, b+, c", 4)
    assert found.inject.to.tolist() == [[0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 3, 0], [0, 1, 0, 0]]
    assert found.inject.accepts.any(axis=0).tolist() == [False, False, False, True]
    assert found.inject.accepts[:, 3].tolist() == [False, False, True, True]


def test_without_new_runs_an_a_ends_the_others() -> None:
    # Fig. 10 (b).
    found = automaton("a, b+, c", 4, "complete")
    assert found.carry.to[:, 1].tolist() == [0, 0, 0, 0]
    assert found.carry.to[:, 2].tolist() == found.inject.to[:, 2].tolist()
    assert found.carry.accepts.tolist() == found.inject.accepts.tolist()


def test_a_run_inside_another_is_kept() -> None:
    # The paper's rules lose the run that began with the last a.
    [_, one, *_] = automaton("a+, b", 9).states
    assert len(one) == 1
    states = automaton("a, a, b", 9).states
    assert max(len(state) for state in states) == 2


@pytest.mark.parametrize("overlap", ["single", "complete"])
def test_patterns_that_end_inside_the_window_have_no_ages(overlap: str) -> None:
    sizes = {len(automaton("a, (b | c){1,3}, d?", within, overlap).states) for within in (5, 50, 5000)}
    assert len(sizes) == 1
    assert all(age == 0 for state in automaton("a, b[3], c", 5, overlap).states for _, age in state)


def test_ages_grow_with_the_window_where_a_repetition_can_leave_it() -> None:
    # {}, a, and b in all ages that leave a step for c.
    assert [len(automaton("a, b+, c", within).states) for within in (3, 10, 100)] == [3, 10, 100]
    # Every b is younger than the ones before it.
    assert len(automaton("b+, c", 1000).states) == 2


@pytest.mark.parametrize(
    ("text", "within"),
    [("a, b+, c", 20_000), ("a[10001]", 10), ("(a?)[2000]", 10), ("a, x[13], b DEFINE x AS TRUE", 20)],
)
def test_large_automata_are_refused_by_name(text: str, within: int) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"the automaton of this pattern.*10,000 states") as refusal:
        automaton(text, within)
    assert (refusal.value.line, refusal.value.column) == (1, 1)


def test_the_refused_window_is_named() -> None:
    with pytest.raises(UnsupportedOperatorError, match="with a window of 20,000 steps"):
        automaton("a, b+, c", 20_000)


def test_the_largest_automata_are_taken() -> None:
    assert len(automaton("a, b+, c", 10_000).states) == 10_000


def test_too_many_predicates_are_refused() -> None:
    names = [f"d{at}" for at in range(13)]
    text = f"{', '.join(names)} DEFINE {', '.join(f'{name} AS step > {at}' for at, name in enumerate(names))}"
    with pytest.raises(UnsupportedOperatorError, match="tell 8192 classes of events apart, more than 4096"):
        automaton(text, 20)
