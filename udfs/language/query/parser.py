"""From text to tree: a recursive-descent parser of the pattern language (SPEC section 1).

Binding from loosest to tightest: ``;`` ``,`` ``|`` ``&`` ``!``, then repetition, alias and ``@``. So ``a, b | c, d``
reads ``a, (b | c), d``. The predicates of DEFINE, WHERE and ``@`` are kept as text, with their place.
"""

from __future__ import annotations

from collections.abc import Sequence as Run
from dataclasses import replace
from typing import NoReturn

from patternlake.udfs.language.query import mistakes
from patternlake.udfs.language.query.clauses import ClauseParser
from patternlake.udfs.language.query.lexer import CLAUSES, Kind, Token, bracket_end
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
    SomeOf,
    Span,
    TimeCondition,
)

MAX_NESTING = 100
"""How many levels of parentheses and operators may stand inside one another."""

MAX_COUNT = 1_000_000
"""Greatest number in a repetition."""

Group = Sequence | Contiguous | Disjunction | Conjunction

_LEVELS: tuple[type[Group], ...] = (Sequence, Contiguous, Disjunction, Conjunction)
_INFIX: dict[str, type[Group]] = {
    ";": Sequence,
    ",": Contiguous,
    "|": Disjunction,
    "∨": Disjunction,
    "OR": Disjunction,
    "&": Conjunction,
    "∧": Conjunction,
    "AND": Conjunction,
}
_BOUNDS: dict[str, tuple[int, int | None]] = {"+": (1, None), "*": (0, None), "?": (0, 1)}
_FUNCTIONS: dict[str, type[Group] | type[Negation]] = {
    "SEQ": Sequence,
    "AND": Conjunction,
    "OR": Disjunction,
    "NOT": Negation,
}


def parse(text: str) -> Query:
    """Read a query.

    Parameters
    ----------
    text
        A query of the pattern language, for any engine. A repetition counts to `MAX_COUNT` at most.

    Returns
    -------
    Query
        Its tree; groups of one item are that item. Spans point into `text`.

    Raises
    ------
    PatternSyntaxError
        The text is not of the language, or is nested deeper than `MAX_NESTING`; the message says where, what was found
        and what was expected.
    """
    return _Parser(text).query()


