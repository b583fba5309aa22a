"""The site of docs/: what it tells of the package, and that it builds without a warning."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import patternlake

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_python_has_everything_that_the_package_offers() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    told = {name.rpartition(".")[2] for name in re.findall(r"^::: (patternlake[\w.]*)$", text, re.M)}
    assert told == {*patternlake.__all__, *patternlake.plot.__all__, "errors"} - {"__version__", "plot"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed: pip install -e '.[docs]'")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("INFO ")] == []
    found = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    sections = {each["location"]: each["text"] for each in found["docs"]}
    assert "match_no" in sections["match_seq/#what-comes-back"]
    assert "max_matches" in "".join(text for place, text in sections.items() if place.startswith("reference/"))
    assert not [place for place, text in sections.items() if r"\|" in text and "notebooks" not in place]
    assert "finds patterns in time" in sections[""]
    assert f"PatternLake {patternlake.__version__}" in (tmp_path / "index.html").read_text(encoding="utf-8")
    patterns = " ".join(text for place, text in sections.items() if place.startswith("match_recognize/")).lower()
    assert all(word in patterns for word in ("sessionize", "funnel", "match_recognize"))
    assert "notebooks/tour/" in sections
    assert (tmp_path / "notebooks" / "tour.ipynb").exists()
    assert (tmp_path / "conf" / "demo.yaml").exists()


def _environment() -> dict[str, str]:
    return {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
