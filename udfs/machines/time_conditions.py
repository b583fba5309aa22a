"""Conditions on the times of operands: ``@(t(b) - t(a) < 5 MIN OR t(b) - t(a) > 1 HOUR)``.

Source: Muthusamy et al. 2010, section 3.2, whose conditions are comparisons of one difference; SPEC section 6. Each
becomes bounds of a difference in whole microseconds, so that several of them can be judged together. OR, and ``<>``,
which is ``<`` or ``>``, give **choices**: a condition holds if all bounds of one of them do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from patternlake.udfs.language.predicate.expressions import Call, Expression, Field
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.time_gaps import FLIPPED, bounds, gap
from patternlake.udfs.language.query.names import quote

MOST_CHOICES = 256
"""Greatest number of combinations of choices of all conditions of one subscription."""
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", "<=": ">", ">": "<="}


@dataclass(frozen=True, slots=True)
class TimeBound:
    """``low <= t(later) - t(earlier) <= high`` in microseconds; `absolute`: of the difference without its sign.

    Attributes
    ----------
    later, earlier
        Numbers of primitives: the dependent and the referencing one.
    """

    later: int
    earlier: int
    low: int
    high: int
    absolute: bool

    @property
    def operands(self) -> frozenset[int]:
        """The primitives that it names."""
        return frozenset((self.later, self.earlier))

    @property
    def choices(self) -> tuple[tuple[TimeBound, ...], ...]:
        """Itself."""
        return ((self,),)


@dataclass(frozen=True, slots=True)
class TimeChoice:
    """A condition that holds if all bounds of one of its `choices` do; it applies where all that it names is bound."""

    choices: tuple[tuple[TimeBound, ...], ...]

    @property
    def operands(self) -> frozenset[int]:
        """The primitives that it names."""
        return frozenset(operand for choice in self.choices for bound in choice for operand in bound.operands)


TimeCondition = TimeBound | TimeChoice


def time_conditions(
    predicate: Predicate,
    names: Sequence[str],
    siblings: frozenset[tuple[int, int]],
    alternatives: frozenset[int],
) -> list[TimeCondition]:
    """The conditions that a predicate joins by AND.

    Parameters
    ----------
    predicate
        Bound to the operands.
    names
        Of the operands, by number.
    siblings
        Pairs of operands that have no order, as those beside ``&``: of their difference the sign does not count.
    alternatives
        Operands inside of ``|``.

    Raises
    ------
    PredicateError
        It holds something else than comparisons of the time between two operands, joined by AND, OR and NOT; it asks
        for an order of siblings; it has more than `MOST_CHOICES` choices; an OR names three operands or more, one of
        them inside of ``|``.
    """
    reader = _Reader(predicate, names, siblings)
    found: list[TimeCondition] = []
    for choices in reader.conjuncts(predicate.root, negated=False):
        if len(choices) == 1 and len(choices[0]) == 1:
            found.append(choices[0][0])
            continue
        condition = TimeChoice(choices)
        inside = sorted(condition.operands & alternatives)
        if inside and len(condition.operands) > 2:
            raise predicate.error(
                f"an OR of time conditions names {quote(names[inside[0]])}, which stands in an alternative of '|', "
                "beside two other operands; where it is not taken, nothing says whether the rest applies: compare two "
                "operands in each @( ) that names it"
            )
        found.append(condition)
    return found


_Choices = tuple[tuple[TimeBound, ...], ...]


class _Reader:
    def __init__(self, predicate: Predicate, names: Sequence[str], siblings: frozenset[tuple[int, int]]) -> None:
        self.predicate, self.names, self.siblings = predicate, names, siblings
        self.number_of: Mapping[str, int] = {name: number for number, name in enumerate(names)}

    def conjuncts(self, root: Expression, *, negated: bool) -> list[_Choices]:
        """The choices of each part that AND joins, NOT resolved."""
        if isinstance(root, Call) and root.operator == "NOT":
            return self.conjuncts(root.arguments[0], negated=not negated)
        if isinstance(root, Call) and root.operator == ("OR" if negated else "AND"):
            return [choices for part in root.arguments for choices in self.conjuncts(part, negated=negated)]
        return [self.choices(root, negated=negated)]

    def choices(self, root: Expression, *, negated: bool) -> _Choices:
        """The choices of one part."""
        if isinstance(root, Call) and root.operator == "NOT":
            return self.choices(root.arguments[0], negated=not negated)
        if isinstance(root, Call) and root.operator in ("AND", "OR"):
            parts = [self.choices(part, negated=negated) for part in root.arguments]
            if (root.operator == "OR") != negated:
                return self.counted(tuple(choice for part in parts for choice in part))
            count = 1
            for part in parts:
                count *= len(part)
            self.check(count)
            return tuple(tuple(bound for choice in chosen for bound in choice) for chosen in product(*parts))
        return self.comparison(root, negated=negated)

    def counted(self, choices: _Choices) -> _Choices:
        self.check(len(choices))
        return choices

    def check(self, count: int) -> None:
        if count > MOST_CHOICES:
            raise self.predicate.error(
                f"OR gives this time condition {count:,} choices; at most {MOST_CHOICES} are taken: use fewer OR or <>"
            )

    def comparison(self, root: Expression, *, negated: bool) -> _Choices:
        """The choices of a comparison; of ``<>`` there are two."""
        found = gap(root, lambda reference: reference.operand)
        if found is None:
            one, other = (quote(name) for name in (tuple(self.names) * 2)[:2])
            raise Predicate(root, self.predicate.text).error(
                "a time condition bounds the time between two operands with < <= = <> >= or >, "
                f"as in t({other}) - t({one}) < 5 MIN; AND, OR and NOT may join such comparisons"
            )
        assert isinstance(root, Call)
        later, earlier = self.number_of[str(found.later)], self.number_of[str(found.earlier)]
        operator, amount = _NEGATED[found.operator] if negated else found.operator, found.microseconds
        absolute = (later, earlier) in self.siblings
        if absolute and operator not in ("=", "<>") and all(isinstance(side, Field) for side in root.arguments):
            one, other = quote(self.names[earlier]), quote(self.names[later])
            raise Predicate(root, self.predicate.text).error(
                f"operands of '&' come in either order, so a comparison of their times cannot say which; write "
                f"{one} ; {other}, or bound the time between them, as in t({other}) - t({one}) > 0 SEC"
            )
        # Without a sign, the difference is at least or at most what is written, whichever operand comes first.
        if absolute and amount < 0:
            later, earlier, operator, amount = earlier, later, FLIPPED[operator], -amount
        operators = ("<", ">") if operator == "<>" else (operator,)
        return tuple((TimeBound(later, earlier, *bounds(one, amount), absolute),) for one in operators)
