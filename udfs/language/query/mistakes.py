"""What the parser says about typical mistakes: what was found, what was expected, and how to write it."""

from __future__ import annotations

import re

from patternlake.udfs.language.query import extents
from patternlake.udfs.language.query.lexer import CLAUSES, Kind, Token, keyword
from patternlake.udfs.language.query.names import quote

EMPTY_BRACKETS = "[ ] needs a count, as in A[3]; a list of events is named behind its repetition, as in A+ a[]"

MEASURE_WITHOUT_NAME = "a measure needs a name: write expression AS name, as in LAST(b.x) AS highest"
UNTIL_WITHOUT_REPETITION = "UNTIL ends the collecting of a repetition; write it behind one, as in B+ UNTIL C"
NOT_AN_END = "UNTIL takes a name, or several in parentheses, as in B+ UNTIL (C | D)"

_SHOWN = 40
_CURLY_QUOTES = frozenset("‘’‚“”„´")
_BREAKS = frozenset(" \t\r\n;,|&!()[]{}'")
_ANCHORS = {
    "^": "a match may begin anywhere: '^' is not in the language; write DEFINE A AS name = 'A' AND position = 1 for "
    "the stream's first event; match_pattern takes '!any ; A' with DEFINE any AS TRUE, for nothing before",
    "$": "a match may end anywhere: '$' is not in the language; match_pattern takes 'A ; !any' with DEFINE any AS "
    "TRUE, for nothing after",
}
_FIXED = {"MONTH", "MONTHS", "QUARTER", "QUARTERS", "YEAR", "YEARS"}