class _Parser(ClauseParser):
    """One reading of a query."""

    def query(self) -> Query:
        """The whole text."""
        if self.token.keyword == "PATTERN":
            self.advance()
        pattern = self.expression(0)
        self.check_height(pattern)
        query = Query(pattern=pattern, text=self.text)
        seen = ""
        while self.token.kind is not Kind.END:
            clause = self.token
            if clause.keyword not in CLAUSES:
                self.stray(seen)
            self.check_order(clause, seen)
            seen = clause.keyword or ""
            query = self.clause(query, seen)
        self.check_definitions(query)
        return query

    def expression(self, depth: int, *, commas: bool = True) -> Node:
        """Operands and the operators between them; without `commas`, a ``,`` ends the expression."""
        operands = [self.unary(depth)]
        operators: list[tuple[type[Group], Token]] = []
        while (kind := _INFIX.get(self.token.keyword or self.sign())) and (commas or kind is not Contiguous):
            operators.append((kind, self.advance()))
            operands.append(self.unary(depth))
        return _combine(operands, operators)

    def sign(self) -> str:
        """The next token where it is a sign, else nothing."""
        return self.token.value if self.token.kind is Kind.SIGN else ""

    def unary(self, depth: int) -> Node:
        """Any number of ``!`` or NOT, and what they negate."""
        signs: list[Token] = []
        while self.token.is_sign("!") or (self.token.keyword == "NOT" and not self.after(self.token).is_sign("(")):
            self.check_depth(depth + len(signs) + 1)
            signs.append(self.advance())
        node = self.postfix(depth + len(signs))
        for sign in reversed(signs):
            node = Negation(items=(node,), span=Span(sign.start, node.span.end), sign=Span(sign.start, sign.end))
        return node

    def postfix(self, depth: int) -> Node:
        """An atom with its repetition, its alias, where it ends and its time conditions."""
        node = self.repetition(self.atom(depth))
        node = self.until(self.alias(node), depth)
        while self.token.is_sign("@"):
            condition, end = self.condition()
            node = replace(node, conditions=(*node.conditions, condition), span=Span(node.span.start, end))
        return node

    def atom(self, depth: int) -> Node:
        """A name, a group in parentheses, or SEQ, AND, OR, NOT of arguments."""
        token = self.token
        if token.kind is Kind.WORD and token.value.isascii() and token.value.isdigit():
            word = self.after(token)
            if word.kind is Kind.WORD and word.value.upper() == "OF" and self.after(word).is_sign("("):
                self.check_depth(depth + 1)
                return self.some_of(depth)
        if token.is_name:
            self.advance()
            place = Span(token.start, token.end)
            return Event(name=token.value, span=place, sign=place)
        self.check_depth(depth + 1)
        if token.is_sign("("):
            self.advance()
            node = self.expression(depth + 1)
            return replace(node, span=Span(token.start, self.close(token)))
        if token.keyword in _FUNCTIONS:
            self.advance()
            opener = self.take_sign("(", f"'(' after {token.keyword}")
            items, end = self.arguments(opener, depth)
            place = Span(token.start, end)
            if len(items) == 1 and token.keyword != "NOT":
                return replace(items[0], span=place)
            return _FUNCTIONS[token.keyword](items=items, span=place, sign=Span(token.start, token.end))
        self.unexpected(mistakes.expected_operand(self.text, self.last), named=True)

    def some_of(self, depth: int) -> Node:
        """``n OF (a, b, …)``, from its count on."""
        number = self.token
        count = self.count("a count before OF")
        if count == 0:
            self.fail("0 OF asks for nothing; the count must be 1 or more", number.start, number.end)
        self.advance()
        opener = self.take_sign("(", "'(' after OF")
        items, end = self.arguments(opener, depth)
        place, sign = Span(number.start, end), Span(number.start, opener.start)
        if count > len(items):
            self.fail(f"{count} OF {len(items)} never comes; name as many at least", place.start, place.end)
        if len(items) == 1:
            return replace(items[0], span=place)
        return SomeOf(count=count, items=items, span=place, sign=sign)

    def arguments(self, opener: Token, depth: int) -> tuple[tuple[Node, ...], int]:
        """Patterns between commas and the parenthesis that closes `opener`, and where that ends."""
        items = [self.expression(depth + 1, commas=False)]
        while self.token.is_sign(","):
            self.advance()
            items.append(self.expression(depth + 1, commas=False))
        return tuple(items), self.close(opener)

    def until(self, node: Node, depth: int) -> Node:
        """``UNTIL u`` behind a repetition, if it is there."""
        word = self.token
        if not (word.kind is Kind.WORD and word.value.upper() == "UNTIL"):
            return node
        if not isinstance(node, Repetition):
            if self.after(word).is_name or self.after(word).is_sign("("):
                self.fail(mistakes.UNTIL_WITHOUT_REPETITION, word.start, word.end)
            return node
        self.advance()
        end = self.atom(depth)
        if not all(isinstance(part, Event | Disjunction) and part.alias is None for part in end.walk()):
            self.fail(mistakes.NOT_AN_END, end.span.start, end.span.end)
        return replace(node, until=end, span=Span(node.span.start, end.span.end))

    def close(self, opener: Token) -> int:
        """Take the parenthesis that closes `opener`; where it ends."""
        if self.token.kind is Kind.END:
            self.fail("this '(' is never closed", opener.start, opener.end)
        if not self.token.is_sign(")"):
            self.stray("(")
        return self.advance().end

    def repetition(self, item: Node) -> Node:
        """The repetition behind an atom, if there is one."""
        sign = self.token
        if sign.is_sign("+", "*", "?"):
            self.advance()
            return self.repeated(item, sign.value, *_BOUNDS[sign.value], sign)
        if sign.is_sign("["):
            self.advance()
            if self.token.is_sign("]"):
                self.fail(mistakes.EMPTY_BRACKETS, sign.start, self.token.end)
            count = self.count("a count inside [ ], as in A[3]")
            self.take_sign("]", "']' after the count")
            if count == 0:
                self.fail("[0] repeats nothing; the count must be 1 or more", sign.start, self.last.end)
            return self.repeated(item, "[n]", count, count, sign)
        return self.bounded(item) if sign.is_sign("{") else item

    def bounded(self, item: Node) -> Repetition:
        """``{n}``, ``{n,}``, ``{n,m}`` or ``{,m}``."""
        sign = self.advance()
        unbounded_below = self.token.is_sign(",")
        low = 0 if unbounded_below else self.count("a count inside { }, as in A{2,5}")
        high: int | None = low
        expected = "',' or '}' after the count"
        if self.token.is_sign(","):
            self.advance()
            endless = self.token.is_sign("}") and not unbounded_below
            high = (
                None if endless else self.count("a count after ','" if unbounded_below else "a count or '}' after ','")
            )
            expected = "'}' after the counts"
        self.take_sign("}", expected)
        written = self.text[sign.start : self.last.end]
        if high == 0:
            self.fail(f"{written} repeats nothing; the greatest count must be 1 or more", sign.start, self.last.end)
        if high is not None and high < low:
            self.fail(f"{written} counts down; write the smaller count first", sign.start, self.last.end)
        return self.repeated(item, "{}", low, high, sign)

    def repeated(self, item: Node, form: str, low: int, high: int | None, sign: Token) -> Repetition:
        """The repetition of `item` whose sign ends with the last token."""
        span, place = Span(item.span.start, self.last.end), Span(sign.start, self.last.end)
        return Repetition(item=item, form=form, minimum=low, maximum=high, span=span, sign=place)

    def count(self, expected: str) -> int:
        """A number of a repetition."""
        token = self.token
        if token.kind is not Kind.WORD or not (token.value.isascii() and token.value.isdigit()):
            self.unexpected(expected)
        if len(token.value) > 18 or int(token.value) > MAX_COUNT:
            self.fail(f"a repetition counts to {MAX_COUNT} at most", token.start, token.end)
        self.advance()
        return int(token.value)

    def alias(self, node: Node) -> Node:
        """The other name behind an atom: ``AS name`` or ``name[]``."""
        indexed = False
        if self.token.keyword == "AS":
            self.advance()
            word = self.take_name("a name after AS")
            if self.token.is_sign("[") and self.after(self.token).is_sign("]"):
                self.fail(mistakes.alias_of_two_kinds(word.value), word.start, self.after(self.token).end)
        elif self.token.is_name and (bracket := self.after(self.token)).is_sign("["):
            if not self.after(bracket).is_sign("]"):
                return node
            indexed, word = True, self.advance()
            self.advance()
            self.advance()
        else:
            return node
        if node.alias is not None:
            message = mistakes.second_alias(node.alias, word.value)
            self.fail(message, word.start, word.end)
        place = Span(word.start, word.end)
        span = Span(node.span.start, self.last.end)
        return replace(node, alias=word.value, indexed=indexed, span=span, alias_span=place)

    def condition(self) -> tuple[TimeCondition, int]:
        """``@( … )``, and where it ends."""
        self.advance()
        opener = self.token
        if not opener.is_sign("("):
            self.unexpected("'(' and a condition on times after '@', as in @(t(b) - t(a) < 5 MIN)")
        closing = bracket_end(self.text, opener.start)
        text, span = self.sql(opener.end, closing, "'@('")
        self.advance()
        return TimeCondition(text, span), closing + 1

    def check_depth(self, depth: int) -> None:
        """Fail at the next token where `depth` is too deep."""
        if depth > MAX_NESTING:
            self.fail(mistakes.too_deep(MAX_NESTING), self.token.start, self.token.end)

    def check_height(self, root: Node) -> None:
        """Fail where operators stand deeper than allowed; engines walk the tree by recursion."""
        level: Run[Node] = [root]
        for _ in range(MAX_NESTING + 1):
            level = [child for node in level for child in node.children()]
            if not level:
                return
        self.fail(mistakes.too_deep(MAX_NESTING), level[0].span.start, level[0].span.end)

    def stray(self, inside: str) -> NoReturn:
        """Fail at a token that cannot stand where it does: behind an operand, or behind a clause."""
        message = mistakes.stray(self.text, self.last, self.token, inside)
        self.fail(message, self.token.start, self.token.end)


def _combine(operands: Run[Node], operators: Run[tuple[type[Group], Token]], level: int = 0) -> Node:
    """Group operands by the operators between them, the loosest first."""
    if not operators:
        return operands[0]
    kind = _LEVELS[level]
    cuts = [i for i, (operator, _) in enumerate(operators) if operator is kind]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(operators)]
    items = [_combine(operands[a : b + 1], operators[a:b], level + 1) for a, b in zip(starts, ends, strict=True)]
    if not cuts:
        return items[0]
    first = operators[cuts[0]][1]
    span = Span(items[0].span.start, items[-1].span.end)
    return kind(items=tuple(items), span=span, sign=Span(first.start, first.end))
