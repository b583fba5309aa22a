"""The dbt package has a macro for every function, with the function's parameters."""

from __future__ import annotations

import runpy
from pathlib import Path

import yaml

PACKAGE = Path(__file__).resolve().parents[2] / "integrations" / "dbt"
TEXT = (PACKAGE / "macros" / "functions.sql").read_text(encoding="utf-8")


def test_the_macros_are_those_of_the_functions_as_they_are_declared() -> None:
    written = runpy.run_path(str(PACKAGE / "write_macros.py"))["macros"]()
    assert written == TEXT, "run integrations/dbt/write_macros.py"


def test_a_macro_takes_its_functions_parameters_and_hands_them_on() -> None:
    assert (
        "{% macro match_subscription(\n"
        "    subscription, key=none, from_time=none, to_time=none, as_of=none\n"
        ") -%}\n"
        "  {{- patternlake.call('match_subscription', {\n"
        "    'subscription': subscription, 'key': key, 'from_time': from_time, 'to_time': to_time, 'as_of': as_of\n"
        "  }) -}}\n"
        "{%- endmacro %}\n"
    ) in TEXT


def test_match_exists_takes_a_column_of_keys_too() -> None:
    macro = TEXT.split("{% macro match_exists(")[1].split("endmacro")[0]
    assert ", key_column=none\n) -%}" in macro
    assert "'verify': verify\n  }, {'key': key_column}) -}}" in macro


def test_the_package_is_named_as_its_macros_call_each_other() -> None:
    project = yaml.safe_load((PACKAGE / "dbt_project.yml").read_text(encoding="utf-8"))
    assert project["name"] == "patternlake"
