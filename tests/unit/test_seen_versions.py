"""What threads that share a look at tables in a store know of each other's looks and commits."""

from __future__ import annotations

from typing import Any, cast

import pytest

from patternlake.delta_tables.reading.table_logs import Seen


def version(number: int) -> Any:
    """Stands for a version of a table."""
    return cast(Any, number)


@pytest.fixture
def seen() -> Seen:
    found = Seen()
    found.add({"letters": version(1), "intents": version(1)}, found.changes)
    return found


def test_what_was_seen_stays(seen: Seen) -> None:
    assert (seen.get("letters"), seen.get("intents"), seen.get("publications")) == (1, 1, None)


def test_publications_are_seen_before_all_that_they_tell_of(seen: Seen) -> None:
    seen.add({"publications": version(2)}, seen.changes)
    assert (seen.get("publications"), seen.get("letters")) == (2, None)


def test_who_has_committed_looks_again(seen: Seen) -> None:
    seen.forget("letters")
    assert (seen.get("letters"), seen.get("intents")) == (None, 1)
    seen.forget()
    assert seen.get("intents") is None


def test_a_look_that_began_before_a_commit_is_not_kept(seen: Seen) -> None:
    began = seen.changes
    seen.forget("letters")  # another thread has committed
    seen.add({"letters": version(1)}, began)
    assert seen.get("letters") is None


def test_a_look_that_began_before_publications_were_seen_is_not_kept(seen: Seen) -> None:
    began = seen.changes
    seen.add({"publications": version(2)}, seen.changes)  # another thread has looked at them
    seen.add({"letters": version(1)}, began)
    assert seen.get("letters") is None


def test_publications_that_came_too_late_to_be_kept_make_all_else_old(seen: Seen) -> None:
    began = seen.changes
    seen.forget("quarantine")
    seen.add({"publications": version(2)}, began)
    assert (seen.get("publications"), seen.get("letters")) == (None, None)
