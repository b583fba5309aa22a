"""Arrays of the kernels: of one type for all subscriptions, as kernels are compiled for each type; they grow."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.kernels.tables import Compiled, compiled
from patternlake.udfs.machines.kernels.workspace import (
    MORE_EXPIRY_HEAPS,
    MORE_FIRED,
    MORE_FOUND,
    MORE_GROUPS,
    MORE_INSTANCES,
    MORE_TALLY,
    NONE,
    enlarged,
    new_workspace,
)
from patternlake.udfs.machines.query import compile_subscription

JOINED = (
    "p ; q, r @(t(q) - t(p) < 5 MIN) DEFINE p AS name = 'a' AND x = $v AND y = $w, "
    "q AS name = 'b' AND x = $v AND y = $w WITHIN 9 EVENTS"
)
ALL = (MORE_INSTANCES, MORE_GROUPS, MORE_FOUND, MORE_FIRED, MORE_EXPIRY_HEAPS, MORE_TALLY)


def made(*texts: str) -> Compiled:
    scope = Scope(attributes={"x": "bigint", "y": "string"})
    return compiled([compile_subscription(parse(text), scope) for text in texts])


def test_tables_of_all_subscriptions_have_one_type() -> None:
    assert len({numba.typeof(made(*texts).tables) for texts in (["a"], ["a ; b", "a ; c"], [JOINED])}) == 1


def test_workspaces_of_all_subscriptions_and_sizes_have_one_type() -> None:
    workspaces = [new_workspace(made("a")), new_workspace(made(JOINED)), new_workspace(made(JOINED), tracing=True)]
    for wanted in ALL:
        workspaces.append(enlarged(workspaces[-1], wanted))
    assert len({numba.typeof(workspace) for workspace in workspaces}) == 1


@pytest.mark.parametrize("wanted", ALL)
def test_what_grows_keeps_what_it_holds(wanted: int) -> None:
    before = new_workspace(made(JOINED))
    before.instances["mask"][0], before.time[0], before.groups["since"][1], before.fired["link"][3] = 5, 7, 0.5, 9
    after = enlarged(before, wanted)
    grown = 0
    for name in before._fields:
        old, new = getattr(before, name), getattr(after, name)
        if name not in ("table", "group_table"):
            assert np.array_equal(new[: len(old)], old), name
        grown += len(new) > len(old)
    assert grown > 0


def test_new_rows_are_not_in_use() -> None:
    workspace = enlarged(new_workspace(made("a ; b")), MORE_INSTANCES, least=1000)
    assert len(workspace.instances) == len(workspace.joins) == len(workspace.pending) == 1000
    assert (workspace.instances["state"][1:] == NONE).all()
