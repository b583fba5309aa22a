"""What people read of an error."""

from __future__ import annotations

import pytest

from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import ArgumentError, PatternSyntaxError


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ArgumentError("two\nlines"), "two\nlines"),
        (
            PatternSyntaxError("found ';', expected a name", "A ; ; B", 4),
            "line 1, column 5: found ';', expected a name\n  A ; ; B\n      ^",
        ),
        (
            Exception(
                "An error occurred while calling o9.collectToPython.\n: org.apache.spark.SparkRuntimeException: "
                "[USER_RAISED_EXCEPTION] line 1, column 3: odd\n  A ; ; B\n      ^ SQLSTATE: P0001\n\tat org.apache"
            ),
            "line 1, column 3: odd\n  A ; ; B\n      ^",
        ),
        (Exception("[USER_RAISED_EXCEPTION] no such stream\n\nJVM stacktrace:\norg.apache…"), "no such stream"),
        (ValueError(), "ValueError"),
        (ValueError("bad\nworse"), "ValueError: bad"),
    ],
)
def test_an_error_is_told_without_the_machinery_that_it_came_through(raised: Exception, said: str) -> None:
    assert message(raised) == said
