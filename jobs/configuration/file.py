"""The one configuration file: YAML, checked on load, every problem in one line that starts with its key's path."""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from patternlake.delta_tables.schema.names import internal_name
from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.alerts import FORECAST, AlertConfiguration
from patternlake.jobs.configuration.compiling import check_query
from patternlake.jobs.configuration.emitted import EmittedMatches, with_emitted
from patternlake.jobs.configuration.groups import GroupConfiguration
from patternlake.jobs.configuration.patterns import PatternConfiguration
from patternlake.jobs.configuration.sketches import AgeRule, SketchConfiguration
from patternlake.jobs.configuration.streams import (
    QUARANTINE_WARNING,
    Attribute,
    ObjectName,
    Section,
    Source,
    StreamConfiguration,
    Text,
    problem,
    problems,
    write_options,
)
from patternlake.jobs.configuration.subscriptions import KEEP, EvaluationConfiguration, SubscriptionConfiguration
from patternlake.jobs.configuration.trends import TrendConfiguration
from patternlake.udfs.errors import ConfigurationError, PatternLakeError, cut, shorten
from patternlake.udfs.language.query import engines
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.limits import MOST_DIGITS, MOST_LEVELS, MOST_REPEATED
from patternlake.udfs.nearest_names import did_you_mean

__all__ = [
    "AgeRule",
    "AlertConfiguration",
    "Attribute",
    "Configuration",
    "EvaluationConfiguration",
    "GroupConfiguration",
    "PatternConfiguration",
    "SketchConfiguration",
    "Source",
    "StreamConfiguration",
    "SubscriptionConfiguration",
    "TrendConfiguration",
]

