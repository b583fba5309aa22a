"""Where numba keeps the machine code of kernels: it refuses to import a kernel that it can keep nowhere.

Numba takes the first of three folders that it can write to: ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the source, and
``numba`` in the user's cache directory. In a container neither of the last two may be there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

_LOG = logging.getLogger(__name__)
_PACKAGE = Path(__file__).parent


def settle() -> None:
    """Give numba a folder among the temporary files, where it has no other; to be called before kernels are imported.

    Notes
    -----
    Sets ``NUMBA_CACHE_DIR``, for the processes that this one starts as well.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and _writable(Path(given)):
        return
    if all(_writable(folder / "__pycache__") for folder in _folders()):
        return
    # Only here: numba is much to import. It has no types for these.
    config: Any = import_module("numba.core.config")
    appdirs: Any = import_module("numba.misc.appdirs")
    users = Path(appdirs.AppDirs(appname="numba", appauthor=False).user_cache_dir)
    if _writable(users):
        return
    kept = _temporary()
    os.environ["NUMBA_CACHE_DIR"] = config.CACHE_DIR = str(kept)
    _LOG.warning(
        "compiled kernels can be kept neither beside their source, %s, nor in %s: they are kept in %s, and compiled "
        "again when it is gone; set NUMBA_CACHE_DIR to a folder that can be written to",
        _PACKAGE, users, kept,
    )  # fmt: skip


def _folders() -> list[Path]:
    """The folders of the package that hold kernels; of a package in a zip file, none that can be written to."""
    if not _PACKAGE.is_dir():
        return [_PACKAGE]
    return [file.parent for file in _PACKAGE.rglob("__init__.py")]


def _writable(folder: Path) -> bool:
    """Whether a file can be made in a folder, which is made as well: what numba asks."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _temporary() -> Path:
    """A folder that only this user can write to: numba runs what it finds there."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.mkdtemp(prefix="patternlake-kernels-"))
    folder = Path(tempfile.gettempdir()) / f"patternlake-kernels-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    alone = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if alone else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
