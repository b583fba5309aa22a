"""What is installed is the tree: wheel and sdist hold each of its modules, and nothing beside them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDERS = ("udfs", "delta_tables", "jobs", "sql_ext")
TEXTS = ("pyproject.toml", "README.md", "LICENSE")
BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, f"build_{sys.argv[1]}")(sys.argv[2])
"""


def tree() -> set[str]:
    """The package's files, by their places in it."""
    found = {"__init__.py", "__main__.py", "py.typed"}
    for folder in FOLDERS:
        paths = (ROOT / folder).rglob("*")
        found |= {path.relative_to(ROOT).as_posix() for path in paths if path.is_file() and path.suffix != ".pyc"}
    return {name for name in found if "__pycache__" not in name}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with its links, without what builds and runs have left in it."""
    copy = tmp_path_factory.mktemp("source") / "patternlake"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("src", *FOLDERS):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignored)
    for name in TEXTS:
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def backend(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what builds the package, as its pyproject.toml asks for it."""
    folder = tmp_path_factory.mktemp("backend")
    (required,) = re.findall(r"^requires = (\[.*\])$", (source / "pyproject.toml").read_text(), re.MULTILINE)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
    subprocess.run([*install, *json.loads(required)], check=True)
    return folder


def built(kind: str, source: Path, backend: Path, out: Path) -> Path:
    """An sdist, a wheel or an editable wheel of a source folder."""
    environment = {**os.environ, "PYTHONPATH": str(backend)}
    command = [sys.executable, "-c", BUILD, kind, str(out)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # What `pip install` would show to everybody.
    assert "Warning: " not in done.stderr, done.stderr
    (found,) = out.iterdir()
    return found


def in_package(wheel: Path) -> set[str]:
    """The files of a wheel but its metadata, by their places in the package."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"patternlake"}
    return {name.removeprefix("patternlake/") for name in names}


def test_the_wheel_holds_exactly_the_trees_files(source: Path, backend: Path, tmp_path: Path) -> None:
    assert in_package(built("wheel", source, backend, tmp_path)) == tree()


def test_the_sdist_holds_them_once_and_a_wheel_of_it_is_the_same(source: Path, backend: Path, tmp_path: Path) -> None:
    (tmp_path / "sdist").mkdir()
    with tarfile.open(built("sdist", source, backend, tmp_path / "sdist")) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
        assert all(member.isfile() or member.isdir() for member in archive.getmembers())
        archive.extractall(tmp_path / "unpacked")
    held = {name for name in files if not re.match(r"PKG-INFO$|setup.cfg$|src/patternlake.egg-info/", name)}
    assert held == {*TEXTS, *(f"src/patternlake/{name}" for name in tree())}
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (tmp_path / "wheel").mkdir()
    assert in_package(built("wheel", unpacked, backend, tmp_path / "wheel")) == tree()


def test_an_editable_installation_is_a_path_that_editors_can_follow(
    source: Path, backend: Path, tmp_path: Path
) -> None:
    wheel = zipfile.ZipFile(built("editable", source, backend, tmp_path))
    (name,) = (name for name in wheel.namelist() if ".dist-info/" not in name)
    assert name.endswith(".pth")
    assert wheel.read(name).decode().strip() == str(source / "src")
