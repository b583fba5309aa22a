"""Which jobs there are, on which objects, and what must have ended before each begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from patternlake.delta_tables.committing.database import Database
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.configuration.written import write_origin, write_section, write_stream, write_subscriptions
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.nearest_names import did_you_mean

ALL = "all"
"""Every job, maintenance too: it is what a scheduler calls, whose database would grow for ever without."""

_How = TypeVar("_How", bool, str)


@dataclass(frozen=True)
class Job:
    """One job.

    Parameters
    ----------
    objects
        Names of what it works on, given the configuration.
    work
        Takes one object further: database, object, configuration, rebuild → summary. The job's own function is given
        the open database, the object's name, its section of the configuration, and whether to start anew, with the
        configuration as it is now.
    maintains
        Whether the job publishes state of its own, which can be rebuilt and has a status.
    finish
        What is left to do once for all objects that a run worked on, after the last of them.
    stream
        Name of the stream that an object reads; that of the object where there is no such function.
    reads
        Job and object whose results an object reads, where that is another one than the stream's ingest.
    backfill
        Does the work, and takes in the late rows of a span: database, object, configuration, ``FROM..TO`` → summary.
    """

    objects: Callable[[Configuration], Iterable[str]]
    work: Callable[[Database, str, Configuration, bool], Summary]
    maintains: bool = True
    finish: Callable[[Database, Sequence[str]], None] | None = None
    stream: Callable[[Configuration, str], str] | None = None
    reads: Callable[[Configuration, str], tuple[str, str] | None] | None = None
    backfill: Callable[[Database, str, Configuration, str], Summary] | None = None


@dataclass(frozen=True)
class Step:
    """One job on one object."""

    job: str
    object: str


def _keep(
    section: Callable[[Configuration, str], Mapping[str, Any] | None],
) -> Callable[[Callable[[Database, str, Configuration, _How], Summary]], Callable[..., Summary]]:
    """Let what a job publishes keep the section of the configuration that it was run with."""

    def keep(work: Callable[[Database, str, Configuration, _How], Summary]) -> Callable[..., Summary]:
        @wraps(work)
        def keep_and_work(database: Database, name: str, configuration: Configuration, how: _How) -> Summary:
            written = write_origin(configuration, section(configuration, name))
            return work(replace(database, written=written), name, configuration, how)

        return keep_and_work

    return keep


@_keep(write_stream)
def _ingest(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    return _take_in(database, name, configuration, rebuild=rebuild)


@_keep(write_stream)
def _backfill(database: Database, name: str, configuration: Configuration, span: str) -> Summary:
    return _take_in(database, name, configuration, span=span)


def _take_in(
    database: Database, name: str, configuration: Configuration, *, rebuild: bool = False, span: str | None = None
) -> Summary:
    from patternlake.delta_tables.databases.stream_views import view_streams
    from patternlake.jobs.ingest.backfill import parse_span
    from patternlake.jobs.ingest.job import ingest
    from patternlake.jobs.ingest.matches import ingest_matches

    stream = configuration.streams[name]
    if configuration.emitted(name) is not None:
        summary = ingest_matches(database, name, stream, rebuild=rebuild)
    else:
        warned = configuration.quarantine_warning if stream.quarantine_warning is None else stream.quarantine_warning
        backfill = None if span is None else parse_span(span, stream.timezone)
        summary = ingest(database, name, stream, rebuild=rebuild, backfill=backfill, quarantine_warning=warned)
    if summary.batches:
        view_streams(database, name)
    return summary


@_keep(lambda configuration, name: write_section(configuration.sketches[name]))
def _sketch(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.sketch.job import sketch

    return sketch(database, name, configuration.sketches[name], rebuild=rebuild)


@_keep(lambda configuration, name: write_section(configuration.trends[name]))
def _trends(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.trends.job import trends

    return trends(database, name, configuration.trends[name], rebuild=rebuild)


@_keep(lambda configuration, name: write_section(configuration.groups[name]))
def _groups(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.groups.job import groups

    return groups(database, name, configuration.groups[name], rebuild=rebuild)


@_keep(lambda configuration, name: write_section(configuration.patterns[name]))
def _patterns(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.patterns.job import patterns

    return patterns(database, name, configuration.patterns[name], rebuild=rebuild)


@_keep(write_subscriptions)
def _predict(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.predict.job import predict

    kept = configuration.kept_forecasts
    return predict(database, name, configuration.subscriptions_to(name), kept_forecasts=kept, rebuild=rebuild)


@_keep(lambda configuration, name: write_section(configuration.alerts[name]))
def _alerts(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.alerts.job import alerts

    stream = configuration.stream_of_alert(name)
    return alerts(database, name, configuration.alerts[name], stream=stream, rebuild=rebuild)


@_keep(lambda configuration, name: None if configuration.evaluate is None else write_section(configuration.evaluate))
def _evaluate(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.evaluate.job import evaluate

    assert configuration.evaluate is not None
    return evaluate(database, name, configuration.subscriptions_to(name), configuration.evaluate, rebuild=rebuild)


def _maintain(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
    from patternlake.jobs.maintain.job import maintain

    return maintain(database, name, configuration)


def _tidy(database: Database, names: Sequence[str]) -> None:
    from patternlake.jobs.maintain.job import tidy_files

    tidy_files(database, names)


def _read_by_ingest(configuration: Configuration, name: str) -> tuple[str, str] | None:
    emitted = configuration.emitted(name)
    return None if emitted is None else ("predict", emitted.stream)


def _read_by_alert(configuration: Configuration, name: str) -> tuple[str, str]:
    alert = configuration.alerts[name]
    return alert.reads(configuration.stream_of_alert(name))


JOBS: dict[str, Job] = {
    "ingest": Job(lambda config: config.streams, _ingest, backfill=_backfill, reads=_read_by_ingest),
    "sketch": Job(lambda config: config.sketches, _sketch),
    "trends": Job(lambda config: config.trends, _trends, stream=lambda config, name: config.trends[name].stream),
    "groups": Job(lambda config: config.groups, _groups, stream=lambda config, name: config.groups[name].stream),
    "patterns": Job(
        lambda config: config.patterns, _patterns, stream=lambda config, name: config.patterns[name].stream
    ),
    "predict": Job(lambda config: config.watched, _predict),
    "alerts": Job(lambda config: config.alerts, _alerts, stream=Configuration.stream_of_alert, reads=_read_by_alert),
    "evaluate": Job(lambda config: config.subscribed if config.evaluate else (), _evaluate),
    "maintain": Job(lambda config: config.streams, _maintain, maintains=False, finish=_tidy),
}
"""Jobs by name, in the order in which they depend on each other."""


def steps(
    configuration: Configuration,
    job: str | Sequence[str] = ALL,
    *,
    object: str | None = None,
    rebuild: bool = False,
) -> list[Step]:
    """List what a run does, in order; nothing is run, and no Spark session is needed.

    Parameters
    ----------
    configuration
        What is configured.
    job
        A name of `JOBS`, or ``all``; or several.
    object
        Only this object, of each of the jobs that has one of this name.
    rebuild
        Whether the run is going to rebuild.

    Raises
    ------
    ArgumentError
        There is no such job or object, or a job has nothing to rebuild.
    """
    asked = [job] if isinstance(job, str) else list(job)
    chosen_jobs = _choose_jobs(asked, rebuild)
    found = [Step(name, each) for name in chosen_jobs for each in JOBS[name].objects(configuration)]
    # All that is done with a stream comes before what is made of its matches; maintenance stays the last.
    found.sort(key=lambda step: (not JOBS[step.job].maintains, _depth(configuration, step)))
    if object is None:
        return found
    chosen = [step for step in found if step.object == object]
    if not chosen:
        names = list(dict.fromkeys(step.object for step in found))
        quoted = ", ".join(map(repr, names)) or "none"
        raise ArgumentError(
            f"nothing is configured for {', '.join(asked)} under {object!r}{did_you_mean(object, names)}; "
            f"known: {quoted}"
        )
    return chosen


def check_backfill(span: str | None, planned: Iterable[Step], *, rebuild: bool) -> None:
    """Refuse a backfill that no step does, or whose span is none; None: there is none.

    Raises
    ------
    ArgumentError
        See there.
    """
    if span is None:
        return
    from patternlake.jobs.ingest.backfill import parse_span

    parse_span(span)
    if rebuild:
        raise ArgumentError("a rebuild reads all rows of the source, late ones too; leave the backfill out")
    if not any(JOBS[step.job].backfill for step in planned):
        raise ArgumentError("a backfill is done by the job 'ingest' of a stream; name it among the jobs")


def _choose_jobs(asked: Sequence[str], rebuild: bool) -> list[str]:
    """The jobs that are asked for, each once, in the order of `JOBS`."""
    known = [*JOBS, ALL]
    if not asked:
        raise ArgumentError(f"no job is named; jobs are {', '.join(known)}")
    for name in asked:
        if name not in known:
            raise ArgumentError(f"there is no job {name!r}{did_you_mean(name, known)}; jobs are {', '.join(known)}")
        if rebuild and name != ALL and not JOBS[name].maintains:
            able = ", ".join(other for other, each in JOBS.items() if each.maintains)
            raise ArgumentError(f"the job {name!r} has nothing to rebuild; jobs that have: {able}, {ALL}")
    return [name for name in JOBS if name in asked or ALL in asked]


def stream_of(configuration: Configuration, step: Step) -> str:
    """The name of the stream that a step reads."""
    stream = JOBS[step.job].stream
    return step.object if stream is None else stream(configuration, step.object)


def _depth(configuration: Configuration, step: Step) -> int:
    """How many streams of matches the stream of a step is the last of."""
    return configuration.depth(stream_of(configuration, step))


def find_waits(planned: Sequence[Step], configuration: Configuration) -> list[set[int]]:
    """By step, the numbers of the steps that must have ended before it begins.

    Those are the ingest of the stream that it reads, every earlier step of an object of its name, and the job whose
    results it reads. What publishes no state of its own, which is maintenance, waits for everything that does. A stream
    that reads tables of the database itself waits for the streams before it, and all other jobs wait for it: they may
    write what it reads.
    """
    from_within = {name for name in configuration.streams if configuration.feeds_on_itself(name)}
    found: list[set[int]] = []
    for number, step in enumerate(planned):
        job, earlier = JOBS[step.job], list(enumerate(planned[:number]))
        if not job.maintains:
            found.append({place for place, other in earlier if JOBS[other.job].maintains})
            continue
        streams = from_within | {stream_of(configuration, step)}
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
