"""An empty database, made once and copied: making one is a matter of as many commits as there are tables."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.migrations import SCHEMA_VERSION
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

_COMMON: dict[int, Database] = {}
_KEPT = Path(__file__).resolve().parents[2] / "build" / "tests"


def lay(spark: SparkSession, location: str | Path) -> str:
    """Put the tables of an empty database under a location, for `open_database` to find; the location."""
    shutil.copytree(_made(spark), location, dirs_exist_ok=True)
    return str(location)


def opened(spark: SparkSession, name: str, location: str | Path) -> Database:
    """A new, empty database."""
    return open_database(spark, name, lay(spark, location))


def common(spark: SparkSession, factory: pytest.TempPathFactory) -> Database:
    """The database of all tests of a session that have streams of their own in it: to register one takes a while."""
    if id(spark) not in _COMMON:
        _COMMON[id(spark)] = opened(spark, "common", factory.mktemp("common"))
    return _COMMON[id(spark)]


def _made(spark: SparkSession) -> Path:
    """The database that is copied, which outlives the run: it is another one as soon as a table changes."""
    texts = [table.create_text(name, "", {}) for name, table in TABLES.items()]
    told = repr([*texts, SCHEMA_VERSION, spark.version, version("delta-spark")])
    folder = _KEPT / f"empty-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    if not folder.exists():
        name = f"empty_{uuid4().hex}"
        with tempfile.TemporaryDirectory() as made:
            open_database(spark, name, made)
            shutil.copytree(made, _KEPT / name)
            # Spark deletes the folder of a database that it drops.
            spark.sql(f"DROP DATABASE {name} CASCADE")
            Path(made).mkdir(exist_ok=True)
        try:
            (_KEPT / name).rename(folder)
        except OSError:  # Another worker has made it meanwhile.
            shutil.rmtree(_KEPT / name)
    return folder
