"""What all tests share: one Spark session, because starting one costs more than most tests."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("patternlake", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patternlake")

# Whoever tests has settings of their own, if they name either. Not as a conf folder: where the class path names one
# with files, Java takes no archived classes.
if not {"SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"} & os.environ.keys():
    settings_file = str(Path(__file__).parent / "spark-tests.conf")
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(["--properties-file", settings_file, "pyspark-shell"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """An engine's files go to one worker, see `distribution`."""
    from distribution import EngineScheduling

    return EngineScheduling(config, log) if config.option.dist == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "dist", "no") == "loadfile" and not hasattr(config, "workerinput"):
        from distribution import Stopwatch

        config.pluginmanager.register(Stopwatch(config))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Delta-ready local session on two cores, with nothing of PatternLake registered."""
    from patternlake.delta_tables.spark.own_process import settle
    from patternlake.sql_ext.session import bare_session

    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    os.environ.setdefault("PATTERNLAKE_DRIVER_MEMORY", "3g")
    session = bare_session(
        "local[2]",
        {
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    settle(session)
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="module")
def _chosen_lake_of_a_module() -> Iterator[None]:
    yield
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        # A module's lake would be the next one's current database.
        session.catalog.setCurrentDatabase("default")
        session.conf.unset("spark.patternlake.database")
