"""The packages that a session fetches beside Delta's: those that its user asks for, which else would give way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from patternlake.sql_ext.spark_start import spark_folders

PACKAGES = "spark.jars.packages"
ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The environment variable with arguments for the program that starts Spark."""
_LINE = re.compile(r"\s*([^\s=:#]+)(?:\s*[=:]\s*|\s+)(\S.*)")
_OURS = "io.delta:delta-spark"


def find_packages(settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Maven coordinates, without Delta's own, which follow from the version of the package `delta`.

    Parameters
    ----------
    settings
        Of the session; they win over the file.
    environment
        Tells where Spark's ``spark-defaults.conf`` stands.
    """
    text = settings.get(PACKAGES)
    if text is None:
        text = read_defaults(environment).get(PACKAGES, "")
    named = [each.strip() for each in text.split(",")]
    return [each for each in named if each and not each.startswith(_OURS)]


def read_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the settings of ``spark-defaults.conf``, or of the file that stands for it; none where there is none."""
    words = shlex.split(environment.get(ARGUMENTS, ""))
    file = spark_folders.conf(environment) / "spark-defaults.conf"
    if "--properties-file" in words[:-1]:
        file = Path(words[words.index("--properties-file") + 1])
    if not file.is_file():
        return {}
    found = map(_LINE.match, file.read_text(encoding="utf-8").splitlines())
    return {match[1]: match[2].rstrip() for match in found if match}
