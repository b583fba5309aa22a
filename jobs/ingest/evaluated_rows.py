"""What becomes of source rows: each is evaluated once, bad rows are told apart and counted, bad files are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.sessions import temporary_settings
from patternlake.jobs.ingest import repeats, steps, ties
from patternlake.jobs.ingest.chunks import Chunk, KeptChunks
from patternlake.jobs.ingest.prepared_rows import Total
from patternlake.jobs.sources.bad_files import broken, refuse
from patternlake.jobs.sources.columns import EventColumns
from patternlake.jobs.sources.errors import BadFileError
from patternlake.jobs.sources.source import Source
from patternlake.jobs.sources.unfit_files import find_unfit_files
from patternlake.udfs.record_batches import ROW_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T

    from patternlake.jobs.configuration.streams import StreamConfiguration


READING = {
    "spark.sql.ansi.enabled": "false",
    # All encodings that Java knows, such as windows-1252, and not seven alone.
    "spark.sql.legacy.javaCharsets": "true",
}
"""What a session needs that reads a source."""


def settings(stream: StreamConfiguration) -> dict[str, str]:
    """What a session needs that evaluates a stream's expressions, beside what all own sessions have."""
    return {**READING, "spark.sql.session.timeZone": stream.timezone}


@dataclass(frozen=True)
class EvaluatedRows:
    """The rows of a batch.

    Parameters
    ----------
    rows
        Prepared, see `EventColumns.prepared`: in the driver's process, or where tasks keep them.
    totals
        What they amount to, by reason; None stands for the accepted rows.
    bad_files
        The files that were left out, and what is wrong with each.
    schema
        The source's columns, with the types that the batch gave to those that had none.
    """

    rows: Chunk | KeptChunks
    totals: dict[str | None, Total]
    bad_files: dict[str, str]
    schema: T.StructType

    @property
    def refused(self) -> int:
        """How many rows go to quarantine; a file is one."""
        return sum(total.rows for reason, total in self.totals.items() if reason is not None) + len(self.bad_files)


@dataclass(frozen=True)
class Evaluation:
    """A stream's expressions over its source.

    Parameters
    ----------
    source, schema
        The source, and its columns.
    columns
        The expressions, checked.
    """

    source: Source
    schema: T.StructType
    columns: EventColumns

    def rows(
        self,
        batch: DataFrame,
        files: Sequence[str],
        judge: Callable[[DataFrame], DataFrame],
        *,
        bad: dict[str, str],
        bring: Callable[[DataFrame], Chunk | KeptChunks],
    ) -> EvaluatedRows:
        """Evaluate the rows of a batch.

        Parameters
        ----------
        batch
            The source's rows, as `Source.rows` or `Source.again` give them.
        files
            The files that they stand in; none of a table.
        judge
            Makes prepared rows of the source's; see `judged`.
        bad
            Files that are known to be bad and left out.
        bring
            Makes chunks of prepared rows.

        Raises
        ------
        BadFileError
            A file is bad, and the stream does not leave bad files out.
        """
        source = self.source
        schema = source.with_types([file for file in files if file not in bad], self.schema)
        if schema != self.schema:
            self.columns.check(source.empty(schema), source.unread)
            return replace(self, schema=schema).rows(batch, files, judge, bad=bad, bring=bring)
        lenient = self.columns.stream.source.on_bad_file == "quarantine"
        while True:
            good = [file for file in files if file not in bad]
            found = find_unfit_files(source, good, schema, self._used, self._nested)
            if not lenient:
                refuse(self.columns.name, found)
            bad = bad | found
            if bad or source.kind == "parquet" or source.reads_twice(files):
                batch = source.again([file for file in good if file not in bad], schema, self._used)
            phases.reads(None)
            phases.at("reading", unit="files" if source.kind == "xes" else phases.ROWS)
            judged = judge(source.expand(batch, schema, [file for file in files if file not in bad]))
            marked = ties.mark(judged, self.columns.stream)
            try:
                with temporary_settings(marked.sparkSession, ROW_SETTINGS):
                    rows = bring(marked)
                return EvaluatedRows(rows, rows.totals, bad, schema)
            except Exception as error:
                known = source.explain(error, schema.fieldNames())
                if not isinstance(known, BadFileError) or not lenient:
                    raise
                found = self._find_broken([file for file in files if file not in bad])
                if not found:
                    raise
                bad = bad | found

    def judged(
        self,
        rows: DataFrame,
        *,
        watermark: int | None = None,
        known_ids: DataFrame | None = None,
        last_steps: DataFrame | None = None,
    ) -> DataFrame:
        """Prepared rows of the source's, judged beside each other and beside what was published.

        Parameters
        ----------
        rows
            The source's rows.
        watermark
            Microseconds since the epoch; an event before it is late. None: no event is.
        known_ids
            Of `repeats.unsettled_ids`; None where nothing was published.
        last_steps
            Of `steps.last_steps`; None where nothing was published.
        """
        stream = self.columns.stream
        prepared = self.columns.prepared(rows, watermark=watermark)
        if stream.event_id is not None:
            prepared = repeats.mark_repeats(prepared, known_ids)
        if stream.probabilistic:
            prepared = steps.judge_steps(prepared, last_steps, stream.probability_tolerance)
        return prepared

    @cached_property
    def _used(self) -> dict[str, bool]:
        return self.columns.used(self.source.empty(self.schema))

    @cached_property
    def _nested(self) -> dict[tuple[str, ...], bool]:
        return self.columns.nested(self.source.empty(self.schema)) if self.source.kind in ("json", "parquet") else {}

    def _find_broken(self, files: list[str]) -> dict[str, str]:
        """Which files cannot be read to their end, with all their columns, and why."""
        source, schema = self.source, self.schema

        def read(some: Sequence[str]) -> None:
            rows = self.columns.prepared(
                source.expand(source.again(some, schema, self._used), schema, some), watermark=None
            )
            rows.agg(F.max("hash")).collect()

        return broken(files, read, lambda error: source.explain(error, schema.fieldNames()))
