"""What PARTITION BY is advised to say can be said."""

from __future__ import annotations

import pytest

from patternlake.udfs.language.query.names import key_word
from patternlake.udfs.language.query.parser import parse


@pytest.mark.parametrize(("key", "word"), [("user", "user"), ("user.id", "key"), ("within", "key"), (None, "key")])
def test_a_key_that_is_no_word_is_called_key(key: str | None, word: str) -> None:
    assert key_word(key, ["v"]) == word
    assert parse(f"a ; b PARTITION BY {word}").partition == (word,)


def test_a_key_that_an_attribute_is_called_like_is_called_key() -> None:
    # The word is the attribute then.
    assert key_word("station", ["v", "station"]) == "key"
