"""Answers are refused where a table that they go back to has lost commits, whichever job has published the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.state_reader import StateReader
from patternlake.sql_ext.functions import match_exists
from patternlake.udfs.errors import StateError


class Disk:
    """A lake on a disk of which the last commit to `events` is gone, and no other."""

    on_disk = True

    def version(self, table: str) -> int:
        return 6 if table == "events" else 7

    def once(self, table: str, key: Hashable, make: Callable[[], Any]) -> Any:
        return make()

    def rows(self, table: str, columns: Sequence[str], where: object = (), fold: object = None) -> pa.Table:
        assert table == "publications"
        published = {"job": "ingest", "object": "s", "published_at": 1, "versions": '{"events": 7, "quarantine": 7}'}
        return pa.Table.from_pylist([published])


@pytest.fixture
def snapshot() -> Snapshot:
    return Snapshot(cast(StateReader, Disk()), None)


@pytest.mark.parametrize("job", ["ingest", "sketch", "groups", "trends"])
def test_what_any_job_published_goes_back_to_events(snapshot: Snapshot, job: str) -> None:
    with pytest.raises(StateError, match=r"events_log is at version 6.* ingest of 's'$"):
        snapshot.published(job, "s")


def test_match_exists_is_refused_as_well(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """With constants, and for the rows of a table."""
    monkeypatch.setattr(match_exists, "place_of", lambda lake: "here")
    lake: Any = SimpleNamespace(snapshot=lambda as_of: snapshot)
    with pytest.raises(StateError, match="events_log is at version 6"):
        match_exists._value(lake, {"as_of": None, "stream": "s", "pattern": "A ; B"})
    with pytest.raises(StateError, match="events_log is at version 6"):
        match_exists._per_row(lake, {"stream": "s"})
