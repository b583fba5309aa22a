"""When `maintain` deletes rows: after it has told all who read them from which moment on they may be asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.delta_tables.batches import retention
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.maintain import job

CONFIGURATION = """
streams:
  flights: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
sketches:
  flights: {}
"""


@dataclass(frozen=True)
class Published:
    """A publication, as far as horizons go."""

    job: str
    object: str
    horizon: datetime | None = None


def test_the_horizons_of_all_readers_are_recorded_before_any_row_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies in between leaves too many rows, and no reader that finds too few."""
    done: list[tuple[str, str]] = []
    published = {each: Published(each, "flights") for each in ("ingest", "sketch")}

    def record(_: Any, latest: Published, horizon: datetime) -> Published:
        done.append(("record", latest.job))
        published[latest.job] = replace(latest, horizon=horizon)
        return published[latest.job]

    reader = SimpleNamespace(latest=lambda of, _: published.get(of), at=lambda of, *_: published[of])
    monkeypatch.setattr(retention, "PublicationsReader", lambda _: reader)
    monkeypatch.setattr(retention, "_record", record)
    monkeypatch.setattr(retention, "_first_read", lambda *_: 1)
    monkeypatch.setattr(retention, "_forget", lambda _, table, *__: done.append(("delete", table.job)))
    monkeypatch.setattr(job, "PublicationsReader", lambda _: SimpleNamespace(latest=lambda *_: None))
    database: Any = SimpleNamespace(direct=None)
    job._maintain(database, "flights", Configuration.from_text(CONFIGURATION))
    assert done[:2] == [("record", "ingest"), ("record", "sketch")]
    assert {*done[2:]} == {("delete", "ingest"), ("delete", "sketch")}
    published = {each: Published(each, "flights", datetime(2999, 1, 1, tzinfo=timezone.utc)) for each in published}
    done.clear()
    job._maintain(database, "flights", Configuration.from_text(CONFIGURATION))
    assert {what for what, _ in done} == {"delete"}, "what was left is deleted by the next run"
