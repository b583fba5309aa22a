"""Predicate text made readable for a SQL parser, with every place mapped back to the query's text.

A SQL parser knows neither ``5 MIN`` nor ``b[i-1].x``, ``t(e[i])``, ``$x``, ``[attr]`` or ``≠``. So each constant and
each reference is read here and replaced by a numbered placeholder, each function by a numbered one, and the SQL
parser sees nothing but placeholders, keywords, operators and parentheses.

A dialect of the SQL parser's own reads most of these, but does not find what must be refused: its trees hold no places
of keywords, operators and brackets, and no comments. Of the 50 texts that `test_predicates.py` has refused it accepts
35, and of the others it puts the caret right in 10; the rest would have to be found in the tokens all the same.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from math import isinf

from patternlake.udfs.errors import PredicateError, cut
from patternlake.udfs.language import durations
from patternlake.udfs.language.predicate.allowed import (
    AGGREGATES,
    AGGREGATES_SHOWN,
    FUNCTIONS,
    FUNCTIONS_SHOWN,
    KEYWORDS,
    OPERATORS,
    OPERATORS_SHOWN,
    TYPES_SHOWN,
)
from patternlake.udfs.language.predicate.columns import canonical_type
from patternlake.udfs.language.predicate.expressions import EqualAlong, Expression, Field, Literal, Variable
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.sql_tokens import Token, tokens, unescape
from patternlake.udfs.language.predicate.texts import read_date, read_timestamp
from patternlake.udfs.language.query.tree import Span

MAX_DEPTH = 100
"""Greatest depth of parentheses."""

_AFTER_OPERAND = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "WHEN", "THEN", "ELSE", "END"])
_MOST_DIGITS = 9
"""Of the number of an event in brackets."""
_BEFORE_OPERAND = frozenset({"NOT", "CASE", "NULL", "TRUE", "FALSE"})
_FOLLOWERS = {
    "… NOT": ("IN", "BETWEEN", "LIKE"),
    "IS": ("DISTINCT",),
    "IS NOT": ("DISTINCT",),
    "DISTINCT": ("FROM",),
    "CASE": ("WHEN", "END"),
}
"""Keywords that follow a keyword without an operand between them; ``… NOT`` is a NOT after an operand."""


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function of the text: its canonical name, or the type for CAST; `distinct` as in ``COUNT(DISTINCT b.x)``."""

    name: str
    to: str | None
    span: Span
    distinct: bool = False


@dataclass(slots=True)
class Rewritten:
    r"""What `rewrite` hands over.

    Attributes
    ----------
    sql
        One line of SQL. ``\`3\``` stands for atom 3 (``'3'`` if it is a string), ``f3(…)`` for function 3.
    atoms
        Expressions and function names by number.
    """

    sql: str = ""
    atoms: list[Expression | FunctionName] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def place(self, offset: int) -> Span:
        """The span of the query's text behind an offset into `sql`."""
        return self.spans[max(0, bisect_right(self.starts, offset) - 1)]

    def emit(self, text: str, span: Span) -> None:
        """Append one piece of SQL that stands for `span`."""
        self.starts.append(len(self.sql))
        self.spans.append(span)
        self.sql += text + " "


def rewrite(text: str, query_text: str, offset: int) -> Rewritten:
    """Read the tokens of a predicate and put placeholders for its atoms.

    Parameters
    ----------
    text
        The predicate.
    query_text, offset
        The whole query and where in it `text` begins, for the places of errors.

    Raises
    ------
    PredicateError
        A character, word or function that predicates don't have.
    """
    return _Rewriter(tokens(text, query_text, offset), query_text, offset + len(text)).run()


