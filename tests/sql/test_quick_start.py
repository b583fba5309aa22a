"""The quick start of README.md, run as it is printed, in a folder that is empty, and there again on the next day."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PRINTED = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<shown>.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing is in it but the snippets, one behind the other."""
    folder = tmp_path_factory.mktemp("quick_start")
    found = list(PRINTED.finditer(README))
    assert len(found) == 2, "README.md asks over a table and over a stream, each time with what is printed"
    (folder / "quick_start.py").write_text("".join(each["code"] for each in found), encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=["on the first day", "on the next day"])
def done(request: pytest.FixtureRequest, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process for each of the days, in their order."""
    command = [sys.executable, "quick_start.py"]
    environment = {**os.environ, "PATTERNLAKE_DRIVER_MEMORY": "2g"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=540
    )


def test_the_quick_start_prints_what_the_readme_shows(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    shown = "".join(each["shown"] for each in PRINTED.finditer(README))
    assert [line for line in done.stdout.splitlines() if line] == [line for line in shown.splitlines() if line]


def test_nothing_but_the_answer_is_printed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.stderr == "", "neither Spark's start nor jobs nor questions have anything to say where all is well"


def test_commands_find_the_lake_of_the_session(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    command = [sys.executable, "-m", "patternlake", "status", "--conf", "shop.yaml", "--format", "json"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    assert told.returncode == 0, told.stderr
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(each["job"], each["object"], each["batch_id"]) for each in found] == [
        ("ingest", "clicks", 1),
        ("sketch", "clicks", 1),
    ]
