"""Files of a source that was moved, known by where they are: followed from folder to folder, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.jobs.ingest import checkpoints
from patternlake.jobs.ingest.checkpoints import Checkpoint, Expected
from patternlake.jobs.ingest.moved_source import follow
from patternlake.jobs.sources.file_times import FileTimes


class LocalFolder:
    """A folder of small files, without Hadoop."""

    def __init__(self, spark: Any, path: str) -> None:
        self._path = Path(path)

    def names(self, *parts: str) -> list[str]:
        folder = self._path.joinpath(*parts)
        return [file.name for file in folder.iterdir()] if folder.exists() else []

    def statuses(self, *parts: str) -> list[Any]:
        def tell(file: Path) -> Any:
            return SimpleNamespace(
                file=file,
                getPath=lambda: SimpleNamespace(getName=lambda: file.name),
                getLen=lambda: file.stat().st_size,
            )

        return [tell(file) for file in self._path.joinpath(*parts).iterdir()]

    def read(self, *parts: str) -> str | None:
        file = self._path.joinpath(*parts)
        return file.read_text() if file.exists() else None

    def read_listed(self, status: Any) -> str:
        return str(status.file.read_text())

    def replace(self, text: str, *parts: str) -> None:
        self._path.joinpath(*parts).write_text(text)

    def address(self, path: str) -> str:
        return f"file:{path}"


class Stream:
    """A stream of which one batch, of `a.csv` in a folder, is published."""

    def __init__(self, folder: Path, origin: str) -> None:
        self.folder = folder
        for log in ("offsets", "commits", "sources/0"):
            (folder / log).mkdir(parents=True)
        (folder / "metadata").write_text('{"id": "q"}')
        self.publish(0, origin, "a.csv")

    def publish(self, epoch: int, origin: str, file: str) -> None:
        for log in ("offsets", "commits"):
            (self.folder / log / str(epoch)).touch()
        address = f"file://{origin.removesuffix('/*.csv')}/{file}"
        entry = {"path": address, "timestamp": 1, "batchId": epoch}
        (self.folder / "sources" / "0" / str(epoch)).write_text(f"v1\n{json.dumps(entry)}")
        self.last = {"epoch": epoch, "origin": origin}

    def reach(self, origin: str, *files: str) -> str | None:
        """Run with the source at another place, where there are some files; give where its files are known."""
        folder = origin.removesuffix("/*.csv")
        there = FileTimes([(f"file:{folder}/{file}", 1) for file in files], lambda: pytest.fail("they are few"))
        source: Any = SimpleNamespace(kind="csv", shown=origin, modified=lambda: there)
        checkpoint = Checkpoint(None, str(self.folder), "s")  # type: ignore[arg-type]
        checkpoint.check(Expected(published=int(self.last["epoch"]), query="q"))
        return follow("s", source, checkpoint, self.last)

    @property
    def known(self) -> list[str]:
        """The files that were read."""
        texts = (file.read_text() for file in sorted((self.folder / "sources" / "0").iterdir()))
        return [json.loads(text.splitlines()[1])["path"] for text in texts]


@pytest.fixture(autouse=True)
def _without_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "Folder", LocalFolder)


@pytest.mark.parametrize("below", ["", "/*.csv"], ids=["folder", "pattern"])
def test_files_are_followed_from_place_to_place_though_nothing_is_published(tmp_path: Path, below: str) -> None:
    stream = Stream(tmp_path, f"/a/data{below}")
    for project in ("b", "b", "c", "a", "d"):
        assert stream.reach(f"/{project}/data{below}", "a.csv", "new.csv") == f"/{project}/data{below}"
        assert [file.replace("///", "/") for file in stream.known] == [f"file:/{project}/data/a.csv"]


def test_a_batch_says_anew_where_files_are_known(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "/a/data")
    stream.reach("/b/data", "a.csv")
    stream.publish(1, "/c/data", "other.csv")
    assert stream.reach("/c/data", "other.csv", "a.csv") == "/c/data"
    assert stream.known == ["file:/b/data/a.csv", "file:///c/data/other.csv"], "this a.csv is another one"


def test_files_that_are_followed_before_it_was_written_down_are_known_from_then_on(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "/a/data")
    (tmp_path / "sources" / "0" / "0").write_text('v1\n{"path":"file:/b/data/a.csv","timestamp":1,"batchId":0}')
    for project in ("b", "c"):
        assert stream.reach(f"/{project}/data", "a.csv") == f"/{project}/data"
        assert stream.known == [f"file:/{project}/data/a.csv"]


def test_other_files_at_another_place_are_not_taken_for_those_that_were_read(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "/a/data")
    assert stream.reach("/b/data", "other.csv") == "/a/data"
    assert stream.reach("/c/data", "a.csv") == "/c/data"
