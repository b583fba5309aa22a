"""A configuration as commented YAML, of what was found and guessed."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from patternlake.jobs.configuration.streams import FORMATS as _ALL_FORMATS
from patternlake.jobs.starter.found_source import FoundSource
from patternlake.jobs.starter.guesses import Candidate, Guesses
from patternlake.udfs.errors import PatternError
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.shown_text import printable

FORMATS = tuple(format for format in _ALL_FORMATS if format != "delta")
"""Of files that are no table."""
NO_TIME = "CAST(NULL AS TIMESTAMP)"
"""Stands where no column looks like a time; all rows go to quarantine until it is changed."""
_WIDTH = 88
"""Characters of a line, at most, unless one word is longer."""
_COLUMN = 36
"""Comments behind a key begin here, if the key is not longer."""
_SHOWN_NAMES = 8
_SHOWN_CANDIDATES = 3
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_FOR_SHELL = re.compile(r"[\"$`\\!]")


@dataclass(frozen=True)
class Starter:
    """All that a first configuration says.

    Parameters
    ----------
    source
        Where rows come from.
    guesses
        What the columns may mean.
    names
        The commonest names of events, with how many rows have each.
    looked_at
        What the guesses rest on, in words.
    file
        The file that is written; paths below its folder are relative to it. None: standard output.
    lake
        Name and location of the database that is to be filled; of a location of None the catalog's, or a folder.
    """

    source: FoundSource
    guesses: Guesses
    names: Sequence[tuple[str, int]]
    looked_at: str
    file: Path | None = None
    lake: tuple[str, str | None] = ("patternlake", None)

    @property
    def conf(self) -> str:
        """The file, as it is told in commands."""
        return "patternlake.yaml" if self.file is None else str(self.file)

    @property
    def question(self) -> str | None:
        """A first question: one frequent thing and then another."""
        names = [name for name, _ in self.names if name.isprintable()]
        if len(names) < 2:
            return None
        first, second = map(_operand, names[:2])
        key = " PARTITION BY key" if self.guesses.keys else ""
        pattern = f"{first} ; {second}{key} WITHIN 1 DAY".replace("\\", "\\\\").replace("'", "''")
        stream = self.source.name.replace("'", "''")
        return f"SELECT key, first_time, last_time\nFROM match_seq('{stream}', '{pattern}')\nLIMIT 10"


def commands(starter: Starter) -> list[str]:
    """What to run next, for a shell; of the question, which is in quotes, a line each."""
    told = [f"patternlake {verb} --conf {starter.conf}" for verb in ("check", "run all")]
    question = starter.question
    if question is not None and not _FOR_SHELL.search(question):
        told.append(f'patternlake sql --conf {starter.conf} "\n{textwrap.indent(question, "  ")}"')
    return told


def report(starter: Starter) -> list[str]:
    """What was looked at and guessed, and what to run next."""
    guesses = starter.guesses

    def chosen(role: str, candidates: Sequence[Candidate], none: str) -> str:
        if not candidates:
            return f"  {role}: {none}"
        others = ", ".join(other.expression for other in candidates[1 : 1 + _SHOWN_CANDIDATES])
        return f"  {role}: {candidates[0].expression} ({candidates[0].why}){'; or ' + others if others else ''}"

    uncertain = (("step", guesses.steps), ("probability", guesses.probabilities))
    lines = [
        f"looked at {starter.looked_at}, and guessed:",
        chosen("time", guesses.times, "no column looks like one; write an expression for it"),
        chosen("name", guesses.names, "no column looks like what happened; write an expression for it"),
        chosen("key", guesses.keys, "no column looks like whose event it is"),
        *(chosen(role, found, "") for role, found in uncertain if found),
        f"  attributes: {', '.join(each.name for each in guesses.attributes) or 'none'}",
    ]
    lines += [f"  left out: {name} {why}" for name, why in guesses.left_out]
    if starter.file is not None:
        lines.append(f"written: {starter.file}; look it over, then")
    told = [each for line in lines for each in _wrap(line, "    ")]
    return [*told, *(f"  {line}" for command in commands(starter) for line in command.splitlines())]


def as_yaml(starter: Starter) -> str:
    """The text of the file."""
    return "\n".join(_lines(starter)) + "\n"


def _lines(starter: Starter) -> Iterator[str]:
    guesses, source = starter.guesses, starter.source
    yield from _comment(f"A first configuration, guessed from {starter.looked_at}.")
    yield "# Look at what it guessed, change what is wrong, then:"
    yield f"#   patternlake check --conf {starter.conf}"
    yield f"#   patternlake run all --conf {starter.conf}"
    yield f"#   patternlake sql --conf {starter.conf}"
    if starter.question is not None:
        yield "# and ask:"
        yield from textwrap.indent(f"{starter.question};", "#   ").splitlines()
    yield "# All keys are on the page 'Configuration'."
    database, location = starter.lake
    yield from _line(f"database: {scalar(database)}", "tables and views are registered under this name")
    if location is None and "table" in source.section:
        yield from _line("# location: ./lake", "folder or object-store address of the tables; left out: the catalog's")
    else:
        yield from _line(f"location: {scalar(location or './lake')}", "folder or object-store address of the tables")
    yield "streams:"
    yield f"  {scalar(source.name)}:"
    yield from _entry("    ", "source", _source_keys(starter))
    if source.place is not None:
        yield "    #   or, for commands and sessions that do not know the table:"
        yield f"    #   source: {_flow({'format': 'delta', 'path': _near(starter, source.place)})}"
    if source.schema is not None:
        yield from _entry("    ", "schema", source.schema)
        yield "    #   the files name no columns: give them names here"
    yield from _role("time", guesses.times, NO_TIME, "no column looks like a time: write its expression")
    yield from _line("    timezone: UTC", "of times without a zone, such as Europe/Berlin")
    yield from _role("name", guesses.names, "'event'", "no column looks like what happened: write its expression")
    if starter.names:
        shown = [f"{_short(name)} ({count:,})" for name, count in starter.names[:_SHOWN_NAMES]]
        more = ", …" if len(starter.names) > _SHOWN_NAMES else ""
        yield from _comment(f"  the commonest: {', '.join(shown)}{more}", "    ")
    if guesses.keys:
        yield from _role("key", guesses.keys, "", "")
    else:
        yield from _line("    # key: …", "whose event it is: a user, a case, a machine; no column looks like it")
    if guesses.steps:
        yield from _role("step", guesses.steps, "", "")
        yield from _role("probability", guesses.probabilities, "", "")
    if guesses.ids:
        why = f"known repeats go to quarantine ({guesses.ids[0].why})"
        yield from _line(f"    # event_id: {scalar(guesses.ids[0].expression)}", why)
    if guesses.attributes:
        yield "    attributes:"
        for each in guesses.attributes:
            value = each.type if each.expression is None else {"type": each.type, "expr": each.expression}
            *lines, last = _entry("      ", each.name, value)
            yield from (*lines, *_line(last, each.why, "      "))
    for name, why in guesses.left_out:
        yield from _comment(f"left out: {_one_line(name)} {why}", "    ")
    lateness = "how far an event may lie behind those of earlier runs; left out: 0"
    yield from _line("    # allowed_lateness: 1 day", lateness)
    yield "sketches:"
    sketch = {"keyed": True} if guesses.keys else {}
    yield from _line(f"  {scalar(source.name)}: {_flow(sketch)}", "for match_seq and match_exists")


def _role(role: str, candidates: Sequence[Candidate], none: str, advice: str) -> Iterator[str]:
    """The lines of one key: the first candidate, and the others as comments."""
    if not candidates:
        yield from _line(f"    {role}: {scalar(none)}", advice)
        return
    first, *others = candidates
    *lines, last = _entry("    ", role, first.expression)
    yield from (*lines, *_line(last, first.why, "    "))
    for other in others[:_SHOWN_CANDIDATES]:
        yield from _line(f"    #   or {scalar(other.expression)}", other.why)


def _source_keys(starter: Starter) -> dict[str, Any]:
    """The section `source`, its path relative to the file where it is near."""
    keys, missing = dict(starter.source.section), starter.guesses.missing
    if "path" in keys:
        keys["path"] = _near(starter, keys["path"])
    if missing is not None:
        keys["options"] = {**keys.get("options", {}), "nullValue": missing}
    return keys


def _near(starter: Starter, path: str) -> str:
    """A path, relative to the file where it is near."""
    relative = os.path.relpath(path, (starter.file or Path("patternlake.yaml")).resolve().parent)
    return path if not path.startswith("/") or relative.startswith(f"..{os.sep}..") else relative


def scalar(value: object) -> str:
    """A value as YAML on one line."""
    text = yaml.safe_dump(value, allow_unicode=True, width=2**31, default_style=None)
    return text.removesuffix("\n").removesuffix("\n...")


def _flow(value: dict[str, Any]) -> str:
    text = yaml.safe_dump(value, allow_unicode=True, width=2**31, default_flow_style=True, sort_keys=False)
    return text.rstrip("\n")


def _entry(indent: str, key: str, value: Any) -> Iterator[str]:
    """A key and its value on one line if they fit; else a line for each key of the value, or parts of a long text."""
    line = f"{indent}{scalar(key)}: {_flow(value) if isinstance(value, dict) else scalar(value)}"
    if len(line) <= _WIDTH:
        yield line
        return
    text = yaml.safe_dump({key: value}, allow_unicode=True, width=_WIDTH - len(indent) - 8, sort_keys=False)
    yield from textwrap.indent(text, indent).splitlines()


def _line(text: str, comment: str, indent: str | None = None) -> Iterator[str]:
    """A line with a comment behind it, or below it where that is too wide."""
    line = f"{text.ljust(_COLUMN - 1)} # {_one_line(comment)}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield text
    spaces = text[: len(text) - len(text.lstrip())] if indent is None else indent
    yield from _comment(f"{'    ' if '# ' in text[:8] else '  '}{_one_line(comment)}", spaces)


def _comment(text: str, indent: str = "") -> Iterator[str]:
    """A comment of as many lines as it takes; the further ones are indented as the first is."""
    inner = text[: len(text) - len(text.lstrip())]
    yield from (f"{indent}# {line}" for line in _wrap(text, inner, _WIDTH - len(indent) - 2))


def _wrap(text: str, indent: str, width: int = _WIDTH) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _short(name: str) -> str:
    text = _one_line(name)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _operand(name: str) -> str:
    """A name of an event, as a pattern has it."""
    if _PLAIN.fullmatch(name):
        try:
            parse(f"{name} ; {name}")
            return name
        except PatternError:
            pass
    return "'" + name.replace("'", "''") + "'"