_Query = TrendConfiguration | GroupConfiguration | PatternConfiguration | SubscriptionConfiguration
_QUERIES = {"trends": "trends", "groups": "groups", "patterns": "kleene", "subscriptions": "machines"}
"""Sections whose objects each ask a stream, and the engine that answers."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _database(name: str) -> str:
    if not _DATABASE.fullmatch(name) or len(name) > values.NAME_LENGTH:
        raise ValueError(f"{shorten(name)} is not a database's name; letters, digits and _ make one, no digit first")
    return name


def _with_environment(options: dict[str, str]) -> dict[str, str]:
    return {option: values.with_environment(value) for option, value in options.items()}


StorageOptions = Annotated[dict[str, str], BeforeValidator(write_options), AfterValidator(_with_environment)]


class Configuration(Section):
    """What one file configures. Relative paths have been made absolute, from the file's folder."""

    database: Annotated[str, AfterValidator(_database)] = "patternlake"
    location: Text | None = None
    storage_options: StorageOptions = Field(default_factory=dict, repr=False)
    streams: dict[ObjectName, StreamConfiguration] = Field(default_factory=dict)
    sketches: dict[ObjectName, SketchConfiguration] = Field(default_factory=dict)
    trends: dict[ObjectName, TrendConfiguration] = Field(default_factory=dict)
    groups: dict[ObjectName, GroupConfiguration] = Field(default_factory=dict)
    patterns: dict[ObjectName, PatternConfiguration] = Field(default_factory=dict)
    subscriptions: dict[ObjectName, SubscriptionConfiguration] = Field(default_factory=dict)
    evaluate: EvaluationConfiguration | None = None
    alerts: dict[ObjectName, AlertConfiguration] = Field(default_factory=dict)
    quarantine_warning: float = Field(default=QUARANTINE_WARNING, ge=0, le=1)

    @model_validator(mode="after")
    def _streams_exist(self) -> Configuration:
        self.streams.update(with_emitted(self.streams, self.subscriptions))
        checks = [
            self._check_names(),
            self._check_sketches(),
            *map(self._check_queries, _QUERIES),
            self._check_alerts(),
            self._check_places(),
        ]
        found = [each for check in checks for each in check]
        if found:
            raise problems(found)
        return self

    def subscriptions_to(self, stream: str) -> dict[str, SubscriptionConfiguration]:
        """The subscriptions to a stream, by name."""
        return {name: each for name, each in self.subscriptions.items() if each.stream == stream}

    @property
    def calls_by_name(self) -> bool:
        """Whether a source is a table that is called by a name."""
        return any(stream.source.table is not None for stream in self.streams.values())

    @property
    def watched(self) -> list[str]:
        """The streams that have, or had, subscriptions: all, where the section is there."""
        return list(self.streams) if "subscriptions" in self.model_fields_set else []

    @property
    def subscribed(self) -> list[str]:
        """The streams that have subscriptions."""
        return list(dict.fromkeys(each.stream for each in self.subscriptions.values()))

    def emitted(self, stream: str) -> EmittedMatches | None:
        """What a stream of matches is made of; None of a stream with a source of its own."""
        source = self.streams[stream].source
        return source if isinstance(source, EmittedMatches) else None

    def depth(self, stream: str) -> int:
        """How many streams of matches a stream is the last of."""
        emitted = self.emitted(stream)
        return 0 if emitted is None else 1 + self.depth(emitted.stream)

    def feeds_on_itself(self, stream: str) -> bool:
        """Whether a stream reads, or may read, a table of the database itself."""
        source = self.streams[stream].source
        if source.table is not None:
            database = source.table.replace("`", "").lower().split(".")[-2:-1]
            # Without a database's name it is a table of the current one, which may be this.
            own = (self.database, internal_name(self.database))
            return database in ([], *([name.lower()] for name in own))
        inside = self.location is not None and f"{source.path}/".startswith(f"{self.location.rstrip('/')}/")
        return source.kind == "delta" and inside

    @property
    def kept_forecasts(self) -> dict[str, float]:
        """The subscriptions whose forecasts are kept, with the probability that a forecast must exceed for it.

        Those that say so, and those that an alert is about: then all that its predicate may choose.
        """
        found = {name: each.least for name, each in self.subscriptions.items() if each.forecasts == KEEP}
        for alert in self.alerts.values():
            if alert.of == FORECAST:
                least = self.subscriptions[alert.name].least
                bound = least if alert.bound is None else alert.bound
                found[alert.name] = min(found.get(alert.name, least), bound)
        return found

    def stream_of_alert(self, name: str) -> str:
        """The stream whose events an alert goes back to."""
        alert = self.alerts[name]
        return self._queries(alert.section)[alert.name].stream

    def _check_sketches(self) -> Iterator[PydanticCustomError]:
        for name in self.sketches:
            if name not in self.streams:
                known = ", ".join(map(repr, self.streams)) or "none"
                hint = did_you_mean(name, self.streams)
                yield problem(
                    f"no stream {shorten(name)}{hint}; a sketch is named after its stream: {known}", "sketches", name
                )

    def _check_alerts(self) -> Iterator[PydanticCustomError]:
        for name, alert in self.alerts.items():
            section = alert.section
            there = self._queries(section)
            if alert.name not in there:
                known = ", ".join(map(repr, there)) or "none"
                hint = did_you_mean(alert.name, there)
                yield problem(f"{section} has no {shorten(alert.name)}{hint}; there: {known}", "alerts", name, "name")
            elif alert.of == FORECAST and alert.bound is None and self.subscriptions[alert.name].wants_precision:
                why = (
                    f"the threshold of {shorten(alert.name)} is a wanted precision, and which probability that is "
                    "changes with each evaluation; say above which one to tell, such as probability >= 0.3"
                )
                yield problem(why, "alerts", name, "where")

    def _check_names(self) -> Iterator[PydanticCustomError]:
        first: dict[str, str] = {}
        for name in self.streams:
            other = first.setdefault(name.lower(), name)
            if other != name:
                told = f"stream {shorten(other)} differs in case alone, and Spark takes both for one; give another name"
                yield problem(told, "streams", name)

    def _check_places(self) -> Iterator[PydanticCustomError]:
        for name, stream in self.streams.items():
            clash = None if self.location is None else stream.source.clash(self.location)
            if clash is not None:
                yield problem(clash, "streams", name, "source", "path")

    def _check_queries(self, section: str) -> Iterator[PydanticCustomError]:
        for name, query in self._queries(section).items():
            if query.stream not in self.streams:
                known = ", ".join(map(repr, self.streams)) or "none"
                hint = did_you_mean(query.stream, self.streams)
                yield problem(f"no stream {shorten(query.stream)}{hint}; streams are {known}", section, name, "stream")
                continue
            key = "pattern" if isinstance(query, GroupConfiguration) else "query"
            try:
                engines.check(parse(getattr(query, key)), _QUERIES[section])
                check_query(section, query.meaning, self.streams[query.stream])
            except PatternLakeError as error:
                yield problem(str(error), section, name, key)

    def _queries(self, section: str) -> dict[str, _Query]:
        """The objects of a section that each read one stream."""
        found: dict[str, _Query] = getattr(self, section)
        return found

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Configuration:
        """Read and check a file.

        Raises
        ------
        ConfigurationError
            The file is missing, is not YAML (file and line named), or has problems: one line for each.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ConfigurationError(
                f"{path}: there is no such configuration file; patternlake init writes one"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: cannot be read as UTF-8 text: {error}") from None
        return cls.from_text(text, file=str(path), folder=file.resolve().parent)

    @classmethod
    def from_text(cls, text: str, *, file: str = "configuration", folder: str | Path = ".") -> Configuration:
        """Check a file's text; `folder` is what relative paths are relative to."""
        try:
            tree = yaml.load(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise ConfigurationError(
                f"{file}{place}: not YAML: {cut(error.problem or error.context or '', 400)}"
            ) from None
        except yaml.YAMLError as error:
            raise ConfigurationError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(tree, dict):
            raise ConfigurationError(f"{file}: has no sections; expected {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(_absolute(tree, Path(folder).resolve()))
        except ValidationError as error:
            lines = dict.fromkeys(_line(cls, dict(found)) for found in error.errors())
            raise ConfigurationError("\n".join(lines)) from None


class _Loader(yaml.SafeLoader):
    """Safe YAML whose mappings have text keys, each once; what only looks like a day or a time is text.

    A short text may stand for more than can be held: what its aliases repeat, how deep it is nested and how long its
    numbers are is bounded while it is read.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._repeated = self._made = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth == MOST_LEVELS:
            why = f"lists and sections are nested more than {MOST_LEVELS} deep; take levels away"
            raise yaml.MarkedYAMLError(problem=why, problem_mark=event.start_mark)
        self._depth += 1
        begun = self._made
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            self._count_repeated(node, event)
        else:
            self._made += 1
            self._sizes[id(node)] = self._made - begun
        return node

    def _count_repeated(self, node: yaml.Node | None, event: Any) -> None:
        """Add what an alias stands for, whole, to what the file holds."""
        size = self._sizes.get(id(node))
        if size is None:
            why = f"the anchor {cut('&' + event.anchor)} stands inside itself"
            raise yaml.MarkedYAMLError(problem=why, problem_mark=event.start_mark)
        self._made += size
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            why = (
                f"aliases repeat more than {MOST_REPEATED:,} values, {cut('*' + event.anchor)} {size:,} of them; write "
                "out what differs, or split the file"
            )
            raise yaml.MarkedYAMLError(problem=why, problem_mark=event.start_mark)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        self._check_digits(node)
        return _as_written(values.WrittenInt, super().construct_yaml_int(node), node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        self._check_digits(node)
        return _as_written(values.WrittenFloat, super().construct_yaml_float(node), node)

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> Any:
        try:
            return super().construct_yaml_timestamp(node)
        except (ValueError, OverflowError):
            return node.value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(
                    problem=f"the key {shorten(key)} is not text; quote it", problem_mark=key_node.start_mark
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {shorten(key)} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def _check_digits(self, node: yaml.ScalarNode) -> None:
        if len(node.value) > MOST_DIGITS:
            why = (
                f"the number {cut(node.value)} has {len(node.value):,} characters, at most {MOST_DIGITS} are possible; "
                "quote it if it is text"
            )
            raise yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)


_Number = TypeVar("_Number", int, float)


def _as_written(kind: type[values.WrittenInt | values.WrittenFloat], number: _Number, node: yaml.ScalarNode) -> _Number:
    """A number with its text, where that is another than Python's: an option or a parameter is what is written."""
    if str(number) == node.value:
        return number
    made: Any = kind(number)
    made.text = node.value
    return made  # type: ignore[no-any-return]


for _tag in ("int", "float", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", getattr(_Loader, f"construct_yaml_{_tag}"))


def _absolute(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tree with its paths absolute, where there is text to do it with."""

    def resolved(path: Any) -> Any:
        if not isinstance(path, str) or not path.strip() or _URI.match(path) or path.startswith("/"):
            return path
        return str(folder / os.path.expanduser(path.strip()))

    tree = dict(tree)
    if "location" in tree:
        tree["location"] = resolved(tree["location"])
    if isinstance(tree.get("streams"), dict):
        tree["streams"] = {
            name: stream | {"source": stream["source"] | {"path": resolved(stream["source"]["path"])}}
            if isinstance(stream, dict) and isinstance(stream.get("source"), dict) and "path" in stream["source"]
            else stream
            for name, stream in tree["streams"].items()
        }
    return tree


_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a section of keys and values",
    "model_type": "a section of keys and values",
    "model_attributes_type": "a section of keys and values",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def _line(root: type[BaseModel], found: Mapping[str, Any]) -> str:
    """One of pydantic's errors as one line: path of the key, value, what would be right."""
    kind, context, value = found["type"], found.get("ctx", {}), found["input"]
    places = [str(place) for place in found["loc"] if place != "[key]"]
    path = ".".join(map(cut, places))
    if kind == "extra_forbidden":
        known = _keys(root, places[:-1])
        return f"{path}: unknown key{did_you_mean(places[-1], known)}; known: {', '.join(known)}"
    if kind == "missing":
        return f"{path}: missing"
    if kind == "problem":
        told = context.get("all", [context])
        return "\n".join(f"{'.'.join(map(cut, [*places, *each['key']]))}: {each['message']}" for each in told)
    if kind == "value_error":
        return f"{path}: {context['error']}"
    shown = "empty" if value is None else shorten(value)
    if kind in _KINDS:
        return f"{path}: {shown} is not {_KINDS[kind]}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{path}: {shown} is out of range; {words} {context[name]}"
    if kind == "too_short":
        return f"{path}: {shown} has too few entries; at least {context['min_length']}"
    return f"{path}: {shown}: {found['msg']}"


def _keys(root: type[BaseModel], places: list[str]) -> list[str]:
    """The keys known at a path, found by walking the models' annotations."""
    node: Any = root
    for place in places:
        if isinstance(node, type) and issubclass(node, BaseModel):
            by_key = {field.alias or name: field.annotation for name, field in node.model_fields.items()}
            node = _inner(by_key[place])
        else:
            node = _inner(get_args(node)[-1])
    return [field.alias or name for name, field in node.model_fields.items()]


def _inner(annotation: Any) -> Any:
    """An annotation without Annotated and without the None of an optional key."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (typing.Union, type(int | None)):
            annotation = next(part for part in get_args(annotation) if part is not type(None))
        else:
            return annotation
