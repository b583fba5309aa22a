"""The jars that Ivy found for a session's packages, remembered: the next session names the files, and asks no Ivy.

Ivy reads the descriptions of all packages whenever a session starts, and those that they need, fetched or not.
Measured: 3 of the 12 seconds that a session with Delta takes to start on 2 cores.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlparse

from patternlake.sql_ext.spark_start import class_archive
from patternlake.sql_ext.spark_start.spark_packages import ARGUMENTS, PACKAGES, read_defaults

logger = logging.getLogger(__name__)

JARS = "spark.jars"
_KNOWN = (PACKAGES, "spark.jars.excludes", "spark.jars.repositories", "spark.jars.ivy")
_NAMED = re.compile("jars|packages|repositories")
_FIXED = re.compile(r"[\w.-]+:[\w.-]+:(?!latest)[\w.-]+(?<!-SNAPSHOT)")
"""Coordinates that mean the same jar at all times."""


def recall(settings: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Recall the jars of a session's packages, as `JARS` takes them; None where Ivy has to be asked.

    Parameters
    ----------
    settings
        Of the session.
    environment
        Tells where the cache is, and which Spark is started.
    """
    note = _place(settings, environment)
    if note is None:
        return None
    try:
        told = str(json.loads(note.read_text(encoding="utf-8"))[JARS])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return told if all(file.is_file() for file in files_of(told)) else None


def files_of(jars: str) -> list[Path]:
    """The files of jars that `JARS` lists as URIs."""
    return [Path(unquote(urlparse(jar).path)) for jar in jars.split(",")]


def remember(settings: Mapping[str, str], environment: Mapping[str, str], jars: str) -> None:
    """Remember the jars that Spark had after it started with settings; nowhere if there is no place for it."""
    note = _place(settings, environment)
    if note is None or not jars:
        return
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=note.parent, prefix=f"{note.stem}-")
    except OSError as error:
        logger.info("which jars Ivy found is not remembered: %s", error)
        return
    try:
        with open(handle, "w", encoding="utf-8") as written:
            json.dump({JARS: jars, **{key: settings[key] for key in _KNOWN if key in settings}}, written, indent=2)
        os.replace(name, note)
    except OSError as error:
        logger.info("which jars Ivy found is not remembered: %s", error)
        with suppress(OSError):
            os.unlink(name)


def _place(settings: Mapping[str, str], environment: Mapping[str, str]) -> Path | None:
    """Where the jars of packages are noted; None where they may be others each time, or the user names some jars."""
    named = {key: value for key, value in settings.items() if key.startswith(JARS)}
    packages = [each.strip() for each in named.get(PACKAGES, "").split(",")]
    if not all(map(_FIXED.fullmatch, packages)) or named.keys() - set(_KNOWN):
        return None
    if _NAMED.search(environment.get(ARGUMENTS, "")) or any(key.startswith(JARS) for key in read_defaults(environment)):
        return None
    archive = class_archive.place(environment)
    if not archive.is_absolute():
        return None
    digest = blake2b(json.dumps([archive.stem, *sorted(named.items())]).encode(), digest_size=8).hexdigest()
    return archive.with_name(f"jars-{digest}.json")
