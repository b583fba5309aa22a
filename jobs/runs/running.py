"""Runs jobs, side by side where they are independent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases import workers
from patternlake.delta_tables.databases.opening import open_database, tell_new_lake
from patternlake.delta_tables.databases.writer_lease import held_lease
from patternlake.delta_tables.reading.table_logs import Seen, UnreadableError, one_look
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.progress.reporting import LoggedProgress, Progress, default_progress
from patternlake.jobs.runs import side_by_side as sides
from patternlake.jobs.runs.steps import ALL, JOBS, Step, check_backfill, find_waits, steps, stream_of
from patternlake.jobs.sources.source_files import tell_of_stores
from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import ArgumentError, PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def run(
    spark: SparkSession,
    configuration: str | PathLike[str] | Configuration,
    job: str | Sequence[str] = ALL,
    *,
    object: str | None = None,
    rebuild: bool = False,
    backfill: str | None = None,
    progress: Progress | None = None,
    side_by_side: int | None = None,
) -> list[Summary]:
    """Run jobs on everything that is configured for them, or on one object.

    Parameters, results and errors: as of `patternlake.run`.
    """
    sides.check(side_by_side)
    if not isinstance(rebuild, bool):
        raise ArgumentError(f"rebuild must be True or False, not {rebuild!r}; object= names what is rebuilt")
    loaded = configuration if isinstance(configuration, Configuration) else Configuration.load(configuration)
    planned = steps(loaded, job, object=object, rebuild=rebuild)
    check_backfill(backfill, planned, rebuild=rebuild)
    workers.check(spark)
    database = open_database(spark, loaded.database, loaded.location, loaded.storage_options)
    if database.made:
        logger.warning("%s", tell_new_lake(database))
    with default_progress(spark) if progress is None else nullcontext(progress) as heard:
        summaries = perform(
            database, loaded, planned, rebuild=rebuild, backfill=backfill, progress=heard, side_by_side=side_by_side
        )
        return list(summaries)


def perform(
    database: Database,
    configuration: Configuration,
    planned: Iterable[Step],
    *,
    rebuild: bool = False,
    backfill: str | None = None,
    sparing: bool = False,
    progress: Progress | None = None,
    side_by_side: int | None = None,
) -> Generator[Summary, None, None]:
    """Do the steps, side by side where they are independent; errors as for `run`.

    Parameters
    ----------
    database
        The open database.
    configuration, planned
        What `steps` was given, and what it gave.
    rebuild, backfill, progress, side_by_side
        As for `run`.
    sparing
        Maintain only what an earlier step took further: for rounds that follow each other closely.

    Yields
    ------
    Summary
        In the order of the steps: each as soon as it and those before it are there. After an error, those of all steps
        that have ended well.
    """
    listed = list(planned)
    if not listed:
        return
    tell_of_stores(database.spark, configuration)
    with held_lease(database):
        yield from _perform(
            database, configuration, listed, rebuild, backfill, sparing, progress or LoggedProgress(), side_by_side
        )


def _perform(
    database: Database,
    configuration: Configuration,
    listed: Sequence[Step],
    rebuild: bool,
    backfill: str | None,
    sparing: bool,
    heard: Progress,
    side_by_side: int | None,
) -> Generator[Summary, None, None]:
    sparing = sparing and any(JOBS[step.job].maintains for step in listed)
    taken_further: set[str] = set()
    ended: dict[int, Summary | None] = {}
    failed: dict[int, Exception] = {}
    looked_at = Seen()

    def begin(number: int) -> Callable[[], Summary] | None:
        step = listed[number]
        job = JOBS[step.job]
        if sparing and not job.maintains and step.object not in taken_further:
            return None
        heard.begin(step.job, step.object, number + 1, len(listed))
        idle = {one.object for one in ended.values() if one and one.job == "ingest" and not one.batches}

        def work() -> Summary:
            # In the thread that works: what it is at is told by where it is.
            with heard.working(step.job, step.object):
                if _has_nothing_yet(database, configuration, step, idle):
                    logger.info("%s of %r: its stream has no events yet", step.job, step.object)
                    return Summary(step.job, step.object, None, 0, 0, 0, 0, 0.0)
                if backfill is not None and job.backfill is not None:
                    return _do(database, job.backfill, step.object, configuration, backfill)
                # Batches of a source are committed in threads of Spark's, which do not know of this one's look.
                with nullcontext() if step.job == "ingest" else one_look(looked_at):
                    return _do(database, job.work, step.object, configuration, rebuild and job.maintains)

        return work

    told = 0
    crew = sides.crew(database.spark, side_by_side, len(listed))
    with closing(sides.run_each(find_waits(listed, configuration), begin, crew)) as endings:
        for each in endings:
            if each.error is not None:
                failed[each.number] = each.error
                continue
            ended[each.number] = each.result
            if each.result is not None:
                heard.end(each.result)
                if each.result.batches:
                    taken_further.add(stream_of(configuration, listed[each.number]))
                    looked_at.forget()
            while told in ended:
                summary = ended[told]
                told += 1
                if summary is not None:
                    yield summary
    if failed:
        yield from (summary for number, summary in sorted(ended.items()) if number >= told and summary is not None)
        raise _first(failed, listed)
    for name in dict.fromkeys(step.job for step in listed):
        finish = JOBS[name].finish
        worked_on = [
            step.object for number, step in enumerate(listed) if step.job == name and ended[number] is not None
        ]
        if finish is not None and worked_on:
            with heard.working(name, ", ".join(worked_on)), one_look(looked_at):
                _do(database, finish, worked_on)
    if taken_further and database.direct is not None and not database.direct.on_disk:
        from patternlake.jobs.maintain.job import tidy_history

        tidy_history(database)


def _do(
    database: Database,
    work: Callable[Concatenate[Database, _Given], _Result],
    *given: _Given.args,
    **named: _Given.kwargs,
) -> _Result:
    """Do some work, in a store anew through Spark where a table has come to be such as only Spark can read."""
    try:
        return work(database, *given, **named)
    except UnreadableError as error:
        if database.direct is None or database.direct.on_disk:
            raise
        logger.info("%s; Spark reads it", error)
    return work(replace(database, direct=None), *given, **named)


def _has_nothing_yet(database: Database, configuration: Configuration, step: Step, idle: Collection[str]) -> bool:
    """Whether a step would read a stream of which nothing is published, and that is no mistake.

    That is a stream of matches, or one in whose source `ingest` has just found nothing (`idle`), as in a folder that is
    still empty: the first events come when they come, and other streams do not wait for them.
    """
    stream = stream_of(configuration, step)
    if step.job == "ingest" or (configuration.emitted(stream) is None and stream not in idle):
        return False
    return PublicationsReader(database).latest("ingest", stream) is None


def _first(failed: Mapping[int, Exception], listed: Sequence[Step]) -> Exception:
    """The error of the step that comes first, with job and object in its message; the log is told of the others."""
    first, *others = sorted(failed)
    for number, error in failed.items():
        if isinstance(error, PatternLakeError):
            _name(error, listed[number])
    for number in others:
        error, step = failed[number], listed[number]
        told = "" if isinstance(error, PatternLakeError) else f"{step.job} of {step.object!r}: "
        logger.error("%s%s", told, message(error))
    return failed[first]


def _name(error: PatternLakeError, step: Step) -> None:
    """Put job and object before an error's message where the message does not name the object."""
    text = str(error)
    if repr(step.object) not in text and f".{step.object}." not in text:
        error.args = (f"{step.job} of {step.object!r}: {text}", *error.args[1:])
