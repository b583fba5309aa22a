"""Which way imports run: what two engines need stands above them, and nothing imports what is built on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternlake.jobs.runs import steps

ROOT = Path(__file__).parents[2]
JOBS = sorted(path.parent.name for path in (ROOT / "jobs").glob("*/job.py"))
FOLDERS_OF_JOBS = sorted(path.parent.name for path in (ROOT / "jobs").glob("*/__init__.py"))
ENGINES = ("sketch", "kleene", "trends", "groups", "machines", "funnels", "paths")
WITH_KERNELS = (*ENGINES, "rows")
"""Row patterns are of tables, not of streams: they have kernels, and neither events nor a job."""
BESIDE = "."
"""Stands for the files of a folder that lie beside its rooms, and belong to none of them."""
ROOMS = {
    "delta_tables": (
        "schema", "spark", "reading", "committing", "writing", "tables", "batches", "gathering", "databases"
    ),
    "jobs": (
        "configuration", "terminal", "batches", "progress", "sources", "machines", *JOBS, "runs", "reports", "starter",
        "command_line",
    ),
    "sql_ext": (
        "spark_start", "lakes", "answering", "declarations", "row_patterns", "calls", "sketches", "patterns", "trends",
        "functions", "plots", BESIDE, "serving",
    ),
}  # fmt: skip
"""Of a folder, each above those that it imports nothing of."""
MAY_IMPORT = {
    "udfs": {"udfs"},
    "delta_tables": {"udfs", "delta_tables"},
    "jobs": {"udfs", "delta_tables", "jobs"},
    "sql_ext": {"udfs", "delta_tables", "sql_ext"},
}


def imported(file: Path) -> Iterator[str]:
    """The modules of the package that a file imports, those for types alone included."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "patternlake")


def files(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py"))


def module(path: Path) -> str:
    """The dotted name of a file of the package."""
    return ".".join(("patternlake", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_from_functions_and_jobs_to_tables_to_kernels(folder: str) -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(folder)
        for name in imported(path)
        if name != "patternlake" and name.split(".")[1] not in MAY_IMPORT[folder]
    }
    assert wrong == set()


@pytest.mark.parametrize("folder", ROOMS)
def test_every_room_imports_those_above_it_alone(folder: str) -> None:
    rooms = ROOMS[folder]
    assert {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")} == {*rooms} - {BESIDE}
    assert len({*rooms}) == len(rooms)

    def place_of(name: str) -> int:
        first = name.split(".")[2]
        return rooms.index(first if first in rooms else BESIDE)

    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(folder)
        # A job's entry is the command line's.
        if path.name != "__main__.py" and path != ROOT / folder / "__init__.py"
        for name in imported(path)
        if name.startswith(f"patternlake.{folder}.") and place_of(name) > place_of(module(path))
    }
    assert wrong == set()


@pytest.mark.parametrize("engine", WITH_KERNELS)
def test_no_engine_imports_another(engine: str) -> None:
    others = {f"patternlake.udfs.{other}" for other in WITH_KERNELS if other != engine}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(f"udfs/{engine}")
        for name in imported(path)
        if ".".join(name.split(".")[:3]) in others
    }
    assert wrong == set()


@pytest.mark.parametrize("job", JOBS)
def test_no_job_imports_another(job: str) -> None:
    others = {f"patternlake.jobs.{other}" for other in JOBS if other != job}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(f"jobs/{job}")
        for name in imported(path)
        if ".".join(name.split(".")[:3]) in others
    }
    assert wrong == set()


def test_every_job_that_runs_has_a_folder_of_its_name() -> None:
    assert {*JOBS} == {*steps.JOBS}


def test_no_two_folders_of_jobs_import_each_other() -> None:
    known = {
        folder: {
            name.split(".")[2]
            for path in files(f"jobs/{folder}")
            for name in imported(path)
            if name.startswith("patternlake.jobs.")
        }
        for folder in FOLDERS_OF_JOBS
    }
    assert [
        (one, other) for one in known for other in known if one < other and other in known[one] and one in known[other]
    ] == []


def test_kernels_start_no_spark() -> None:
    """They get arrays and give arrays; only the types of Spark's columns are known to some."""
    wrong = {
        str(path.relative_to(ROOT))
        for engine in WITH_KERNELS
        for path in files(f"udfs/{engine}")
        if "pyspark" in path.read_text()
    }
    assert wrong == set()


def test_no_module_comes_back_to_itself_through_its_imports() -> None:
    """Imports for types alone and those within functions count: whoever follows them gets to an end."""
    paths = {module(path): path for folder in MAY_IMPORT for path in files(folder)}
    paths["patternlake"] = ROOT / "src" / "patternlake" / "__init__.py"
    imports = {name: {other for other in imported(path) if other in paths} - {name} for name, path in paths.items()}

    def followed(name: str) -> set[str]:
        found: set[str] = set()
        ahead = set(imports[name])
        while ahead:
            found |= ahead
            ahead = {further for each in ahead for further in imports[each]} - found
        return found

    assert {name for name in imports if name in followed(name)} == set()


SHARED = ("query", "request", "events", "result")
"""Every engine has these by these names; those with a job have a ``batch`` too."""


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_the_shape_of_the_others(engine: str) -> None:
    names = {path.stem for path in (ROOT / "udfs" / engine).glob("*.py")}
    # Paths have no pattern.
    assert {*SHARED} - {*(["query"] if engine == "paths" else [])} <= names
    assert (ROOT / "udfs" / engine / "kernels").is_dir()


@pytest.mark.parametrize("engine", WITH_KERNELS)
def test_kernels_know_arrays_and_not_calls(engine: str) -> None:
    outside = {
        f"patternlake.udfs.{engine}.{name}" for name in ("request", "reads", "from_config", "task", "result", "batch")
    }
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(f"udfs/{engine}/kernels")
        for name in imported(path)
        if any(name == one or name.startswith(f"{one}.") for one in outside)
    }
    assert wrong == set()
