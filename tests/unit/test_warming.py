"""What is compiled at set-up is what the jobs and the functions run: they meet no types that were not compiled for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from patternlake.udfs import warming

pytestmark = pytest.mark.slow


@pytest.mark.timeout(3600)
def test_hundreds_of_random_questions_compile_nothing_that_warming_has_not() -> None:
    # In a process of its own: what other tests have compiled would hide what is missing.
    questions = [sys.executable, "-m", "unit.warming_questions", "200"]
    path = os.pathsep.join([*(entry for entry in sys.path if entry), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(questions, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_command_names_what_it_has_compiled() -> None:
    command = [sys.executable, "-m", "patternlake.udfs.warming"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.rpartition(":")[0].strip() for line in told] == list(warming.WARMED)
