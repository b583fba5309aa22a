"""What can be told of the expressions of MEASURES and DEFINE from the clause alone.

Expressions are Spark SQL, and Spark judges them. Here are the rules that the standard adds: which functions may stand
in which, that an argument looks at the rows of one variable, and where FINAL may stand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from patternlake.udfs.errors import PredicateError, UnsupportedOperatorError, shorten
from patternlake.udfs.language.row_pattern.tokens import Token

PHYSICAL = frozenset({"PREV", "NEXT"})
"""Functions that go from row to row of the partition."""
LOGICAL = frozenset({"FIRST", "LAST"})
"""Functions that go from row to row of a variable."""
_AGGREGATES = (
    "ANY ANY_VALUE APPROX_COUNT_DISTINCT APPROX_PERCENTILE APPROX_TOP_K APPROX_TOP_K_ACCUMULATE APPROX_TOP_K_COMBINE "
    "ARRAY_AGG AVG BITMAP_AND_AGG BITMAP_CONSTRUCT_AGG BITMAP_OR_AGG BIT_AND BIT_OR BIT_XOR BOOL_AND BOOL_OR "
    "COLLECT_LIST COLLECT_SET CORR COUNT COUNT_IF COUNT_MIN_SKETCH COVAR_POP COVAR_SAMP EVERY "
    "HISTOGRAM_NUMERIC HLL_SKETCH_AGG HLL_UNION_AGG KLL_MERGE_AGG_BIGINT KLL_MERGE_AGG_DOUBLE KLL_MERGE_AGG_FLOAT "
    "KLL_SKETCH_AGG_BIGINT KLL_SKETCH_AGG_DOUBLE KLL_SKETCH_AGG_FLOAT KURTOSIS LISTAGG MAX MAX_BY MEAN "
    "MEDIAN MIN MIN_BY MODE PERCENTILE PERCENTILE_APPROX PERCENTILE_CONT PERCENTILE_DISC REGR_AVGX REGR_AVGY "
    "REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE REGR_SXX REGR_SXY REGR_SYY SKEWNESS SOME STD STDDEV STDDEV_POP "
    "STDDEV_SAMP STRING_AGG SUM THETA_INTERSECTION_AGG THETA_SKETCH_AGG THETA_UNION_AGG TRY_AVG TRY_SUM "
    "TUPLE_INTERSECTION_AGG_DOUBLE TUPLE_INTERSECTION_AGG_INTEGER TUPLE_SKETCH_AGG_DOUBLE TUPLE_SKETCH_AGG_INTEGER "
    "TUPLE_UNION_AGG_DOUBLE TUPLE_UNION_AGG_INTEGER VAR_POP VAR_SAMP VARIANCE"
)
AGGREGATES = frozenset(_AGGREGATES.split())
"""Spark's aggregates; those that users register are known to Spark alone."""

OF_MATCH = frozenset({"CLASSIFIER", "MATCH_NUMBER"})
"""Functions of the match itself."""
_REFUSED = {"SELECT": "a subquery", "OVER": "a window function"}
_OF_OTHERS = {
    "FIRST_VALUE": "FIRST(price)",
    "LAG": "PREV(price)",
    "LAST_VALUE": "LAST(price)",
    "LEAD": "NEXT(price)",
    "MATCH_SEQUENCE_NUMBER": "RUNNING count(*)",
    "MATCH_ROW_NUMBER": "RUNNING count(*)",
}
"""Functions that are known elsewhere, and what to write in their place."""


