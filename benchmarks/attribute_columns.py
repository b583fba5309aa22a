"""One attribute of events that have many, read from columns of their own types and from a map of texts.

    python -m benchmarks.attribute_columns [--events N]

A third of the attributes each are amounts, whole numbers and words. The files are packed as those of jobs; read is what
a condition on one amount needs, as doubles; the map as what jobs keep of events is read. Medians of five in turns.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.table import Table

from benchmarks.lakes import new_folder
from benchmarks.tables import console
from patternlake.delta_tables.reading.parquet_columns import columns_of_file, write_file
from patternlake.delta_tables.schema.layout import Layout
from patternlake.udfs.attributes import column_of
from patternlake.udfs.kept_attributes import ATTRIBUTES, keep_attributes, read_attributes
from patternlake.udfs.language.predicate.event_columns import event_columns

WIDTHS = (1, 5, 20)
REPEATS = 5
READ = "x0"
KINDS = ("double", "bigint", "string")


def events_with(width: int, count: int) -> pa.Table:
    """Events with so many attributes."""
    rng = np.random.default_rng(45)
    words = pa.array([f"word {number}" for number in range(200)])
    made = {
        "double": lambda: pa.array(np.round(rng.gamma(2, 30, count), 2)),
        "bigint": lambda: pa.array(rng.integers(0, 1000, count)),
        "string": lambda: words.take(pa.array(rng.integers(0, len(words), count))),
    }
    kinds = {f"x{number}": KINDS[number % len(KINDS)] for number in range(width)}
    return pa.table({column_of(name, kind): made[kind]() for name, kind in kinds.items()})


def seconds_to_read(file: Path, rows: pa.Table) -> float:
    """How long it takes to have the attribute as doubles."""
    begun = time.perf_counter()
    with pa.memory_map(str(file)) as source:
        wanted = [ATTRIBUTES] if ATTRIBUTES in rows.column_names else [column_of(READ, "double")]
        found = pa.table(columns_of_file(source, wanted, rows.schema)[0])
    typed = read_attributes(found, {READ: "double"})
    columns = {name: typed[name].combine_chunks() for name in typed.column_names}
    event_columns({**columns, "name": pa.nulls(rows.num_rows)}, {READ}, {READ: "double"})
    return time.perf_counter() - begun


def main(
    events: Annotated[int, typer.Option("--events", help="in each file")] = 1_000_000,
) -> None:
    """Print bytes and seconds."""
    title = f"one of the attributes of {events:,} events"
    shown = Table("attributes", "columns / map", "columns, s", "map, s", "columns, MB", "map, MB", title=title)
    with new_folder("attribute_columns") as folder:
        for width in WIDTHS:
            tables = {"columns": events_with(width, events)}
            tables["map"] = keep_attributes(tables["columns"])
            taken: dict[str, list[float]] = {name: [] for name in tables}
            for name, rows in tables.items():
                write_file(rows, str(folder / name), Layout.PACKED)
            for _ in range(REPEATS):
                for name, rows in tables.items():
                    taken[name].append(seconds_to_read(folder / name, rows))
            columns, texts = (median(taken[name]) for name in ("columns", "map"))
            sizes = [f"{os.path.getsize(folder / name) / 1e6:.1f}" for name in tables]
            shown.add_row(str(width), f"{columns / texts:.3f}", f"{columns:.3f}", f"{texts:.3f}", *sizes)
    console().print(shown)


if __name__ == "__main__":
    typer.run(main)
