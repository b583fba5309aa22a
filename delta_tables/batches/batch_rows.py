"""The rows that one batch writes: each write tells whose rows they are, and is made once however often it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from delta.exceptions import ConcurrentTransactionException
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.closing import closing
from patternlake.delta_tables.committing.direct_commits import DirectCommits
from patternlake.delta_tables.reading.spark_reader import all_of
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import of_object, published_rows
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.intents import Intent
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.arrow_rows import FewRows
from patternlake.delta_tables.writing.row_files import RowPortions, TaskRows, WrittenByTasks
from patternlake.udfs.attributes import is_attribute
from patternlake.udfs.errors import ConcurrentRunError, StateError
from patternlake.udfs.partitions import same_partitions

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database


@dataclass
class BatchRows:
    """What a batch may do to the tables between its intent and its publication."""

    database: Database
    intent: Intent
    """What the batch reads; it may be an earlier run's."""
    published: Publication | None
    """This batch's own publication, if it has one already: then there is nothing left to do."""
    run_id: str

    @property
    def job(self) -> str:
        """The job."""
        return self.intent.job

    @property
    def object(self) -> str:
        """What the job maintains."""
        return self.intent.object

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self.intent.stream

    @property
    def stream_id(self) -> int:
        """Number of the stream."""
        return self.intent.stream_id

    @property
    def object_id(self) -> int:
        """Number of what the job maintains: of a query its own, else that of the stream."""
        return self.intent.object_id

    @property
    def batch_id(self) -> int:
        """Number of the batch."""
        return self.intent.batch_id

    @property
    def base_batch(self) -> int:
        """First batch whose rows count."""
        return self.intent.base_batch

    @property
    def source(self) -> Mapping[str, Any]:
        """What is read."""
        return self.intent.source

    @property
    def source_from(self) -> int:
        """Position before the first of the input."""
        return self.intent.source_from

    @property
    def source_to(self) -> int:
        """Last position of the input."""
        return self.intent.source_to

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The object's configuration."""
        return self.intent.configuration

    def append(self, table: str, rows: pa.Table | Sequence[Callable[[], pa.Table]] | TaskRows, part: str = "") -> None:
        """Append rows of this batch, once: a replay writes nothing.

        Parameters
        ----------
        table
            Plain name.
        rows
            Few rows, which the driver holds; more that it makes portion by portion, see `RowPortions`; or what tasks
            make. The columns that say whose rows they are may be left out.
        part
            Tells several appends to one table apart. Delta remembers every (job, object, table, part), so parts come
            from a small fixed set.

        Raises
        ------
        StateError
            A column is unknown.
        ConcurrentRunError
            Another run has published the batch, or writes the same rows at the same moment.
        """
        # Tasks that read for themselves are told of to Spark as parts, not as what they read.
        phases.at(f"writing {table}", unit="parts" if isinstance(rows, TaskRows) else phases.ROWS)
        self._append(table, self._prepare(table, rows), part)

    def append_each(self, rows: Mapping[str, pa.Table]) -> None:
        """Append few rows to several tables: as `append` to each, but all at once where they are written without Spark.

        Parameters
        ----------
        rows
            By plain name of the table.
        """
        if not rows:
            return
        phases.at(f"writing {', '.join(rows)}")
        given = {table: self._prepare(table, each) for table, each in rows.items()}
        # To encode and to write files needs no lock of Python's.
        with ThreadPoolExecutor(len(rows)) as threads:
            tried = {
                table: threads.submit(self._append, table, each, only_directly=True) for table, each in given.items()
            }
        for table, each in tried.items():
            if each.result() is None:
                self._append(table, given[table])

    def _append(
        self,
        table: str,
        rows: DataFrame | FewRows | RowPortions | WrittenByTasks,
        part: str = "",
        *,
        only_directly: bool = False,
    ) -> bool | None:
        """As `writes.append`, of this batch."""
        try:
            return writes.append(
                self.database.log(table),
                rows,
                application=application_of(table, self.job, self.object, part),
                version=self.batch_id,
                commits=self._commits(table),
                settings=TABLES[table].writing,
                only_directly=only_directly,
            )
        except ConcurrentTransactionException as conflict:
            raise ConcurrentRunError(
                f"another run is writing the rows of batch {self.batch_id} of {self.job} of '{self.object}' to {table} "
                "at the same moment; this run stopped and changed nothing that readers see"
            ) from conflict

    def close_rows(self, table: str, *any_of: Sequence[Condition]) -> None:
        """End the rows of earlier batches that satisfy a condition: from this batch on they are not seen.

        Parameters
        ----------
        table
            Plain name of a table with from_batch and to_batch.
        any_of
            The rows: those that satisfy all conditions of one of these lists; they are looked for without Spark where
            few rows may satisfy them. Rows of other objects are left alone.
        """
        self._check_open()
        phases.at(f"closing rows of {table}")
        wanted = F.lit(False)
        for each in any_of:
            wanted = wanted | all_of(each, TABLES[table].moments)
        values = {"to_batch": F.lit(self.batch_id).cast("bigint")}
        writes.update(
            self.database.spark,
            self.database.log(table),
            self._open(table) & wanted,
            values,
            commits=self._commits(table),
            directly=closing(TABLES[table], self.intent, any_of),
        )

    def close_partitions(
        self,
        table: str,
        parts: DataFrame | pa.Array,
        where: Sequence[Condition] = (),
        *,
        positions: pa.Array | None = None,
    ) -> None:
        """End the rows of earlier batches in some partitions: from this batch on they are not seen.

        Parameters
        ----------
        table
            Plain name of a table with from_batch, to_batch and part.
        parts
            A column ``part``, distinct; of few, their values.
        where
            The rows that are meant: those for which all of these hold.
        positions
            Where those are known that these partitions have in the column ``position``: rows are found by them in less
            time than by texts.
        """
        self._check_open()
        phases.at(f"closing rows of {table}")
        values = {"to_batch": F.lit(self.batch_id).cast("bigint")}
        further = all_of(where, TABLES[table].moments, "t")
        directly = None
        if isinstance(parts, pa.Array):
            meant = _in_partitions(parts) if positions is None else _at_positions(positions)
            directly = closing(TABLES[table], self.intent, [where], meant)

        def frame() -> DataFrame:
            if isinstance(parts, pa.Array):
                return self.database.spark.createDataFrame(pa.table({"part": parts})).distinct()
            return parts.select("part")

        writes.update_matching(
            self.database.spark,
            self.database.log(table),
            frame,
            self._open(table, "t") & F.expr("t.part <=> k.part") & further,
            values,
            commits=self._commits(table),
            directly=directly,
        )

    def discard(self, table: str, where: Sequence[Condition]) -> None:
        """Delete rows of this batch that a part wrote and that a later part writes anew.

        The part that wrote them is not appended again: the conditions follow from the batch's input, as the rows do,
        so that every run of the batch discards the same rows and appends the later part once.
        """
        self._check_open()
        phases.at(f"discarding rows of {table}")
        own, commits = self._own(table) & all_of(where, TABLES[table].moments), self._commits(table)
        writes.delete(self.database.spark, self.database.log(table), own, commits=commits)

    def written(self, table: str) -> DataFrame:
        """Return the rows that this batch has written to a table so far, published or not."""
        return self.database.table(table).where(self._own(table))

    def _open(self, table: str, rows: str = "") -> Column:
        """The rows of earlier batches that no batch has closed; `rows`: the table's alias."""
        before = published_rows(TABLES[table], replace(self.intent, batch_id=self.batch_id - 1))
        return all_of(before, (), rows) & F.col(f"{rows}.to_batch" if rows else "to_batch").isNull()

    def _own(self, table: str) -> Column:
        written = Condition("from_batch" if TABLES[table].changing else "batch_id", "=", self.batch_id)
        return all_of([*of_object(TABLES[table], self.stream_id, self.object_id), written], ())

    def _frame(self, table: str, rows: TaskRows) -> DataFrame:
        """What tasks make as rows of a table, in its order, for Spark's own writer."""
        made, values = rows.frame(), self._values(table)
        columns = {each.name: F.lit(values.get(each.name)).cast(each.type) for each in TABLES[table].columns}
        # Of attributes those that the rows have: Delta takes others for NULL.
        columns |= {name: F.col(identifier(name)) for name in made.columns}
        return made.select(*[column.alias(name) for name, column in columns.items()])

    def _commits(self, table: str) -> DirectCommits | None:
        return self.database.commits(TABLES[table])

    def _values(self, table: str) -> dict[str, int]:
        """The columns that say whose rows they are, by name: those of this batch."""
        return {
            TABLES[table].object_column: self.object_id,
            "stream_id": self.stream_id,
            "from_batch": self.batch_id,
            "batch_id": self.batch_id,
        }

    def _prepare(
        self, table: str, rows: pa.Table | Sequence[Callable[[], pa.Table]] | TaskRows
    ) -> DataFrame | FewRows | RowPortions | WrittenByTasks:
        self._check_open()
        if isinstance(rows, TaskRows):
            self._check_columns(table, rows.schema.names)
            if self._commits(table) is None:
                return self._frame(table, rows)
            return WrittenByTasks(rows, self._values(table), TABLES[table].layout)
        if isinstance(rows, pa.Table):
            return FewRows(self._marked(table, rows), self.database, TABLES[table].layout)

        def mark(made: Callable[[], pa.Table]) -> pa.Table:
            return self._marked(table, made())

        if self._commits(table) is None:
            return FewRows(pa.concat_tables(map(mark, rows)), self.database, TABLES[table].layout)
        return RowPortions([partial(mark, made) for made in rows], self.database.spark, TABLES[table].layout)

    def _marked(self, table: str, rows: pa.Table) -> pa.Table:
        """Rows with the columns that say whose they are."""
        columns = {column.name: column for column in TABLES[table].columns}
        for name, value in self._values(table).items():
            if name in columns and name not in rows.column_names:
                mark = pa.scalar(value, columns[name].arrow)
                rows = rows.append_column(name, pa.repeat(mark, rows.num_rows))
        return rows

    def _check_columns(self, table: str, names: Sequence[str]) -> None:
        known = TABLES[table].column_names
        unknown = [name for name in names if name not in known and not is_attribute(name)]
        if unknown:
            raise StateError(f"rows for {table} have the unknown columns {unknown}; known are {', '.join(known)}")

    def _check_open(self) -> None:
        if self.published is not None:
            what = f"batch {self.batch_id} of {self.published.name} is published; it takes no more writes"
            if self.published.run_id == self.run_id:
                raise StateError(what)
            raise ConcurrentRunError(
                f"{what}: another run did it, this one stopped and changed nothing that readers see"
            )


def _in_partitions(parts: pa.Array) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """Which rows belong to one of some partitions."""
    return lambda rows: same_partitions(rows["part"].combine_chunks(), parts)


def _at_positions(positions: pa.Array) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """Which rows stand at one of some positions."""
    return lambda rows: pc.is_in(rows["position"], value_set=positions).to_numpy()


def application_of(table: str, job: str, object: str, part: str = "") -> str:
    """Name a writer for Delta; a JSON array, so that no two lists of names look the same."""
    return documents.to_array([job, object, table, part])
