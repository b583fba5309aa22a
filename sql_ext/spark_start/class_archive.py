"""An archive of the classes that Spark's JVM loads at its start: mapped into memory, not read, checked and linked.

Java calls it class-data sharing, and writes such an archive when a JVM that was told so ends.
`archive_classes` has one written; sessions that `quiet_start` starts take it from then on. A JVM that it does not fit
(another Java, other jars, another class path) leaves it aside.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from patternlake.sql_ext.spark_start import spark_folders

# All places where options of the JVM can come from before a session has its own; those of the session come later, and
# the last that is said holds.
JAVA_OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Environment variables with options for the JVM."""

_USERS = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")

# What Java says of an archive that does not fit goes to standard output, which belongs to the program.
HUSHED = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Options by which a JVM says nothing of archives."""


def place(environment: Mapping[str, str]) -> Path:
    """Where the archive of an installation of Spark is, or would be.

    It lies in the user's cache directory, ``$XDG_CACHE_HOME`` or ``~/.cache``; the path begins with ``~`` where the
    user has no home.

    Parameters
    ----------
    environment
        Tells which cache directory, and which Spark.
    """
    cache = Path(environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    spark = blake2b(os.fsencode(spark_folders.home(environment)), digest_size=8).hexdigest()
    return cache / "patternlake" / f"classes-{spark}.jsa"


def options(environment: Mapping[str, str]) -> str:
    """Options that have a JVM take the archive; none where there is no archive, or the user names one or wants none.

    Parameters
    ----------
    environment
        As of `place`; options of the user's may be in it.
    """
    if any(word in environment.get(name, "") for name in JAVA_OPTIONS for word in _USERS):
        return ""
    archive = place(environment)
    if not archive.is_file() or conf_folder_in_use(environment) is not None:
        return ""
    return f"{quote(f'-XX:SharedArchiveFile={archive}')} {HUSHED}"


def conf_folder_in_use(environment: Mapping[str, str]) -> Path | None:
    """Spark's conf folder, if it holds anything: Java takes no archive where the class path names such a folder."""
    folder = spark_folders.conf(environment)
    return folder if folder.is_dir() and any(folder.iterdir()) else None


def quote(option: str) -> str:
    """An option as Spark splits it off: folders may have spaces and quotes in their names."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
