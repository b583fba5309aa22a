"""Runs jobs: which there are, on which objects, in which order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.opening import open_database
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.jobs import side_by_side as sides
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.configuration.values import suggest
from patternlake.jobs.messages import message
from patternlake.jobs.progress.reporting import LoggedProgress, Progress, default_progress
from patternlake.jobs.summary import Summary
from patternlake.udfs.errors import ArgumentError, PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ALL = "all"


@dataclass(frozen=True)
class Job:
    """One job.

    Parameters
    ----------
    objects
        Names of what it works on, given the configuration.
    work
        Takes one object further: database, object, configuration, rebuild → summary.
    maintains
        Whether the job publishes state of its own, which can be rebuilt and has a status.
    finish
        What is left to do once for all objects that a run worked on, after the last of them.
    stream
        Name of the stream that an object reads; that of the object where there is no such function.
    reads
        Job and object whose results an object reads, where that is another one than the stream's ingest.
    """

    objects: Callable[[Configuration], Iterable[str]]
    work: Callable[[Database, str, Configuration, bool], Summary]
    maintains: bool = True
    finish: Callable[[Database, Sequence[str]], None] | None = None
    stream: Callable[[Configuration, str], str] | None = None
    reads: Callable[[Configuration, str], tuple[str, str] | None] | None = None


@dataclass(frozen=True)
class Step:
    """One job on one object."""

    job: str
    object: str


def _ingest(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.ingest.job import ingest
    from patternlake.jobs.ingest.matches import ingest_matches

    stream = configuration.streams[name]
    if configuration.emitted(name) is not None:
        return ingest_matches(database, name, stream, rebuild=rebuild)
    warned = configuration.quarantine_warning if stream.quarantine_warning is None else stream.quarantine_warning
    return ingest(database, name, stream, rebuild=rebuild, quarantine_warning=warned)


def _sketch(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.sketch.job import sketch

    return sketch(database, name, configuration.sketches[name], rebuild=rebuild)


def _trends(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.trends.job import trends

    return trends(database, name, configuration.trends[name], rebuild=rebuild)


def _groups(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.groups.job import groups

    return groups(database, name, configuration.groups[name], rebuild=rebuild)


def _patterns(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.patterns.job import patterns

    return patterns(database, name, configuration.patterns[name], rebuild=rebuild)


def _predict(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.predict.job import predict

    kept = configuration.kept_forecasts
    return predict(database, name, configuration.subscriptions_to(name), kept_forecasts=kept, rebuild=rebuild)


def _alerts(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.alerts.job import alerts

    stream = configuration.stream_of_alert(name)
    return alerts(database, name, configuration.alerts[name], stream=stream, rebuild=rebuild)


def _evaluate(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.evaluate.job import evaluate

    assert configuration.evaluate is not None
    return evaluate(database, name, configuration.subscriptions_to(name), configuration.evaluate, rebuild=rebuild)


def _maintain(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.maintain.job import maintain

    return maintain(database, name, configuration)


def _tidied(database: Database, names: Sequence[str]) -> None:
    from patternlake.jobs.maintain.job import tidied

    tidied(database, names)


def _stream_of_trend(configuration: Configuration, name: str) -> str:
    return configuration.trends[name].stream


def _stream_of_group(configuration: Configuration, name: str) -> str:
    return configuration.groups[name].stream


def _stream_of_pattern(configuration: Configuration, name: str) -> str:
    return configuration.patterns[name].stream


def _stream_of_alert(configuration: Configuration, name: str) -> str:
    return configuration.stream_of_alert(name)


def _read_by_ingest(configuration: Configuration, name: str) -> tuple[str, str] | None:
    emitted = configuration.emitted(name)
    return None if emitted is None else ("predict", emitted.stream)


def _read_by_alert(configuration: Configuration, name: str) -> tuple[str, str]:
    alert = configuration.alerts[name]
    return alert.reads(configuration.stream_of_alert(name))


JOBS: dict[str, Job] = {
    "ingest": Job(lambda configuration: configuration.streams, _ingest, reads=_read_by_ingest),
    "sketch": Job(lambda configuration: configuration.sketches, _sketch),
    "trends": Job(lambda configuration: configuration.trends, _trends, stream=_stream_of_trend),
    "groups": Job(lambda configuration: configuration.groups, _groups, stream=_stream_of_group),
    "patterns": Job(lambda configuration: configuration.patterns, _patterns, stream=_stream_of_pattern),
    "predict": Job(lambda configuration: configuration.watched, _predict),
    "alerts": Job(lambda configuration: configuration.alerts, _alerts, stream=_stream_of_alert, reads=_read_by_alert),
    "evaluate": Job(lambda configuration: configuration.subscribed if configuration.evaluate else (), _evaluate),
    "maintain": Job(lambda configuration: configuration.streams, _maintain, maintains=False, finish=_tidied),
}
"""Jobs by name, in the order in which they depend on each other."""


def steps(
    configuration: Configuration, job: str = ALL, *, object: str | None = None, rebuild: bool = False
) -> list[Step]:
    """List what a run does, in order; nothing is run, and no Spark session is needed.

    Parameters
    ----------
    configuration
        What is configured.
    job
        A name of `JOBS`, or ``all``.
    object
        Only this object; for ``all``, every job that has an object of this name.
    rebuild
        Whether the run is going to rebuild.

    Raises
    ------
    ArgumentError
        There is no such job or object, or the job has nothing to rebuild.
    """
    if job != ALL and job not in JOBS:
        known = [*JOBS, ALL]
        raise ArgumentError(f"there is no job {job!r}{suggest(job, known)}; jobs are {', '.join(known)}")
    if rebuild and job != ALL and not JOBS[job].maintains:
        able = ", ".join(name for name, each in JOBS.items() if each.maintains)
        raise ArgumentError(f"the job {job!r} has nothing to rebuild; jobs that have: {able}, {ALL}")
    found = [Step(name, each) for name in (JOBS if job == ALL else [job]) for each in JOBS[name].objects(configuration)]
    # All that is done with a stream comes before what is made of its matches; maintenance stays the last.
    found.sort(key=lambda step: (not JOBS[step.job].maintains, _depth(configuration, step)))
    if object is None:
        return found
    chosen = [step for step in found if step.object == object]
    if not chosen:
        names = list(dict.fromkeys(step.object for step in found))
        quoted = ", ".join(map(repr, names)) or "none"
        raise ArgumentError(
            f"nothing is configured for {job} under {object!r}{suggest(object, names)}; known: {quoted}"
        )
    return chosen


def _stream(configuration: Configuration, step: Step) -> str:
    """The stream that a step reads."""
    stream = JOBS[step.job].stream
    return step.object if stream is None else stream(configuration, step.object)


def _has_no_matches_yet(database: Database, configuration: Configuration, step: Step) -> bool:
    """Whether a step would read matches, and `ingest` has published none: the first of them come when they come."""
    stream = _stream(configuration, step)
    if step.job == "ingest" or configuration.emitted(stream) is None:
        return False
    return PublicationsReader(database).latest("ingest", stream) is None


def _depth(configuration: Configuration, step: Step) -> int:
    """How many streams of matches the stream of a step is the last of."""
    return configuration.depth(_stream(configuration, step))


def waited_for(planned: Sequence[Step], configuration: Configuration) -> list[set[int]]:
    """By step, the numbers of the steps that must have ended before it begins.

    Those are the ingest of the stream that it reads, every earlier step of an object of its name, and the job whose
    results it reads. What publishes
    no state of its own, which is maintenance, waits for everything that does. A stream that reads tables of the
    database itself waits for the streams before it, and all other jobs wait for it: they may write what it reads.
    """
    from_within = {name for name in configuration.streams if configuration.feeds_on_itself(name)}
    found: list[set[int]] = []
    for number, step in enumerate(planned):
        job, earlier = JOBS[step.job], list(enumerate(planned[:number]))
        if not job.maintains:
            found.append({place for place, other in earlier if JOBS[other.job].maintains})
            continue
        streams = from_within | {_stream(configuration, step)}
        read = None if job.reads is None else job.reads(configuration, step.object)
        if step.job == "ingest":
            streams = set(configuration.streams) if step.object in from_within else set()
        found.append(
            {
                place
                for place, other in earlier
                if other.object == step.object
                or (other.job == "ingest" and other.object in streams)
                or (other.job, other.object) == read
            }
        )
    return found


def run(
    spark: SparkSession,
    configuration: str | PathLike[str] | Configuration,
    job: str = ALL,
    *,
    object: str | None = None,
    rebuild: bool = False,
    progress: Progress | None = None,
    side_by_side: int | None = None,
) -> list[Summary]:
    """Run jobs on everything that is configured for them, or on one object.

    May be called at any time and as often as wanted: a job does what its last publication left undone, and a run that
    died is taken over. The first error stops the run: nothing more begins, what is at work beside it is done to its
    end, and what was published stays.

    Parameters
    ----------
    spark
        A Delta-ready session, not one of Spark Connect.
    configuration
        The configuration, or its file.
    job
        A name of `JOBS`, or ``all``: every job, those first whose results others read, maintenance last. Maintenance
        is part of ``all`` because ``all`` is what a scheduler calls: were it left out, a database that follows the
        sample schedules would grow for ever.
    object
        Only this object.
    rebuild
        Start the objects anew, under the configuration as it is now; the former state stays readable by `as_of`
        until maintenance forgets it.
    progress
        Hears of every object, in the thread that calls; by default, the output of the cell in a notebook, and
        elsewhere the log.
    side_by_side
        How many jobs of different objects may run at once; 1: one after another. None: half as many as there are
        cores, 4 at the most.

    Returns
    -------
    list of Summary
        One per job and object, in the order of the run.

    Raises
    ------
    ConfigurationError
        The file has problems, one line each.
    ArgumentError
        There is no such job or object, the job has nothing to rebuild, or `side_by_side` is not 1 or more.
    PatternLakeError
        From a job: of its own class, with the job's and the object's name in the message. Where several have failed,
        the first of them in the order of the run; the log, at level ERROR, has the others.
    """
    sides.check(side_by_side)
    loaded = configuration if isinstance(configuration, Configuration) else Configuration.load(configuration)
    planned = steps(loaded, job, object=object, rebuild=rebuild)
    database = open_database(spark, loaded.database, loaded.location)
    with default_progress(spark) if progress is None else nullcontext(progress) as heard:
        return list(perform(database, loaded, planned, rebuild=rebuild, progress=heard, side_by_side=side_by_side))


def perform(
    database: Database,
    configuration: Configuration,
    planned: Iterable[Step],
    *,
    rebuild: bool = False,
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
    rebuild, progress, side_by_side
        As for `run`.
    sparing
        Maintain only what an earlier step took further: for rounds that follow each other closely.

    Yields
    ------
    Summary
        In the order of the steps: each as soon as it and those before it are there. After an error, those of all steps
        that have ended well.
    """
    heard = progress or LoggedProgress()
    listed = list(planned)
    if not listed:
        return
    sparing = sparing and any(JOBS[step.job].maintains for step in listed)
    taken_further: set[str] = set()
    ended: dict[int, Summary | None] = {}
    failed: dict[int, Exception] = {}

    def begin(number: int) -> Callable[[], Summary] | None:
        step = listed[number]
        job = JOBS[step.job]
        if sparing and not job.maintains and step.object not in taken_further:
            return None
        heard.begin(step.job, step.object, number + 1, len(listed))

        def work() -> Summary:
            # In the thread that works: what it is at is told by where it is.
            with heard.working(step.job, step.object):
                if _has_no_matches_yet(database, configuration, step):
                    logger.info("%s of %r: its stream of matches has none yet", step.job, step.object)
                    return Summary(step.job, step.object, None, 0, 0, 0, 0, 0.0)
                return job.work(database, step.object, configuration, rebuild and job.maintains)

        return work

    told = 0
    crew = sides.crew(database.spark, side_by_side, len(listed))
    with closing(sides.ended(waited_for(listed, configuration), begin, crew)) as endings:
        for each in endings:
            if each.error is not None:
                failed[each.number] = each.error
                continue
            ended[each.number] = each.result
            if each.result is not None:
                heard.end(each.result)
                if each.result.batches:
                    taken_further.add(each.result.object)
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
            with heard.working(name, ", ".join(worked_on)):
                finish(database, worked_on)


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
