"""Which columns may be an event's time, name and key, and what attributes the others make, each with its why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.configuration.values import RESERVED
from patternlake.jobs.starter import role_words
from patternlake.jobs.starter.column_facts import MOMENT_FORMATS, ZONED_FORMATS, ColumnFacts
from patternlake.jobs.starter.column_readings import (
    attribute_type_of,
    has_commas,
    has_strays,
    hint,
    hint_order,
    in_words,
    is_unique,
    is_whole,
    missing_word,
    share,
    words,
)

_ENOUGH = 0.9
"""Share of a column's values that must read as a moment for it to be taken for a time."""
_FEW = 10
"""Of fewer rows, how often values repeat says nothing."""
_MOST_NAMES = 5000


@dataclass(frozen=True)
class Candidate:
    """A guess.

    Parameters
    ----------
    expression
        SQL over the source's columns.
    why
        What it rests on, for people.
    columns
        The columns that it reads.
    """

    expression: str
    why: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AttributeGuess:
    """A column as an attribute.

    Parameters
    ----------
    name, type
        Of the attribute.
    expression
        None where the column of the attribute's name is meant.
    why
        What the type rests on.
    """

    name: str
    type: str
    expression: str | None
    why: str


@dataclass(frozen=True)
class Guesses:
    """What a configuration would say of a source; of several candidates the first is the one that is written.

    Parameters
    ----------
    times, names, keys, ids
        Candidates, the likeliest first; ids: what each row has its own of.
    steps, probabilities
        Of events that are uncertain; both or none.
    attributes
        Of the other columns.
    left_out
        Columns that no attribute can be made of, with why.
    missing
        The text that stands for missing values in the whole source; None: there is none.
    """

    times: tuple[Candidate, ...]
    names: tuple[Candidate, ...]
    keys: tuple[Candidate, ...]
    ids: tuple[Candidate, ...]
    steps: tuple[Candidate, ...]
    probabilities: tuple[Candidate, ...]
    attributes: tuple[AttributeGuess, ...]
    left_out: tuple[tuple[str, str], ...]
    missing: str | None


def guess(columns: Sequence[ColumnFacts], *, options: bool = False) -> Guesses:
    """Guess what columns mean, by their types, their texts, how often values repeat, and their names.

    Parameters
    ----------
    columns
        What was found, in the source's order.
    options
        Whether the reader has an option for a text that stands for missing values.
    """
    missing = missing_word(columns) if options else None
    times = _times(columns)
    used = set(times[0].columns) if times else set()
    names = _names([column for column in columns if column.name not in used])
    used |= set(names[0].columns) if names else set()
    rest = [column for column in columns if column.name not in used]
    named = next((column for column in columns if names and column.name == names[0].columns[0]), None)
    if named is not None and named.words.get(missing or ""):
        missing = None  # There it is a name.
    keys = _keys(rest, 0 if named is None else named.distinct)
    used |= set(keys[0].columns) if keys else set()
    left = [column for column in columns if column.name not in used]
    steps = tuple(_candidate(column) for column in left if is_whole(column) and hint(column, role_words.STEP) >= 0)
    probabilities = tuple(map(_candidate, filter(_is_probability, left)))
    if not (steps and probabilities):
        steps = probabilities = ()
    else:
        used |= {*steps[0].columns, *probabilities[0].columns}
    attributes: list[AttributeGuess] = []
    left_out: list[tuple[str, str]] = []
    for column in columns:
        if column.name in used:
            continue
        kind = attribute_type_of(column)
        if kind is None:
            left_out.append((column.name, f"is {column.type}; an attribute is a single value"))
        elif column.values == 0 and column.rows:
            left_out.append((column.name, "has no value in any of these rows"))
        else:
            taken = {each.name.lower() for each in attributes}
            attributes.append(_attribute(column, kind, missing, taken))
    ids = tuple(_candidate(column) for column in rest if is_unique(column) and hint(column, role_words.ID) >= 0)
    return Guesses(times, names, keys, ids, steps, probabilities, tuple(attributes), tuple(left_out), missing)


