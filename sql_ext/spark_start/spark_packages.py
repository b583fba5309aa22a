"""The packages that a session fetches beside Delta's: those that its user asks for, which else would give way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patternlake.sql_ext.spark_start import spark_folders

PACKAGES = "spark.jars.packages"
_LINE = re.compile(rf"\s*{re.escape(PACKAGES)}(?:\s*[=:]\s*|\s+)(\S.*)")
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
        text = _of_defaults(environment)
    named = [each.strip() for each in text.split(",")]
    return [each for each in named if each and not each.startswith(_OURS)]


def _of_defaults(environment: Mapping[str, str]) -> str:
    """What the user's defaults say; empty where they say nothing."""
    file = spark_folders.conf(environment) / "spark-defaults.conf"
    if not file.is_file():
        return ""
    found = [match[1] for match in map(_LINE.match, file.read_text(encoding="utf-8").splitlines()) if match]
    return found[-1] if found else ""
