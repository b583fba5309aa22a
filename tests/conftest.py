"""What all tests share: one Spark session, because starting one costs more than most tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("patternlake", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patternlake")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Delta-ready local session on two cores, with nothing of PatternLake registered."""
    from patternlake.sql_ext.session import bare_session

    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    os.environ.setdefault("PATTERNLAKE_DRIVER_MEMORY", "3g")
    session = bare_session(
        "local[2]",
        {
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            # Small data: compiling what runs a few times costs more than interpreting it.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
