"""A trend query as a publication's configuration holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.over_streams import parse_over
from patternlake.udfs.trends.query import compile_query
from patternlake.udfs.trends.vertex_rows import Layout


def layout_of(configuration: Mapping[str, Any]) -> Layout:
    """Compile the query of a configuration.

    Parameters
    ----------
    configuration
        ``query``, ``params``, and ``stream``: the stream's own configuration, with ``attributes`` and ``key``.

    Raises
    ------
    PatternLakeError
        What is wrong with the query, with its place.
    """
    scope = Scope.of_stream(configuration["stream"], configuration["params"])
    query = compile_query(parse_over(configuration["query"], configuration["stream"]), scope)
    return Layout(query, types_of_attributes(configuration["stream"]))
