"""The dbt package has a macro for every function, with the function's parameters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from patternlake.sql_ext.answering.declaration import REQUIRED, ScalarFunction, TableFunction
from patternlake.sql_ext.enabling import FUNCTIONS

PACKAGE = Path(__file__).resolve().parents[2] / "integrations" / "dbt"
TEXT = (PACKAGE / "macros" / "functions.sql").read_text(encoding="utf-8")
MACROS = {
    found["name"]: found
    for found in re.finditer(
        r"\{% macro (?P<name>\w+)\((?P<signature>.*?)\) -%\}\s*"
        r"\{\{- patternlake\.call\('(?P<called>\w+)', \{(?P<given>.*?)\}(?P<columns>.*?)\) -\}\}\s*\{%- endmacro %\}",
        TEXT,
        re.S,
    )
}
# A row's key is a column, which a macro cannot tell from a text.
COLUMNS = {"match_exists": ["key_column=none"]}


def test_every_function_has_a_macro() -> None:
    assert sorted(MACROS) == sorted(function.name for function in FUNCTIONS)
    assert TEXT.count("{% macro") == len(MACROS)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(function.name))
def test_a_macro_takes_its_functions_parameters_and_hands_them_on(function: TableFunction | ScalarFunction) -> None:
    macro = MACROS[function.name]
    written = [
        parameter.name if parameter.default is REQUIRED else f"{parameter.name}=none"
        for parameter in function.parameters
    ]
    assert macro["called"] == function.name
    assert re.split(r",\s+", macro["signature"].strip()) == written + COLUMNS.get(function.name, [])
    given = [(parameter.name, parameter.name) for parameter in function.parameters]
    assert re.findall(r"'(\w+)': (\w+)", macro["given"]) == given


def test_the_package_is_named_as_its_macros_call_each_other() -> None:
    project = yaml.safe_load((PACKAGE / "dbt_project.yml").read_text(encoding="utf-8"))
    assert project["name"] == "patternlake"
