"""Writes `macros/functions.sql`, a macro for each SQL function, from the functions' declarations."""

from __future__ import annotations

import textwrap
from pathlib import Path

from patternlake.sql_ext.declarations.declaration import REQUIRED, ScalarFunction, TableFunction
from patternlake.sql_ext.enabling import FUNCTIONS

FILE = Path(__file__).parent / "macros" / "functions.sql"
_HEAD = """\
{#
  PatternLake's SQL functions, each with its parameters and their names. An argument that is left out, or none, takes
  the function's own default. Texts, numbers, true and false, dictionaries (params) and moments of Python's are written
  as SQL. match_exists answers for each row of a table where key_column names the column of the row's key.
  Written by write_macros.py from the functions' declarations.
#}
"""


def macros() -> str:
    """The text of the file."""
    return _HEAD + "".join(map(_macro, FUNCTIONS))


def _macro(function: TableFunction | ScalarFunction) -> str:
    # A row's key is a column, which a macro cannot tell from a text.
    by_row = isinstance(function, ScalarFunction)
    taken = [one.name if one.default is REQUIRED else f"{one.name}=none" for one in function.parameters]
    columns = ", {'key': key_column}" if by_row else ""
    given = [f"'{one.name}': {one.name}" for one in function.parameters]
    return (
        f"\n{{% macro {function.name}(\n{_lines(taken + ['key_column=none'] * by_row)}\n) -%}}\n"
        f"  {{{{- patternlake.call('{function.name}', {{\n{_lines(given)}\n"
        f"  }}{columns}) -}}}}\n"
        "{%- endmacro %}\n"
    )


def _lines(items: list[str]) -> str:
    # A space inside an item is none to break a line at.
    text = textwrap.fill(", ".join(item.replace(" ", "\0") for item in items), 116, break_long_words=False)
    return textwrap.indent(text.replace("\0", " "), "    ")


if __name__ == "__main__":
    FILE.write_text(macros(), encoding="utf-8")
