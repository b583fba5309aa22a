"""The dbt package: its example project, run by dbt itself on a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from environments import installed
from pyhive import hive
from sql.served import Served, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "integrations" / "dbt"
FAILING = """
version: 2
sources:
  - name: built
    schema: shop
    tables:
      - name: abandoned_carts
        data_tests:
          - patternlake.pattern_never:
              name: nobody_pays
              arguments: {stream: clicks, pattern: cart ; pay PARTITION BY user WITHIN 1 HOUR}
          - patternlake.pattern_always:
              name: somebody_pays_twice
              arguments: {stream: clicks, pattern: pay ; pay}
          - patternlake.pattern_always:
              name: who_leaves_has_paid
              arguments:
                {stream: clicks, pattern: pay ; leave PARTITION BY user, key_column: customer, function: match_seq}
"""
WRITTEN = """
{{ patternlake.match_pattern("it's", 'A ; B', params={'least': 2, 'most': none}, max_matches=5, truncate=true,
   from_time='2025-03-03', as_of=modules.datetime.datetime(2025, 3, 3, 9, 5)) }}
{{ patternlake.match_exists('clicks', 'cart', key_column='t.user') }}
{{ patternlake.predict_match('third_strike', threshold=0.25) }}
"""


@pytest.fixture(scope="session")
def dbt() -> Path:
    """The command: that which PATTERNLAKE_DBT names, or one that is installed once, into build/dbt."""
    if named := os.environ.get("PATTERNLAKE_DBT"):
        return Path(named)
    return installed("dbt", PACKAGE / "requirements.txt") / "dbt"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example beside the package, with its lake."""
    folder = tmp_path_factory.mktemp("dbt") / "dbt"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("target", "dbt_packages", "logs", "lake"))
    example = folder / "example"
    environment = {**os.environ, "PATTERNLAKE_DRIVER_MEMORY": "2g", "PATTERNLAKE_MASTER": "local[2]"}
    command = [sys.executable, "-m", "patternlake.jobs.command_line", "run", "all", "--conf", "shop.yaml"]
    subprocess.run(command, cwd=example, env=environment, check=True, capture_output=True, timeout=900)
    return example


@pytest.fixture(scope="module")
def served(project: Path) -> Iterator[Served]:
    with serving(project / "shop.yaml", "--insecure", "--allow-writes", folder=project) as found:
        yield found
        assert found.end() == 0


def ran(dbt: Path, project: Path, served: Served, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DBT_PROFILES_DIR": str(project),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "PATTERNLAKE_PORT": str(served.port),
    }
    return subprocess.run(
        [str(dbt), *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture(scope="module")
def built(dbt: Path, project: Path, served: Served) -> str:
    """What dbt said when it built the project twice: models that are there already are replaced."""
    for arguments in (["deps"], ["build"], ["build"]):
        done = ran(dbt, project, served, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_builds_and_its_tests_pass(built: str) -> None:
    assert "PASS=6 WARN=0 ERROR=0" in built


def test_models_hold_what_the_functions_answer(built: str, served: Served) -> None:
    with closing(hive.connect("127.0.0.1", served.port, database="shop")) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT customer, date_format(filled_at, 'HH:mm'), date_format(left_at, 'HH:mm') FROM abandoned_carts"
        )
        assert cursor.fetchall() == [("ann", "09:00", "09:20")]
        cursor.execute("SELECT customer, pages FROM visits ORDER BY customer")
        assert cursor.fetchall() == [("ann", 1), ("ben", 1)]


def test_a_pattern_that_breaks_its_promise_fails_with_the_number_of_cases(
    built: str, dbt: Path, project: Path, served: Served
) -> None:
    (project / "models" / "failing.yml").write_text(FAILING)
    try:
        done = ran(
            dbt, project, served, "test", "--select", "nobody_pays", "somebody_pays_twice", "who_leaves_has_paid"
        )
    finally:
        (project / "models" / "failing.yml").unlink()
    assert done.returncode == 1
    for name in ("nobody_pays", "somebody_pays_twice", "who_leaves_has_paid"):
        assert f"FAIL 1 {name}" in done.stdout


def test_arguments_become_sql(built: str, dbt: Path, project: Path, served: Served) -> None:
    done = ran(dbt, project, served, "--quiet", "compile", "--inline", WRITTEN)
    assert done.stdout.split("\n\n")[-1].strip().splitlines() == [
        r"match_pattern(stream => 'it\'s', pattern => 'A ; B', from_time => '2025-03-03', "
        "params => map('least', '2', 'most', NULL), max_matches => 5, truncate => true, "
        "as_of => TIMESTAMP '2025-03-03 09:05:00+00:00')",
        "match_exists(stream => 'clicks', pattern => 'cart', key => t.user)",
        "predict_match(subscription => 'third_strike', threshold => 0.25)",
    ], done.stderr


def test_a_function_that_finds_no_exact_matches_is_refused(
    built: str, dbt: Path, project: Path, served: Served
) -> None:
    wrong = "{{ patternlake.matches('clicks', 'cart', function='match_groups') }}"
    done = ran(dbt, project, served, "compile", "--inline", wrong)
    assert done.returncode != 0
    assert "patternlake: match_groups finds no exact matches; match_pattern or match_seq would be right" in done.stdout
