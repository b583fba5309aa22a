"""The pages in docs/ say what is so: examples give what they print, lists are complete, links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import os
import re
import struct
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import BaseModel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from sql.empty_database import lay
from sql.recipe_lake import ingested_recipes, recipe_lake

import patternlake
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.alerts import AlertConfiguration
from patternlake.jobs.configuration.file import AgeRule, Attribute, Configuration, SketchConfiguration, Source
from patternlake.jobs.configuration.groups import GroupConfiguration
from patternlake.jobs.configuration.patterns import PatternConfiguration
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.configuration.subscriptions import EvaluationConfiguration, SubscriptionConfiguration
from patternlake.jobs.configuration.trends import TrendConfiguration
from patternlake.jobs.sources.columns import REASONS
from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext.declarations.declaration import REQUIRED, ScalarFunction, TableFunction, sql_text
from patternlake.sql_ext.enabling import FUNCTIONS
from patternlake.sql_ext.functions import NAMES
from patternlake.udfs import errors
from patternlake.udfs.errors import ConfigurationError, PatternLakeError
from patternlake.udfs.language.query.engines import ENGINES
from patternlake.udfs.language.query.operators import Operator
from patternlake.udfs.language.query.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
DATABASE = "docs"
RECIPES = ("recipes.md", "coming_from.md")
"""Pages whose examples ask the lake of the recipes."""
OWN_TABLES = ("match_recognize.md",)
"""Pages that make the tables of their examples, by CREATE."""
IN_ANOTHER_LAKE = ("late_data.md",)
"""Pages whose rows `test_backfill` compares, in a lake that it makes as the page says."""
GENERATING = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's own settings, which tests set otherwise, in spark-tests.conf."""

Answer = tuple[list[str], list[list[str]]] | PySparkException
"""Columns and rows, or what a query failed with."""

LETTERS = "ABCBAACBADCBABCB"
SENSOR = [
    (step, name, p)
    for name, chances in {"a": [1, 0.3, 0.1, 0.1], "b": [0, 0.7, 0.8, 0.7, 0.9], "c": [0, 0, 0.1, 0.2, 0.1, 1]}.items()
    for step, p in enumerate(chances, start=1)
    if p
]
SUBSCRIPTIONS: dict[str, dict[str, object]] = {
    "chain": {"query": "A ; B ; C WITHIN 6 MIN", "lookahead": 3},
    "tight": {"query": "A ; B , C WITHIN 6 MIN", "emit": True},
    "again": {"stream": "tight", "query": "tight AS first ; tight AS second"},
    "either": {"query": "A ; (D | C) ; B WITHIN 6 MIN"},
    "both": {"query": "(A & C) ; B WITHIN 6 MIN"},
    "soon_or_late": {"query": "A ; B @(t(B) - t(A) < 2 MIN OR t(B) - t(A) > 5 MIN)"},
    "slow": {"query": "A ; B @(t(B) - t(A) < 3 MIN) ; C @(t(C) - t(B) > 2 MIN) WITHIN 6 MIN"},
}
ALERTS = {
    "chained": {"of": "subscription", "name": "chain", "where": "last_time >= TIMESTAMP '2024-01-01 00:05:00'"},
    "soon": {"of": "forecast", "name": "chain", "where": "probability >= 0.2"},
    "ran": {"of": "pattern", "name": "runs", "where": "size(bindings['A']) > 1"},
    "risky": {"of": "group", "name": "abc", "where": "probability > 0.9"},
    "seldom": {"of": "subscription", "name": "either", "quiet": "5 minutes"},
}

DRAW = "PATTERNLAKE_DRAW_PICTURES"
"""Where it is set, pictures that follow an example are drawn anew."""

