"""From the text of a MATCH_RECOGNIZE clause to its tree (SQL:2016, feature R010).

Expressions are kept as text, with their place: they are Spark SQL. Names are compared as Spark compares them, whatever
their case. (The standard has unquoted names in upper case, and compares quoted ones exactly.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn, TypeVar

from patternlake.udfs.errors import PatternSyntaxError, UnsupportedOperatorError, shorten
from patternlake.udfs.language.query.tree import NOWHERE, Span
from patternlake.udfs.language.row_pattern.expressions import (
    AGGREGATES,
    LOGICAL,
    OF_MATCH,
    PHYSICAL,
    Scope,
    check_expression,
)
from patternlake.udfs.language.row_pattern.pattern import PatternParser
from patternlake.udfs.language.row_pattern.subqueries import find_subqueries, leave_out
from patternlake.udfs.language.row_pattern.tokens import Token
from patternlake.udfs.language.row_pattern.tree import (
    OMIT_EMPTY,
    PAST_LAST,
    SHOW_EMPTY,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    WITH_UNMATCHED,
    Clause,
    Definition,
    Exclusion,
    Measure,
    Node,
    Skip,
    SqlText,
    Subset,
)

_Read = TypeVar("_Read")
_Named = tuple[Token, list[Token]]
"""A name, and the tokens of what it names."""

_ORDER = "PARTITION BY, ORDER BY, MEASURES, ONE ROW or ALL ROWS, AFTER MATCH, PATTERN, SUBSET, DEFINE"
_BEGINNINGS = ("PARTITION BY", "ORDER BY", "ONE ROW", "ALL ROWS", "AFTER MATCH", "INITIAL PATTERN", "SEEK PATTERN")
"""Two words that end an expression; MEASURES, PATTERN, SUBSET and DEFINE do where no column could stand."""
_WINDOWS = ("INITIAL", "SEEK")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NO_OPERAND = {
    *("AND", "AS", "BETWEEN", "BY", "CASE", "DIV", "ELSE", "IN", "IS", "LIKE", "NOT", "OR", "RLIKE", "THEN", "WHEN"),
}
"""Words behind which an operand stands, so that the next word is a column whatever it is."""


def parse_clause(text: str, columns: Collection[str] | None = None, qualifiers: Collection[str] = ()) -> Clause:
    """Read what stands between the parentheses of MATCH_RECOGNIZE.

    Parameters
    ----------
    text
        The clause, from PARTITION BY, ORDER BY, MEASURES or whatever comes first, to DEFINE.
    columns
        The names of the input's columns, so that ``x.y`` is an error where x is neither a variable nor a column; None:
        such an x is left to Spark.
    qualifiers
        The names of the input's tables, which may stand before a column.

    Returns
    -------
    Clause
        Its tree; spans point into `text`.

    Raises
    ------
    PatternSyntaxError
        The text is no such clause, or names a variable that is not in the pattern, or anything twice.
    PredicateError
        An expression breaks a rule of the clause, see `check_expression`.
    UnsupportedOperatorError
        It says SEEK or INITIAL, which are of windows, WITHIN, or holds a window function.

    Examples
    --------
    >>> clause = parse_clause("PATTERN (a b+) DEFINE b AS price > a.price")
    >>> clause.variables, clause.definitions[0].condition.text
    (('a', 'b'), 'price > a.price')
    """
    return _ClauseParser(text, columns, qualifiers).clause()


class _ClauseParser(PatternParser):
    """One reading of a clause."""

    def __init__(self, text: str, columns: Collection[str] | None, qualifiers: Collection[str]) -> None:
        super().__init__(text)
        self.qualifiers = frozenset(name.upper() for name in qualifiers)
        self.columns = None if columns is None else {column.upper() for column in columns} | self.qualifiers

    def clause(self) -> Clause:
        """The whole text."""
        partition = self.list_of(self.sort_key) if self.begins("PARTITION", "BY") else []
        order = self.list_of(self.sort_key) if self.begins("ORDER", "BY") else []
        measures = self.list_of(self.measure) if self.begins("MEASURES") else []
        all_rows = self.rows_per_match()
        skip = self.skip() if self.begins("AFTER", "MATCH") else None
        if self.token.word in _WINDOWS and self.after().word == "PATTERN":
            message = f"{self.token.word} is for row patterns in windows (OVER), which are not supported; leave it out"
            raise UnsupportedOperatorError(message, self.text, self.token.start, self.token.end)
        if not self.begins("PATTERN"):
            self.misplaced("PATTERN (…)")
        pattern = self.pattern()
        subsets = self.list_of(self.subset) if self.begins("SUBSET") else []
        definitions = self.list_of(self.definition) if self.begins("DEFINE") else []
        if self.token.kind != "end":
            self.misplaced("the end of the text" if definitions else "SUBSET, DEFINE or the end of the text")
        return self.check(partition, order, measures, all_rows, skip, pattern, subsets, definitions)

    def begins(self, *words: str) -> bool:
        """Take the words that a clause begins with, if they are next."""
        if self.token.word != words[0] or (len(words) > 1 and self.after().word != words[1]):
            return False
        for _ in words:
            self.advance()
        return True

    def misplaced(self, expected: str) -> NoReturn:
        """Fail at a clause that cannot stand here, or at something else."""
        if self.token.word in ("MEASURES", "SUBSET", "DEFINE", "PATTERN") or self.at_beginning():
            message = f"{self.token.word} cannot stand here; each clause stands at most once, in this order: {_ORDER}"
            self.fail(message, self.token)
        if self.token.word == "WITHIN":
            hint = "compare times in the definition of the last variable: ts - first.ts < INTERVAL 1 HOUR"
            raise UnsupportedOperatorError(
                f"WITHIN is not of the standard; {hint}", self.text, self.token.start, self.token.end
            )
        self.unexpected(expected)

    def at_beginning(self) -> bool:
        """Whether two words that begin a clause are next."""
        return f"{self.token.word} {self.after().word}" in _BEGINNINGS

    def list_of(self, read: Callable[[], _Read]) -> list[_Read]:
        """Parts with commas between them."""
        parts = [read()]
        while self.token.sign == ",":
            self.advance()
            parts.append(read())
        return parts

    def run(self) -> list[Token]:
        """The tokens of an expression: up to a comma or the beginning of a clause, outside brackets."""
        first, opened = self.at, list[Token]()
        while self.token.kind != "end":
            token = self.token
            if not opened and (token.sign == "," or self.ends_expression(first)):
                break
            if token.sign in _CLOSING:
                opened.append(token)
            elif token.sign and token.sign in _CLOSING.values():
                if not opened:
                    self.fail(f"this '{token.sign}' closes nothing", token)
                wanted = _CLOSING[opened.pop().sign]
                if token.sign != wanted:
                    self.fail(f"found '{token.sign}', expected '{wanted}' first", token)
            self.advance()
        if opened:
            self.fail(f"this '{opened[-1].sign}' is never closed", opened[-1])
        if self.at == first:
            self.unexpected("an expression")
        return self.tokens[first : self.at]

    def ends_expression(self, first: int) -> bool:
        """Whether a clause begins at the next token, behind an operand of the expression."""
        before = self.last
        if self.at == first or before.word in _NO_OPERAND or (before.sign and before.sign not in ")]}*"):
            return False
        if before.sign == "*" and self.at > first + 1 and self.tokens[self.at - 2].sign != ".":
            return False
        word, behind = self.token.word, self.after()
        return (
            self.at_beginning()
            or word == "MEASURES"
            or (word == "PATTERN" and behind.sign == "(")
            or (word == "SUBSET" and behind.is_name and self.after(2).sign == "=")
            or (word == "DEFINE" and behind.is_name and self.after(2).word == "AS")
        )

    def sql_text(self, tokens: Sequence[Token]) -> SqlText:
        """The text of some tokens."""
        span = Span(tokens[0].start, tokens[-1].end)
        return SqlText(self.text[span.start : span.end], span)

    def sort_key(self) -> SqlText:
        """One expression of PARTITION BY or ORDER BY, which Spark computes before there is a match."""
        tokens = self.run()
        for at, token in enumerate(tokens[:-1]):
            is_call = tokens[at + 1].sign == "(" and not (at and tokens[at - 1].sign == ".")
            if is_call and token.word in PHYSICAL | LOGICAL | OF_MATCH:
                message = f"{token.word} looks at a match, and PARTITION BY and ORDER BY come before it; name columns"
                self.fail(message, token)
        return self.sql_text(tokens)

    def measure(self) -> _Named:
        """``expression AS name``."""
        tokens = self.run()
        if len(tokens) < 2 or tokens[-2].word != "AS" or not tokens[-1].is_name:
            self.fail("a measure needs a name: write expression AS name", tokens[0], tokens[-1])
        if len(tokens) == 2:
            self.fail("expected an expression before AS", tokens[0])
        return tokens[-1], tokens[:-2]

    def definition(self) -> _Named:
        """``variable AS condition``."""
        name = self.take_name("a definition: variable AS condition")
        self.take_words("AS")
        return name, self.run()

    def subset(self) -> _Named:
        """``name = (variable, …)``."""
        name = self.take_name("a subset: name = (variable, …)")
        self.take_sign("=", "'=' behind the subset's name")
        opener = self.take_sign("(", "'(' and the subset's variables")
        names = self.list_of(lambda: self.take_name("a variable of the pattern"))
        self.close_list(opener)
        return name, names

    def close_list(self, opener: Token) -> None:
        """Take the parenthesis that closes a list."""
        if self.token.kind == "end":
            self.fail("this '(' is never closed", opener)
        self.take_sign(")", "',' or ')'")

    def rows_per_match(self) -> str | None:
        """``ONE ROW PER MATCH`` (None), or ``ALL ROWS PER MATCH`` and what it adds."""
        if self.begins("ONE", "ROW"):
            self.take_words("PER", "MATCH")
            if self.token.word in ("SHOW", "OMIT", "WITH"):
                self.fail(f"{self.token.word} … belongs to ALL ROWS PER MATCH", self.token)
            return None
        if not self.begins("ALL", "ROWS"):
            return None
        self.take_words("PER", "MATCH")
        for words in (SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED):
            if self.token.word == words.split()[0]:
                self.take_words(*words.split())
                return words
        return SHOW_EMPTY

    def skip(self) -> tuple[str, Token | None]:
        """What follows AFTER MATCH: the mode, and the variable's token."""
        self.take_words("SKIP")
        if self.begins("PAST"):
            self.take_words("LAST", "ROW")
            return PAST_LAST, None
        if self.token.word != "TO":
            self.unexpected("PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO and a variable after SKIP")
        self.advance()
        if self.begins("NEXT", "ROW"):
            return TO_NEXT, None
        mode = TO_LAST
        if self.token.word in ("FIRST", "LAST") and self.after().is_name and self.after().word != "PATTERN":
            mode = TO_FIRST if self.advance().word == "FIRST" else TO_LAST
        return mode, self.take_name("a variable or a subset after SKIP TO")

    def check(
        self,
        partition: Sequence[SqlText],
        order: Sequence[SqlText],
        measures: Sequence[_Named],
        all_rows: str | None,
        skip: tuple[str, Token | None] | None,
        pattern: Node,
        subsets: Sequence[_Named],
        definitions: Sequence[_Named],
    ) -> Clause:
        """The clause, once its names are known."""
        self.check_once([name for name, _ in measures], "measure")
        self.check_once([name for name, _ in definitions], "variable")
        self.check_once([name for name, _ in subsets], "subset")
        made = []
        for name, members in subsets:
            if name.name.upper() in self.names:
                self.fail(f"{shorten(name.name)} is a variable of the pattern; give the subset another name", name)
            self.check_once(members, "variable of the subset")
            made.append(Subset(name.name, tuple(self.known(token, self.names) for token in members)))
        for name, _ in definitions:
            if name.name.upper() in {subset.name.upper() for subset in made}:
                self.fail(f"{shorten(name.name)} is a subset, and has no condition of its own", name)
            self.known(name, self.names)
        names = self.names | {subset.name.upper(): subset.name for subset in made}
        scope = Scope(self.text, names, self.columns)
        expressions = [tokens for _, tokens in (*measures, *definitions)]
        functions = PHYSICAL | LOGICAL | OF_MATCH | AGGREGATES
        subqueries = find_subqueries(self.text, expressions, names, functions)
        for number, tokens in enumerate(expressions):
            check_expression(leave_out(tokens, subqueries), scope, in_define=number >= len(measures))
        excluded = next((node for node in pattern.walk() if isinstance(node, Exclusion)), None)
        if excluded is not None and all_rows == WITH_UNMATCHED:
            message = "an exclusion cannot stand with ALL ROWS PER MATCH WITH UNMATCHED ROWS; leave one of them out"
            raise PatternSyntaxError(message, self.text, excluded.span.start, excluded.span.end)
        mode, target = skip or (PAST_LAST, None)
        place = NOWHERE if target is None else Span(target.start, target.end)
        return Clause(
            text=self.text,
            partition_by=tuple(partition),
            order_by=tuple(order),
            measures=tuple(Measure(name.name, self.sql_text(tokens)) for name, tokens in measures),
            all_rows=all_rows is not None,
            rows=all_rows or SHOW_EMPTY,
            skip=Skip(mode, None if target is None else self.known(target, names), place),
            pattern=pattern,
            variables=tuple(self.names.values()),
            subsets=tuple(made),
            definitions=tuple(
                Definition(self.names[name.name.upper()], self.sql_text(tokens)) for name, tokens in definitions
            ),
            subqueries=subqueries,
            qualifiers=self.qualifiers,
        )

    def check_once(self, names: Sequence[Token], what: str) -> None:
        """Fail where a name comes twice."""
        seen = set()
        for token in names:
            if token.name.upper() in seen:
                self.fail(f"{what} {shorten(token.name)} stands here twice", token)
            seen.add(token.name.upper())

    def known(self, token: Token, names: Mapping[str, str]) -> str:
        """A name as it was first written; fail where it is none of these."""
        if token.name.upper() not in names:
            there = ", ".join(sorted(names.values())) or "none"
            subsets = " and no subset" if len(names) > len(self.names) else ""
            self.fail(f"{shorten(token.name)} is no variable of the pattern{subsets}; there are: {there}", token)
        return names[token.name.upper()]
