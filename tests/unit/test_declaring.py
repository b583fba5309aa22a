"""A Python function's signature and docstring declare a function of SQL."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.calls import declaring
from patternlake.sql_ext.calls.declaring import Int32, declaration_of, scalar_function, table_function
from patternlake.sql_ext.declarations.declaration import Answer, ScalarFunction, TableFunction
from patternlake.sql_ext.functions import NAMES
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.warming import WARMED


def plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    return Answer(pa.table({"told": [str(arguments)]}))


@table_function(plan=plan, columns={"told": "STRING", "at": "TIMESTAMP"})
def every_type(  # type: ignore[empty-body]
    spark: SparkSession,
    text: str,
    whole: int,
    small: Int32 = 3,
    part: float | None = None,
    told: bool = False,
    moment: datetime | str | None = None,
    params: Mapping[str, object] | None = None,
    ahead: int | str | None = "2 HOURS",
) -> DataFrame:
    """Say what `match_seq` takes.

    And more.
    """


@scalar_function(value=lambda lake, arguments: True, per_row=lambda lake, constants: lambda rows: rows)
def holds(spark: SparkSession, text: str) -> bool | None:  # type: ignore[empty-body]
    """Say whether it holds."""


def test_annotations_are_types_of_sql_and_defaults_are_the_signatures() -> None:
    declared = declaration_of(every_type)
    assert declared.usage == (
        "every_type(text STRING, whole BIGINT, small INT DEFAULT 3, part DOUBLE DEFAULT NULL, "
        "told BOOLEAN DEFAULT false, moment TIMESTAMP DEFAULT NULL, params MAP<STRING, STRING> DEFAULT NULL, "
        "ahead STRING DEFAULT '2 HOURS')"
    )
    assert isinstance(declared, TableFunction)
    assert declared.schema == "told STRING, at TIMESTAMP_LTZ"
    assert declared.plan is plan


def test_the_comment_is_the_docstrings_first_line_as_text() -> None:
    assert declaration_of(every_type).comment == "Say what match_seq takes"


def test_a_functions_one_value_has_the_type_of_the_signature() -> None:
    declared = declaration_of(holds)
    assert isinstance(declared, ScalarFunction)
    assert (declared.usage, declared.type) == ("holds(text STRING)", "BOOLEAN")


def test_help_shows_the_function_as_it_is_written() -> None:
    assert list(inspect.signature(every_type).parameters)[:3] == ["spark", "text", "whole"]
    assert (every_type.__name__, every_type.__module__) == ("every_type", __name__)
    assert (every_type.__doc__ or "").startswith("Say what `match_seq` takes.")


def test_a_call_hands_on_all_arguments_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "call", lambda function, spark, given: (function.name, spark, given))
    session: Any = object()
    answer: Any = every_type(session, "a", whole=1, ahead=4)
    rest = {"small": 3, "part": None, "told": False, "moment": None, "params": None}
    assert answer == ("every_type", session, {"text": "a", "whole": 1, **rest, "ahead": "4"})
    number: Any = np.int64(5)
    answer = every_type(session, "a", 1, ahead=number)
    assert answer[2]["ahead"] == "5"
    answer = every_type(session, "a", 1, ahead=True)
    assert answer[2]["ahead"] is True, "which is neither a number nor a text, and is refused later on"


def test_python_says_what_does_not_fit_the_signature() -> None:
    wrong: Any = every_type
    with pytest.raises(TypeError, match=r"every_type\(\) missing 1 required positional argument: 'whole'"):
        wrong(None, "a")
    with pytest.raises(TypeError, match=r"every_type\(\) got an unexpected keyword argument 'txt'"):
        wrong(None, "a", 1, txt="b")


def test_an_annotation_that_is_no_type_of_sql_is_refused() -> None:
    def wrong(spark: SparkSession, names: list[str]) -> DataFrame:  # type: ignore[empty-body]
        """Take a list."""

    with pytest.raises(TypeError, match=r"wrong: the annotation of names, 'list\[str\]', stands for no type of SQL"):
        table_function(plan=plan, columns={})(wrong)


def test_every_function_with_kernels_of_its_own_is_warmed() -> None:
    words = {word for names in WARMED for word in re.findall(r"\w+", names)}
    without = set(NAMES) - words
    assert without == {"sketch_error", "explain_pattern", "match_subscription"}, "they call no kernel of their own"
    jobs = {"sketch", "groups", "predict", "evaluate", "patterns"}
    clauses = {"match_recognize"}
    assert words - {"and"} - jobs - clauses <= set(NAMES), "no name of a function that is gone"
