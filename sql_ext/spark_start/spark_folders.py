"""Where the Spark that pyspark starts lies, and where its users keep its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def home(environment: Mapping[str, str]) -> Path:
    """The folder of Spark itself: ``SPARK_HOME``, or the package `pyspark`."""
    given = environment.get("SPARK_HOME")
    if given:
        return Path(given)
    import pyspark

    return Path(pyspark.__file__).parent


def conf(environment: Mapping[str, str]) -> Path:
    """The folder of its configuration, ``SPARK_CONF_DIR`` or ``conf`` in its own; it need not be there."""
    given = environment.get("SPARK_CONF_DIR")
    return Path(given) if given else home(environment) / "conf"
