"""Expressions of DEFINE and MEASURES, read: which rows and columns they name, and the Spark SQL between these names.

The text between the names stays as it is written, so all of Spark's functions may stand there. sqlglot says which words
are columns, the tokens say where navigation, aggregates, MATCH_NUMBER and CLASSIFIER begin and end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from patternlake.udfs.errors import PredicateError, shorten
from patternlake.udfs.language.query.tree import Span
from patternlake.udfs.language.row_pattern.expressions import AGGREGATES, LOGICAL, PHYSICAL, is_like_some
from patternlake.udfs.language.row_pattern.subqueries import Subquery, begins_subquery
from patternlake.udfs.language.row_pattern.tokens import CLOSING, OPENING, Token, find_closing, tokens_of
from patternlake.udfs.language.row_pattern.tree import Clause, SqlText
from patternlake.udfs.nearest_names import did_you_mean

_SEMANTICS = ("RUNNING", "FINAL")
_STATEMENTS = {
    *("ALTER", "CALL", "CREATE", "DROP", "EXECUTE", "EXPLAIN", "FETCH", "GRANT", "IF", "INSERT", "MINUS", "OPTIMIZE"),
    *("PREPARE", "QUALIFY", "RENAME", "RETURNING", "REVOKE", "ROLLBACK", "SHOW", "UNCACHE", "VACUUM", "VALUES", "WITH"),
    *("CROSS", "EXCEPT", "HAVING", "INNER", "INTERSECT", "INTO", "JOIN", "LATERAL", "OUTER", "SERDEPROPERTIES"),
    *("TABLESAMPLE", "UNION", "USING"),
}
"""Words that sqlglot takes for statements, and that name a column or a variable here; their place says which."""
_PARTS = {"ANY", "ELSE", "FOR", "FROM", "ON", "THEN", "WHEN"}
"""Words that it takes for parts of an expression or a statement, and that name a variable here in front of a dot."""
_READ_BY_NAME = {
    *("ABS", "ARRAY_CONTAINS", "ARRAY_SIZE", "COALESCE", "DATE", "DATEDIFF", "DATE_DIFF", "GREATEST", "IF", "IFNULL"),
    *("LEAST", "LENGTH", "LOWER", "NULLIF", "NVL", "SIZE", "STRUCT", "UPPER", "YEAR"),
}
"""Functions that conditions know, or whose arguments have names; others only Spark has to know."""
_OPERATORS = {"AND", "CASE", "COLLATE", "DIV", "EXISTS", "FILTER", "ILIKE", "LIKE", "OR", "RLIKE", "XOR"}
"""Words behind which a parenthesis is none of a call, and which sqlglot has among its functions."""
_FUNCTIONS = frozenset(Spark.Parser.FUNCTIONS) - {*Spark.Parser.FUNCTION_PARSERS} - _READ_BY_NAME - _OPERATORS
"""Functions that sqlglot would write anew, some of them without an argument that it does not know."""
_OF_UNITS = {"DATEADD", "DATE_ADD", "TIMEDIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}
"""Of these, those whose first argument may be a unit of time, which is no column."""
_UNITS = {
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK", "MONTH", "QUARTER", "YEAR"),
}
_MASK = "_x"
"""A name in the place of a call. Its place says which; no call is shorter."""
_FIRST_MARK = 0xE100
"""The first of the characters, of no writing, that stand for strings and for names of functions."""
_MOST_SHOWN = 20
_MOST_OFFSET, _NO_ROW = (1 << 63) - 1, (1 << 31) - 1
"""Offsets go up to the one; no partition has as many rows as the other."""


@dataclass(frozen=True)
class ColumnTerm:
    """``v.column`` or ``column``; `sql` is the text without the variable, fields of structs included."""

    span: Span
    name: str
    variable: str | None
    sql: str


@dataclass(frozen=True)
class NavigationTerm:
    """FIRST or LAST, PREV or NEXT of the one variable that its argument names.

    Attributes
    ----------
    function
        FIRST or LAST: PREV and NEXT alone go from the last row.
    offset, shift
        So many rows of the variable on, or back from the last; then so many of the partition, less than 0 for PREV.
    semantics
        RUNNING, FINAL, or nothing.
    """

    span: Span
    function: str
    offset: int
    shift: int
    semantics: str
    argument: Formula
    variable: str | None


@dataclass(frozen=True)
class AggregateTerm:
    """An aggregate over the rows of one variable, or of all.

    Attributes
    ----------
    call
        Where it stands without RUNNING or FINAL.
    name
        In upper case.
    arguments
        None of ``count(*)`` and ``count(v.*)``.
    condition
        Of FILTER (WHERE …).
    ordering
        Of WITHIN GROUP (ORDER BY …), without ASC, DESC and NULLS.
    with_nulls
        Whether RESPECT NULLS stands in it or behind it.
    """

    span: Span
    call: Span
    name: str
    distinct: bool
    arguments: tuple[Formula, ...]
    condition: Formula | None
    ordering: tuple[Formula, ...]
    semantics: str
    variable: str | None
    with_nulls: bool = False

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """All expressions in it, in text order."""
        return (*self.arguments, *self.ordering, *([] if self.condition is None else [self.condition]))


@dataclass(frozen=True)
class ClassifierTerm:
    """``CLASSIFIER()`` or ``CLASSIFIER(v)``."""

    span: Span
    variable: str | None


@dataclass(frozen=True)
class MatchNumberTerm:
    """``MATCH_NUMBER()``."""

    span: Span


@dataclass(frozen=True)
class ConstantTerm:
    """What is the same in every row and is written otherwise than in Spark; `sql` is Spark's text of it."""

    span: Span
    sql: str


