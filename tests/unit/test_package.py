"""What the package shows of itself."""

from __future__ import annotations

import pytest

import patternlake


def test_the_package_shows_its_functions_and_nothing_else() -> None:
    shown = [name for name in dir(patternlake) if not name.startswith("_")]
    assert shown == [name for name in patternlake.__all__ if not name.startswith("_")]
    assert {"match_recognize", "plot", "session"} <= set(shown)


def test_a_name_that_is_typed_wrong_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'match_sec'; near it: match_seq"):
        _ = patternlake.match_sec
