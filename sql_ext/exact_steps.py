"""SQL text that turns the portions of an exact answer into its rows; `match_seq` and `match_pattern` share it."""

from __future__ import annotations

from collections.abc import Iterable

from patternlake.udfs.limits import MAX_MATCHES


def limit(function: str) -> str:
    """SQL text: the limit of rows of a function that has the parameter ``max_matches``; NULL stands for its default."""
    return f"coalesce({function}.max_matches, {MAX_MATCHES})"


def portions(several: str) -> str:
    """SQL text: columns error, chunks and total of the query ``exact``; the total is that of all portions.

    `several`: SQL text: whether there may be several portions, constant where the function's arguments are; without,
    their window folds away.
    """
    return (
        "part.error AS error, part.chunks AS chunks, "
        f"CASE WHEN {several} THEN sum(part.total) OVER () ELSE part.total END AS total"
    )


def rows(function: str, columns: Iterable[str], *, engine: str, several: str) -> str:
    """The last steps, from the query ``answer`` on: rows without chunks, numbered over all portions, up to the limit.

    Parameters
    ----------
    function
        The SQL function; it has the parameter ``max_matches``.
    columns
        Names of the result's columns, ``match_no`` and ``truncated`` among them.
    engine
        The part of the names of Python functions that is the engine's own.
    several
        As of `portions`.
    """
    names = list(columns)
    # Spark gives no rows for a number below 1 of a window without evaluating them, nor the error that stands there.
    # The rows of one portion are in order; those that begin at the same event are all of one portion.
    order = "key NULLS FIRST, first_position, match_no"
    computed = {
        "match_no": f"CASE WHEN {several} THEN row_number() OVER (ORDER BY {order}) ELSE match_no END AS match_no",
        "truncated": f"CASE WHEN {several} THEN total > {limit(function)} ELSE truncated END AS truncated",
    }
    return f"""listed AS (
  SELECT m.*, total FROM (
    SELECT _patternlake_{engine}_rows(chunk) AS rows, total
    FROM answer, LATERAL explode(CASE WHEN error IS NOT NULL THEN raise_error(error) ELSE chunks END) AS c (chunk)
  ), LATERAL inline(rows) AS m
),
numbered AS (
  SELECT {", ".join(computed.get(name, name) for name in names)}, greatest(1, {limit(function)}) AS most FROM listed
)
SELECT {", ".join(names)} FROM numbered WHERE match_no <= most
"""
