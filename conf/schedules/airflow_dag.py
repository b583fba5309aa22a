"""PatternLake under Airflow (3, or 2 with the standard provider): one task per job, in the order of dependence.

A task runs the command in its own process, with its own Spark. Retries are safe: a batch that was begun is taken over
with the same input. `max_active_runs=1` keeps two runs apart; should they meet all the same, one stops without harm.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = "/opt/patternlake/.venv/bin/patternlake run {job} --conf /etc/patternlake/production.yaml"

with DAG(
    dag_id="patternlake",
    schedule="*/15 * * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    # A run reads whatever the last one left, so that missed times need not be made up for.
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=2)},
) as dag:
    ingest = BashOperator(task_id="ingest", bash_command=COMMAND.format(job="ingest"))
    sketch = BashOperator(task_id="sketch", bash_command=COMMAND.format(job="sketch"))
    ingest >> sketch

with DAG(
    dag_id="patternlake_maintain",
    schedule="40 3 * * *",
    start_date=datetime(2025, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=10)},
) as maintain_dag:
    BashOperator(task_id="maintain", bash_command=COMMAND.format(job="maintain"))
