"""A configuration comes back from what publications keep of it; nothing here starts Spark."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from patternlake.delta_tables.batches.batch import WRITTEN
from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.reports.exporting import export, write_file
from patternlake.jobs.reports.status_sources import Published
from patternlake.jobs.runs.steps import JOBS, steps
from patternlake.udfs.errors import ConfigurationError, StateError

FULL = Path(__file__).parents[2] / "conf" / "full_example.yaml"
HOOK = "https://example.com/hooks/flights"


class Noted(Exception):  # noqa: N818
    """Ends a job once it is known what its publications would keep."""


def kept(configuration: Configuration, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Published]:
    """What the publications of all objects would say; no job works."""

    def end(database: Any, *, written: str | None) -> None:
        raise Noted(written)

    monkeypatch.setattr("patternlake.jobs.runs.steps.replace", end)
    found = {}
    for number, step in enumerate(steps(configuration)):
        if step.job == "maintain":
            continue
        with pytest.raises(Noted) as noted:
            JOBS[step.job].work(None, step.object, configuration, False)  # type: ignore[arg-type]
        (written,) = noted.value.args
        source = {"predict_batch": 1} if written is None else {WRITTEN: written}
        found[step.job, step.object] = Published(
            step.object, 1, 1, 1, 1, number, None, None, 1, source, {}, rows_in=1, rows_out=1, rows_quarantined=0
        )
    return found


def test_a_whole_configuration_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Configuration.load(FULL)
    text = write_file(str(given.location), kept(given, monkeypatch))
    assert HOOK not in text
    assert "# alerts.soon.url: set the environment variable ALERT_SOON_URL\n" in text
    with pytest.raises(ConfigurationError, match=r"alerts\.soon\.url: names the environment variable 'ALERT_SOON_URL'"):
        Configuration.from_text(text)
    monkeypatch.setenv("ALERT_SOON_URL", HOOK)
    found = Configuration.from_text(text)
    for section in Configuration.model_fields:
        if section not in ("streams", "quarantine_warning", "sketches"):
            assert getattr(found, section) == getattr(given, section), section
    # What the whole file says of quarantine stands in each stream.
    assert {name: one.quarantine_warning for name, one in found.streams.items()} == {
        "flights": 0.0, "clicks": 0.1, "sky": 0.1,
    }  # fmt: skip
    assert {name: one.model_dump(exclude={"quarantine_warning"}) for name, one in found.streams.items()} == {
        name: one.model_dump(exclude={"quarantine_warning"}) for name, one in given.streams.items()
    }
    assert list(found.streams["flights"].attributes) == ["dep_delay", "dest", "gap"], "in their order"
    assert found.sketches == given.sketches
    assert max(map(len, text.splitlines())) < 400


def test_options_of_a_store_are_named_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Configuration.from_text(
        "location: s3a://events/lake\n"
        "storage_options: {AWS_SECRET_ACCESS_KEY: hidden, fs.s3a.endpoint: http://store}\n"
        "streams: {s: {source: {table: raw.s}, time: at, name: what, allowed_lateness: none}}\n"
    )
    text = write_file("s3a://events/lake", kept(given, monkeypatch))
    assert "hidden" not in text
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("FS_S3A_ENDPOINT", "http://store")
    assert Configuration.from_text(text) == given


def test_a_line_break_of_a_name_ends_no_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Configuration.from_text(
        "streams: {s: {source: {table: raw.s}, time: at, name: what}}\n"
        "subscriptions: {m: {stream: s, query: a ; b}}\n"
        'alerts: {"pager\\nfor ops": {of: subscription, name: m, to: webhook, url: "http://x"}}\n'
    )
    text = write_file("/lake", kept(given, monkeypatch))
    monkeypatch.setenv("ALERT_PAGER_FOR_OPS_URL", "http://x")
    assert Configuration.from_text(text).alerts == given.alerts


def test_what_refers_to_an_object_that_is_gone_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Configuration.from_text(
        "streams: {s: {source: {table: raw.s}, time: at, name: what}}\n"
        "subscriptions: {m: {stream: s, query: a ; b, emit: true}, n: {stream: m, query: m AS y ; m AS z}}\n"
        "alerts: {on_n: {of: subscription, name: n}}\n"
    )
    objects = kept(given, monkeypatch)
    assert Configuration.from_text(write_file("/lake", objects)).subscriptions == given.subscriptions
    nothing = objects["predict", "s"].source[WRITTEN].partition('"section":')[0] + '"section":{}}'
    objects["predict", "s"] = dataclasses.replace(objects["predict", "s"], source={WRITTEN: nothing})
    text = write_file("/lake", objects)
    assert "# subscriptions.n: left out; streams has no 'm' any more\n" in text
    assert "# alerts.on_n: left out; subscriptions has no 'n' any more\n" in text
    found = Configuration.from_text(text)
    assert (found.subscriptions, found.alerts, list(found.streams)) == ({}, {}, ["s"])
    assert found.watched == ["s"], "an empty section drops what was there, as before"


def test_a_subscription_that_was_moved_is_the_one_of_the_stream_that_it_was_moved_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = "{source: {table: raw.s}, time: at, name: what}"
    before, now = (
        Configuration.from_text(
            f"streams: {{a: {stream}, z: {stream}}}\nsubscriptions: {{m: {{stream: {name}, query: a ; b}}}}\n"
        )
        for name in ("z", "a")
    )
    objects = kept(before, monkeypatch)
    later = {
        key: dataclasses.replace(one, published_at=one.published_at + 100)
        for key, one in kept(now, monkeypatch).items()
    }
    text = write_file("/lake", {**objects, **later})
    assert Configuration.from_text(text).subscriptions == now.subscriptions


def test_a_folder_without_a_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no lake at"):
        export(str(tmp_path))


@pytest.mark.parametrize("text", ["0", "1 day", "36 hours", "90s", "2 years", "1.5 milliseconds", "1000 years"])
def test_a_duration_is_written_as_it_is_read(text: str) -> None:
    span = values.duration(text)
    assert values.duration(values.write_duration(span)) == span
    assert values.duration(values.write_duration(span + timedelta(microseconds=1))) == span + timedelta(
        microseconds=1
    ) or (span == values.LONGEST)
