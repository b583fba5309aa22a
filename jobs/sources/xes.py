"""Reading IEEE XES event logs (IEEE 1849-2016), event by event, in memory that does not grow with the log.

The reader sits directly on expat: it needs the line of every element for its messages, it must see a DOCTYPE before
any entity is expanded, and it never builds a tree.
"""

from __future__ import annotations

import gzip
import io
import json
import marshal
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from patternlake.udfs.errors import SourceError

CASE = "case:"
NAME = "concept:name"
FAULT = ""
"""Key of an event that cannot be read as it should: what is wrong with it. No attribute has an empty key."""

_CHUNK = 1 << 16
_DEEPEST = 64
_HELD = 1000
"""Events of a trace that wait in memory for its end, at most: attributes of a trace may stand behind its events."""
_GZIP = b"\x1f\x8b"

_PARTS = ("trace", "event", "global")
_PLAIN = frozenset({"string", "date", "int", "float", "boolean", "id"})
_ATTRIBUTES = _PLAIN | {"list", "container"}
_CHILDREN: dict[str, frozenset[str]] = {
    "": frozenset({"log"}),
    "log": _ATTRIBUTES | {"extension", "global", "classifier", "trace", "event"},
    "trace": _ATTRIBUTES | {"event"},
    "event": _ATTRIBUTES,
    "global": _ATTRIBUTES,
    "list": _ATTRIBUTES | {"values"},
    "values": _ATTRIBUTES,
    "container": _ATTRIBUTES,
    "extension": frozenset(),
    "classifier": frozenset(),
} | dict.fromkeys(_PLAIN, _ATTRIBUTES)
# An attribute is unique by its key here; inside a list the position is what counts.
_KEYED = frozenset({"log", "trace", "event", "global", "container"}) | _PLAIN

NUMBERED = "traces without concept:name go by the name of their file and their number in it, as in log.xes#1"
LATE_GLOBAL = "a <global> stands behind the first trace or event; its values hold for those that stand behind it"

# Text, or what becomes JSON text: the object of a container, the key-value items of a list.
_Value = str | dict[str, Any] | list[dict[str, Any]] | None
_Event = dict[str, str | None]


def events(
    open_file: BinaryIO, *, name: str, label: str | None = None, on_note: Callable[[str], None] | None = None
) -> Iterator[_Event]:
    """The events of a log, in the file's order.

    Parameters
    ----------
    open_file
        The log, as XML or as gzip-compressed XML (told apart by its first bytes). Read once, from where it stands;
        not closed.
    name
        The file's name, for messages.
    label
        What the file is called in the names of traces that have none; None: its name.
    on_note
        Called with `NUMBERED` and `LATE_GLOBAL`, once each, where the log is such.

    Yields
    ------
    dict
        Attribute → text as it is printed in the file; None where an attribute has no ``value``.
        Event attributes stand under their own key, those of the event's trace under ``case:`` and their key; a global
        attribute's value stands in where the trace or event has none. An event outside of every trace has no
        ``case:`` attributes. A container is a JSON object, a list a JSON array of ``{"key": …, "value": …}``.
        An attribute nested in a plain attribute stands beside it as ``<outer key>/<inner key>``.
        A trace without a ``concept:name`` of its own, or with an empty one, has the file's label, ``#`` and its number
        in the file, from 1, for a name. An event that has a fault, or whose trace has one, says so under `FAULT`; so
        does one that stands where none can, and what it stands in.

    Raises
    ------
    SourceError
        The file is not well-formed XML, has a DOCTYPE, or is not XES. Events before that place have been yielded.

    Notes
    -----
    Element names are compared without namespace prefix. Attributes of the log itself, extensions and classifiers
    describe the log and give no columns; whatever is wrong with them matters to no event, nor does a ``<global>``
    of another scope than trace and event. Memory: one chunk of the file, the events in it, and up to 1,000 events of
    the trace that is read; more than that wait on disk for the end of their trace.
    """
    reader = _Reader(name, name if label is None else label, on_note)
    try:
        for chunk in _chunks(open_file):
            reader.feed(chunk)
            yield from reader.taken()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{name}, after line {reader.line}: broken gzip file: {error}") from error
    reader.finish()
    yield from reader.taken()


