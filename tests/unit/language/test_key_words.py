"""What PARTITION BY is advised to say can be said."""

from __future__ import annotations

import pytest

from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.partitions import key_word


@pytest.mark.parametrize(("key", "word"), [("user", "user"), ("user.id", "key"), ("within", "key"), (None, "key")])
def test_a_key_that_is_no_word_is_called_key(key: str | None, word: str) -> None:
    assert key_word(key, ["v"]) == word
    assert parse(f"a ; b PARTITION BY {word}").partition == (word,)


def test_a_key_that_an_attribute_is_called_like_is_called_key() -> None:
    # The word is the attribute then.
    assert key_word("station", ["v", "station"]) == "key"


def test_a_key_that_a_built_in_column_is_called_like_is_called_key() -> None:
    # The word is the event's name then.
    assert key_word("name", ["v"]) == "key"
