"""What the tests of this folder share: the clean runs that theirs begin with and are compared with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.faults.lakes import History


@pytest.fixture(scope="session")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(spark, tmp_path_factory.mktemp("history"))
