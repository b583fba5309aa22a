"""The sample schedules run every job, in the order in which they depend on each other; the sample service serves.

Neither Airflow nor Databricks is installed here: what is checked is what the files say.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import typer
import yaml

from patternlake.jobs.command_line.commands import app
from patternlake.jobs.running import JOBS

UNIT = Path(__file__).resolve().parents[2] / "conf" / "patternlake-serve.service"
SCHEDULES = Path(__file__).resolve().parents[2] / "conf" / "schedules"


def test_cron_runs_every_job() -> None:
    loops = re.findall(r"for job in ([\w ]+);", (SCHEDULES / "crontab.example").read_text())
    assert " ".join(loops).split() == list(JOBS)


def test_airflow_runs_every_job() -> None:
    source = (SCHEDULES / "airflow_dag.py").read_text()
    names = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert [*names["OFTEN"], *names["NIGHTLY"]] == list(JOBS)
    assert re.findall(r"^    tasks\((\w+)\)$", source, re.M) == ["OFTEN", "NIGHTLY"]
    assert "Airflow 3" in source, "airflow.sdk came with it"


def test_databricks_runs_every_job_after_those_that_it_depends_on() -> None:
    bundle = yaml.safe_load((SCHEDULES / "databricks_bundle.yml").read_text())
    ran = []
    for job in bundle["resources"]["jobs"].values():
        before = None
        for task in job["tasks"]:
            name = task["task_key"]
            assert task["python_wheel_task"]["parameters"][:2] == ["run", name]
            assert [each["task_key"] for each in task.get("depends_on", [])] == ([before] if before else [])
            ran.append(name)
            before = name
    assert ran == list(JOBS)


def test_the_unit_serves_with_options_that_the_command_has(tmp_path: Path) -> None:
    unit = ConfigParser(interpolation=None, delimiters="=", strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    _, command, *given = shlex.split(service["ExecStart"])
    options = typer.main.get_command(app).commands[command].make_context(command, given, resilient_parsing=False).params  # type: ignore[attr-defined]
    assert command == "serve"
    assert options["host"] == "127.0.0.1", "a sample lets nobody else in"
    assert float(service["TimeoutStopSec"]) > options["drain"], "systemd waits for what is drained"
    assert service["KillMode"] == "mixed", "SIGTERM to Spark's JVM would cut what runs"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    here = re.sub(r"^User=.*$", "User=root", UNIT.read_text(), flags=re.M)
    copied = tmp_path / UNIT.name
    copied.write_text(here.replace("/opt/patternlake/.venv/bin/patternlake", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copied)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
