"""The notebooks under docs/notebooks run from an empty folder, and are kept as they were before they ran."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the cells of a notebook show, those with code: texts, and for each picture the word ``picture``."""
    monkeypatch.setenv("PATTERNLAKE_DRIVER_MEMORY", "2g")
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    notebook: Any = nbformat.read(FOLDER / name, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=1700, resources={"metadata": {"path": str(folder)}}).execute()
    return ["\n".join(map(_shown, cell["outputs"])) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    return "picture" if "image/png" in data else str(output.get("text") or data.get("text/plain", ""))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    cells = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.processes
def test_your_data_goes_from_a_table_over_quarantine_to_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "\n".join(executed("your_data.ipynb", tmp_path, monkeypatch))
    assert "12 rows read: 10 would be events, 2 would go to quarantine" in shown
    assert "12 rows read: 11 would be events, 1 would go to quarantine" in shown
    assert "amount: '2 items' is not of type double" in shown
    # The summary of the job, where its progress was; of what it was at nothing is left.
    assert re.search(r"^ingest orders: 12 rows in, 11 out, 1 quarantined \(\d+\.\d s\)$", shown, re.M)
    assert "(1 of 1)" not in shown
    assert shown.count("picture") == 1
    assert shown.endswith("('ingest', 'orders', 12, 1)")
    on_the_next_day = executed("your_data.ipynb", tmp_path, monkeypatch)
    assert on_the_next_day[-1].endswith("('ingest', 'orders', 13, 1)"), "only the row that is inserted again is new"


_SHOWS_ROWS = (
    """
import patternlake
spark = patternlake.session(None, "local[1]", database=None)
sevens = spark.range(7).selectExpr("id * 11 AS eleven").repartition(2)
spark.sparkContext.setJobGroup("shown", "shown")
sevens
""",
    """
spark.sparkContext.setJobGroup("asked", "asked")
sevens._repr_html_()
shown, asked = (spark.sparkContext.statusTracker().getJobIdsForGroup(group) for group in ("shown", "asked"))
len(shown) == len(asked) > 0
""",
)


@pytest.mark.processes
def test_a_cell_that_ends_in_a_dataframe_shows_its_rows_and_asks_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATTERNLAKE_DRIVER_MEMORY", "1g")
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    cells = [nbformat.v4.new_code_cell(text) for text in _SHOWS_ROWS]  # type: ignore[no-untyped-call]
    notebook: Any = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    frame, once = (cell["outputs"][-1]["data"] for cell in notebook["cells"])
    assert frame["text/plain"] == "DataFrame[eleven: bigint]"
    assert frame["text/html"].count("<td>") == 7
    assert "<td>66</td>" in frame["text/html"]
    assert once["text/plain"] == "True"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_row_patterns_asks_a_table_for_shapes_sessions_and_what_never_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = executed("row_patterns.ipynb", tmp_path, monkeypatch)
    assert [text for text in shown if text == "picture"] == ["picture"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in "\n".join(shown).splitlines() if "|" in line]
    assert [row[1:] for row in rows if row[0] == "ACME"][:3] == [
        ["3", "4", "7", "7"],
        ["7", "2", "5", "11"],
        ["11", "1", "3", "13"],
    ]
    assert [row[3] for row in rows if row[0] == "ann"] == ["[view, cart, pay]", "[view]"]
    assert rows[-1] == ["ben", "2025-03-03 09:20:00", "view"]
    assert "no column of the input (did you mean 'price'?)" in shown[-1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_late_data_is_turned_down_or_taken_in_and_earlier_answers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = executed("late_data.ipynb", tmp_path, monkeypatch)
    assert any(text.endswith("(2, 1)") for text in shown), "the late one of three rows is turned down"
    assert any("late: before the watermark 2025-03-03 10:00:00" in text for text in shown)
    assert any(text.endswith("[3, 5]") for text in shown), "rows of the table's versions"
    assert shown[-3].endswith("(6, 0)"), "with more lateness all are taken in"
    assert shown[-1].endswith("(['ann'], ['ben'])")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tour_asks_each_engine_and_draws_what_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = executed("tour.ipynb", tmp_path, monkeypatch)
    assert sum("picture" in text for text in shown) == 5
    assert all(job in "\n".join(shown) for job in ("ingest", "sketch", "trends", "groups", "predict"))


def test_cells_of_sql_run_over_the_session(spark: SparkSession) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    text = (FOLDER.parent / "functions.md").read_text(encoding="utf-8")
    told = re.search(r"```python\n([^`]*register_cell_magic[^`]*)```", text)
    assert told, "functions.md has no magic for cells of SQL"
    shell: Any = InteractiveShell.instance()
    shell.user_ns["spark"] = spark
    shell.run_cell(told[1]).raise_error()
    found = shell.run_cell_magic("sql", "", "SELECT explode(sequence(1, 3)) AS n")
    assert found["n"].tolist() == [1, 2, 3]