_WIDTH = 88
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_PICTURE = re.compile(r"\s*!\[[^\]]*\]\((pictures/\w+\.png)\)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATTERN = re.compile(r"(?:match_(?:seq|exists|pattern|groups)|explain_pattern)\('[^']*', '((?:[^']|'')*)'")


@dataclass(frozen=True)
class Example:
    """A fenced block, and the fenced block that follows it with nothing between."""

    page: str
    line: int
    text: str
    kind: str
    said: str
    """Language of the following block: text, error, or none."""
    answer: str
    picture: str = ""
    """File of the picture that follows both, in docs/; it shows what the example draws."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples(kind: str, said: str) -> list[Example]:
    """The blocks of a language that a block of another one follows; `said` is empty for those that none does."""
    found = []
    for page, text in PAGES.items():
        blocks = list(_FENCE.finditer(text))
        for block, after in zip_longest(blocks, blocks[1:]):
            following = after if after and not text[block.end() : after.start()].strip() else None
            language = following[1] if following and following[1] in ("text", "error") else ""
            if (block[1], language) == (kind, said):
                line = text.count("\n", 0, block.start()) + 1
                answer = following[2] if following and language else ""
                picture = _PICTURE.match(text, following.end()) if following and language else None
                file = picture[1] if picture else ""
                found.append(Example(page, line, block[2], kind, language, answer, file))
    return found


def described(text: str) -> list[list[str]]:
    """The cells of a text's Markdown tables, without headings."""
    rows = []
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            rows.append([cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif line.startswith("|---"):
            rows.pop()
    return rows


def named(cell: str) -> list[str]:
    """The names in a cell that stand in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def section(page: str, heading: str) -> str:
    """The text under a heading, to the next one of any rank."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", _without_blocks(PAGES[page]), re.M | re.S)
    assert found, f"{page} has no heading {heading!r}"
    return found[1]


def _without_blocks(text: str) -> str:
    return _FENCE.sub("", text)


@pytest.fixture(scope="module")
def letters(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session over a lake of one stream, `letters`; the database is the current one."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "data").mkdir()
    rows = [f"2024-01-01 00:{minute:02}:00,{name},{minute + 1}" for minute, name in enumerate(LETTERS)]
    (folder / "data" / "letters.csv").write_text("\n".join(["time,name,x", *rows]) + "\n")
    (folder / "sensor").mkdir()
    readings = [f"2024-01-01 00:{step:02}:00,{step},{name},{p}" for step, name, p in SENSOR]
    (folder / "sensor" / "sensor.csv").write_text("\n".join(["time,t,name,p", *readings]) + "\n")
    tree = {
        "database": DATABASE,
        "location": lay(spark, folder / "lake"),
        "streams": {
            "letters": {
                "source": {"format": "csv", "path": str(folder / "data"), "options": {"header": True}},
                "time": "time",
                "name": "name",
                "attributes": {"x": "double"},
            },
            "sensor": {
                "source": {"format": "csv", "path": str(folder / "sensor"), "options": {"header": True}},
                "time": "time",
                "name": "name",
                "step": "CAST(t AS INT)",
                "probability": "CAST(p AS DOUBLE)",
            },
        },
        "trends": {
            "ab": {"stream": "letters", "query": "PATTERN A ; B WITHIN 4 MIN SLIDE 2 MIN"},
            "aa": {"stream": "letters", "query": "PATTERN A+ AS a ; A AS b WITHIN 6 MIN"},
        },
        "groups": {"abc": {"stream": "sensor", "pattern": "a, b+, c", "within": 6}},
        "patterns": {"runs": {"stream": "letters", "query": "C ; A+ ; B WITHIN 6 MIN"}},
        "subscriptions": {name: {"stream": "letters", **each} for name, each in SUBSCRIPTIONS.items()},
        "alerts": ALERTS,
        "sketches": {"letters": {"events_per_leaf": 1, "levels": 3, "fpq": 0.0001, "expected_events": 100}},
    }
    configuration = folder / "letters.yaml"
    configuration.write_text(yaml.safe_dump(tree))
    for job in ("ingest", "sketch", "trends", "groups", "patterns", "predict", "alerts"):
        patternlake.run(spark, str(configuration), job=job)
    for job in ("ingest", "predict"):
        patternlake.run(spark, str(configuration), job=job, object="tight")
    before = spark.catalog.currentDatabase()
    patternlake.enable(spark, database=DATABASE, location=str(folder / "lake"))
    spark.catalog.setCurrentDatabase(DATABASE)
    for example in examples("sql", ""):
        if example.page in OWN_TABLES and example.text.startswith("CREATE "):
            spark.sql(example.text)
    yield spark
    spark.catalog.setCurrentDatabase(before)


@pytest.fixture(scope="module")
def recipes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Another session, over the lake of the recipes."""
    return recipe_lake(spark.newSession(), tmp_path_factory.mktemp("recipes"), PAGES["recipes.md"])


SHOWN = [example for example in examples("sql", "text") if example.page not in IN_ANOTHER_LAKE]


@pytest.fixture(scope="module")
def answers(letters: SparkSession, recipes: SparkSession) -> dict[str, Answer]:
    """What each example gives, asked a few at a time, by code that Spark generates, as it does for users."""
    interpreted = {name: letters.conf.get(name) for name in GENERATING}
    for name, value in GENERATING.items():
        letters.conf.set(name, value)
        recipes.conf.set(name, value)

    def ask(example: Example) -> Answer:
        try:
            frame = (recipes if example.page in RECIPES else letters).sql(_in_lake_of_docs(example.text))
            return frame.columns, [[_shown(value) for value in row] for row in frame.collect()]
        except PySparkException as error:
            return error

    asked = [*SHOWN, *examples("sql", "error")]
    with ThreadPoolExecutor(3) as pool:
        found = dict(zip(map(str, asked), pool.map(ask, asked), strict=True))
    for name, former in interpreted.items():
        letters.conf.set(name, former)
    return found


def _in_lake_of_docs(text: str) -> str:
    """An example, of a lake that has the name that lakes have by default."""
    return text.replace("patternlake_internal.", f"{DATABASE}_internal.")


@pytest.mark.parametrize("example", SHOWN, ids=str)
def test_an_example_gives_the_rows_that_the_page_shows(answers: dict[str, Answer], example: Example) -> None:
    heading, *expected = [re.split(r" {2,}", line.strip()) for line in example.answer.splitlines()]
    assert answers[str(example)] == (heading, expected)


@pytest.mark.slow
def test_the_jobs_make_the_events_of_the_recipes(spark: SparkSession, recipes: SparkSession, tmp_path: Path) -> None:
    ingested = ingested_recipes(spark.newSession(), tmp_path, PAGES["recipes.md"])
    # Events of one time lie as in their file; those that are published for the examples, by their names.
    text = "SELECT stream, time, name, key, step, probability, attributes FROM {}.events"
    found, wanted = (
        session.sql(text.format(name)).collect() for session, name in ((ingested, "ingested"), (recipes, "recipes"))
    )
    assert sorted(map(str, found)) == sorted(map(str, wanted))


@pytest.mark.parametrize("example", examples("python", "text"), ids=str)
def test_an_example_in_python_gives_what_the_page_shows(
    letters: SparkSession, example: Example, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    *before, last = ast.parse(example.text).body
    assert isinstance(last, ast.Expr), "the last line of an example is what it shows"
    names: dict[str, Any] = {"spark": letters, "patternlake": patternlake}
    exec(compile(ast.Module(before, []), str(example), "exec"), names)
    found = eval(compile(ast.Expression(last.value), str(example), "eval"), names)
    if isinstance(found, DataFrame):
        heading, *expected = [re.split(r" {2,}", line.strip()) for line in example.answer.splitlines()]
        assert found.columns == heading
        assert [[_shown(value) for value in row] for row in found.collect()] == expected
    else:
        assert str(found) == example.answer.strip()
    if example.picture:
        drawn = tmp_path / "drawn.png"
        names["ax"].figure.savefig(drawn, dpi=110)
        if DRAW in os.environ:
            (ROOT / "docs" / example.picture).write_bytes(drawn.read_bytes())
        # Fonts differ from machine to machine.
        assert _size(ROOT / "docs" / example.picture) == pytest.approx(_size(drawn), rel=0.05)


def _size(png: Path) -> tuple[int, int]:
    """Width and height of a picture, which stand behind the first 16 bytes."""
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    return width, height


@pytest.mark.parametrize("name", [function.name for function in FUNCTIONS])
def test_the_page_of_a_function_shows_how_python_calls_it(name: str) -> None:
    shown = [example.text for example in examples("python", "text") if example.page == f"{name}.md"]
    assert any(re.search(rf"patternlake\.{name}\(\s*spark, ", text) for text in shown)


def _wrapped(text: str) -> str:
    """A message as pages show it: no line is wider than a code block on a small screen."""
    lines = [
        textwrap.wrap(line, _WIDTH, break_on_hyphens=False) if len(line) > _WIDTH else [line]
        for line in text.splitlines()
    ]
    return "\n".join(line for some in lines for line in some)


@pytest.mark.parametrize("kind", ["sql", "python", "yaml", "error", ""])
def test_no_line_of_a_block_is_too_wide(kind: str) -> None:
    blocks = [block[2] for text in PAGES.values() for block in _FENCE.finditer(text) if block[1] == kind]
    assert [line for block in blocks for line in block.splitlines() if len(line) > _WIDTH] == []


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "NULL" if value is None else str(value)


@pytest.mark.parametrize("example", examples("sql", "error"), ids=str)
def test_an_example_fails_with_the_message_that_the_page_shows(answers: dict[str, Answer], example: Example) -> None:
    error = answers[str(example)]
    assert isinstance(error, PySparkException), error
    assert _wrapped(message(error)) == example.answer.rstrip("\n")


@pytest.mark.parametrize("example", examples("sql", ""), ids=str)
def test_an_example_without_rows_is_sql(letters: SparkSession, example: Example) -> None:
    if "…" not in example.text:
        letters._jsparkSession.sessionState().sqlParser().parsePlan(example.text)


def test_every_pattern_of_the_examples_is_of_the_language() -> None:
    patterns = [
        pattern.replace("''", "'")
        for kind in ("text", "")
        for example in examples("sql", kind)
        for pattern in _PATTERN.findall(example.text)
    ]
    assert len(patterns) > 10
    for pattern in patterns:
        parse(pattern)


@pytest.mark.parametrize("example", examples("yaml", ""), ids=str)
def test_an_example_of_a_configuration_is_right(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"\$\{(\w+)\}", example.text):
        monkeypatch.setenv(name, "secret")
    Configuration.from_text(example.text)


@pytest.mark.parametrize("example", examples("yaml", "error"), ids=str)
def test_a_wrong_configuration_is_refused_as_the_page_shows(example: Example) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(example.text)
    assert _wrapped(str(caught.value)) == example.answer.rstrip("\n")


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("The file", Configuration),
        ("A stream", StreamConfiguration),
        ("Its source", Source),
        ("Its attributes", Attribute),
        ("A trend query", TrendConfiguration),
        ("A query for groups", GroupConfiguration),
        ("A kept pattern", PatternConfiguration),
        ("A subscription", SubscriptionConfiguration),
        ("The evaluation", EvaluationConfiguration),
        ("An alert", AlertConfiguration),
    ],
)
def test_the_page_of_the_configuration_describes_every_key(heading: str, model: type[BaseModel]) -> None:
    assert _keys(section("configuration.md", heading)) == _fields(model)


def test_the_page_of_the_configuration_describes_every_key_of_a_sketch() -> None:
    assert _keys(section("configuration.md", "A sketch")) == _fields(SketchConfiguration) + _fields(AgeRule)


def _keys(text: str) -> list[str]:
    return [name for row in described(text) for name in named(row[0])]


def _fields(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def test_the_page_of_the_configuration_tells_the_defaults() -> None:
    text = PAGES["configuration.md"]
    for model in (SketchConfiguration, StreamConfiguration):
        told = {named(row[0])[0]: row[2] for row in described(text) if row[0] in {f"`{key}`" for key in _fields(model)}}
        for name, field in model.model_fields.items():
            if isinstance(field.default, bool | float | str) or (type(field.default) is int and name != "memory"):
                assert named(told[name])[0] == str(field.default).lower().replace("utc", "UTC"), name
            elif field.is_required():
                assert told[name] == "required", name


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_page_of_a_function_begins_with_its_parameters_and_defaults(
    function: TableFunction | ScalarFunction,
) -> None:
    taken = [
        one.name if one.default is REQUIRED else f"{one.name}={sql_text(one.default)}" for one in function.parameters
    ]
    first = _FENCE.search(PAGES[f"{function.name}.md"])
    assert first is not None
    assert " ".join(first[2].split()) == f"{function.name}({', '.join(taken)})"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_describe_function_extended_has_arguments_and_an_example_that_runs(
    letters: SparkSession, function: TableFunction | ScalarFunction
) -> None:
    rows = letters.sql(f"DESCRIBE FUNCTION EXTENDED {function.name}").collect()
    described = "\n".join(row[0] for row in rows)
    for parameter in function.parameters:
        assert re.search(rf"^      \* [^-]*\b{parameter.name}\b[^-]* - \S", described, re.M), parameter.name
    (example,) = re.findall(r"^      > (.*);$", described, re.M)
    assert letters.sql(example).collect()


def test_describe_function_extended_has_an_example_of_row_patterns_that_runs(letters: SparkSession) -> None:
    rows = letters.sql("DESCRIBE FUNCTION EXTENDED match_recognize").collect()
    (example,) = re.findall(r"^      > (.*?);$", "\n".join(row[0] for row in rows), re.M | re.S)
    days = letters.sql("SELECT 'ACME' AS symbol, col1 AS day, col2 AS price FROM VALUES (1, 5), (2, 4), (3, 6), (4, 6)")
    days.createOrReplaceTempView("ticks")
    try:
        assert [row.asDict() for row in letters.sql(example).collect()] == [{"symbol": "ACME", "days": 3}]
    finally:
        letters.catalog.dropTempView("ticks")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_page_of_a_function_describes_each_of_its_columns_once(function: TableFunction | ScalarFunction) -> None:
    columns = function.columns if isinstance(function, TableFunction) else ()
    assert sorted(_first_names(f"{function.name}.md", "column")) == sorted(columns)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_page_of_a_function_describes_no_argument_that_it_does_not_take(
    function: TableFunction | ScalarFunction,
) -> None:
    described_there = _first_names(f"{function.name}.md", "argument")
    assert len(set(described_there)) == len(described_there)
    assert set(described_there) <= {one.name for one in function.parameters}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_python_help_names_the_parameters_and_the_columns_with_their_types(
    function: TableFunction | ScalarFunction,
) -> None:
    text = inspect.getdoc(getattr(patternlake, function.name)) or ""
    _, parameters, returns, _ = re.split(r"\n\n(?:Parameters|Returns|Raises)\n-+\n", text)
    names = [name for line in re.findall(r"^\w.*", parameters, re.M) for name in line.split(", ")]
    assert names == ["spark", *(one.name for one in function.parameters)]
    if isinstance(function, TableFunction):
        columns = ", ".join(f"{name} {kind.replace(':', '')}" for name, kind in function.columns.items())
        assert f"``{columns}``" in " ".join(returns.split())


def test_every_list_of_functions_has_all_of_them() -> None:
    functions = {f"`{name}`" for name in NAMES}
    assert functions <= set(re.findall(r"`\w+`", section("functions.md", "Compiled kernels")))
    assert set(_first_names("functions.md", "question")) == set(NAMES)
    linked = {f"{name}.md" for name in NAMES}
    assert linked <= set(_LINK.findall(PAGES["which_function.md"]))
    assert linked <= set(re.findall(r"\w+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))


def _first_names(page: str, heading: str) -> list[str]:
    """The names in the first column of the page's table whose first column has this heading."""
    found = re.search(rf"^\| {heading} \|.*\n(?:\|.*\n)+", _without_blocks(PAGES[page]), re.M)
    return _keys(found[0]) if found else []


def test_the_page_of_the_tables_has_every_table() -> None:
    headings = re.findall(r"^## (\w+)$", PAGES["tables.md"], re.M)
    assert sorted(headings) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_of_the_tables_has_every_column_of_a_delta_table(name: str) -> None:
    assert _columns(name, "log") == {column.name: _type(column.type) for column in TABLES[name].columns}


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.view])
def test_the_page_of_the_tables_has_every_column_of_a_view(letters: SparkSession, name: str) -> None:
    view = letters.table(open_database(letters, DATABASE).view(name))
    assert _columns(name, "view") == {column: _type(kind) for column, kind in view.dtypes}


def test_what_has_no_view_is_told() -> None:
    for name, table in TABLES.items():
        assert bool(_columns(name, "view")) == (table.view is not None)


def _columns(table: str, where: str) -> dict[str, str]:
    rows = [row for row in described(section("tables.md", table)) if row[{"view": 2, "log": 3}[where]] == "yes"]
    return {named(row[0])[0]: _type(named(row[1])[0]) for row in rows}


def _type(text: str) -> str:
    return text.lower().replace(" ", "").replace("bigint", "long").replace("long", "bigint")


def test_the_page_of_errors_has_every_reason_of_quarantine_in_their_order() -> None:
    rows = described(section("errors-and-quarantine.md", "Quarantine"))
    assert tuple(named(row[0])[0] for row in rows) == REASONS


def test_the_page_of_errors_has_every_class() -> None:
    told = {
        name for row in described(section("errors-and-quarantine.md", "Where errors appear")) for name in named(row[0])
    }
    classes = {
        name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, PatternLakeError)
    }
    assert told & set(vars(errors)) == classes


def test_the_page_of_the_language_says_which_engine_takes_what() -> None:
    text = section("language.md", "Which engine takes what")
    engines: Sequence[str] = re.findall(r"\w+", text[text.index("| operator") :].splitlines()[0])[3:]
    assert engines == list(ENGINES)
    told = {row[0].replace("`", ""): row[1:] for row in described(text)}
    for operator in Operator:
        taken = ["" if operator not in engine.takes else "yes" for engine in ENGINES.values()]
        verified = ["`verify`" if operator in engine.verified else "" for engine in ENGINES.values()]
        shown = [only or plain for only, plain in zip(verified, taken, strict=True)]
        assert told.pop(operator.value.replace("'", "")) == shown
    assert not told


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}" for name in PAGES)])
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    for link in _LINK.findall(_without_blocks(path.read_text(encoding="utf-8"))):
        if not link.startswith(("http:", "https:", "#")):
            assert (path.parent / link.partition("#")[0]).exists(), link


def test_the_index_has_every_page_and_notebook() -> None:
    notebooks = {f"notebooks/{path.name}" for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert set(_LINK.findall(PAGES["pages.md"])) == (set(PAGES) - {"pages.md"}) | notebooks
