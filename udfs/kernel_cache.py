"""Where numba keeps the machine code of kernels, and when it is out of date.

Numba takes the first of three folders that it can write to: ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the source, and
``numba`` in the user's cache directory. In a container neither of the last two may be there, and numba refuses to
import a kernel that it can keep nowhere.

Numba keeps code for as long as the kernel's own file is the same. But the code also holds the kernels that it calls and
the constants that it reads, of other files. So what numba notes of a file is extended by a hash of all of them. Code of
another hash is compiled again, and takes the place of the old one.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_LOG = logging.getLogger(__name__)
_PACKAGE = Path(__file__).parent
_CACHING = "numba.core.caching"
_MARKS = (b"\nfrom numba", b"\nfrom patternlake.udfs.subkernels import ")
"""What stands in files of kernels: whoever compiles imports one of these."""
_IMPORT = re.compile(rb"^from patternlake\.udfs((?:\.\w+)*) import (\([^)]*\)|[^\n]*)", re.M)
_CONSTANT = re.compile(rb"\b[A-Z][A-Z0-9_]+\b")


def settle() -> None:
    """Tell numba where to keep code, and when it is out of date; to be called before kernels are imported.

    Notes
    -----
    Where numba has no folder, it gets one among the temporary files: this sets ``NUMBA_CACHE_DIR``, for the processes
    that this one starts as well.
    """
    if _CACHING in sys.modules:
        _extend_stamps(sys.modules[_CACHING])
    else:
        sys.meta_path.insert(0, _CachingImport())
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


class _CachingImport(MetaPathFinder):
    """Extends numba's stamps once numba is imported: few processes need it, and it takes most of a second."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find that one module."""
        if fullname != _CACHING:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _extend_stamps(module)

            loader.exec_module = exec_module
        return spec


def _extend_stamps(caching: ModuleType) -> None:
    """Let what numba notes of a file of this package hold the hash of all kernels."""
    for locator in list(vars(caching).values()):
        stamp = vars(locator).get("get_source_stamp") if isinstance(locator, type) else None
        if stamp is not None and not getattr(stamp, "__isabstractmethod__", False):
            locator.get_source_stamp = _extended(stamp)  # type: ignore[attr-defined]


def _extended(stamp: Callable[[Any], Any]) -> Callable[[Any], Any]:
    ours = tuple(f"{folder}{os.sep}" for folder in {str(_PACKAGE), os.path.realpath(_PACKAGE)})

    def get_source_stamp(self: Any) -> Any:
        own = stamp(self)
        return (own, _hash_of_kernels()) if str(getattr(self, "_py_file", "")).startswith(ours) else own

    return get_source_stamp


@cache
def _hash_of_kernels() -> str:
    """A hash of all files that machine code comes from; of a package in a zip file, which never changes, of none."""
    total = hashlib.sha256()
    for file, text in sorted(_kernel_sources().items()):
        total.update(f"{file}\0{len(text)}\0".encode() + text)
    return total.hexdigest()


def _kernel_sources() -> dict[str, bytes]:
    """The files of kernels, and those whose constants they read, by their place in the package."""
    package = str(_PACKAGE)
    texts: dict[str, bytes] = {}
    for folder, _, files in os.walk(package):
        for name in files:
            if name.endswith(".py"):
                file = os.path.join(folder, name)
                with open(file, "rb") as opened:
                    texts[file[len(package) + 1 :].replace(os.sep, "/")] = opened.read()
    waiting = [file for file, text in texts.items() if any(mark in text for mark in _MARKS)]
    # A kernel may read constants of modules that it imports as a whole, too.
    waiting += [other for file in waiting for other in _read_by(texts[file], modules=True)]
    found: dict[str, bytes] = {}
    while waiting:
        file = waiting.pop()
        if file in texts and file not in found:
            found[file] = texts[file]
            waiting += _read_by(texts[file])
    return found


def _read_by(text: bytes, *, modules: bool = False) -> Iterator[str]:
    """Places of the modules from which a file imports constants, or also (`modules`) of whatever it imports."""
    for module, names in _IMPORT.findall(text):
        folder = module.decode().replace(".", "/").removeprefix("/")
        if _CONSTANT.search(names):
            yield f"{folder}.py"
        if modules:
            yield from (f"{folder}/{name.decode()}.py".removeprefix("/") for name in re.findall(rb"\w+", names))


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
