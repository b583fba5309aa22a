"""Environments of tools that want other versions of packages than PatternLake's: each below build/, installed once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[1] / "build"


def installed(name: str, requirements: Path) -> Path:
    """The folder of an environment's commands; it is made anew where what is required is not what it was made for."""
    place = BUILD / name
    mark, wanted = place / ".installed", requirements.read_text(encoding="utf-8")
    if not mark.is_file() or mark.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"{name} could not be installed into {place}: {done.stderr[-500:]}", pytrace=False)
        mark.write_text(wanted, encoding="utf-8")
    return place / "bin"
