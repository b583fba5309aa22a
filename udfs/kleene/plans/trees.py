"""Plans: binary trees over the operands of a pattern.

Source: Behravesh et al., "Order of joins" (left, right, bushy, inner). Every tree over the operands is a plan and gives
the same rows. Operands stand in text order; negated ones are tested last and are in no tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.kleene.query import MOST_OPERANDS, KleenePattern
from patternlake.udfs.language.query.names import quote

NAMED = ("left", "right", "bushy", "inner")
"""Plans that have a name."""

_DEEPEST = 4 * MOST_OPERANDS
"""Parentheses in each other: a tree has fewer than operands, and each may stand in some that say nothing."""


@dataclass(frozen=True, slots=True)
class Join:
    """A node with two sides."""

    left: Plan
    right: Plan


Plan = int | Join
"""The number of an operand, or a join of two plans."""


def operands_in(plan: Plan) -> tuple[int, ...]:
    """The operands of a plan, from left to right."""
    return (plan,) if isinstance(plan, int) else (*operands_in(plan.left), *operands_in(plan.right))


def restricted(plan: Plan, operands: frozenset[int]) -> Plan | None:
    """The plan without the other operands; None where nothing is left."""
    if isinstance(plan, int):
        return plan if plan in operands else None
    left, right = restricted(plan.left, operands), restricted(plan.right, operands)
    return Join(left, right) if left is not None and right is not None else left if right is None else right


def left_deep(operands: Sequence[int]) -> Plan:
    """``(((a b) c) d)``."""
    plan: Plan = operands[0]
    for operand in operands[1:]:
        plan = Join(plan, operand)
    return plan


def right_deep(operands: Sequence[int]) -> Plan:
    """``(a (b (c d)))``."""
    plan: Plan = operands[-1]
    for operand in reversed(operands[:-1]):
        plan = Join(operand, plan)
    return plan


def bushy(operands: Sequence[int]) -> Plan:
    """``((a b) (c d))``: halves of halves."""
    if len(operands) == 1:
        return operands[0]
    half = (len(operands) + 1) // 2
    return Join(bushy(operands[:half]), bushy(operands[half:]))


def inner(operands: Sequence[int]) -> Plan:
    """``(a ((b c) d))``: the first operand with a left-deep tree of all others."""
    return operands[0] if len(operands) == 1 else Join(operands[0], left_deep(operands[1:]))


def named_plan(name: str, operands: Sequence[int]) -> Plan:
    """A plan of `NAMED`."""
    return {"left": left_deep, "right": right_deep, "bushy": bushy, "inner": inner}[name](operands)


def forced_plan(pattern: KleenePattern, text: str) -> Plan:
    """The plan that a hint asks for.

    Parameters
    ----------
    pattern
        The compiled pattern.
    text
        One of `NAMED`, or a tree such as ``((a b) c)``: names of operands as predicates call them (quoted like there),
        two things in each pair of parentheses, in any order. A ``;`` or ``,`` may stand between them.

    Raises
    ------
    ArgumentError
        The text is no tree, or not one over exactly the operands of the pattern; what is wrong is named.
    """
    if text.strip().lower() in NAMED:
        return named_plan(text.strip().lower(), pattern.positive)
    words = _words(text)
    if max(accumulate((word == _OPEN) - (word == _CLOSE) for word in words), default=0) > _DEEPEST:
        raise _wrong(text, f"its parentheses stand more than {_DEEPEST} deep")
    numbers = {pattern.operands[number].name: number for number in pattern.positive}
    plan, end = _tree(words, 0, numbers, text)
    if end != len(words):
        raise _wrong(text, f"{words[end].text!r} stands behind the tree; put everything into one pair of parentheses")
    found = operands_in(plan)
    for number in found:
        if found.count(number) > 1:
            raise _wrong(text, f"operand {quote(pattern.operands[number].name)} stands twice")
    missing = [name for name, number in numbers.items() if number not in found]
    if missing:
        raise _wrong(text, f"missing {_names(missing)}; a plan joins all operands: {_names(numbers)}")
    return plan


def plan_text(pattern: KleenePattern, plan: Plan) -> str:
    """The plan as `forced_plan` reads it."""
    if isinstance(plan, int):
        return quote(pattern.operands[plan].name)
    return f"({plan_text(pattern, plan.left)} {plan_text(pattern, plan.right)})"


def _tree(words: list[_Word], at: int, numbers: dict[str, int], text: str) -> tuple[Plan, int]:
    if at == len(words):
        raise _wrong(text, "it ends where an operand or '(' is expected")
    word = words[at]
    if word == _OPEN:
        left, at = _tree(words, at + 1, numbers, text)
        if at < len(words) and words[at] == _CLOSE:
            return left, at + 1
        right, at = _tree(words, at, numbers, text)
        if at == len(words) or words[at] != _CLOSE:
            found = "the end" if at == len(words) else repr(words[at].text)
            raise _wrong(text, f"{found} where ')' is expected; a pair of parentheses joins two")
        return Join(left, right), at + 1
    if word.sign or word.text not in numbers:
        raise _wrong(text, f"{word.text!r} is not an operand of the pattern; operands are {_names(numbers)}")
    return numbers[word.text], at + 1


class _Word(NamedTuple):
    """A parenthesis (`sign`) or a name."""

    text: str
    sign: bool


_OPEN, _CLOSE = _Word("(", sign=True), _Word(")", sign=True)
_WORD = re.compile(r"'((?:[^']|'')*)'|`((?:[^`]|``)*)`|([^\s;,()'`]+)|([()])|(['`])")


def _words(text: str) -> list[_Word]:
    """Parentheses and names; what is in quotes or backticks, which are doubled inside, is one name."""
    words = []
    for single, backtick, plain, parenthesis, opened in _WORD.findall(text):
        if opened:
            raise _wrong(text, f"a {opened} is never closed")
        name = plain or single.replace("''", "'") or backtick.replace("``", "`")
        words.append(_Word(parenthesis or name, bool(parenthesis)))
    return words


def _names(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def _wrong(text: str, why: str) -> ArgumentError:
    return ArgumentError(
        f"plan must be one of {', '.join(NAMED)} or a tree such as ((a b) c), not {shorten(text)}: {why}"
    )
