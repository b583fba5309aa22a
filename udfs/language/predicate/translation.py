"""From the SQL parser's tree to PatternLake's, node by node against the allow-list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.allowed import AGGREGATES, FUNCTIONS, FUNCTIONS_SHOWN, NODES, OPERATORS_SHOWN
from patternlake.udfs.language.predicate.expressions import (
    COMPARISONS,
    Aggregate,
    Call,
    Case,
    Cast,
    EqualAlong,
    Expression,
    Literal,
    join_parts,
    to_sql,
)
from patternlake.udfs.language.predicate.rewriting import FunctionName, Rewritten, rewrite
from patternlake.udfs.language.query.tree import Span

_BINARY = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "<=>",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "Mod": "%",
}
_UNCHAINED = ("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ", "NullSafeNEQ", "In", "Between", "Like", "Escape")


def read(text: str, query_text: str, offset: int) -> Expression:
    """The tree of a predicate's text.

    Parameters
    ----------
    text
        The predicate.
    query_text, offset
        The whole query, and where in it `text` begins.

    Raises
    ------
    PredicateError
        With the place in `query_text`, where the text is not SQL or holds what predicates don't allow.
    """
    rewritten = rewrite(text, query_text, offset)
    whole = Span(offset, offset + len(text))
    if not rewritten.sql:
        raise PredicateError("a predicate is missing here", query_text, whole.start, whole.end)
    try:
        parsed: Any = sqlglot.parse_one(rewritten.sql, dialect="spark", into=exp.Condition)
        return _Translator(rewritten, query_text, whole).expression(parsed)
    except SqlglotError as error:
        raise _explain(error, rewritten, query_text, whole) from None
    except RecursionError:
        raise PredicateError("this predicate is nested too deeply", query_text, whole.start, whole.end) from None


def _explain(error: SqlglotError, rewritten: Rewritten, query_text: str, whole: Span) -> PredicateError:
    details = getattr(error, "errors", None) or [{}]
    description = str(details[0].get("description") or "")
    column = int(details[0].get("col") or 1)
    span = rewritten.place(column - 1)
    found = query_text[span.start : span.end]
    if "Between" in description:
        message = "BETWEEN is written x BETWEEN low AND high"
    elif "missing" in description:
        message = f"an operand is missing after {found}"
    elif "END" in description:
        message = "CASE is written CASE WHEN condition THEN value ELSE value END"
    elif "Expecting" in description:
        message = f"unexpected {found}, or a closing parenthesis is missing before it"
    else:
        message = f"unexpected {found}; the predicate cannot be read as SQL"
    return PredicateError(message, query_text, span.start, span.end)


class _Translator:
    def __init__(self, rewritten: Rewritten, query_text: str, whole: Span) -> None:
        self.rewritten = rewritten
        self.atoms = rewritten.atoms
        self.query_text = query_text
        self.whole = whole

    def error(self, message: str, span: Span) -> PredicateError:
        return PredicateError(message, self.query_text, span.start, span.end)

    def place(self, node: Any) -> Span:
        """The span of the atoms below a node of the parser's tree."""
        spans = [atom.span for part in node.walk() if (atom := self.atom(part)) is not None]
        if not spans:
            return self.whole
        return Span(min(span.start for span in spans), max(span.end for span in spans))

    def atom(self, node: Any) -> Expression | FunctionName | None:
        """What a placeholder stands for; None for another node."""
        name = node.this if isinstance(node, exp.Literal | exp.Identifier | exp.Anonymous) else ""
        digits = str(name).removeprefix("f")
        return self.atoms[int(digits)] if digits.isdigit() else None

    def depth(self, node: Any) -> int:
        """How many parentheses of the text are around all of a node of the parser's tree."""
        span, depth = self.place(node), 0
        found: list[int] = []
        for piece, place in zip(self.rewritten.sql.split(), self.rewritten.spans, strict=True):
            depth += piece == "("
            if span.start <= place.start < span.end:
                found.append(depth)
            depth -= piece == ")"
        return min(found, default=0)

    def expression(self, node: Any) -> Expression:
        kind = type(node).__name__
        parts = {key for key, value in node.args.items() if value not in (None, False, [])}
        if kind not in NODES or not parts <= NODES[kind]:
            raise self.error(
                f"this construct ({kind}) is not allowed in a predicate; allowed: {OPERATORS_SHOWN} and "
                f"{FUNCTIONS_SHOWN}",
                self.place(node),
            )
        if kind in _BINARY:
            translated = self.binary(_BINARY[kind], node)
        else:
            translate: Callable[[Any], Expression] = getattr(self, f"translate_{kind.lower()}")
            translated = translate(node)
        negated = bool(node.args.get("negate"))
        return self.call("NOT", translated) if negated else translated

    def call(self, operator: str, *arguments: Expression) -> Expression:
        span = Span(min(part.span.start for part in arguments), max(part.span.end for part in arguments))
        return Call(operator=operator, arguments=arguments, span=span)

    def unchained(self, node: Any) -> None:
        """Refuse ``1 < x < 5``: SQL compares the first comparison's truth with 5, which nobody means."""
        for part in (node.this, node.args.get("expression")):
            inside = part.this if isinstance(part, exp.Paren) else part
            kind = type(inside).__name__
            if kind == "Not" and node.this is part:
                kind = type(inside.this).__name__
            # The SQL parser itself puts parentheses around comparisons beside `<=>`, which the text does not have.
            if kind in _UNCHAINED and (inside is part or self.depth(part) == self.depth(node)):
                raise self.error(
                    "comparisons cannot be chained; write a < b AND b < c, or put parentheses around one",
                    self.place(node),
                )

    def binary(self, operator: str, node: exp.Expression) -> Expression:
        if operator in COMPARISONS:
            self.unchained(node)
        return self.call(operator, self.expression(node.this), self.expression(node.expression))

    def translate_column(self, node: Any) -> Expression:
        atom = self.atom(node.this) if node.this.args.get("quoted") else None
        if not isinstance(atom, Expression):
            raise self.error(f"{node.this} is not allowed in a predicate", self.whole)
        return atom

    def translate_literal(self, node: Any) -> Expression:
        atom = self.atom(node)
        if not isinstance(atom, Literal) or not node.args.get("is_string"):
            raise self.error(f"{node.this} is not allowed in a predicate", self.whole)
        return atom

    def translate_anonymous(self, node: Any) -> Expression:
        function = self.atom(node)
        if not isinstance(function, FunctionName):
            raise self.error(f"{node.this} is not allowed in a predicate; allowed: {FUNCTIONS_SHOWN}", self.whole)
        arguments = tuple(self.expression(part) for part in node.expressions)
        end = max([function.span.end, *(argument.span.end for argument in arguments)])
        span = Span(function.span.start, end)
        if function.to is not None:
            if len(arguments) != 1:
                raise self.error("CAST takes one value: CAST(x AS DOUBLE)", span)
            return Cast(argument=arguments[0], to=function.to, span=span)
        if function.name in AGGREGATES:
            return self.aggregate(function, arguments, span)
        name, least, most = FUNCTIONS[function.name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
            raise self.error(f"{name} takes {wanted} arguments, not {len(arguments)}", span)
        return Call(operator=name, arguments=arguments, span=span)

    def aggregate(self, function: FunctionName, arguments: tuple[Expression, ...], span: Span) -> Expression:
        name = function.name
        if len(arguments) != 1:
            raise self.error(f"{name} takes one value, not {len(arguments)}: {name}(b.x)", span)
        inner = next((part for part in arguments[0].walk() if isinstance(part, Aggregate)), None)
        if inner is not None:
            raise self.error(
                f"{inner.function} inside {name}: an aggregate is one value of a match, so there is nothing to "
                f"aggregate again; write {to_sql(inner)} alone",
                inner.span,
            )
        return Aggregate(function=name, argument=arguments[0], distinct=function.distinct, span=span)

    def translate_paren(self, node: Any) -> Expression:
        return self.expression(node.this)

    def chain(self, node: Any, kind: type[Any]) -> list[Any]:
        """Operands of a run of one operator, left to right (a loop: runs may be longer than the stack)."""
        parts: list[Any] = []
        while isinstance(node, kind):
            parts.append(node.expression)
            node = node.this
        return [node, *reversed(parts)]

    def translate_and(self, node: Any) -> Expression:
        operator = type(node).__name__.upper()
        parts = [self.expression(part) for part in self.chain(node, type(node))]
        return join_parts(operator, parts, self.call(operator, *parts).span)

    translate_or = translate_and

    def translate_not(self, node: Any) -> Expression:
        return self.call("NOT", self.expression(node.this))

    def translate_neg(self, node: Any) -> Expression:
        return self.call("NEGATE", self.expression(node.this))

    def translate_nullsafeneq(self, node: Any) -> Expression:
        return self.call("NOT", self.binary("<=>", node))

    def translate_dpipe(self, node: Any) -> Expression:
        parts = self.chain(node, exp.DPipe)
        if any(isinstance(part, exp.Add | exp.Sub) for part in parts):
            raise self.error("|| beside + or - needs parentheses", self.place(node))
        return self.call("CONCAT", *(self.expression(part) for part in parts))

    def translate_in(self, node: Any) -> Expression:
        self.unchained(node)
        if not node.expressions:
            raise self.error("IN needs a list: x IN ('a', 'b')", self.place(node))
        return self.call("IN", self.expression(node.this), *(self.expression(part) for part in node.expressions))

    def translate_between(self, node: Any) -> Expression:
        self.unchained(node)
        value, low, high = (self.expression(node.args[part]) for part in ("this", "low", "high"))
        return self.call("AND", self.call(">=", value, low), self.call("<=", value, high))

    def translate_like(self, node: Any) -> Expression:
        self.unchained(node)
        value, pattern = self.expression(node.this), self.expression(node.expression)
        return self.call("LIKE", value, pattern)

    def translate_escape(self, node: Any) -> Expression:
        like, escape = self.expression(node.this), self.expression(node.expression)
        negated = isinstance(like, Call) and like.operator == "NOT"
        inner = like.arguments[0] if isinstance(like, Call) and negated else like
        if not isinstance(inner, Call) or inner.operator != "LIKE":
            raise self.error("ESCAPE belongs after LIKE: x LIKE '10!%' ESCAPE '!'", self.place(node))
        if not isinstance(escape, Literal) or escape.type != "string" or len(str(escape.value)) != 1:
            raise self.error("ESCAPE takes one character: ESCAPE '!'", escape.span)
        whole = self.call("LIKE", *inner.arguments, escape)
        return self.call("NOT", whole) if negated else whole

    def translate_is(self, node: Any) -> Expression:
        value = self.expression(node.this)
        what = node.expression
        if isinstance(what, exp.Null):
            return self.call("IS NULL", value)
        if isinstance(what, exp.Boolean):
            return self.call("<=>", value, Literal(type="boolean", value=bool(what.this), span=value.span))
        raise self.error("IS is followed by [NOT] NULL, TRUE, FALSE or DISTINCT FROM", self.place(node))

    def translate_case(self, node: Any) -> Expression:
        subject = None if node.this is None else self.expression(node.this)
        branches = []
        for branch in node.args["ifs"]:
            condition = self.expression(branch.this)
            if subject is not None:
                condition = self.call("=", subject, condition)
            branches.append((condition, self.expression(branch.args["true"])))
        default = None if node.args.get("default") is None else self.expression(node.args["default"])
        if not branches:
            raise self.error("CASE needs WHEN … THEN …", self.place(node))
        return Case(branches=tuple(branches), default=default, span=self.place(node))


def refuse_hidden(expression: Expression, query_text: str) -> None:
    """Refuse ``[attr]`` anywhere but as a conjunct of its own."""
    conjuncts = expression.arguments if isinstance(expression, Call) and expression.operator == "AND" else (expression,)
    for conjunct in conjuncts:
        for part in conjunct.walk():
            if isinstance(part, EqualAlong) and part is not conjunct:
                raise PredicateError(
                    f"[{part.attribute}] must stand alone, joined to the rest by AND",
                    query_text,
                    part.span.start,
                    part.span.end,
                )
