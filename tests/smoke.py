"""What every version that `pyproject.toml` promises has to do: each module is imported, and a small lake answers.

Run by `make test-lowest` in an environment of the lowest versions, which has no pytest; prints nothing but an error.
"""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
from pathlib import Path

import patternlake

CONFIGURATION = """
database: smoke
location: {folder}/lake
streams:
  clicks:
    source: {{format: csv, path: {folder}/data, options: {{header: true}}}}
    time: to_timestamp(at)
    name: what
    key: who
sketches:
  clicks: {{events_per_leaf: 2, keyed: true, expected_events: 1000, memory: 1MB}}
"""
ROWS = ["09:00:00,ann,cart", "09:02:00,ben,cart", "09:04:00,ann,help", "09:05:00,ben,pay", "09:20:00,ann,leave"]
QUESTIONS = {
    "SELECT key FROM match_seq('clicks', 'cart ; !pay ; leave PARTITION BY key WITHIN 1 HOUR', verify => true)": [
        "ann"
    ],
    "SELECT key FROM match_pattern('clicks', 'cart ; pay+ PARTITION BY key WITHIN 1 HOUR')": ["ben"],
    "SELECT match_exists('clicks', 'cart ; pay', key => 'ben')": [True],
    "SELECT key FROM events MATCH_RECOGNIZE (PARTITION BY key ORDER BY position MEASURES count(*) AS n "
    "PATTERN (a b) DEFINE a AS name = 'cart', b AS name = 'pay' AND b.time > a.time)": ["ben"],
    "SELECT key FROM match_pattern(TABLE(SELECT key, time, name FROM events) PARTITION BY key ORDER BY (time), "
    "'cart ; !pay ; leave')": ["ann"],
}


def import_all() -> None:
    """Import every module of the package but those that are programs."""
    for module in pkgutil.walk_packages(patternlake.__path__, "patternlake."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def ask(folder: Path) -> None:
    """Take a file through all jobs, and compare what the functions answer."""
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text("\n".join(["at,who,what", *(f"2025-03-03 {row}" for row in ROWS)]) + "\n")
    (folder / "lake.yaml").write_text(CONFIGURATION.format(folder=folder))
    spark = patternlake.session(str(folder / "lake"), "local[1]", database="smoke", create=True)
    patternlake.run(spark, folder / "lake.yaml")
    patternlake.enable(spark, folder / "lake.yaml")
    for question, right in QUESTIONS.items():
        answer = [row[0] for row in spark.sql(question).collect()]
        assert answer == right, f"{question} answers {answer}, not {right}"
    spark.stop()


if __name__ == "__main__":
    import_all()
    with tempfile.TemporaryDirectory() as place:
        ask(Path(place))
