"""What it costs `ingest` to order events of one time: `python -m benchmarks.equal_times`.

The events are those of `benchmarks.events`, with times cut to minutes and a fiftieth of a percent of their keys, so
that nearly all share time and key with an event of another name. They are read from a Delta table, where their names
alone order them, and from files, where they keep their places; each time without `order`, and with `order: sequence`.
The first round warms Spark up; of the others medians are told.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.table import Table

from benchmarks.events import source
from benchmarks.lakes import new_folder
from benchmarks.measuring import seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import spark_session
from benchmarks.tables import console
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.ingest.job import ingest

KINDS = ("delta", "parquet", "csv", "json")
ORDERS = (None, "CAST(sequence AS BIGINT)")


def options_of(kind: str) -> dict[str, Any]:
    """Options by which a source is written and read."""
    return {"header": True} if kind == "csv" else {}


def stream_of(kind: str, path: Path, order: str | None) -> StreamConfiguration:
    """The stream over one of the sources."""
    return StreamConfiguration.model_validate(
        {
            "source": {"format": kind, "path": str(path.resolve()), "options": options_of(kind)},
            "time": "CAST(at AS TIMESTAMP)",
            "name": "action",
            "key": "account",
            "attributes": {"amount": "double"},
            **({} if order is None else {"order": order}),
        }
    )


def write_sources(spark: SparkSession, folder: Path, events: int) -> None:
    """Write the events once in each kind, so that their numbers rise in a file, and from file to file."""
    made = source(spark, events).selectExpr(
        "date_trunc('MINUTE', at) AS at",
        "action",
        "concat('k', pmod(xxhash64(account), 20)) AS account",
        "amount",
        "unix_seconds(at) AS sequence",
    )
    for kind in KINDS:
        made.write.format(kind).options(**options_of(kind)).save(str(folder / kind))


def main(
    events: Annotated[int, typer.Option("--events", help="of each source")] = 1_000_000,
    rounds: Annotated[int, typer.Option("--rounds", help="beside the first")] = 3,
) -> None:
    """Print the seconds of `ingest` for each source, without and with `order`."""
    shown = Table("source", "without order, s", "order: sequence, s", title=f"ingest of {events:,} events")
    with new_folder(f"equal_times_{events}") as folder, spark_session(folder, functions=False) as spark:
        write_sources(spark, folder, events)
        for kind in KINDS:
            taken: list[list[float]] = [[], []]
            for number in range(rounds + 1):
                for order, found in zip(ORDERS, taken, strict=True):
                    place = folder / "lake"
                    db = open_database(spark, f"equal_times_{kind}_{number}_{len(found)}", str(place / "state"))
                    stream = stream_of(kind, folder / kind, order)
                    found.append(seconds(lambda db=db, stream=stream: ingest(db, STREAM, stream)))  # type: ignore[misc]
                    spark.sql(f"DROP DATABASE {db.name} CASCADE")
                    shutil.rmtree(place)
            shown.add_row(kind, *(f"{median(found[1:]):.2f}" for found in taken))
    console().print(shown)


if __name__ == "__main__":
    typer.run(main)
