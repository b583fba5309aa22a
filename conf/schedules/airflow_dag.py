"""PatternLake under Airflow 3: one task for all jobs that run often, one for those of the night.

A task runs the command in a process of its own, with one start of Spark for all its jobs, which run in the order of
dependence; a job that nothing is configured for does nothing. Retries are safe: a batch that was begun is taken over
with the same input. `max_active_runs=1` keeps two runs apart; should they meet all the same, one stops without harm.
(Airflow 2 has no `airflow.sdk`.)
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = "/opt/patternlake/.venv/bin/patternlake run {jobs} --conf /etc/patternlake/production.yaml"
OFTEN = ("ingest", "sketch", "trends", "groups", "patterns", "predict", "alerts")
NIGHTLY = ("evaluate", "maintain")


def run(jobs: tuple[str, ...]) -> None:
    """Add the task that runs some jobs to the DAG at hand."""
    BashOperator(task_id="run", bash_command=COMMAND.format(jobs=" ".join(jobs)))


with DAG(
    dag_id="patternlake",
    schedule="*/15 * * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    # A run reads whatever the last one left, so that missed times need not be made up for.
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=2)},
) as dag:
    run(OFTEN)

with DAG(
    dag_id="patternlake_nightly",
    schedule="40 3 * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=10)},
) as nightly_dag:
    run(NIGHTLY)
