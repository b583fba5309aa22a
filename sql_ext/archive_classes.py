"""``python -m patternlake.sql_ext.archive_classes``: archive the classes of Spark's JVM, so that it starts sooner."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from patternlake.sql_ext.session import session
from patternlake.sql_ext.spark_start import class_archive, quiet_start
from patternlake.udfs.errors import StateError


def make() -> Path:
    """Start a JVM, have a small database made in it, and keep an archive of the classes that this took.

    The archive is there as a whole or not at all; one that is there already is replaced.

    Returns
    -------
    Path
        The archive, of some 170 MB.

    Raises
    ------
    StateError
        This process has a JVM already, Spark does not start, its class path allows no archive, or the JVM wrote none.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        raise StateError("an archive of classes is made by a process without a session: a JVM writes it when it ends")
    folder = class_archive.conf_folder_in_use(os.environ)
    if folder is not None:
        raise StateError(
            f"Spark's conf folder {folder} is not empty: Java archives no classes where the class path names such a "
            "folder. Sessions start without an archive"
        )
    archive = class_archive.place(os.environ)
    if not archive.is_absolute():
        raise StateError(f"{archive.parent} is no folder for an archive of classes: set XDG_CACHE_HOME or HOME to one")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"{archive.parent} cannot be made, {error}: set XDG_CACHE_HOME to another folder") from error
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f"{archive.stem}-") as made:
        written = Path(made, archive.name)
        before = os.environ.get("SPARK_SUBMIT_OPTS")
        asked = f"{class_archive.quote(f'-XX:ArchiveClassesAtExit={written}')} {class_archive.HUSHED}"
        os.environ["SPARK_SUBMIT_OPTS"] = f"{before} {asked}" if before else asked
        _make_a_database(Path(made, "lake"))
        if not written.is_file():
            raise StateError(
                "the JVM wrote no archive of classes; that needs a Java that has one of its own classes "
                f"(java -Xshare:dump makes it), and {archive.parent} must have 200 MB left"
            )
        written.replace(archive)
    return archive


def _make_a_database(folder: Path) -> None:
    """In a session of its own, whose JVM has ended afterwards."""
    spark = session(str(folder), "local[1]", create=True, settings={"spark.sql.warehouse.dir": str(folder)})
    gateway = spark.sparkContext._gateway
    spark.stop()
    quiet_start.end(gateway)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{make()}\n")
    except StateError as error:
        sys.exit(f"error: {error}")