class _Rewriter:
    def __init__(self, tokens: list[Token], query_text: str, end: int) -> None:
        self.tokens = tokens
        self.query_text = query_text
        self.end = end
        self.at = 0
        self.out = Rewritten()
        self.after_operand = False
        self.word = ""
        self.stack: list[tuple[Token, int]] = []
        """Open parentheses, each with the number of its CAST atom, or -1."""

    def run(self) -> Rewritten:
        while self.at < len(self.tokens):
            token = self.take()
            getattr(self, f"read_{token.kind}")(token)
        if self.stack:
            raise self.error("this parenthesis is not closed", self.stack[-1][0])
        return self.out

    def error(self, message: str, token: Token | Span | None) -> PredicateError:
        span = token.span if isinstance(token, Token) else token or Span(self.end, self.end + 1)
        return PredicateError(message, self.query_text, span.start, span.end)

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self, ahead: int = 0) -> Token | None:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def next_is(self, *texts: str) -> bool:
        token = self.peek()
        return token is not None and token.text in texts and token.kind != "string"

    def next_is_attribute(self) -> bool:
        """Whether ``.x`` follows, or an index and then ``.x``."""
        ahead = 0
        if self.next_is("["):
            ahead = next((n for n, token in enumerate(self.tokens[self.at :], 1) if token.text == "]"), 0)
        token = self.peek(ahead)
        return token is not None and token.text == "." and token.kind != "string"

    def expect(self, text: str, message: str) -> Token:
        if not self.next_is(text):
            raise self.error(message, self.peek())
        return self.take()

    def atom(self, expression: Expression, token: Token) -> None:
        if self.after_operand:
            raise self.error(f"unexpected {token.text} after an operand; allowed here: {OPERATORS_SHOWN}", token)
        number = len(self.out.atoms)
        self.out.atoms.append(expression)
        is_string = isinstance(expression, Literal) and expression.type == "string"
        self.out.emit(f"'{number}'" if is_string else f"`{number}`", expression.span)
        self.after_operand = True
        self.word = ""

    def emit(self, text: str, token: Token, *, after_operand: bool) -> None:
        self.out.emit(text, token.span)
        self.after_operand = after_operand
        self.word = text

    def read_string(self, token: Token) -> None:
        value = unescape(token.text[1:-1], token.text[0])
        self.atom(Literal(type="string", value=value, span=token.span), token)

    def read_variable(self, token: Token) -> None:
        self.atom(Variable(name=token.text[1:], span=token.span), token)

    def read_number(self, token: Token) -> None:
        following = self.peek()
        if following is not None and following.kind == "word" and following.text.upper() not in KEYWORDS:
            amount = durations.microseconds(token.text, following.text)
            if amount is None:
                raise self.error(
                    f"{following.text!r} is not a unit of time; units are {durations.SHOWN}"
                    " (events are counted in WITHIN only)",
                    following,
                )
            self.take()
            span = Span(token.span.start, following.span.end)
            self.check_range(amount, span)
            self.atom(Literal(type="interval", value=amount, span=span), token)
            return
        # Python reads no more than 4,300 digits; a bigint has 19.
        if token.text.isdigit() and len(token.text.lstrip("0")) <= 19 and (whole := int(token.text[-19:])) < 2**63:
            self.atom(Literal(type="bigint", value=whole, span=token.span), token)
            return
        value = float(token.text)
        if isinf(value):
            raise self.error(f"{token.text} is out of the range of DOUBLE, which ends at 1.8e308", token)
        self.atom(Literal(type="double", value=value, span=token.span), token)

    def check_range(self, amount: int, span: Span) -> None:
        if amount >= durations.BEYOND:
            raise self.error(durations.BEYOND_MESSAGE, span)

    def read_operator(self, token: Token) -> None:
        if not self.after_operand and OPERATORS[token.text] not in ("+", "-", "NOT"):
            raise self.error(f"unexpected {token.text}: an operand is missing before it", token)
        self.emit(OPERATORS[token.text], token, after_operand=False)

    def read_bracket(self, token: Token) -> None:
        if token.text == "(":
            if self.after_operand:
                raise self.error("unexpected ( after an operand", token)
            self.open(token, -1)
        elif token.text == ")":
            if not self.stack:
                raise self.error("this parenthesis was never opened", token)
            opened, cast = self.stack.pop()
            if cast >= 0:
                raise self.error("CAST needs a type: CAST(x AS DOUBLE)", opened)
            self.emit(")", token, after_operand=True)
        elif token.text == "[" and not self.after_operand:
            self.read_equal_along(token)
        else:
            quoted = ", of an operand with other characters `a b`.x" if token.text == "." else ""
            raise self.error(
                f"unexpected {token.text}; an attribute is a.x{quoted}, b[i].x or b[i-1].x, a whole-match equality "
                "[attr]",
                token,
            )

    def open(self, token: Token, cast: int) -> None:
        self.stack.append((token, cast))
        if len(self.stack) > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} nested parentheses", token)
        self.emit("(", token, after_operand=False)

    def read_equal_along(self, opened: Token) -> None:
        name, token = self.name("[ is followed by an attribute: [attr]")
        closed = self.expect("]", f"[{token.text} must be closed: [{token.text}]; several are [a] AND [b]")
        self.atom(EqualAlong(attribute=name, span=Span(opened.span.start, closed.span.end)), opened)

    def read_word(self, token: Token) -> None:
        upper = token.text.upper()
        following = self.peek()
        if upper == "CAST" and self.next_is("("):
            self.open_function(token, FunctionName("CAST", "", token.span))
        elif not self.after_operand and self.next_is_attribute():
            # An operand may be called like a keyword.
            self.read_reference(token, token.text)
        elif upper in KEYWORDS:
            self.read_keyword(token, upper)
        elif upper == "SELECT":
            raise self.error("a subquery is not allowed in a predicate", token)
        elif self.after_operand:
            raise self.error(
                f"unexpected {token.text} after an operand; allowed here: {OPERATORS_SHOWN}, or a unit of time"
                f" after a number",
                token,
            )
        elif upper in ("DATE", "TIMESTAMP", "INTERVAL") and following is not None and following.kind == "string":
            self.read_moment(token, upper, self.take())
        elif upper == "INTERVAL" and following is not None and following.kind == "number":
            raise self.error("INTERVAL is not allowed in a predicate; write a duration as 5 MIN", token)
        elif self.next_is("("):
            self.read_function(token, upper)
        else:
            self.read_reference(token, token.text)

    def read_name(self, token: Token) -> None:
        if self.next_is("(") and not self.after_operand:
            raise self.error(f"{token.text} is a quoted name, not a function", token)
        self.read_reference(token, token.text[1:-1].replace("``", "`"))

    def read_keyword(self, token: Token, upper: str) -> None:
        if upper == "AS":
            self.read_cast_type(token)
        elif upper in ("NULL", "TRUE", "FALSE") and self.word not in ("IS", "IS NOT"):
            type_ = "null" if upper == "NULL" else "boolean"
            value = None if upper == "NULL" else upper == "TRUE"
            self.atom(Literal(type=type_, value=value, span=token.span), token)
        elif self.after_operand and upper not in _AFTER_OPERAND:
            raise self.error(f"unexpected {token.text} after an operand; allowed here: {OPERATORS_SHOWN}", token)
        elif upper == "DISTINCT" and self.stack and self.out.sql.rstrip().endswith("("):
            self.read_distinct(token)
        elif not (self.after_operand or upper in _BEFORE_OPERAND or upper in _FOLLOWERS.get(self.word, ())):
            raise self.error(f"unexpected {token.text}: an operand is missing before it", token)
        else:
            word = "IS NOT" if self.word == "IS" else "… NOT" if self.after_operand else "NOT"
            self.emit(upper, token, after_operand=upper in ("END", "NULL", "TRUE", "FALSE"))
            if upper == "NOT":
                self.word = word
            if upper == "IN" and not self.next_is("("):
                raise self.error("IN needs a list: x IN ('a', 'b')", self.peek() or token)

    def read_distinct(self, token: Token) -> None:
        """``COUNT(DISTINCT …)``, behind the parenthesis."""
        function = self.out.atoms[-1] if self.out.atoms else None
        named = self.out.sql.split()[-2:-1] == [f"f{len(self.out.atoms) - 1}"]
        if not (named and isinstance(function, FunctionName) and function.name == "COUNT"):
            raise self.error("DISTINCT stands in COUNT alone, as in COUNT(DISTINCT b.x)", token)
        self.out.atoms[-1] = replace(function, distinct=True)

    def read_moment(self, token: Token, upper: str, string: Token) -> None:
        span = Span(token.span.start, string.span.end)
        if upper == "INTERVAL":
            raise self.error("INTERVAL is not allowed in a predicate; write a duration as 5 MIN", token)
        text = unescape(string.text[1:-1], string.text[0])
        value = read_date(text) if upper == "DATE" else read_timestamp(text)
        if value is None:
            right = "DATE '2013-01-31'" if upper == "DATE" else "TIMESTAMP '2013-01-31 23:59:59'"
            raise self.error(f"{string.text} is not a {upper.lower()}; write {right}", string)
        self.atom(Literal(type=upper.lower(), value=value, span=span), token)

    def read_function(self, token: Token, upper: str) -> None:
        if token.text == "t":
            self.read_time(token)
            return
        if upper not in FUNCTIONS and upper not in AGGREGATES:
            what = "a subquery" if upper == "EXISTS" else f"function {token.text}"
            raise self.error(
                f"{what} is not allowed in a predicate; allowed: {FUNCTIONS_SHOWN}, t(operand), and, of repeated "
                f"operands of match_pattern, {AGGREGATES_SHOWN}",
                token,
            )
        star = self.peek(1)
        if upper in AGGREGATES and star is not None and star.text == "*":
            raise self.error(f"{upper}(*) names no operand; COUNT(b.position) counts the events of b", token)
        self.open_function(token, FunctionName(upper, None, token.span))

    def open_function(self, token: Token, function: FunctionName) -> None:
        number = len(self.out.atoms)
        self.out.atoms.append(function)
        self.emit(f"f{number}", token, after_operand=False)
        self.open(self.take(), number if function.to is not None else -1)

    def read_cast_type(self, token: Token) -> None:
        if not self.stack or self.stack[-1][1] < 0:
            raise self.error("AS is allowed only in CAST(x AS type)", token)
        _, number = self.stack.pop()
        begin = self.peek()
        text = ""
        depth = 0
        while (part := self.peek()) is not None and (depth or part.text != ")"):
            depth += (part.text == "(") - (part.text == ")")
            text += self.take().text
        closed = self.expect(")", "CAST( is not closed")
        to = canonical_type(text)
        if to is None:
            where = begin.span if begin is not None and text else token.span
            raise self.error(f"CAST to {text or 'nothing'} is not allowed; types are {TYPES_SHOWN}", where)
        function = self.out.atoms[number]
        self.out.atoms[number] = FunctionName("CAST", to, function.span)
        self.emit(")", closed, after_operand=True)

    def read_time(self, token: Token) -> None:
        self.take()
        message = "t() takes an operand: t(a), t(e[i]), or its number: t(2)"
        argument = self.peek()
        if argument is not None and argument.kind == "number":
            self.take()
            digits = argument.text.lstrip("0")
            if not digits.isdigit() or len(digits) > 9:
                raise self.error("operands are numbered from 1: t(1)", argument)
            reference = Reference(None, None, "time", int(digits))
        else:
            name, _ = self.name(message)
            reference = Reference(name, self.read_index(name), "time")
        closed = self.expect(")", message)
        self.atom(Field(reference=reference, span=Span(token.span.start, closed.span.end)), token)

    def read_reference(self, token: Token, name: str) -> None:
        index = self.read_index(name)
        end = self.tokens[self.at - 1].span.end
        if self.next_is("."):
            self.take()
            told = f"{token.text}. is followed by an attribute"
            if self.next_is("*"):
                told += f", as in COUNT({token.text}.x); COUNT({token.text}.*) stands in MEASURES"
            column, last = self.name(told)
            if self.next_is("."):
                raise self.error("an attribute has no parts; write operand.attribute", self.peek())
            reference = Reference(name, index, column)
            end = last.span.end
        elif index is not None:
            raise self.error(
                f"{name}[{index}] is an event; name an attribute of it, as in {name}[{index}].x, or its time: "
                f"t({name}[{index}])",
                Span(token.span.start, end),
            )
        else:
            reference = Reference(None, None, name)
        self.atom(Field(reference=reference, span=Span(token.span.start, end)), token)

    def read_index(self, name: str) -> str | None:
        if not self.next_is("["):
            return None
        opened = self.take()
        inside = ""
        while (part := self.peek()) is not None and part.text != "]":
            inside += self.take().text
        closed = self.expect("]", f"{name}[ is not closed: write {name}[i] or {name}[i-1]")
        index = inside.lower().replace("−", "-")
        if index.isascii() and index.isdigit() and 0 < len(index.lstrip("0")) <= _MOST_DIGITS:
            return index.lstrip("0")
        if index == "last":
            return index
        if index not in ("i", "i-1"):
            hint = "; compare with the event before: b[i].x and b[i-1].x" if index == "i+1" else ""
            raise self.error(
                f"{name}[{cut(inside)}] is not allowed; events of an operand are {name}[i] and {name}[i-1], "
                f"{name}[last], and by number from 1 {name}[2]{hint}",
                Span(opened.span.start, closed.span.end),
            )
        return index

    def name(self, message: str) -> tuple[str, Token]:
        token = self.peek()
        if token is None or token.kind not in ("word", "name"):
            raise self.error(message, token)
        self.take()
        return (token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text), token
