"""From measured figures to what more events cost: files, logs, memory, seconds; every assumption stands in a docstring.

The stream is that of `benchmarks.events`. Sizes of blocks, parts and ranges are the code's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.events import NAMES, OCCURRENCES, RARE
from benchmarks.scale_constants import read_measured
from patternlake.delta_tables.batches.upkeep import MERGED_FILES
from patternlake.delta_tables.schema.table import CHECKPOINT_INTERVAL
from patternlake.jobs.ingest.ordering import MOST_RANGES, RANGE_ROWS
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.sketch.batch import PART_EVENTS

MILLION = 1_000_000
HUNDRED = 100 * MILLION
"""Events of the lake whose files were counted."""
BLOCK = 1 << BLOCK_BITS
CORES = 2
"""That everything was measured on."""
JOBS = ("ingest", "sketch", "trends", "groups", "predict")
SMALL = 512 << 20
"""Bytes from which on `maintain` merges a file no more."""
SOURCE_FILES = 2
"""That each batch takes in."""
_SIDE_BY_SIDE = 5
"""Of the fiftieths of the stream, those whose rare names stand in one leaf."""


@dataclass(frozen=True)
class Time:
    """Seconds of a job for a whole stream.

    Attributes
    ----------
    fixed
        What each batch takes however few events it has; more cores make nothing of it faster.
    work
        What grows with the events; goes by the cores.
    log
        What grows with the files that are there already, batch by batch; in the driver.
    """

    fixed: float
    work: float
    log: float

    @property
    def total(self) -> float:
        """All three."""
        return self.fixed + self.work + self.log


@dataclass(frozen=True)
class Load:
    """A stream of so many events, taken in by so many batches of one size, on so many cores."""

    events: int
    batches: int
    cores: int = CORES

    @property
    def batch(self) -> int:
        """Events of a batch."""
        return -(-self.events // self.batches)

    @property
    def ranges(self) -> int:
        """Into how many ranges `ingest` cuts a batch, as `ordering.cut_times` does: one task each."""
        least = self.cores if self.batch >= RANGE_ROWS // 5 else 1
        return min(MOST_RANGES, max(-(-self.batch // RANGE_ROWS), least))

    @property
    def event_files(self) -> int:
        """Files of `events`: one for each block and range of a batch that meet.

        A range or a batch that ends within a block leaves one file more. Small files of a block are merged once there
        are `MERGED_FILES`, so that it keeps one less at most.
        """
        blocks = -(-self.events // BLOCK)
        ends = self.batches - 1 if self.batch % BLOCK else 0
        return min(blocks + ends + self.batches * (self.ranges - 1), blocks * (MERGED_FILES - 1))

    @property
    def parts(self) -> int:
        """Files of the sketch's bodies: one for each part."""
        return -(-self.events // PART_EVENTS)

    @property
    def sketch_files(self) -> int:
        """Files of the sketch, of one batch or of several whose tops are not merged.

        The segment that is open at the end of a batch is written again by the next one.
        """
        return round(self.parts + self.batches - 1 + self._share(read_measured("files of tops")))

    def _share(self, of_hundred: float) -> float:
        return of_hundred * self.events / HUNDRED

    def of(self, constant: str) -> float:
        """What a constant of 100 M events is of this stream, in proportion."""
        return self._share(read_measured(constant))

    @property
    def log_bytes(self) -> tuple[float, float]:
        """JSON of the logs of `events` and of the sketch, in proportion to their files."""
        former = Load(HUNDRED, 10), Load(HUNDRED, 1)
        return (
            read_measured("log of events") * self.event_files / former[0].event_files,
            read_measured("log of the sketch") * self.sketch_files / former[1].sketch_files,
        )

    @property
    def checkpoints(self) -> int:
        """Checkpoints of one table while the stream is taken in: a commit of each batch, at least."""
        return self.batches // CHECKPOINT_INTERVAL

    @property
    def checkpoint_bytes(self) -> tuple[float, float]:
        """Of the last checkpoint of `events`, and of all: each holds all files that there are by then."""
        last = self.event_files * read_measured("checkpoint of 1,000,000 files") / MILLION
        return last, last * (self.checkpoints + 1) / 2 if self.checkpoints else 0.0

    @property
    def driver_bytes(self) -> tuple[float, float]:
        """Memory that the logs of `events` and of the sketch take: of the driver's Python, of Spark's heap.

        In Python both stay open; Spark's heap was measured with one of them open.
        """
        files = self.event_files + self.sketch_files
        return files * _slope("memory of delta-rs"), files * _slope("heap")

    @property
    def looks(self) -> float:
        """Seconds for which Spark looks at the log of `events`, once in each batch of a job.

        What a look takes beyond one of 10,000 files, in proportion to the files that there are by then: half of the
        last ones in the mean.
        """
        return self.batches * self.event_files / 2 * _slope("look of Spark")

    def time(self, job: str) -> Time:
        """Seconds of a job that follows each batch of `ingest`.

        Work goes by the cores, as far as a batch has tasks for them; measured were one core and two. Of `predict` one
        size was measured, so all of it counts as work. What batches cost because partitions have state from before, and
        because graphs of the last panes are made anew, was not measured and is left out.
        """
        fixed, slope = lines()[job]
        once = _ingest()[0] if job == "ingest" else 0.0
        tasks = self.ranges if job == "ingest" else max(self.cores, -(-self.batch // RANGE_ROWS))
        cores = min(self.cores, tasks)
        written = self.checkpoints * self.event_files / 2 * _slope("writing a checkpoint")
        log = self.looks + (written if job == "ingest" else 0.0)
        return Time(once + self.batches * fixed, self.events * slope * CORES / cores, log)

    def merged_tops(self, keyed: bool) -> float:
        """Bytes of the sketch's tops that are written again where `maintain` follows each batch.

        It merges them into one file after each batch, until that is too large, and `sketch` writes the file that holds
        the open segment again, to close it.
        """
        whole = self.of("tops of the keyed sketch" if keyed else "tops of the sketch")
        each = whole / self.batches
        together = max(1.0, min(self.batches, SMALL / each))
        return 2 * whole * (together + 1) / 2 if self.batches > 1 else 0.0

    @property
    def source_list(self) -> float:
        """Bytes that Spark writes as the list of the source's files: anew with every tenth batch."""
        return read_measured("a file in the source's list") * SOURCE_FILES * self.batches * (self.batches / 10 + 1) / 2

    @property
    def read_again(self) -> float:
        """Events that batches read which look through all events before them."""
        return self.events * (self.batches - 1) / 2

    @property
    def segment_steps(self) -> float:
        """Segments that the batches of `sketch` go through one by one, to sum their sizes."""
        return self.events / PART_EVENTS * (self.batches + 1) / 2

    @property
    def statistics_bytes(self) -> float:
        """Rows of `event_statistics` in the driver's Python, for each name and batch one."""
        return read_measured("a name's row of statistics") * (NAMES + len(RARE)) * self.batches

    @property
    def rare_parts(self) -> float:
        """Parts that hold one of two rare names, each in fifty places, or seem to."""
        places = 2 * OCCURRENCES - _SIDE_BY_SIDE
        return self.parts * (1 - (1 - 1 / self.parts) ** places) + 2 * self.parts * top_errors()

    @property
    def rare_bytes(self) -> float:
        """What `match_seq` reads for two rare names: all tops, and the bodies of the parts that may hold one."""
        body = read_measured("bodies of the sketch") / Load(HUNDRED, 1).parts
        return self.of("tops of the sketch") + self.rare_parts * body

    @property
    def key_bytes(self) -> float:
        """What `match_seq` reads for a key: all tops, and the bodies of the parts where the key has such names."""
        body = read_measured("bodies of the keyed sketch") / Load(HUNDRED, 1).parts
        return self.of("filters of the keyed tops") + self.of("parts read for one key") * body

    @property
    def rare_seconds(self) -> tuple[float, float]:
        """Of `match_seq` for two rare names, and with verify: for as many bytes as long as at 100 M."""
        bytes_ = self.rare_bytes
        read = read_measured("read for match_seq, rare")
        more = read_measured("read for match_seq, rare, verify") - read
        return (
            read_measured("match_seq, rare") * bytes_ / read,
            read_measured("match_seq, rare, verify") * (bytes_ + more) / (read + more),
        )


def top_errors() -> float:
    """How often a top's filter shows a name that it lacks, as it is sized at 100 M (m bits, k hashes)."""
    bits, hashes, names = 9_256, 6, NAMES + len(RARE)
    return float((1 - (1 - 1 / bits) ** (hashes * names)) ** hashes)


def lines() -> dict[str, tuple[float, float]]:
    """Of each job the seconds of a batch and of an event, through what was measured at 1 and at 10 million."""
    _, fixed, slope = _ingest()
    found = {"ingest": (fixed, slope)}
    for job in ("sketch", "trends", "groups"):
        one, ten = read_measured(f"{job} of 1 M"), read_measured(f"{job} of 10 M")
        each = (ten - one) / (9 * MILLION)
        found[job] = (one - each * MILLION, each)
    found["predict"] = (0.0, read_measured("predict of 1 M") / MILLION)
    return found


def _ingest() -> tuple[float, float, float]:
    """Seconds of `ingest`: once in a process that begins, of each batch, of each event."""
    one, ten, later = (read_measured(f"ingest, {what}") for what in _INGESTED)
    each = (ten - one) / (9 * MILLION)
    fixed = later - 10 * MILLION * each
    return one - fixed - MILLION * each, fixed, each


_INGESTED = ("first batch of 1 M", "first batch of 10 M", "later batch of 10 M")


def _slope(what: str) -> float:
    """What one file more adds, between logs of 10,000 files and of a million."""
    return (read_measured(f"{what}, 1,000,000 files") - read_measured(f"{what}, 10,000 files")) / 990_000
