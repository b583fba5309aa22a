"""From the text of PATTERN to its tree: a recursive-descent parser."""

from __future__ import annotations

from dataclasses import replace

from patternlake.udfs.language.query.tree import Span
from patternlake.udfs.language.row_pattern.cursor import Cursor
from patternlake.udfs.language.row_pattern.tokens import Token
from patternlake.udfs.language.row_pattern.tree import (
    Alternation,
    Concatenation,
    Exclusion,
    Node,
    PartitionEnd,
    PartitionStart,
    Permutation,
    Quantified,
    Variable,
)

MAX_NESTING = 50
"""How many levels of parentheses, PERMUTE and exclusions may stand inside one another."""
MAX_COUNT = 1_000_000
"""Greatest number in a quantifier."""

_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_EXPECTED = "a variable, '(', '^', '$', PERMUTE or '{-'"


class PatternParser(Cursor):
    """Reads patterns.

    Attributes
    ----------
    names
        The variables met so far, as first written, by their names in upper case.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.names: dict[str, str] = {}

    def pattern(self) -> Node:
        """``( … )`` behind the word PATTERN."""
        opener = self.take_sign("(", "'(' after PATTERN")
        if self.token.sign == ")":
            return Concatenation(items=(), span=Span(opener.start, self.advance().end))
        node = self.alternation(0)
        self.close(opener)
        return node

    def alternation(self, depth: int) -> Node:
        """Sequences with ``|`` between them."""
        items = [self.concatenation(depth)]
        while self.token.sign == "|":
            self.advance()
            items.append(self.concatenation(depth))
        if len(items) == 1:
            return items[0]
        return Alternation(items=tuple(items), span=Span(items[0].span.start, items[-1].span.end))

    def concatenation(self, depth: int) -> Node:
        """Quantified parts one behind the other."""
        items = [self.quantified(depth)]
        while not self.ends():
            items.append(self.quantified(depth))
        if len(items) == 1:
            return items[0]
        return Concatenation(items=tuple(items), span=Span(items[0].span.start, items[-1].span.end))

    def ends(self) -> bool:
        """Whether a sequence ends before the next token."""
        return self.token.kind == "end" or self.token.sign in (")", "|", ",") or self.at_sign("-}")

    def at_sign(self, sign: str) -> bool:
        """Whether a sign of two characters is next."""
        one, two = self.token, self.after()
        return one.sign + two.sign == sign and one.end == two.start

    def quantified(self, depth: int) -> Node:
        """A primary with its quantifier."""
        node = self.primary(depth)
        first = self.token
        bounds = self.bounds()
        if bounds is None:
            return node
        reluctant = self.token.sign == "?"
        if reluctant:
            self.advance()
        if self.token.sign in _QUANTIFIERS or (self.token.sign == "{" and not self.at_sign("{-")):
            self.fail(
                "a quantifier cannot stand behind another; put the first one in parentheses, as in (A+)*", self.token
            )
        least, most = bounds
        span = Span(node.span.start, self.last.end)
        if most is not None and most < max(least, 1):
            written = self.text[first.start : self.last.end]
            why = "counts down; write the smaller count first" if most else "repeats nothing; count to 1 or more"
            self.fail(f"{written} {why}", first, self.last)
        return Quantified(item=node, least=least, most=most, reluctant=reluctant, span=span)

    def bounds(self) -> tuple[int, int | None] | None:
        """The counts of the quantifier that is next, or None."""
        if self.token.sign in _QUANTIFIERS:
            return _QUANTIFIERS[self.advance().sign]
        if self.token.sign != "{" or self.at_sign("{-"):
            return None
        self.advance()
        most: int | None
        if self.token.sign == ",":
            self.advance()
            least, most = 0, None if self.token.sign == "}" else self.count("a count after ',', as in A{,3}, or '}'")
        else:
            least = most = self.count("a count or ',' inside { }, as in A{2,5}")
            if self.token.sign == ",":
                self.advance()
                most = None if self.token.sign == "}" else self.count("a count or '}' after ','")
        self.take_sign("}", "'}' after the count")
        return least, most

    def count(self, expected: str) -> int:
        """A number of a quantifier."""
        token = self.token
        if token.kind != "number" or not token.text.isdecimal():
            self.unexpected(expected)
        if len(token.text) > 18 or int(token.text) > MAX_COUNT:
            self.fail(f"a quantifier counts to {MAX_COUNT:,} at most", token)
        return int(self.advance().text)

    def primary(self, depth: int) -> Node:
        """A variable, an anchor, a group, PERMUTE or an exclusion."""
        token = self.token
        if depth > MAX_NESTING:
            self.fail(f"the pattern is nested deeper than {MAX_NESTING} levels", token)
        if token.word == "PERMUTE" and self.after().sign == "(":
            return self.permutation(depth)
        if token.is_name:
            name = self.take_name(_EXPECTED).name
            return Variable(name=self.names.setdefault(name.upper(), name), span=Span(token.start, token.end))
        if token.sign in ("^", "$"):
            self.advance()
            return (PartitionStart if token.sign == "^" else PartitionEnd)(span=Span(token.start, token.end))
        if token.sign == "(":
            self.advance()
            if self.token.sign == ")":
                return Concatenation(items=(), span=Span(token.start, self.advance().end))
            node = self.alternation(depth + 1)
            return replace(node, span=Span(token.start, self.close(token)))
        if self.at_sign("{-"):
            return self.exclusion(depth)
        if token.sign in _QUANTIFIERS or token.sign == "{":
            self.unexpected(f"{_EXPECTED}; a quantifier stands behind what it repeats, as in A+")
        self.unexpected(_EXPECTED)

    def permutation(self, depth: int) -> Node:
        """``PERMUTE(a, b, …)``."""
        word, opener = self.advance(), self.advance()
        items = [self.alternation(depth + 1)]
        while self.token.sign == ",":
            self.advance()
            items.append(self.alternation(depth + 1))
        span = Span(word.start, self.close(opener))
        return replace(items[0], span=span) if len(items) == 1 else Permutation(items=tuple(items), span=span)

    def exclusion(self, depth: int) -> Node:
        """``{- … -}``."""
        opener = self.advance()
        self.advance()
        item = self.alternation(depth + 1)
        if not self.at_sign("-}"):
            if self.token.kind == "end":
                self.fail("this '{-' is never closed", opener, self.tokens[self.tokens.index(opener) + 1])
            self.unexpected("'-}'")
        self.advance()
        return Exclusion(item=item, span=Span(opener.start, self.advance().end))

    def close(self, opener: Token) -> int:
        """Take the parenthesis that closes `opener`; where it ends."""
        if self.token.kind == "end":
            self.fail("this '(' is never closed", opener)
        if self.at_sign("-}"):
            self.fail("this '-}' closes no '{-'", self.token, self.after())
        return self.take_sign(")", f"{_EXPECTED}, '|' or ')'").end