def is_like_some(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word is that of ``LIKE ANY`` or ``LIKE SOME``, which are no aggregates."""
    return at > 0 and tokens[at].word in ("ANY", "SOME") and tokens[at - 1].word in ("LIKE", "ILIKE")


@dataclass(frozen=True)
class Scope:
    """What an expression may name.

    Attributes
    ----------
    text
        The whole clause.
    names
        Variables and subsets, by their names in upper case.
    columns
        The input's columns in upper case; None where they are not known here.
    kind
        What a name of `names` is called.
    """

    text: str
    names: Mapping[str, str]
    columns: Collection[str] | None = None
    kind: str = "variable"


@dataclass
class _Call:
    """A function whose parentheses are open; a parenthesis without one has no name."""

    name: str
    token: Token
    variable: str | None = field(default=None)


def check_expression(tokens: Sequence[Token], scope: Scope, *, in_define: bool) -> None:
    """Fail where an expression breaks a rule of the clause.

    Parameters
    ----------
    tokens
        The expression's, without those of subqueries; its parentheses are balanced.
    scope
        What it may name.
    in_define
        Whether it is a condition, not a measure.

    Raises
    ------
    PredicateError
        It nests aggregates or navigation, looks at rows of two variables at once, names a variable that is not in the
        pattern, or says FINAL in DEFINE.
    UnsupportedOperatorError
        It holds a window function, or a SELECT that is no subquery.
    """
    _Checker(scope, in_define).check(tokens)


class _Checker:
    """One reading of an expression."""

    def __init__(self, scope: Scope, in_define: bool) -> None:
        self.scope = scope
        self.in_define = in_define
        self.calls: list[_Call] = []
        self.parameters: frozenset[str] = frozenset()

    def check(self, tokens: Sequence[Token]) -> None:
        """Go over the tokens, with the functions that are open at each."""
        end = tokens[-1].end if tokens else 0  # of a subquery alone, nothing is left
        behind = [*tokens[1:], *[Token("end", "", end, end)] * 4]
        self.parameters = _parameters_of_lambdas(tokens)
        for at, token in enumerate(tokens):
            next_token = behind[at]
            before = tokens[at - 1].sign if at else ""
            if token.sign == "(":
                word = tokens[at - 1].word if at and before != "." else ""
                if at and is_like_some(tokens, at - 1):
                    word = ""
                self.open(_Call(word, tokens[at - 1] if word else token))
            elif token.sign == ")":
                self.calls.pop()
            elif before != "." and token.is_name and next_token.sign == "." and behind[at + 1].kind != "number":
                # `shop.score(x)` is a function of a schema, where no variable is called so.
                if behind[at + 2].sign != "(" or token.name.upper() in self.scope.names:
                    self.qualified(token, behind[at + 1])
            elif token.word in ("RUNNING", "FINAL") and next_token.kind == "word" and behind[at + 1].sign == "(":
                self.semantics(token, next_token)
            elif token.word in _REFUSED and next_token.kind != "end" and before != ".":
                message = f"{_REFUSED[token.word]} cannot stand in DEFINE or MEASURES"
                if token.word == "OVER" and self.scope.kind == "variable":
                    message += "; compute it in a subquery before the clause"
                if token.word == "SELECT" and self.scope.kind == "variable":
                    message = "a subquery stands in parentheses of its own: (SELECT …)"
                raise UnsupportedOperatorError(message, self.scope.text, token.start, token.end)
            elif self.is_of_others(token, next_token) and all(one.word != "OVER" for one in tokens):
                message = f"{token.word} is not known here; write {_OF_OTHERS[token.word]}"
                raise UnsupportedOperatorError(message, self.scope.text, token.start, token.end)
            if token.word == "CLASSIFIER" and next_token.sign == "(" and behind[at + 1].is_name:
                self.variable(behind[at + 1])

    def is_of_others(self, token: Token, behind: Token) -> bool:
        """Whether a function is called that other systems have in the clause."""
        return self.scope.kind == "variable" and behind.sign == "(" and token.word in _OF_OTHERS

    def open(self, call: _Call) -> None:
        """A function's parenthesis opens: may it stand in those that are open?"""
        names = [outer.name for outer in self.calls]
        aggregates = [name for name in names if name in AGGREGATES]
        navigation = [name for name in names if name in PHYSICAL | LOGICAL]
        if call.name in AGGREGATES and aggregates:
            self.fail(f"aggregates cannot be nested: {call.name} stands in {aggregates[-1]}", call.token)
        if call.name in AGGREGATES and navigation:
            self.fail(f"{call.name} cannot stand in {navigation[-1]}, which looks at one row", call.token)
        if call.name in PHYSICAL | LOGICAL and aggregates:
            self.fail(f"{call.name} cannot stand in {aggregates[-1]}, which looks at many rows", call.token)
        if call.name in PHYSICAL and navigation:
            hint = "; write PREV(LAST(v.x, 1), 2)" if navigation[-1] in LOGICAL else "; give it an offset: PREV(x, 2)"
            self.fail(f"{call.name} cannot stand in {navigation[-1]}{hint}", call.token)
        if call.name in LOGICAL and any(name in LOGICAL for name in navigation):
            self.fail(f"{call.name} cannot stand in {navigation[-1]}; give it an offset: LAST(v.x, 1)", call.token)
        self.calls.append(call)

    def qualified(self, token: Token, column: Token) -> None:
        """``v.column`` or ``v.*``: a variable, or a column with fields."""
        known = self.scope.names.get(token.name.upper())
        if known is None:
            if token.name in self.parameters:
                return
            columns = self.scope.columns
            if column.sign == "*" or (columns is not None and token.name.upper() not in columns):
                self.variable(token)
            return
        # Of the functions that are open the innermost that goes over rows; all of its argument is of one variable.
        over = [call for call in self.calls if call.name in PHYSICAL | LOGICAL | AGGREGATES]
        for call in over:
            if call.variable not in (None, known):
                message = (
                    f"{call.name} looks at rows of {shorten(call.variable)} and of {shorten(known)} at once; "
                    f"all of its argument must be of one {self.scope.kind}"
                )
                self.fail(message, token, column)
            call.variable = known

    def variable(self, token: Token) -> None:
        """A name that must be a variable or a subset."""
        if token.name.upper() not in self.scope.names:
            known = ", ".join(sorted(self.scope.names.values()))
            what = f"no {self.scope.kind} of the pattern{' and no subset' if self.scope.kind == 'variable' else ''}"
            self.fail(f"{shorten(token.name)} is {what}; there are: {known}", token)

    def semantics(self, token: Token, function: Token) -> None:
        """RUNNING or FINAL before a function."""
        if token.word == "FINAL" and self.in_define:
            message = "FINAL looks at rows that are not matched yet; a condition of DEFINE is always RUNNING"
            self.fail(message, token)
        if function.word in PHYSICAL | OF_MATCH:
            message = f"{token.word} stands before FIRST, LAST or an aggregate, not before {function.word}"
            self.fail(message, token, function)

    def fail(self, message: str, first: Token, last: Token | None = None) -> NoReturn:
        """Raise an error at a token, or from one to another."""
        raise PredicateError(message, self.scope.text, first.start, (last or first).end)


def _parameters_of_lambdas(tokens: Sequence[Token]) -> frozenset[str]:
    """The names in front of ``->``, as in ``x -> x > 1`` and ``(x, y) -> x + y``."""
    found: set[str] = set()
    for at in range(1, len(tokens) - 1):
        if tokens[at].sign + tokens[at + 1].sign != "->":
            continue
        begin = at - 1
        while tokens[at - 1].sign == ")" and begin > 0 and tokens[begin].sign != "(":
            begin -= 1
        found.update(token.name for token in tokens[begin:at] if token.is_name)
    return frozenset(found)
