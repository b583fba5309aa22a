"""The conditions of a pattern that its plan depends on, as they are known from one pattern to the next.

A condition is known by what it says of events, whatever a query calls its operands: of ``A a ; B b WHERE a.x < b.x``
that is ``A.x < B.x``. Conditions over neighbours of a repeated operand, and over negated ones, are not among them: they
choose among events that stay in one row, so no estimate of a plan depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from patternlake.udfs.kleene.plans.observations import JudgedCondition, Seen
from patternlake.udfs.kleene.query import KleenePattern, Operand
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.language.predicate.expressions import Expression, Field, Literal, Parameter, to_sql
from patternlake.udfs.language.predicate.predicates import Predicate, Reference, names_admitted
from patternlake.udfs.language.predicate.scopes import map_nodes


def judged_conditions(pattern: KleenePattern) -> dict[str, JudgedCondition]:
    """The conditions of a pattern whose shares its plan depends on, by the text that `Work` and `Statistics` have."""
    found: dict[str, JudgedCondition] = {}
    for operand in pattern.operands:
        calls = {operand.name: operand.takes}
        if operand.define is not None and names_admitted(operand.define) is None:
            found[operand.define.sql()] = JudgedCondition(_text(operand.define, {}), "")
        if operand.filter is not None:
            found[operand.filter.sql()] = JudgedCondition(_text(operand.filter, calls), _show_definition(operand))
    for condition in pattern.conditions:
        if condition.negated is None and condition.before is None:
            operands = [pattern.operands[number] for number in condition.operands]
            calls = _calls(operands)
            given = [
                text
                for operand in operands
                for text in (_show_definition(operand), _show_filter(operand, calls))
                if text
            ]
            found[condition.predicate.sql()] = JudgedCondition(_text(condition.predicate, calls), "; ".join(given))
    for name in pattern.along:
        found[f"[{name}]"] = JudgedCondition(f"[{name}]", _taken_events(pattern))
    return found


def shares_of(pattern: KleenePattern, seen: Seen) -> dict[str, float]:
    """What earlier runs saw of the conditions of a pattern, for `Statistics.selectivities`; to two digits.

    No plan needs more, and a request that is asked again has the same text, though each run shifts shares a little.
    """
    found = {text: seen(condition) for text, condition in judged_conditions(pattern).items()}
    shares = {text: None if one is None else one.share for text, one in found.items()}
    return {text: float(f"{share:.2g}") for text, share in shares.items() if share is not None}


def seen_texts(pattern: KleenePattern, seen: Seen) -> list[str]:
    """What earlier runs saw, in words, of the conditions whose shares are taken from it."""
    found = ((text, seen(condition)) for text, condition in judged_conditions(pattern).items())
    return [
        f"seen: {text} holds in {one.share:.3g} of {one.judged:,.0f}"
        for text, one in found
        if one is not None and one.share is not None
    ]


def observed_in(pattern: KleenePattern, work: Work) -> dict[JudgedCondition, tuple[int, int]]:
    """How often each condition of a pattern was judged in a run, and how often it held."""
    shares = work.shares
    return {
        condition: shares[text] for text, condition in judged_conditions(pattern).items() if shares.get(text, (0, 0))[0]
    }


def _calls(operands: Iterable[Operand]) -> dict[str, str]:
    """What each of some operands takes, told apart by a number where two take the same."""
    found: dict[str, str] = {}
    for operand in operands:
        name, number = operand.takes, 2
        while name in found.values():
            name, number = f"{operand.takes} {number}", number + 1
        found[operand.name] = name
    return found


def _taken_events(pattern: KleenePattern) -> str:
    """The events that a pattern can take: what ``[attr]`` is judged on."""
    found = set()
    for operand in pattern.operands:
        asked = [
            text for text in (_show_definition(operand), _show_filter(operand, {operand.name: operand.takes})) if text
        ]
        found.add(" AND ".join([operand.takes, *asked]))
    return "; ".join(sorted(found))


def _show_definition(operand: Operand) -> str:
    return "" if operand.define is None else f"{operand.takes} AS {_text(operand.define, {})}"


def _show_filter(operand: Operand, calls: Mapping[str, str]) -> str:
    return "" if operand.filter is None else _text(operand.filter, calls)


def _text(predicate: Predicate, calls: Mapping[str, str]) -> str:
    """A predicate with its operands called otherwise, and with the values of its parameters."""
    return to_sql(map_nodes(map_nodes(predicate.root, partial(_rename, calls=calls)), _value, Parameter))


def _rename(part: Field, calls: Mapping[str, str]) -> Expression:
    reference = part.reference
    if reference.operand is None or reference.operand not in calls:
        return part
    return Field(reference=Reference(calls[reference.operand], reference.index, reference.column))


def _value(part: Parameter) -> Expression:
    return Literal(type="string", value=part.text)
