"""How locations are spelled."""

from __future__ import annotations

import re


def has_scheme(location: str) -> bool:
    """Whether a location says by itself which file system it lies in."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location) is not None


def plain(location: str) -> str:
    """A location without what spellings of one place differ in: ``/lake`` of ``file:///lake/`` and ``file:/lake``."""
    return re.sub(r"^file:/*", "/", location).rstrip("/")
