"""Sections of the configuration as documents: what was written, in the words of the file, without what may be secret.

A publication keeps the section of its object, so that a lake knows its configuration; `exporting` makes a file of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.alerts import AlertConfiguration
from patternlake.jobs.configuration.sketches import AgeRule
from patternlake.jobs.configuration.streams import Section, StreamConfiguration
from patternlake.jobs.configuration.subscriptions import WantedPrecision

if TYPE_CHECKING:
    from patternlake.jobs.configuration.file import Configuration

SECRET = "url"
"""Key of an alert whose value stays out: the address of a webhook is often all that it takes to post there."""


def write_section(section: Section) -> dict[str, Any]:
    """Write the keys of a section that its file has, as YAML may hold them; an alert's without `SECRET`."""
    found = {}
    for name, field in type(section).model_fields.items():
        if name not in section.model_fields_set or (isinstance(section, AlertConfiguration) and name == SECRET):
            continue
        found[field.alias or name] = _write(section, name, getattr(section, name))
    return found


def write_stream(configuration: Configuration, name: str) -> dict[str, Any] | None:
    """Write the section of a stream, with what the whole file says of its quarantine; None of a stream of matches."""
    if configuration.emitted(name) is not None:
        return None
    found = write_section(configuration.streams[name])
    if "quarantine_warning" in configuration.model_fields_set:
        found.setdefault("quarantine_warning", configuration.quarantine_warning)
    return found


def write_subscriptions(configuration: Configuration, stream: str) -> dict[str, Any]:
    """Write the sections of the subscriptions to a stream, by name."""
    return {name: write_section(one) for name, one in configuration.subscriptions_to(stream).items()}


def write_origin(configuration: Configuration, section: Mapping[str, Any] | None) -> str | None:
    """Write what a publication keeps of the configuration of its object: its section, and what goes for the lake.

    A text, in which keys keep their order; of the options of an object store, the names alone.
    """
    if section is None:
        return None
    options = sorted(configuration.storage_options)
    found = {"database": configuration.database, "storage_options": options, "section": dict(section)}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _write(section: Section, name: str, value: Any) -> Any:
    if isinstance(section, StreamConfiguration) and name == "allowed_lateness" and value is None:
        return "none"
    if isinstance(section, AgeRule) and isinstance(value, int) and not isinstance(value, bool) and name == "after":
        return f"{value} events"
    if isinstance(value, Section):
        return write_section(value)
    if isinstance(value, WantedPrecision):
        return {"precision": value.precision}
    if isinstance(value, timedelta):
        return values.write_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _write(section, "", each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_write(section, "", each) for each in value]
    return value