def _times(columns: Sequence[ColumnFacts]) -> tuple[Candidate, ...]:
    found: list[tuple[tuple[int, int, int], Candidate]] = []
    for place, column in enumerate(columns):
        read = _as_moment(column)
        if read is not None:
            rank, expression, why = read
            found.append(
                ((rank, hint_order(column, role_words.TIME), place), Candidate(expression, why, (column.name,)))
            )
    whole = {" ".join(words(column)): column for column in columns if is_whole(column)}
    parts = [next((whole[word] for word in part if word in whole), None) for part in role_words.PARTS]
    if all(parts[:3]):
        given = ", ".join("0" if column is None else column.expression for column in parts)
        used = tuple(column.name for column in parts if column is not None)
        why = f"put together of the columns {', '.join(used)}"
        found.append(((3, 0, 0), Candidate(f"make_timestamp({given})", why, used)))
    days = [column for column in columns if column.type == "date" or share(column, "day") >= _ENOUGH]
    clocks = [column for column in columns if column.type == "string" and share(column, "clock") >= _ENOUGH]
    if days and clocks:
        # Those of one thing are called alike: visit_date and visit_time.
        day, clock = max(product(days, clocks), key=lambda pair: len({*words(pair[0])} & {*words(pair[1])}))
        why = f"the day in {day.name} and the time of day in {clock.name}"
        joined = Candidate(f"concat({day.expression}, ' ', {clock.expression})", why, (day.name, clock.name))
        hinted = min(hint_order(each, role_words.TIME) for each in (day, clock))
        found.append(((1, hinted, columns.index(day)), joined))
    return tuple(candidate for _, candidate in sorted(found, key=lambda each: each[0]))


def _as_moment(column: ColumnFacts) -> tuple[int, str, str] | None:
    """How likely a column is a time (0 is likeliest), the expression of it, and why."""
    told = in_words(column)
    if column.type in ("timestamp", "timestamp_ntz"):
        return 0, column.expression, told
    if column.type == "date":
        return 4, column.expression, f"{told}; a day without a time"
    if column.type == "string":
        if share(column, "day") >= _ENOUGH:
            return 4, column.expression, f"{told}; days without a time{_others(column, 'day')}"
        if share(column, "moment") >= max(_ENOUGH, *(share(column, pattern) for pattern in ZONED_FORMATS)):
            return 1, column.expression, f"{told}; texts of times{_others(column, 'moment')}"
        for formats in _best_first(column, MOMENT_FORMATS, ZONED_FORMATS):
            fitting = [pattern for pattern in formats if share(column, pattern) >= _ENOUGH]
            if fitting and (fitting[0] != "yyyyMMdd" or hint(column, role_words.TIME) >= 0):
                pattern = max(fitting, key=lambda each: share(column, each))
                other = [each for each in fitting if each != pattern]
                why = f"{told}; texts like {pattern}{_others(column, pattern)}"
                why += f"; may be {' or '.join(other)} as well" if other else ""
                expression = f"to_timestamp({column.expression}, {literal(pattern)})"
                return 2 if "H" in pattern else 4, expression, why
    if is_whole(column) and hint(column, role_words.TIME) >= 0:
        for unit, function in (
            ("seconds", "timestamp_seconds"),
            ("milliseconds", "timestamp_millis"),
            ("microseconds", "timestamp_micros"),
        ):
            if share(column, unit) >= _ENOUGH:
                number = column.expression if column.type != "string" else f"CAST({column.expression} AS BIGINT)"
                return 2, f"{function}({number})", f"{told}; taken for {unit} since 1970{_others(column, unit)}"
    return None


def _best_first(column: ColumnFacts, *formats: Mapping[str, str]) -> list[Mapping[str, str]]:
    """Groups of patterns, first the one with the pattern that reads most of a column's texts."""
    return sorted(formats, key=lambda group: -max(share(column, pattern) for pattern in group))


