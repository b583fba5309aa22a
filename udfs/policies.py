"""How matches are chosen where there are several ways: the policy, what repetitions collect, where the next begins."""

from __future__ import annotations

from patternlake.udfs.errors import ArgumentError

POLICIES = ("strict", "skip_till_next", "skip_till_any")
AFTER_MATCH = ("past_last", "next")
REPETITION = ("maximal", "all")


def check_arguments(policy: str, after_match: str, max_matches: int) -> None:
    """Fail on a policy, an after_match or a limit that does not exist.

    Raises
    ------
    ArgumentError
        Naming the value and the allowed ones.
    """
    if policy not in POLICIES:
        raise ArgumentError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
    if after_match not in AFTER_MATCH:
        raise ArgumentError(f"after_match must be one of {', '.join(AFTER_MATCH)}, not {after_match!r}")
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


def resumes(policy: str, after_match: str) -> bool:
    """Whether a match of exact matching begins behind the last event of the one before it."""
    return policy != "skip_till_any" and after_match == "past_last"
