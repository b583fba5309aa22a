"""The sample schedules run every job, in the order in which they depend on each other.

Neither Airflow nor Databricks is installed here: what is checked is what the files say.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from patternlake.jobs.running import JOBS

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