Term = ColumnTerm | NavigationTerm | AggregateTerm | ClassifierTerm | MatchNumberTerm | ConstantTerm


@dataclass(frozen=True)
class Formula:
    """An expression of Spark SQL with terms in it.

    Attributes
    ----------
    text
        The clause without comments, of the same length, which spans point into.
    span
        Where the expression stands.
    terms
        In text order.
    tree
        sqlglot's tree; a call of a term is a column with its place in the text.
    written
        By the mark in the tree, what is written there: strings that sqlglot reads otherwise, with their quotes, and
        names of functions.
    """

    text: str
    span: Span
    terms: tuple[Term, ...]
    tree: Any
    written: Mapping[str, str]

    def write(self, replace: Callable[[Term], str]) -> str:
        """The expression with other text in the place of its terms."""
        pieces, at = [], self.span.start
        for term in self.terms:
            pieces += [self.text[at : term.span.start], replace(term)]
            at = term.span.end
        return "".join([*pieces, self.text[at : self.span.end]]).strip()

    def unmasked(self, sql: str) -> str:
        """Text of a part of the tree, with what is written in the place of its marks."""
        for mark, text in self.written.items():
            sql = sql.replace(mark, text)
        return sql

    def term_at(self, start: int) -> Term | None:
        """The term that begins at a place of the text."""
        return next((term for term in self.terms if term.span.start == start), None)


