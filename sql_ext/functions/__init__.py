"""The SQL functions, one module each, which declares the function of its own name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patternlake.sql_ext.declarations.declaration import RowsFunction, ScalarFunction, TableFunction

NAMES = (
    "match_seq",
    "match_exists",
    "sketch_error",
    "match_pattern",
    "explain_pattern",
    "match_groups",
    "group_members",
    "match_funnel",
    "match_funnel_rows",
    "match_paths",
    "cet_count",
    "cet_trends",
    "cet_aggregate",
    "match_subscription",
    "predict_match",
)
"""All functions over what is kept, in the order in which they are shown. Nothing is loaded to know them."""
OVER_ROWS = ("match_recognize",)
"""All functions over rows of any table."""


def load_declarations() -> tuple[TableFunction | ScalarFunction, ...]:
    """Import all functions over what is kept; give their declarations, in order."""
    from patternlake.sql_ext.calls.declaring import declaration_of

    return tuple(declaration_of(getattr(import_module(f"{__name__}.{name}"), name)) for name in NAMES)


def load_rows_functions() -> tuple[RowsFunction, ...]:
    """Import all functions over rows of any table; give their declarations."""
    return tuple(import_module(f"{__name__}.{name}").DECLARATION for name in OVER_ROWS)
