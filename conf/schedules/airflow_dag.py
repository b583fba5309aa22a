"""PatternLake under Airflow 3: one task per job, in the order of dependence. (Airflow 2 has no `airflow.sdk`.)

A task runs the command in its own process, with its own Spark. Retries are safe: a batch that was begun is taken over
with the same input. `max_active_runs=1` keeps two runs apart; should they meet all the same, one stops without harm.
Leave out the jobs that nothing is configured for: each costs a start of Spark.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, chain

COMMAND = "/opt/patternlake/.venv/bin/patternlake run {job} --conf /etc/patternlake/production.yaml"
OFTEN = ("ingest", "sketch", "trends", "groups", "patterns", "predict", "alerts")
NIGHTLY = ("evaluate", "maintain")


def tasks(jobs: tuple[str, ...]) -> None:
    """Add a task for each job to the DAG at hand, one after the other."""
    chain(*[BashOperator(task_id=job, bash_command=COMMAND.format(job=job)) for job in jobs])


with DAG(
    dag_id="patternlake",
    schedule="*/15 * * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    # A run reads whatever the last one left, so that missed times need not be made up for.
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=2)},
) as dag:
    tasks(OFTEN)

with DAG(
    dag_id="patternlake_nightly",
    schedule="40 3 * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=10)},
) as nightly_dag:
    tasks(NIGHTLY)