class FormulaReader:
    """Reads the expressions of a clause.

    Parameters
    ----------
    clause
        Of `parse_clause`, which has checked what can be told without the columns.
    columns
        The input's columns; only their names matter.
    """

    kind = "variable"
    """What a name before a column is called."""

    def __init__(self, clause: Clause, columns: Mapping[str, str]) -> None:
        self.clause = clause
        self.columns = {name.upper(): name for name in columns}
        names = (*clause.variables, *(subset.name for subset in clause.subsets))
        self.names = {name.upper(): name for name in names}
        self.tokens = tokens_of(clause.text)[:-1]
        self.subqueries = {one.span.start: one for one in clause.subqueries}
        # Without comments, so that texts may be joined in one line.
        blank = [" "] * len(clause.text)
        for token in self.tokens:
            blank[token.start : token.end] = clause.text[token.start : token.end]
        for at, token in enumerate(self.tokens):
            # Beside a dot it is a name, as in other dialects; Spark would read a string.
            if token.kind == "double" and "." in (_sign(self.tokens, at + 1), _sign(self.tokens, at - 1) if at else ""):
                blank[token.start], blank[token.end - 1] = "`", "`"
        self.text = "".join(blank)

    def read(self, expression: SqlText) -> Formula:
        """Read an expression of the clause.

        Raises
        ------
        PredicateError
            It names a column or variable that is not there, breaks a rule of the standard, or is no SQL.
        """
        return self.formula(self.inside(expression.span))

    def conjuncts(self, expression: SqlText) -> list[Formula]:
        """Read a condition as the parts that AND joins at its top, which may each be judged apart."""
        return [self.formula(tokens) for tokens in split_at_and(self.inside(expression.span))]

    def inside(self, span: Span) -> list[Token]:
        """The tokens in a span, which may not be a comment alone."""
        tokens = [token for token in self.tokens if span.start <= token.start and token.end <= span.end]
        if not tokens:
            self.fail("expected an expression here", span)
        return tokens

    def fail(self, message: str, span: Span) -> NoReturn:
        """Raise an error at a place."""
        raise PredicateError(message, self.clause.text, span.start, span.end)

    def formula(self, tokens: Sequence[Token]) -> Formula:
        """Read the expression of some tokens."""
        span = Span(tokens[0].start, tokens[-1].end)
        calls: dict[int, Term] = {}
        at = 0
        while at < len(tokens):
            subquery = self.subqueries.get(tokens[at].start)
            if subquery is not None and subquery.span.end <= span.end:
                calls[tokens[at].start] = self.subquery(subquery)
                at += sum(token.start < subquery.span.end for token in tokens[at:])
                continue
            end = self.call_end(tokens, at)
            if end is None:
                at += 1
                continue
            calls[tokens[at].start] = self.call(tokens[at:end])
            at = end
        # Calls become names of the same length, so that places in the parser's tree are places in the text.
        masked = list(self.text[span.start : span.end])
        for at, token in enumerate(tokens):
            behind = _sign(tokens, at + 1)
            if (token.word in _PARTS and behind == ".") or (token.word in _STATEMENTS and behind != "("):
                masked[token.start - span.start : token.end - span.start] = "n" * len(token.text)
        for start, term in calls.items():
            masked[start - span.start : term.span.end - span.start] = _MASK.ljust(term.span.end - start)
        # What is escaped in strings other dialects read otherwise, and sqlglot would write it anew.
        written: dict[str, str] = {}
        for at, token in enumerate(tokens):
            mark, long = chr(_FIRST_MARK + len(written)), len(token.text)
            escaped = token.kind in ("string", "double") and (
                token.text[0] in "rR" or token.text[0] * 2 in token.text[1:-1] or "\\" in token.text
            )
            if escaped or _is_unit(tokens, at):
                mark = f"'{mark.ljust(long - 2)}'"
            elif token.word in _FUNCTIONS and _sign(tokens, at + 1) == "(":
                mark = mark.ljust(long, "_")
            else:
                continue
            written[mark] = token.text
            if "".join(masked[token.start - span.start : token.end - span.start]) == token.text:  # not in a call
                masked[token.start - span.start : token.end - span.start] = mark
        tree = self.parse("".join(masked), span)
        columns = self.columns_in(tree, span, calls)
        terms = tuple(sorted([*calls.values(), *columns], key=lambda term: term.span.start))
        return Formula(self.text, span, terms, tree, written)

    def parse(self, masked: str, span: Span) -> Any:
        """The SQL parser's tree."""
        try:
            tree = sqlglot.parse_one(masked, dialect="spark", into=exp.Condition)
            if not isinstance(tree, exp.Command):
                return tree
            self.fail("this cannot be read as Spark SQL", span)
        except SqlglotError as error:
            details = getattr(error, "errors", None) or [{}]
            word = str(details[0].get("highlight") or "")
            column = int(details[0].get("col") or 0)
            line = int(details[0].get("line") or 1)
            start = sum(len(one) + 1 for one in masked.split("\n")[: line - 1]) + column - len(word)
            place = Span(span.start + max(start, 0), span.start + max(start, 0) + len(word)) if word.strip() else span
            found = shorten(self.clause.text[place.start : place.end])
            self.fail(f"this cannot be read as Spark SQL at {found}", place)
        except RecursionError:
            self.fail("this expression is nested too deeply", span)

    def columns_in(self, tree: Any, span: Span, calls: Mapping[int, Term]) -> list[ColumnTerm | ConstantTerm]:
        """The columns that a tree names."""
        made: dict[int, ColumnTerm | ConstantTerm] = {}
        for node in tree.find_all(exp.Column):
            parts = [part for part in node.parts if "start" in part.meta]
            if len(parts) < len(node.parts):
                continue
            spans = [Span(span.start + part.meta["start"], span.start + part.meta["end"] + 1) for part in parts]
            if spans[0].start not in calls and isinstance(node.this, exp.Identifier):
                made[spans[0].start] = self.column([self.named(one) for one in spans], spans)
            elif isinstance(node.this, exp.Star):
                place = Span(spans[0].start, spans[-1].end)
                self.fail(f"{self.text[place.start : place.end]} stands only in count", place)
        if any(not isinstance(star.parent, exp.Column) for star in tree.find_all(exp.Star)):
            self.fail("* stands only in count(*); name the columns", span)
        return list(made.values())

    def named(self, span: Span) -> str:
        """The name that stands at a place, without its quotes."""
        text = self.text[span.start : span.end]
        return text[1:-1].replace("``", "`") if text.startswith("`") else text

    def variable_called(self, name: str) -> str | None:
        """The variable, or subset, of a name."""
        return self.names.get(name.upper())

    def column(self, parts: Sequence[str], spans: Sequence[Span]) -> ColumnTerm | ConstantTerm:
        """A column, once it is known to be there."""
        whole = Span(spans[0].start, spans[-1].end)
        variable = self.variable_called(parts[0]) if len(parts) > 1 else None
        at = 0 if variable is None else 1
        of_table = len(parts) > 1 and not at and parts[0].upper() in self.clause.qualifiers
        if of_table and (parts[1].upper() in self.columns or parts[0].upper() not in self.columns):
            at = 1
        name = self.columns.get(parts[at].upper())
        if name is None:
            variables = len(parts) > 1 and not at
            known = {**self.columns, **(self.names if variables else {})}
            hint = did_you_mean(parts[at], known.values())
            what = "no variable of the pattern and no column" if variables else "no column of the input"
            if not at and len(parts) == 1 and parts[0].upper() in self.names:
                hint = f", but a variable of the pattern; write {parts[0]}.column"
            shown = ", ".join(sorted(self.columns.values())[:_MOST_SHOWN]) or "none"
            more = f" and {len(self.columns) - _MOST_SHOWN} more" if len(self.columns) > _MOST_SHOWN else ""
            self.fail(f"{shorten(parts[at])} is {what}{hint}; columns: {shown}{more}", spans[at])
        return ColumnTerm(whole, name, variable, self.text[spans[at].start : whole.end])

    def subquery(self, subquery: Subquery) -> ColumnTerm | ConstantTerm:
        """A subquery, which is a column of the input."""
        variable = None
        if subquery.compared is not None:
            compared = self.formula(self.inside(subquery.compared))
            variable = self.variable_of("IN", [compared], subquery.compared)
        if subquery.is_constant:
            return ConstantTerm(subquery.span, subquery.column)
        return ColumnTerm(subquery.span, subquery.column, variable, subquery.column)

    def call_end(self, tokens: Sequence[Token], at: int) -> int | None:
        """Behind a call that is a term and begins at a token; None where none does."""
        first = at
        if at and (tokens[at - 1].sign == "." or is_like_some(tokens, at)):
            return None
        if tokens[at].word in _SEMANTICS and _word(tokens, at + 1) in LOGICAL | AGGREGATES:
            at += 1
        word = tokens[at].word
        known = word in PHYSICAL | LOGICAL | AGGREGATES or word in ("CLASSIFIER", "MATCH_NUMBER")
        if not known or _sign(tokens, at + 1) != "(":
            return None
        end = _find_end(tokens, at + 1)
        if word in AGGREGATES:
            while _word(tokens, end) in ("FILTER", "GROUP") or (
                _word(tokens, end) == "WITHIN" and _word(tokens, end + 1) == "GROUP"
            ):
                end += _word(tokens, end) == "WITHIN"
                if _sign(tokens, end + 1) != "(":
                    break
                end = _find_end(tokens, end + 1)
            if _word(tokens, end) in ("IGNORE", "RESPECT") and _word(tokens, end + 1) == "NULLS":
                end += 2
        return end if end > first else None

    def call(self, tokens: Sequence[Token]) -> Term:
        """The term of a call."""
        span = Span(tokens[0].start, tokens[-1].end)
        semantics = tokens[0].word if tokens[0].word in _SEMANTICS else ""
        at = 1 if semantics else 0
        name = tokens[at].word
        close = _find_end(tokens, at + 1)
        arguments = split_at_commas(tokens[at + 2 : close - 1])
        if not all(arguments):
            self.fail(f"an argument of {name} is missing", span)
        if name == "MATCH_NUMBER":
            if arguments:
                self.fail("MATCH_NUMBER() takes no argument", span)
            return MatchNumberTerm(span)
        if name == "CLASSIFIER":
            return ClassifierTerm(span, self.read_classifier(arguments, span))
        if name in AGGREGATES:
            call = Span(tokens[at].start, span.end)
            return self.aggregate(name, semantics, span, call, arguments, tokens[close:])
        return self.navigation(name, semantics, span, arguments)

    def read_classifier(self, arguments: Sequence[Sequence[Token]], span: Span) -> str | None:
        """The variable that CLASSIFIER asks for."""
        if not arguments:
            return None
        name = self.variable_called(arguments[0][0].name) if arguments[0][0].is_name else None
        if name is None or len(arguments) > 1 or len(arguments[0]) > 1:
            self.fail("CLASSIFIER takes one variable or subset, or nothing", span)
        return name

    def navigation(self, name: str, semantics: str, span: Span, arguments: Sequence[Sequence[Token]]) -> NavigationTerm:
        """FIRST, LAST, PREV or NEXT."""
        if not 1 <= len(arguments) <= 2:
            self.fail(f"{name} takes an expression and an offset, as in {name}(price, 2)", span)
        offset = self.offset(name, arguments[1]) if len(arguments) == 2 else int(name in PHYSICAL)
        argument = arguments[0]
        physical = name in PHYSICAL
        shift = -offset if name == "PREV" else offset
        inner_word = argument[1].word if argument[0].word in _SEMANTICS and len(argument) > 1 else argument[0].word
        if physical and inner_word in LOGICAL and self.call_end(argument, 0) == len(argument):
            logical = self.call(argument)
            assert isinstance(logical, NavigationTerm)
            return replace(logical, span=span, shift=shift)
        inner = self.formula(argument)
        nested = next((term for term in inner.terms if isinstance(term, NavigationTerm)), None)
        if physical and nested is not None:
            self.fail(
                f"{name} takes {nested.function} as its whole argument: write {name}({nested.function}(v.x + 1), 2)",
                nested.span,
            )
        variable = self.variable_of(name, [inner], span)
        if not any(isinstance(term, (ColumnTerm, ClassifierTerm)) for term in inner.terms):
            self.fail(f"{name} needs a column, as in {name}(price)", span)
        if physical:
            return NavigationTerm(span, "LAST", 0, shift, semantics, inner, variable)
        return NavigationTerm(span, name, offset, 0, semantics, inner, variable)

    def offset(self, name: str, tokens: Sequence[Token]) -> int:
        """The offset of a navigation: a whole number that is written out."""
        if len(tokens) != 1 or not tokens[0].text.isdecimal() or int(tokens[0].text) > _MOST_OFFSET:
            span = Span(tokens[0].start, tokens[-1].end)
            found = shorten(self.clause.text[span.start : span.end])
            hint = {"PREV": "; NEXT goes on", "NEXT": "; PREV goes back"}.get(name, "")
            self.fail(f"the offset of {name} is a whole number from 0, written out, not {found}{hint}", span)
        return min(int(tokens[0].text), _NO_ROW)

    def aggregate(
        self,
        name: str,
        semantics: str,
        span: Span,
        call: Span,
        arguments: Sequence[Sequence[Token]],
        behind: Sequence[Token],
    ) -> AggregateTerm:
        """An aggregate with what follows its parenthesis."""
        with_nulls = False
        if len(behind) > 1 and behind[-1].word == "NULLS":
            with_nulls, behind = behind[-2].word == "RESPECT", behind[:-2]  # or IGNORE
        condition, rest = None, behind
        at = next((at for at, token in enumerate(behind) if token.word == "FILTER"), None)
        if at is not None:
            close = _find_end(behind, at + 1)
            inside = behind[at + 2 : close - 1]
            if len(inside) < 2 or inside[0].word != "WHERE" or close != len(behind):
                self.fail("FILTER is written FILTER (WHERE condition), behind the aggregate", span)
            condition, rest = self.formula(inside[1:]), behind[:at]
        ordering = rest[5 : _find_end(rest, 2) - 1] if len(rest) > 5 else []  # of WITHIN GROUP (ORDER BY …)
        ordered = tuple(self.formula(part) for one in split_at_commas(ordering) if (part := _without_direction(one)))
        distinct = bool(arguments) and arguments[0][0].word == "DISTINCT"
        if distinct or (arguments and arguments[0][0].word == "ALL"):
            arguments = [arguments[0][1:], *arguments[1:]]
        if arguments and len(arguments[-1]) > 2 and arguments[-1][-1].word == "NULLS":
            with_nulls = with_nulls or arguments[-1][-2].word == "RESPECT"
            arguments = [*arguments[:-1], arguments[-1][:-2]]
        star = len(arguments) == 1 and len(arguments[0]) in (1, 3) and arguments[0][-1].sign == "*"
        if star and distinct:
            self.fail("DISTINCT needs a column, as in count(DISTINCT price)", span)
        if not all(arguments) or not (arguments or ordered or name == "COUNT"):
            self.fail(f"{name} needs an argument, as in {name.lower()}(price)", span)
        variable: str | None = None
        formulas: list[Formula] = []
        if star and name == "COUNT":
            if len(arguments[0]) == 3:
                variable = self.variable_called(arguments[0][0].name)
        else:
            formulas = [self.formula(argument) for argument in arguments]
        every = [*formulas, *ordered, *([] if condition is None else [condition])]
        named = self.variable_of(name, every, span, variable, fixed=star)
        return AggregateTerm(
            span, call, name, distinct, tuple(formulas), condition, ordered, semantics, named, with_nulls
        )

    def variable_of(
        self, name: str, formulas: Sequence[Formula], span: Span, variable: str | None = None, *, fixed: bool = False
    ) -> str | None:
        """The variable whose rows an argument looks at; fail where there are several, or a bare column beside one."""
        known = fixed
        for formula in formulas:
            for term in formula.terms:
                if isinstance(term, MatchNumberTerm | ConstantTerm):
                    continue
                if not isinstance(term, (ColumnTerm, ClassifierTerm)):
                    self.fail(f"{name} cannot have another function over rows in it", term.span)
                if known and term.variable != variable:
                    names = (variable, term.variable)
                    whose = ["all rows" if each is None else f"rows of {shorten(each)}" for each in names]
                    rule = f"all of its argument must be of one {self.kind}"
                    self.fail(f"{name} looks at {' and at '.join(whose)} at once; {rule}", term.span)
                known, variable = True, term.variable
        return variable


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].word if at < len(tokens) else ""