def name(value: str) -> str:
    """A name as a message shows it: as the language writes it, cut where it is very long."""
    return quote(value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…")


def show_token(text: str, token: Token) -> str:
    """A token as a message shows it."""
    if token.kind is Kind.END:
        return "the end of the text"
    raw = text[token.start : token.end]
    if token.kind is Kind.OTHER and not raw.isprintable():
        return f"the character U+{ord(raw):04X}"
    if len(raw) > _SHOWN:
        raw = raw[: _SHOWN - 1] + ("…'" if token.kind is Kind.QUOTED else "…")
    return raw if token.kind is Kind.QUOTED else f"'{raw}'"


def say_unexpected(text: str, token: Token, expected: str, *, named: bool) -> str:
    """Something else was expected here; `named`: a name was."""
    message = f"expected {expected}, found {show_token(text, token)}"
    if named and token.keyword is not None:
        return f"{message}; a keyword is a name only in quotes: '{token.value}'"
    if named and token.is_sign("+", "*", "?", "[", "{"):
        return f"{message}; a repetition stands behind what it repeats, as in A+"
    return message + (_hint(text, token) if named else "")


def expected_operand(text: str, last: Token) -> str:
    """What may begin an operand, and behind what it is missing."""
    return "a name or '('" + (f" after {show_token(text, last)}" if last.kind is not Kind.END else "")


def stray(text: str, last: Token, token: Token, inside: str) -> str:
    """A token cannot stand behind an operand (`inside` is empty or an open parenthesis) or behind a clause."""
    found = f"found {show_token(text, token)}"
    if inside in CLAUSES:
        following = {"PARTITION": ["','", "WITHIN"], "WITHIN": ["SLIDE"]}.get(inside, [])
        expected = ", ".join(following) + " or the end of the text" if following else "the end of the text"
        return f"{found}, expected {expected}"
    found_after = f"{found} right after {show_token(text, last)}"
    if token.is_name:
        message = f"{found_after}; write ';' (then), ',' (directly next) or AS (another name) between them"
        if token.value in map(str, range(1000)):
            return f"{message}; a count is written A[{token.value}]"
        several = _words_from(text, last.start)
        return f"{message}; in quotes it is one name: {name(several)}" if several else message
    if token.is_sign("(", "!") or token.keyword in ("NOT", "SEQ"):
        return f"{found_after}; write ';' (then) or ',' (directly next) between them"
    if token.is_sign("+", "*", "?", "[", "{"):
        rule = "a repetition stands once, right behind what it repeats and before AS and @"
        return f"{found}; {rule}; parentheses repeat a repetition: (A+)+"
    if token.is_sign(")", "]", "}"):
        return f"this '{token.value}' closes nothing" if not inside else f"{found}, expected ')' first"
    if token.keyword == "AS":
        return f"{found}; another name stands once, behind the repetition and before @, as in A+ AS a @(…)"
    if token.keyword == "PATTERN":
        return f"{found}; it stands only at the beginning; a keyword is a name only in quotes: '{token.value}'"
    if token.keyword in CLAUSES:
        return f"{found} inside parentheses; close them with ')' first"
    if token.value == ":":
        return f"{found}; what a name stands for goes to DEFINE, as in DEFINE {name(last.value)} AS …"
    expected = "'&' or ')'" if inside else "'&', a clause or the end of the text"
    return f"{found}, expected ';', ',', '|', {expected}{_hint(text, token)}"


def repeated_clause(clause: str) -> str:
    """A clause stands twice in a row."""
    join = {
        "DEFINE": "put ',' between definitions",
        "WHERE": "join predicates with AND",
        "MEASURES": "put ',' between measures",
    }
    return f"a second {clause}; {join.get(clause, 'a query has one')}"


def late_clause(clause: str, seen: str) -> str:
    """A clause stands behind one that it must precede."""
    return f"{clause} must stand before {seen}; the order is DEFINE, WHERE, MEASURES, PARTITION BY, WITHIN, SLIDE"


def too_long(clause: str) -> str:
    """A window or slide does not fit 64 bits."""
    return f"{clause} is longer than {extents.LONGEST} events or microseconds"


def not_whole(clause: str) -> str:
    """An amount has a fraction."""
    return f"{clause} takes a whole number; use a smaller unit, as 90 MIN for one hour and a half"


def unknown_unit(unit: str) -> str:
    """A word is no unit."""
    message = f"'{unit[:_SHOWN]}' is not a unit; expected {extents.EXPECTED_UNIT}"
    return f"{message} (months and years have no fixed length)" if unit.upper() in _FIXED else message


def unused_definition(value: str, *, is_alias: bool) -> str:
    """A definition has no event in the pattern."""
    if is_alias:
        return f"{name(value)} is another name (AS) of an event; DEFINE takes the name before AS"
    return f"{name(value)} is defined, but the pattern has no event of that name"


def second_alias(first: str, second: str) -> str:
    """An operand gets a second other name."""
    return f"{name(second)} would be a second name here; the first is {name(first)}"


def alias_of_two_kinds(value: str) -> str:
    """``AS name[]`` mixes the two forms of an alias."""
    return f"write AS {name(value)} or {name(value)}[], not both"


def too_deep(limit: int) -> str:
    """Parentheses and operators are nested deeper than allowed."""
    return f"the pattern is nested more than {limit} levels deep"


def _words_from(text: str, place: int) -> str | None:
    """The words from one on, as far as only blanks stand between them; None where it is alone."""
    found: list[str] = []
    for word in re.split(r"[ \t]+", re.split(r"[^\w \t]", text[place:], maxsplit=1)[0].rstrip()):
        if keyword(word) is not None:
            break
        found.append(word)
    several = " ".join(found)
    return several if len(found) > 1 and len(several) <= _SHOWN and text[place] != "'" else None


def _hint(text: str, token: Token) -> str:
    """What the writer may have meant with a character that the language does not know."""
    if token.kind is not Kind.OTHER:
        return ""
    if token.value in _CURLY_QUOTES or token.value in '"`':
        return "; names are quoted with straight single quotes: 'name'"
    if not token.value.isprintable():
        return ""
    start, end = token.start, token.end
    while start > 0 and text[start - 1] not in _BREAKS:
        start -= 1
    while end < len(text) and text[end] not in _BREAKS:
        end += 1
    if (token.value == "^" and token.start == start) or (token.value == "$" and token.end == end):
        return f"; {_ANCHORS[token.value]}, as the page 'Absence' shows"
    if token.value == "$" or end - start == 1 or end - start > _SHOWN:
        return ""
    return f"; names with such characters stand in quotes: '{text[start:end]}'"
