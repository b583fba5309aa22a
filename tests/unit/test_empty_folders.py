"""A command leaves no folders behind that Spark has made for databases, unless something is in them."""

from __future__ import annotations

from pathlib import Path

from patternlake.jobs.command_line.local_spark import _remove_empty_folders


def test_empty_folders_of_databases_go_and_their_own_folder_with_them(tmp_path: Path) -> None:
    warehouse = tmp_path / "spark-warehouse"
    for name in ("patternlake_internal.db", "other.db"):
        (warehouse / name).mkdir(parents=True)
    _remove_empty_folders(warehouse)
    assert list(tmp_path.iterdir()) == []


def test_what_has_something_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "patternlake_internal.db").mkdir()
    (tmp_path / "mine.db" / "table").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    _remove_empty_folders(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "mine.db"]


def test_a_folder_that_was_never_made_is_no_matter(tmp_path: Path) -> None:
    _remove_empty_folders(tmp_path / "spark-warehouse")
    assert list(tmp_path.iterdir()) == []
