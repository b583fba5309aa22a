"""How matches are chosen where there are several ways: the policy, what repetitions collect, where the next begins."""

from __future__ import annotations

from collections.abc import Collection

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.nearest_names import did_you_mean

POLICIES = ("strict", "skip_till_next", "skip_till_any")
AFTER_MATCH = ("past_last", "next")
REPETITION = ("maximal", "all")


def check_arguments(policy: str, after_match: str, max_matches: int, operands: Collection[str] | None = None) -> None:
    """Fail on a policy, an after_match or a limit that does not exist.

    Parameters
    ----------
    policy, after_match, max_matches
        What is asked for.
    operands
        The operands that take events, of which `after_match` may name one, as in ``first b``; None: it may name none.

    Raises
    ------
    ArgumentError
        Naming the value and the allowed ones.
    """
    if policy not in POLICIES:
        raise ArgumentError(
            f"policy must be one of {', '.join(POLICIES)}, not {policy!r}{did_you_mean(policy, POLICIES)}"
        )
    named = None if operands is None else operand_after(after_match)
    if named is not None and operands is not None and named[1] not in operands:
        raise ArgumentError(
            f"after_match => {after_match!r}: {named[1]} is not an operand that takes events; operands are "
            f"{', '.join(operands)}"
        )
    if named is None and after_match not in AFTER_MATCH:
        allowed = AFTER_MATCH if operands is None else (*AFTER_MATCH, "'first b'", "'last b' (b an operand)")
        raise ArgumentError(f"after_match must be one of {', '.join(allowed)}, not {after_match!r}")
    if max_matches < 1:
        raise ArgumentError(f"max_matches must be 1 or more, not {max_matches}")


def check_repetition(repetition: str) -> None:
    """Fail on a way to repeat that does not exist.

    Raises
    ------
    ArgumentError
        Naming the value and the allowed ones.
    """
    if repetition not in REPETITION:
        raise ArgumentError(f"repetition must be one of {', '.join(REPETITION)}, not {repetition!r}")


def operand_after(after_match: str) -> tuple[str, str] | None:
    """Of ``first b`` and ``last b`` the word and the operand at whose event the search goes on; else None."""
    word, _, operand = after_match.partition(" ")
    return (word, operand.strip()) if word in ("first", "last") and operand.strip() else None


def resumes(policy: str, after_match: str) -> bool:
    """Whether the next match of exact matching begins at an event that the one before it decides."""
    return policy != "skip_till_any" and after_match != "next"
