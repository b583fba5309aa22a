"""What the package shows of itself."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import patternlake


def test_the_package_shows_its_functions_and_nothing_else() -> None:
    shown = [name for name in dir(patternlake) if not name.startswith("_")]
    assert shown == [name for name in patternlake.__all__ if not name.startswith("_")]
    assert {"match_recognize", "plot", "session"} <= set(shown)


def test_a_name_that_is_typed_wrong_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'match_sec'; near it: match_seq"):
        _ = patternlake.match_sec


def test_an_archive_that_is_not_unpacked_is_refused(tmp_path: Path) -> None:
    """As `spark-submit --py-files` leaves a wheel."""
    wheel = tmp_path / "patternlake.whl"
    package = Path(patternlake.__file__).parent
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in ("__init__.py", "sql_ext/__init__.py", "sql_ext/functions/__init__.py"):
            archive.write(package / file, f"patternlake/{file}")
    run = subprocess.run(
        [sys.executable, "-c", "import patternlake"],
        env=os.environ | {"PYTHONPATH": str(wheel)}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert f"ImportError: patternlake cannot run from inside an archive ({wheel})" in run.stderr
    assert "--archives" in run.stderr
