"""The sample schedules run every job, in the order in which they depend on each other; the sample service serves.

Each is read by a tool of its own kind, too. Airflow wants other versions of packages than PatternLake, so it stands in
an environment of its own: that whose Python the variable AIRFLOW_PYTHON names, or one that is installed once.
"""

from __future__ import annotations

import ast
import json
import os
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
from crontab import CronTab
from databricks.bundles.jobs import Job
from environments import installed

from patternlake.jobs.command_line.commands import app
from patternlake.jobs.runs.steps import JOBS

UNIT = Path(__file__).resolve().parents[2] / "conf" / "patternlake-serve.service"
SCHEDULES = Path(__file__).resolve().parents[2] / "conf" / "schedules"
COMMAND = "/opt/patternlake/.venv/bin/patternlake"
PARSED = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
dags = {name: [task.bash_command for task in dag.tasks] for name, dag in bag.dags.items()}
print(json.dumps([bag.import_errors, dags]))
"""


def test_cron_runs_every_job() -> None:
    runs = re.findall(r"\$PATTERNLAKE run ([\w ]+) --conf", (SCHEDULES / "crontab.example").read_text())
    assert " ".join(runs).split() == list(JOBS)


def test_cron_takes_every_line_of_the_crontab() -> None:
    entries = list(CronTab(tabfile=str(SCHEDULES / "crontab.example")))
    assert [str(entry.slices) for entry in entries] == ["*/15 * * * *", "40 3 * * *", "5 * * * *"]
    assert all(entry.is_valid() for entry in entries)
    assert not any("%" in entry.command for entry in entries), "cron takes it for the end of the line"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_airflow_takes_the_dags(tmp_path: Path) -> None:
    python = os.environ.get("AIRFLOW_PYTHON") or installed("airflow", SCHEDULES / "requirements.txt") / "python"
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [str(python), "-c", PARSED, str(SCHEDULES / "airflow_dag.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    errors, dags = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    assert {name: [command.split(" --conf ")[0] for command in commands] for name, commands in dags.items()} == {
        "patternlake": [f"{COMMAND} run ingest sketch trends groups patterns predict alerts"],
        "patternlake_nightly": [f"{COMMAND} run evaluate maintain"],
    }


def test_airflow_runs_every_job() -> None:
    source = (SCHEDULES / "airflow_dag.py").read_text()
    names = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert [*names["OFTEN"], *names["NIGHTLY"]] == list(JOBS)
    assert re.findall(r"^    run\((\w+)\)$", source, re.M) == ["OFTEN", "NIGHTLY"]
    assert "Airflow 3" in source, "airflow.sdk came with it"


def test_databricks_takes_the_jobs_of_the_bundle() -> None:
    # Its own package of classes that are made from the bundles' schema; the schema itself comes with the command alone.
    bundle = yaml.safe_load((SCHEDULES / "databricks_bundle.yml").read_text())
    for job in bundle["resources"]["jobs"].values():
        assert Job.from_dict(job).as_dict() == job
        with pytest.raises(ValueError, match="Unexpected field 'max_concurent_runs'"):
            Job.from_dict({**job, "max_concurent_runs": 1})


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
