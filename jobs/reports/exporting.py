"""The configuration of a lake, of what its publications keep of it; see `configuration.written`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from patternlake.delta_tables.batches.batch import WRITTEN
from patternlake.delta_tables.databases.opening import no_lake, reader_without_spark, refuse_no_lake
from patternlake.delta_tables.databases.store_options import tell_spark
from patternlake.delta_tables.reading.spark_reader import SparkReader
from patternlake.delta_tables.schema.locations import has_scheme
from patternlake.delta_tables.schema.names import log_name
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.jobs.configuration.written import SECRET
from patternlake.jobs.reports.status_sources import Published, read_published
from patternlake.udfs.errors import StateError
from patternlake.udfs.shown_text import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.reading.state_reader import StateReader

_SECTIONS = {
    "ingest": "streams", "sketch": "sketches", "trends": "trends", "groups": "groups", "patterns": "patterns",
    "predict": "subscriptions", "evaluate": "evaluate", "alerts": "alerts",
}  # fmt: skip
"""By job, in the order of a file: the section whose objects it works on."""
_OF_ALERTS = {"subscription": "subscriptions", "forecast": "subscriptions", "group": "groups", "pattern": "patterns"}
_WIDTH = 88
_PUBLICATIONS = "publications"


def export(location: str, spark: SparkSession | None = None) -> str:
    """Write the configuration of a lake as YAML, with comments on what it does not keep.

    Parameters
    ----------
    location
        Folder or object-store path of the lake.
    spark
        Reads the lake; None: read it without Spark, which works for a lake of this version on this machine's disk.

    Raises
    ------
    StateError
        There is no lake, nothing is published there, or only Spark can read it and there is none.
    """
    place = location.rstrip("/") if has_scheme(location) else os.path.abspath(location)
    return write_file(place, read_published(_reader(place, spark)))


def needs_spark(location: str) -> bool:
    """Whether a lake can be read by Spark alone.

    Raises
    ------
    StateError
        The location is a folder of this machine without a lake.
    """
    refuse_no_lake(location)
    return reader_without_spark(location) is None


def write_file(location: str, objects: Mapping[tuple[str, str], Published]) -> str:
    """Write the file, of the last publication of each job and object."""
    told: list[str] = []
    tree: dict[str, Any] = {"database": "patternlake", "location": location}
    options: dict[str, str] = {}
    sections: dict[str, Any] = {}
    evaluated, newest = 0, dict[str, int]()
    for (job, name), last in sorted(objects.items(), key=lambda item: (_place(item[0][0]), item[0][1])):
        text = last.source.get(WRITTEN)
        if job not in _SECTIONS or (job == "ingest" and "predict_batch" in last.source):
            continue
        if text is None:
            told.append(f"{job} of {name!r}: its last batch is of a version that kept no configuration; left out")
            continue
        origin = json.loads(text)
        tree["database"] = origin["database"]
        options |= {option: f"${{{_variable(option)}}}" for option in origin["storage_options"]}
        section, kept = _SECTIONS[job], origin["section"]
        if job == "evaluate":
            # One section for all streams: the last that was used.
            if last.published_at >= evaluated:
                sections[section], evaluated = kept, last.published_at
        elif job == "predict":
            # A subscription that was moved stands with both of its streams.
            for subscription, each in kept.items():
                if last.published_at >= newest.get(subscription, 0):
                    sections.setdefault(section, {})[subscription] = each
                    newest[subscription] = last.published_at
        else:
            sections.setdefault(section, {})[name] = kept
    if not sections:
        why = "; ".join(told) or "nothing is published there"
        raise StateError(f"no configuration is known of the lake at {location}: {why}")
    told += _take_out_orphans(sections)
    told += _name_secrets(sections.get("alerts", {}))
    if options:
        tree["storage_options"] = options
        told.append(f"storage_options: set the environment variables {', '.join(map(_variable, options))}")
    head = [f"The configuration of {location}, as its last batches were made with it.", *told]
    comments = "".join(f"# {printable(line)}\n" for line in head)
    return comments + yaml.dump({**tree, **sections}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _reader(location: str, spark: SparkSession | None) -> StateReader:
    if spark is None:
        reader = None if needs_spark(location) else reader_without_spark(location)
        if reader is None:
            raise StateError(f"the lake at {location} can be read by Spark alone; give a session")
        return reader
    from delta.tables import DeltaTable

    tell_spark(spark, location, {})
    if not DeltaTable.isDeltaTable(spark, f"{location}/{log_name(_PUBLICATIONS)}"):
        raise no_lake(location)
    return SparkReader(spark, lambda table: f"delta.{identifier(f'{location}/{log_name(table)}')}")


def _place(job: str) -> int:
    return list(_SECTIONS).index(job) if job in _SECTIONS else len(_SECTIONS)


def _take_out_orphans(sections: dict[str, Any]) -> list[str]:
    """Take out what refers to an object that is there no more, such as an alert on a subscription; say so."""
    told: list[str] = []
    gone = True
    while gone:
        streams = {*sections.get("streams", {})}
        streams |= {name for name, one in sections.get("subscriptions", {}).items() if one.get("emit")}
        gone = False
        for section in ("sketches", "trends", "groups", "patterns", "subscriptions", "alerts"):
            for name, one in list(sections.get(section, {}).items()):
                if section == "alerts":
                    where, wanted = _OF_ALERTS[one["of"]], one["name"]
                    there = wanted in sections.get(where, {})
                else:
                    where, wanted = "streams", one.get("stream", name)
                    there = wanted in streams
                if not there:
                    del sections[section][name]
                    told.append(f"{section}.{name}: left out; {where} has no {wanted!r} any more")
                    gone = True
    return told


def _name_secrets(alerts: dict[str, Any]) -> list[str]:
    """Put a variable of the environment in the place of each webhook's address; say so."""
    told: list[str] = []
    used: set[str] = set()
    for name, one in alerts.items():
        if one.get("to") != "webhook":
            continue
        variable = _variable(f"alert_{name}_{SECRET}")
        while variable in used:
            variable += "_"
        used.add(variable)
        one[SECRET] = f"${{{variable}}}"
        told.append(f"alerts.{name}.{SECRET}: set the environment variable {variable}")
    return told


def _variable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


class _Dumper(yaml.SafeDumper):
    """YAML with texts of several lines as blocks, and lists below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
