"""A warning for whoever asks is on a console once for each statement, whether or not a program logs."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings

import pytest

from patternlake.sql_ext.answering.user_warnings import warn_user

_PROGRAM = """
import logging, sys, warnings
from patternlake.sql_ext.answering.user_warnings import warn_user
{setting}
for _ in range({times}):
    warn_user("the key 'K1' never occurred")
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "setting",
    [
        "",
        "logging.basicConfig()",
        "logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)",
        "logging.getLogger('patternlake').addHandler(logging.StreamHandler())",
        "logging.getLogger('patternlake').addHandler(logging.NullHandler())",
        "logging.basicConfig(level=logging.ERROR)",
        "logging.captureWarnings(True); logging.basicConfig()",
    ],
)
def test_a_console_has_a_warning_once_for_each_statement(setting: str, times: int) -> None:
    program = [sys.executable, "-c", _PROGRAM.format(setting=setting, times=times)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    assert (ended.stdout + ended.stderr).count("the key 'K1' never occurred") == times


def test_a_warning_names_the_line_that_asked_and_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(UserWarning, match="never") as told, caplog.at_level(logging.WARNING):
        warn_user("it never occurred")
    assert [each.filename for each in told] == [__file__]
    assert [record.getMessage() for record in caplog.records] == ["it never occurred"]


def test_filters_of_warnings_hold() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="never"):
            warn_user("it never occurred")
        warnings.simplefilter("ignore")
        warn_user("it never occurred")