def _names(columns: Sequence[ColumnFacts]) -> tuple[Candidate, ...]:
    found = []
    for place, column in enumerate(columns):
        kind = attribute_type_of(column)
        text = kind == "string"
        if not (text or kind == "boolean" or is_whole(column)) or not 1 <= column.distinct <= _MOST_NAMES:
            continue
        if column.rows >= _FEW and is_unique(column):
            continue
        hinted = -1 if set(words(column)) & set(role_words.NO_NAME) else hint(column, role_words.NAME)
        if not text and hinted < 0:
            continue
        order = hinted if hinted >= 0 else len(role_words.NAME)
        # Who did it is no name of what was done; where it was done is one sooner.
        who, where = hint(column, role_words.KEY) >= 0, hint(column, role_words.CIRCUMSTANCE) >= 0
        doubt = 0 if hinted >= 0 else 2 if who else int(where)
        found.append(((doubt, not text, order, column.distinct < 2, column.distinct > 200, place), column))
    return tuple(_candidate(column) for _, column in sorted(found, key=lambda each: each[0]))


def _keys(columns: Sequence[ColumnFacts], names: int) -> tuple[Candidate, ...]:
    found = []
    for place, column in enumerate(columns):
        if not (attribute_type_of(column) == "string" or is_whole(column)) or column.distinct < 2:
            continue
        if is_unique(column) and column.rows >= _FEW:
            continue
        hinted = hint(column, role_words.KEY)
        if hinted < 0 and (is_whole(column) or column.rows < _FEW or column.distinct <= names):
            # A number that repeats is an amount sooner than somebody.
            continue
        found.append(((hinted if hinted >= 0 else len(role_words.KEY), place), column))
    return tuple(_candidate(column) for _, column in sorted(found, key=lambda each: each[0]))


def _is_probability(column: ColumnFacts) -> bool:
    """Whether all values are numbers from 0 to 1, under a name that says so."""
    return column.values > 0 and share(column, "share") == 1 and hint(column, role_words.PROBABILITY) >= 0


def _attribute(column: ColumnFacts, kind: str, missing: str | None, taken: Iterable[str]) -> AttributeGuess:
    name = re.sub(r"\W+", "_", column.name).strip("_") or "column"
    if name.lower() in RESERVED:
        name += "_"
    while name.lower() in taken:
        name += "_"
    word = column.missing_word
    expression = None if name == column.name else column.expression
    if has_strays(column):
        return AttributeGuess(name, kind, f"try_cast({column.expression} AS {kind.upper()})", _with_strays(column))
    if column.type == "string" and kind != "string" and word not in (None, missing):
        quoted = "'" + str(word).replace("\\", "\\\\").replace("'", "\\'") + "'"
        expression = f"nullif({column.expression}, {quoted})"
    if has_commas(column):
        plain = f"replace(replace({expression or column.expression}, '.', ''), ',', '.')"
        told = f"{in_words(column)}; numbers with a decimal comma"
        return AttributeGuess(name, kind, f"CAST({plain} AS DOUBLE)", told)
    return AttributeGuess(name, kind, expression, in_words(column))


def _with_strays(column: ColumnFacts) -> str:
    """What was found, and what becomes of the texts that are no numbers."""
    strays = column.strays("number")
    examples = [column.stray] if strays and column.stray is not None else list(column.words)
    shown = ", ".join(f"'{example[:20]}'" for example in examples)
    count = f"{strays + sum(column.words.values()):,}"
    return f"{in_words(column)}; {count} that are no numbers, such as {shown}, become NULL"


def _others(column: ColumnFacts, kind: str) -> str:
    left = column.values - column.reads.get(kind, 0)
    return f", but for {left:,} of them, whose rows go to quarantine" if left else ""


def _candidate(column: ColumnFacts) -> Candidate:
    return Candidate(column.expression, in_words(column), (column.name,))
