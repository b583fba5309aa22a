"""The lake of docs/recipes.md: its files and its configuration are blocks of the page.

Its events are published without a source, which takes a tenth of the time; `ingested_recipes` sends them through the
real jobs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import yaml
from sql.empty_database import lay, opened
from sql.published_events import START, E, publish

import patternlake
from patternlake.jobs.configuration.file import Configuration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE = "recipes"
_FILE = re.compile(r"`data/(\w+)/(1\.\w+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)
_CONFIGURATION = re.compile(r"^```yaml\n(.*?)^```$", re.M | re.S)
_CAST = re.compile(r"CAST\((\w+) AS \w+\)")


def recipe_lake(session: SparkSession, folder: Path, page: str) -> SparkSession:
    """Publish the events of the page, run the jobs on them, and enable the database in the session."""
    tree = _tree(page)
    files = {stream: text for stream, _, text in _FILE.findall(page)}
    assert set(files) == set(tree["streams"])
    database = opened(session, DATABASE, folder / "lake")
    loaded = Configuration.from_text(yaml.safe_dump({**tree, "database": DATABASE, "location": str(folder / "lake")}))
    for name, stream in loaded.streams.items():
        events = [_event(tree["streams"][name], row) for row in _rows(files[name])]
        publish(database, name, stream, events, evaluated=True)
    for job in ("sketch", "predict", "alerts"):
        patternlake.run(session, loaded, job=job)
    return patternlake.enable(session, loaded)


def ingested_recipes(session: SparkSession, folder: Path, page: str) -> SparkSession:
    """Do what the page tells its readers to do, but for the jobs after `ingest`."""
    for stream, name, text in _FILE.findall(page):
        (folder / "data" / stream).mkdir(parents=True)
        (folder / "data" / stream / name).write_text(text)
    place = lay(session, folder / "lake")
    (folder / "recipes.yaml").write_text(yaml.safe_dump({**_tree(page), "database": "ingested", "location": place}))
    patternlake.run(session, folder / "recipes.yaml", job="ingest")
    return patternlake.enable(session, folder / "recipes.yaml")


def _tree(page: str) -> dict[str, Any]:
    (text,) = _CONFIGURATION.findall(page)
    tree: dict[str, Any] = yaml.safe_load(text)
    return tree


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    """The rows of a file as the source's columns."""
    if not text.startswith("<"):
        yield from csv.DictReader(text.splitlines())
        return
    for trace in ElementTree.fromstring(text).iter("trace"):
        case = {f"case:{each.get('key')}": each.get("value", "") for each in trace.findall("string")}
        for event in trace.iter("event"):
            yield {**case, **{str(each.get("key")): each.get("value", "") for each in event}}


def _event(section: Mapping[str, Any], row: Mapping[str, str]) -> E:
    """What the expressions of a stream make of a row."""
    at = datetime.fromisoformat(_value(section["time"], row).rstrip("Z")).replace(tzinfo=timezone.utc)
    given = {name: each["expr"] if isinstance(each, dict) else name for name, each in _attributes(section).items()}
    attributes = {name: _value(expression, row) for name, expression in given.items()}
    key = _value(section["key"], row) if "key" in section else None
    milliseconds = round((at - START).total_seconds() * 1000)
    # Step and probability are found in the source's columns.
    return E(milliseconds, _value(section["name"], row), key, {**row, **attributes})


def _value(expression: str, row: Mapping[str, str]) -> str:
    """The value of an expression of the page: a column, one that is cast, or a text."""
    if expression.startswith("'"):
        return expression.strip("'")
    return row[_CAST.sub(r"\1", expression).strip("`")]


def _attributes(section: Mapping[str, Any]) -> dict[str, Any]:
    return dict(section.get("attributes", {}))
