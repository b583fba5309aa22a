"""Long streams: no product underflows, no group ends for its length, and the state stays as small as the window."""

from __future__ import annotations

import numpy as np
import pytest
from naive.group_cases import engine_of, named, stream_of

from benchmarks.named_events import named_events
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.state import no_state


def rows_of(engine: Groups, steps: np.ndarray, chances: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Rows of one key: for each name its probability in each step."""
    words = list(chances)
    names = np.tile(np.arange(len(words)), len(steps))
    codes = engine.query.alphabet.classes(named_events(names, words))
    values = np.stack([np.broadcast_to(chances[word], steps.shape) for word in words], axis=1).ravel()
    return np.zeros(len(names), np.int64), np.repeat(steps, len(words)), codes, values


def test_a_match_of_any_probability_is_reachable() -> None:
    n = 5000
    engine = engine_of(named("a, b+, c", n))
    steps = np.arange(n)
    inner = (steps > 0) & (steps < n - 1)
    chances = {
        "a": np.where(steps == 0, 1e-300, 0.0),
        "b": np.where(inner, 1e-300, 0.0),
        "c": np.where(steps == n - 1, 1.0, 0.0),
    }
    rows = engine.answer(*rows_of(engine, steps, chances))
    # Its probability, 1e-300 to the power of 4999, is no double.
    assert (rows.t_start.tolist(), rows.t_end.tolist(), rows.probability.tolist()) == ([0], [n - 1], [0.0])
    rare = engine_of(named("a, b+, c", n, threshold=1e-300))
    assert len(rare.answer(*rows_of(rare, steps, chances))) == 0


def test_one_group_of_a_hundred_thousand_steps() -> None:
    n = 100_000
    engine = engine_of(named("a, b", 2))
    rng = np.random.default_rng(1)
    share = rng.uniform(1e-4, 2e-4, n)
    rows = engine.answer(*rows_of(engine, np.arange(n), {"a": share, "b": 1 - share}))
    assert rows.t_start.tolist() == [0]
    # No match occurs only if every b comes before every a.
    log_a, log_b = np.log(share), np.log1p(-share)
    splits = np.concatenate([[0], np.cumsum(log_b)]) + np.concatenate([np.cumsum(log_a[::-1])[::-1], [0]])
    assert rows.probability[0] == pytest.approx(1 - np.exp(np.logaddexp.reduce(splits)), rel=1e-9)


def test_groups_late_in_a_stream_are_those_of_its_end_alone() -> None:
    engine = engine_of(named("a, b+, c", 12, overlap="complete"))
    chances = np.random.default_rng(4).dirichlet(np.ones(4), 50_000).T
    steps = np.arange(50_000)
    late = steps >= 49_900
    whole = engine.answer(*rows_of(engine, steps, dict(zip("abcd", chances, strict=True))))
    end = engine.answer(*rows_of(engine, steps[late], dict(zip("abcd", chances[:, late], strict=True))))
    # The first groups of the end alone lack what came before.
    assert end.t_first[50:].tolist() == whole.t_first[-len(end) + 50 :].tolist()
    np.testing.assert_allclose(whole.probability[-len(end) + 50 :], end.probability[50:], rtol=1e-14)


def test_every_step_is_a_group_where_the_pattern_is_one_event() -> None:
    engine = engine_of(named("a", 1, overlap="complete"))
    chance = np.random.default_rng(2).uniform(0.1, 0.9, 1000)
    rows = engine.answer(*rows_of(engine, np.arange(1000), {"a": chance, "b": 1 - chance}))
    assert rows.t_first.tolist() == list(range(1000))
    np.testing.assert_allclose(rows.probability, chance, rtol=1e-15)


@pytest.mark.parametrize("overlap", ["single", "complete"])
def test_the_state_does_not_grow_with_the_stream(overlap: str) -> None:
    engine = engine_of(named("a, b+, c", 12, overlap=overlap))
    state, sizes = no_state(), []
    for run in range(30):
        chances = np.random.default_rng(run).dirichlet(np.ones(3), 200).T
        rows = rows_of(engine, np.arange(200 * run, 200 * (run + 1)), dict(zip("abc", chances, strict=True)))
        state, _ = engine.advance(state, *rows)
        sizes.append(len(state.to_bytes()[0]))
    assert max(sizes[2:]) <= max(sizes[:2]) * 1.2


def test_steps_of_any_size_are_taken() -> None:
    engine = engine_of(named("a, b", 2))
    for first in (-(2**62), 2**62):
        stream = stream_of("a | b | c", first)
        keys = np.zeros(3, np.int64)
        steps = np.array(sorted(stream), np.int64)
        names = np.arange(3)
        rows = engine.answer(keys, steps, engine.query.alphabet.classes(named_events(names, list("abc"))), np.ones(3))
        assert (rows.t_start.tolist(), rows.t_end.tolist()) == ([first], [first + 1])


def test_many_keys_are_answered_at_once() -> None:
    engine = engine_of(named("a, b+, c", 10, threshold=0.01))
    rng = np.random.default_rng(3)
    keys = np.repeat(np.arange(2000), 20)
    steps = np.tile(np.repeat(np.arange(10), 2), 2000)
    chances = np.repeat(rng.uniform(0, 1, 20_000), 2)
    chances[1::2] = 1 - chances[1::2]
    classes = engine.query.alphabet.classes(named_events(rng.integers(0, 3, 40_000), list("abc")))
    rows = engine.answer(keys, steps, classes, chances)
    picked = rng.integers(0, 2000, 20)
    for key in picked:
        mine = keys == key
        alone = engine.answer(keys[mine], steps[mine], classes[mine], chances[mine])
        assert alone.probability.tolist() == rows.probability[rows.key == key].tolist()
        assert alone.t_end.tolist() == rows.t_end[rows.key == key].tolist()
    assert len(rows) > 500
