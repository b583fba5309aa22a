"""Machine code is kept wherever a folder can be written: no installation is without one."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patternlake import udfs
from patternlake.udfs import kernel_cache

CALL = """
import json
import numpy as np
from patternlake.udfs.machines.kernels.smallest import smallest_of_groups
group, time = np.array([0, 0, 1]), np.array([[2], [1], [5]])
found = int(smallest_of_groups(group, time, np.zeros((3, 1), np.int64), 2).sum())
stats = smallest_of_groups.stats
print(json.dumps([found, stats.cache_path, sum(stats.cache_hits.values())]))
"""


pytestmark = pytest.mark.processes


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package whose folders can't take machine code, whoever asks: a file is in its place."""
    copy = tmp_path / "installed" / "patternlake" / "udfs"
    shutil.copytree(udfs.__path__[0], copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy.parent / "__init__.py").touch()  # a folder without it would stand behind an installed package
    for folder in [copy, *(one for one in copy.rglob("*") if one.is_dir())]:
        (folder / "__pycache__").touch()
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def called(place: Path, *, user_cache: str) -> tuple[int, Path, int, str]:
    """The answer of a kernel in a new process, where its code is kept, whether it was found there, what was said."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NUMBA")},
        "PYTHONPATH": str(place / "installed"), "XDG_CACHE_HOME": str(place / user_cache), "TMPDIR": str(place / "tmp"),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", CALL], env=environment, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer[0], Path(answer[1]), answer[2], done.stderr


def append(file: Path, line: str) -> None:
    file.write_text(f"{file.read_text()}{line}\n")


def test_code_is_compiled_again_when_a_kernel_of_any_file_has_changed(installed: Path) -> None:
    package = installed / "installed" / "patternlake" / "udfs"
    assert [called(installed, user_cache="home")[2] for _ in range(2)] == [0, 1]
    # The kernel that is called stands in another file, and calls nothing of this one.
    append(package / "trends" / "measures.py", "# another one")
    assert [called(installed, user_cache="home")[2] for _ in range(2)] == [0, 1]
    # A constant that kernels read.
    append(package / "groups" / "state.py", "# another one")
    assert [called(installed, user_cache="home")[2] for _ in range(2)] == [0, 1]
    # Not a line of this is compiled.
    append(package / "language" / "query" / "parser.py", "# another one")
    assert called(installed, user_cache="home")[2] == 1


@pytest.mark.parametrize("first", ["", "import numba.core.caching\n"], ids=["numba later", "numba first"])
def test_the_hash_is_part_of_what_numba_notes_of_our_files_alone(first: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import numba\n@numba.njit(cache=True)\ndef one():\n    return 1\n")
    text = f"""{first}
from patternlake.udfs import kernel_cache
from patternlake.udfs.machines.kernels.smallest import smallest_of_groups
from other import one
ours, others = (kernel._cache._impl.locator.get_source_stamp() for kernel in (smallest_of_groups, one))
print(ours[1] == kernel_cache._hash_of_kernels(), kernel_cache._hash_of_kernels() in repr(others))
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True False\n", "")


def test_the_hash_is_over_all_files_that_are_compiled_and_over_their_constants() -> None:
    package = Path(udfs.__path__[0])
    kernels = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if re.search(r"^ *@(\w+\.)*(njit|subkernel|uncounted|kernel|entry|inlined)\b|= njit\b", file.read_text(), re.M)
    }
    found = kernel_cache._kernel_sources()
    assert len(kernels) > 30
    assert kernels <= found.keys()
    assert {"groups/state.py", "subkernels.py"} <= found.keys()
    assert "language/query/parser.py" not in found


def test_code_that_can_not_be_kept_beside_the_source_is_kept_in_the_users_cache(installed: Path) -> None:
    ones, kept, hits, said = called(installed, user_cache="home")
    assert (ones, kept.parent, hits, said) == (3, installed / "home" / "numba", 0, "")
    assert called(installed, user_cache="home")[2] == 1


def test_without_a_users_cache_code_is_kept_among_temporary_files_of_the_user_alone(installed: Path) -> None:
    (installed / "file").touch()
    ones, kept, hits, said = called(installed, user_cache="file")
    folder = kept.parent
    assert (ones, folder.parent, hits) == (3, installed / "tmp", 0)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"are kept in {folder}" in said
    assert "set NUMBA_CACHE_DIR" in said
    assert called(installed, user_cache="file")[2] == 1


def test_a_temporary_folder_that_others_may_write_to_is_not_trusted(installed: Path) -> None:
    (installed / "file").touch()
    folder = called(installed, user_cache="file")[1].parent
    folder.chmod(0o777)
    ones, kept, hits, _ = called(installed, user_cache="file")
    assert (ones, hits) == (3, 0)
    assert kept.parent != folder
