"""The clauses of a query: DEFINE, WHERE, MEASURES, PARTITION BY, WITHIN, SLIDE; SQL is kept as text, with its place."""

from __future__ import annotations

import re
from dataclasses import replace

from patternlake.udfs.language.query import extents, mistakes
from patternlake.udfs.language.query.cursor import Cursor
from patternlake.udfs.language.query.lexer import CLAUSES, Kind, Token, sql_end
from patternlake.udfs.language.query.tree import Definition, Event, Extent, Measure, Query, Repetition, Span

_NAMED = re.compile(r"\sAS\s+(?P<name>\w+|`(?:[^`]|``)+`|'(?:[^']|'')+')\s*$", re.IGNORECASE)
"""The end of a measure."""


class ClauseParser(Cursor):
    """Reads clauses, one method for each."""

    def check_order(self, clause: Token, seen: str) -> None:
        """Fail where a clause comes twice, too late, or without the one that it belongs to."""
        name = clause.keyword or ""
        if name == seen:
            self.fail(mistakes.repeated_clause(name), clause.start, clause.end)
        if seen and CLAUSES.index(name) < CLAUSES.index(seen):
            self.fail(mistakes.late_clause(name, seen), clause.start, clause.end)
        if name == "SLIDE" and seen != "WITHIN":
            self.fail("SLIDE needs a window: write WITHIN before it", clause.start, clause.end)

    def clause(self, query: Query, name: str) -> Query:
        """One clause, from its keyword on."""
        if name == "DEFINE":
            return replace(query, define=self.definitions())
        if name == "WHERE":
            keyword = self.token
            text, span = self.sql(keyword.end, sql_end(self.text, keyword.end), "WHERE")
            return replace(query, where=text, where_span=span)
        if name == "MEASURES":
            return replace(query, measures=self.measures())
        if name == "PARTITION":
            return replace(query, partition=self.columns())
        size = self.extent()
        if name == "WITHIN":
            return replace(query, within=size)
        if query.within is not None and query.within.counted != size.counted:
            self.fail("WITHIN and SLIDE must both count events or both be times", size.span.start, size.span.end)
        return replace(query, slide=size)

    def definitions(self) -> tuple[Definition, ...]:
        """``DEFINE name AS predicate, …``."""
        found: dict[str, Definition] = {}
        self.advance()
        while True:
            what = "DEFINE" if not found else "','"
            name = self.take_name(f"a definition (name AS predicate) after {what}")
            if name.value in found:
                self.fail(f"{mistakes.name(name.value)} is defined twice", name.start, name.end)
            if self.token.keyword != "AS":
                self.unexpected(f"AS and a predicate after {mistakes.name(name.value)}")
            start = self.token.end
            end = sql_end(self.text, start, commas=True)
            text, span = self.sql(start, end, f"{mistakes.name(name.value)} AS")
            found[name.value] = Definition(name.value, text, span, Span(name.start, span.end))
            if not self.token.is_sign(","):
                return tuple(found.values())
            self.advance()

    def measures(self) -> tuple[Measure, ...]:
        """``MEASURES expression AS name, …``."""
        found: dict[str, Measure] = {}
        while True:
            start, before = self.token.end, "MEASURES" if not found else "','"
            text, span = self.sql(start, sql_end(self.text, start, commas=True), before, "a measure")
            named = _NAMED.search(text)
            if named is None:
                self.fail(mistakes.MEASURE_WITHOUT_NAME, span.start, span.end)
            quote = named["name"][0] if named["name"][0] in "`'" else ""
            name = named["name"].strip(quote).replace(2 * quote, quote) if quote else named["name"]
            place = Span(span.start + named.start("name"), span.start + named.end("name"))
            if not (expression := text[: named.start()].rstrip()):
                self.fail("expected an expression before AS", place.start, place.end)
            if name.casefold() in {other.casefold() for other in found}:
                self.fail(f"measure {mistakes.name(name)} is named twice", place.start, place.end)
            found[name] = Measure(name, expression, Span(span.start, span.start + len(expression)), place)
            if not self.token.is_sign(","):
                return tuple(found.values())

    def columns(self) -> tuple[str, ...]:
        """``PARTITION BY column, …``."""
        self.advance()
        if self.token.kind is not Kind.WORD or self.token.value.upper() != "BY":
            self.unexpected("BY after PARTITION")
        self.advance()
        columns: list[str] = []
        while True:
            column = self.take_name("a column to partition by")
            if column.value in columns:
                self.fail(f"column {mistakes.name(column.value)} is named twice", column.start, column.end)
            columns.append(column.value)
            if not self.token.is_sign(","):
                return tuple(columns)
            self.advance()

    def extent(self) -> Extent:
        """``WITHIN n unit`` or ``SLIDE n unit``; the unit may be glued to the number."""
        keyword = self.advance()
        clause = keyword.keyword or ""
        amount = self.token
        digits = amount.value[: len(amount.value) - len(amount.value.lstrip("0123456789"))]
        if amount.kind is not Kind.WORD or not digits:
            self.unexpected(f"a whole number greater than 0 after {clause}")
        if len(digits) > 19:
            self.fail(mistakes.too_long(clause), amount.start, amount.end)
        if int(digits) == 0:
            self.fail(f"{clause} must be greater than 0", amount.start, amount.start + len(digits))
        self.advance()
        if self.token.value == "." and self.token.start == amount.end:
            self.fail(mistakes.not_whole(clause), amount.start, self.after(self.token).end)
        if unit := amount.value[len(digits) :]:
            place = Span(amount.start + len(digits), amount.end)
        else:
            if self.token.kind is not Kind.WORD or self.token.keyword is not None:
                self.unexpected(f"a unit after {clause} {digits}: {extents.EXPECTED_UNIT}")
            unit, place = self.token.value, Span(self.token.start, self.token.end)
            self.advance()
        size = extents.extent(int(digits), unit)
        if size is None:
            self.fail(mistakes.unknown_unit(unit), place.start, place.end)
        if size.amount > extents.LONGEST:
            self.fail(mistakes.too_long(clause), amount.start, place.end)
        return replace(size, span=Span(keyword.start, place.end))

    def check_definitions(self, query: Query) -> None:
        """Fail where a definition has no event in the pattern: it would do nothing."""
        if not query.define:
            return
        nodes = list(query.pattern.walk())
        ends = [node.until for node in nodes if isinstance(node, Repetition) and node.until is not None]
        named = [*nodes, *(node for end in ends for node in end.walk())]
        events = {node.name for node in named if isinstance(node, Event)}
        aliases = {node.alias for node in nodes}
        for definition in query.define:
            if definition.name not in events:
                message = mistakes.unused_definition(definition.name, is_alias=definition.name in aliases)
                self.fail(message, definition.span.start, definition.predicate_span.start)
