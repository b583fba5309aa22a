"""A trend query as a publication's configuration holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
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
    stream = configuration["stream"]
    types = {name: entry["type"] for name, entry in stream["attributes"].items()}
    scope = Scope(attributes=types, parameters=dict(configuration["params"]), key=stream["key"])
    return Layout(compile_query(parse(configuration["query"]), scope), types)
