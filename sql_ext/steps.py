"""SQL text that the functions share."""

from __future__ import annotations

from collections.abc import Sequence

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.stream_names import candidates_text
from patternlake.sql_ext.registration import Parameter

NODE = "struct(level, k, node, ones, pos_lo, pos_hi, time_lo, time_hi, topmost, keys, bits)"
"""A row of `sketch_nodes` as the kernels read it."""


def numbered(column: str, name: str, number: str) -> str:
    """The condition that a column has an object's number.

    Parameters
    ----------
    column
        A column that holds numbers of objects.
    name
        The object's name; where it is constant, the partitions are chosen by it before anything is read.
    number
        The number, as its publication tells it.
    """
    return f"{column} IN {candidates_text(name)} AND {column} = {number}"


def named_arguments(function: str, parameters: Sequence[Parameter]) -> str:
    """All arguments of a call as one struct; times as microseconds."""
    values = [
        f"unix_micros({function}.{parameter.name}) AS {parameter.name}"
        if parameter.type == "TIMESTAMP"
        else f"{function}.{parameter.name} AS {parameter.name}"
        for parameter in parameters
    ]
    return f"struct({', '.join(values)})"


def publication(db: Database, function: str, *, job: str = "sketch", argument: str = "stream", more: str = "") -> str:
    """A query of one row: `p`, an object's publication at `as_of` with what says why there is none, and `known`.

    Parameters
    ----------
    db
        The database.
    function, argument
        The function, and which of its arguments names the object.
    job
        The job whose object it is.
    more
        SQL text of further columns of the publication.
    """
    return f"""  SELECT struct(
      max_by(
        struct(batch_id, base_batch, object_id, source, configuration, state{more}), struct(batch_id, published_at)
      ) FILTER (WHERE asked) AS at,
      max_by(struct(base_batch, state), struct(batch_id, published_at)) FILTER (WHERE same) AS newest,
      unix_micros(min(published_at) FILTER (WHERE same)) AS first,
      unix_micros(max(horizon) FILTER (WHERE same)) AS horizon
    ) AS p,
    array_sort(collect_set(object)) AS known
  FROM (
    SELECT *, object = {function}.{argument} AS same,
      object = {function}.{argument} AND published_at <= coalesce({function}.as_of, published_at) AS asked
    FROM {db.log("publications")} WHERE job = '{job}'
  )"""


def visible(question: str) -> str:
    """Which rows of a table with from_batch and to_batch a question's publication shows."""
    return (
        f"from_batch BETWEEN {question}.base AND {question}.batch AND (to_batch IS NULL OR to_batch > {question}.batch)"
    )


def floored(number: str, by: str) -> str:
    """A whole number divided and rounded down, below zero as well."""
    return f"(({number}) - pmod({number}, {by})) DIV {by}"