@dataclass(slots=True)
class _Element:
    """An element that is open, with the attributes that were completed inside it."""

    tag: str
    key: str = ""
    value: str | None = None
    scope: str = ""
    attributes: list[tuple[str, _Value]] = field(default_factory=list)
    items: list[tuple[str, _Value]] | None = None
    fault: str | None = None
    number: int = 0
    held: _Held | None = None


class _Held:
    """The events of a trace until it ends, those of a long one on disk."""

    def __init__(self) -> None:
        self._last: list[_Event] = []
        self._file: IO[bytes] | None = None

    def add(self, event: _Event) -> None:
        """Put an event behind the others."""
        self._last.append(event)
        if len(self._last) == _HELD:
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has been taken
            marshal.dump(self._last, self._file)
            self._last = []

    def taken(self) -> Iterator[_Event]:
        """All of them in their order, once."""
        if self._file is not None:
            with self._file as file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    yield from marshal.load(file)
        yield from self._last


class _Reader:
    """The handlers behind `events`: a stack of open elements and the events completed since the last `taken`."""

    def __init__(self, name: str, label: str, on_note: Callable[[str], None] | None) -> None:
        self._name = name
        self._label = label
        self._on_note = on_note
        self._noted: set[str] = set()
        self._traces = 0
        self._skipped = 0
        self._stack = [_Element("")]
        self._completed: list[Iterable[_Event]] = []
        self._defaults: dict[str, _Event] = {"trace": {}, "event": {}}
        self._begun = False
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    @property
    def line(self) -> int:
        """1-based line that the parser has reached."""
        return self._parser.CurrentLineNumber

    def feed(self, chunk: bytes) -> None:
        """Parse the next bytes."""
        self._parse(chunk, final=False)

    def finish(self) -> None:
        """Say that there are no more bytes."""
        self._parse(b"", final=True)

    def taken(self) -> Iterator[_Event]:
        """The events completed since the last call."""
        completed, self._completed = self._completed, []
        return chain.from_iterable(completed)

    def _parse(self, chunk: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            what = expat.errors.messages[error.code]
            if what == expat.errors.XML_ERROR_NO_ELEMENTS:
                still_open = self._stack[-1].tag
                what = f"the file ends inside <{still_open}>" if still_open else "the file is empty, expected <log>"
            raise SourceError(
                f"{self._name}, line {error.lineno}, column {error.offset + 1}: broken XML: {what}"
            ) from error
        except (LookupError, ValueError) as error:
            raise SourceError(f"{self._name}: encoding: {error}; UTF-8 is what XES files are written in") from error

    def _wrong(self, what: str) -> SourceError:
        return SourceError(f"{self._name}, line {self.line}: {what}")

    def _doctype(self, *_declaration: object) -> None:
        raise self._wrong("the file has a DOCTYPE; XES needs none, and its entities are never expanded: remove it")

    def _start(self, qualified: str, given: dict[str, str]) -> None:
        tag = qualified.rpartition(":")[2]
        parent = self._stack[-1]
        if self._skipped or (parent.tag == "log" and tag not in _PARTS):
            # What describes the log, and what is in an element that has no meaning.
            self._skipped += 1
            return
        allowed = _CHILDREN[parent.tag]
        misplaced = None
        if tag not in allowed:
            place = f"in <{parent.tag}>" if parent.tag else "as the root"
            expected = ", ".join(f"<{one}>" for one in sorted(allowed)) or "nothing"
            misplaced = f"<{tag}> cannot stand {place}; expected {expected}"
            if not parent.tag:
                raise self._wrong(misplaced)
            if tag not in ("trace", "event"):
                self._skip(misplaced)
                return
            self._blame(misplaced)
        if len(self._stack) > _DEEPEST:
            self._skip(f"elements are nested more than {_DEEPEST} deep")
            return
        element = _Element(tag)
        if tag in _ATTRIBUTES:
            element.key = given.get("key", "")
            element.value = given.get("value")
            if not element.key and parent.tag in _KEYED:
                self._skip(f"<{tag}> in <{parent.tag}> has no key")
                return
        elif tag == "event":
            self._begun = True
        elif tag == "trace":
            self._begun = True
            self._traces += 1
            element.number, element.held = self._traces, _Held()
        elif tag == "global":
            element.scope = given.get("scope", "").lower()
            if self._begun and element.scope in self._defaults:
                self._note(LATE_GLOBAL)
        self._stack.append(element)
        if misplaced is not None:
            self._blame(misplaced)

    def _note(self, told: str) -> None:
        if self._on_note is not None and told not in self._noted:
            self._noted.add(told)
            self._on_note(told)

    def _skip(self, fault: str) -> None:
        """Leave out the element that begins here: a fault of the event, trace or global that it stands in."""
        self._blame(fault)
        self._skipped = 1

    def _blame(self, fault: str, part: _Element | None = None) -> None:
        part = part or next(element for element in reversed(self._stack) if element.tag in _PARTS)
        part.fault = part.fault or f"line {self.line}: {fault}"

    def _end(self, _qualified: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        element = self._stack.pop()
        parent = self._stack[-1]
        if element.tag in _ATTRIBUTES:
            parent.attributes.extend(self._flat(element))
        elif element.tag == "event":
            own = self._texts(element)
            own |= _missing(own, self._defaults["event"])
            if element.fault is not None:
                own[FAULT] = element.fault
            held = next((each.held for each in reversed(self._stack) if each.held is not None), None)
            if held is None:
                self._completed.append([own])
            else:
                held.add(own)
        elif element.tag == "trace":
            self._completed.append(self._events_of(element))
        elif element.tag == "values":
            parent.items = (parent.items or []) + element.attributes
        elif element.tag == "global":
            texts = self._texts(element)
            if element.scope in self._defaults:
                self._defaults[element.scope].update(texts)

    def _events_of(self, trace: _Element) -> Iterator[_Event]:
        """The events of a trace that has ended, with its attributes and defaults, which have the prefix."""
        own = self._texts(trace)
        # A default, or an empty name, would make one case of all traces that have none of their own.
        if not own.get(NAME):
            own[NAME] = f"{self._label}#{trace.number}"
            self._note(NUMBERED)
        own |= _missing(own, self._defaults["trace"])
        case = {CASE + key: value for key, value in own.items()}
        fault: _Event = {} if trace.fault is None else {FAULT: trace.fault}
        assert trace.held is not None
        return (self._of_trace(event, case, fault) for event in trace.held.taken())

    @staticmethod
    def _of_trace(event: _Event, case: _Event, fault: _Event) -> _Event:
        both = event.keys() & case.keys()
        if both:
            fault = {FAULT: f"attribute '{min(both)}' of an event has the name of an attribute of its trace"}
        return case | event | fault

    def _texts(self, element: _Element) -> _Event:
        return {
            key: value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for key, value in self._unique(element, element.attributes).items()
        }

    def _unique(self, element: _Element, attributes: list[tuple[str, _Value]]) -> dict[str, _Value]:
        by_key = dict(attributes)
        if len(by_key) < len(attributes):
            keys = [key for key, _ in attributes]
            twice = next(key for key in keys if keys.count(key) > 1)
            part = element if element.tag in _PARTS else None
            self._blame(f"attribute '{twice}' stands twice in one <{element.tag}>", part)
        return by_key

    def _flat(self, element: _Element) -> list[tuple[str, _Value]]:
        """A finished attribute, and the attributes nested in it that are not its value."""
        if element.tag == "container":
            return [(element.key, self._unique(element, element.attributes))]
        nested = [(f"{element.key}/{key}", value) for key, value in element.attributes]
        if element.tag in _PLAIN:
            return [(element.key, element.value), *nested]
        # Before IEEE 1849 a list had no <values>: its items stood directly inside.
        items, beside = (element.attributes, []) if element.items is None else (element.items, nested)
        return [(element.key, [{"key": key, "value": value} for key, value in items]), *beside]


def _missing(own: _Event, defaults: _Event) -> _Event:
    return {key: value for key, value in defaults.items() if key not in own}


def _chunks(open_file: BinaryIO) -> Iterator[bytes]:
    """The file's bytes, decompressed where it is gzip, never more than a chunk at a time."""
    head = open_file.read(_CHUNK)
    if head.startswith(_GZIP):
        with gzip.GzipFile(fileobj=_Rejoined(head, open_file)) as unpacked:
            while chunk := unpacked.read(_CHUNK):
                yield chunk
        return
    while head:
        yield head
        head = open_file.read(_CHUNK)


class _Rejoined(io.RawIOBase):
    """A file whose first bytes were read already, from its beginning; closing it leaves the file open."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            self._head = self._rest.read(len(buffer))
        part, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