def _sign(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].sign if at < len(tokens) else ""


def _without_direction(tokens: Sequence[Token]) -> Sequence[Token]:
    """What is ordered by, without ASC or DESC, NULLS FIRST or NULLS LAST."""
    if len(tokens) > 2 and tokens[-2].word == "NULLS":
        tokens = tokens[:-2]
    directed = len(tokens) > 1 and tokens[-1].word in ("ASC", "DESC") and tokens[-2].sign != "."
    return tokens[:-1] if directed else tokens


def _find_end(tokens: Sequence[Token], at: int) -> int:
    """Behind the parenthesis that closes the one at a place."""
    close = find_closing(tokens, at)
    assert close is not None, tokens[at]  # the parser of the clause has balanced them
    return close + 1


def split_at_commas(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The arguments of a call; none of an empty one."""
    parts, begin, depth = [], 0, 0
    for at, token in enumerate(tokens):
        depth += (token.sign in OPENING) - (token.sign in CLOSING)
        if token.sign == "," and not depth:
            parts.append(tokens[begin:at])
            begin = at + 1
    return [*parts, tokens[begin:]] if tokens else []


def _is_unit(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is the unit in ``timestampdiff(MINUTE, …)`` and the like."""
    opened = at > 1 and tokens[at - 2].word in _OF_UNITS and tokens[at - 1].sign == "("
    return opened and tokens[at].word in _UNITS and _sign(tokens, at + 1) == ","


def split_at_and(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """What AND joins at the top of a condition, through parentheses around all of a part."""
    parts: list[Sequence[Token]] = []
    begin = depth = cases = between = 0
    for at, token in enumerate(tokens):
        depth += (token.sign in OPENING) - (token.sign in CLOSING)
        if depth or (at and tokens[at - 1].sign == "."):
            continue
        cases += (token.word == "CASE") - (token.word == "END" and cases > 0)
        if cases:
            continue
        if token.word == "OR":
            # Weaker than AND: nothing is joined by AND at the top.
            return [tokens]
        between += token.word == "BETWEEN"
        if token.word == "AND":
            if between:
                between -= 1
                continue
            parts.append(tokens[begin:at])
            begin = at + 1
    parts.append(tokens[begin:])
    if any(not part for part in parts):
        return [tokens]  # no SQL, which its parser says better
    if len(parts) > 1:
        return [inner for part in parts for inner in split_at_and(part)]
    whole = len(tokens) > 2 and tokens[0].sign == "(" and _find_end(tokens, 0) == len(tokens)
    if whole and not begins_subquery(tokens, 0):
        return split_at_and(tokens[1:-1])
    return [tokens]
