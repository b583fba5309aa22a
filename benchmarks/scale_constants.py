"""What `benchmarks.scale` counts with: measured figures, with their units and the lines of docs/performance.md.

Whoever measures anew edits a number here and in that line, and runs ``python -m benchmarks.scale --write``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """A measured figure.

    Attributes
    ----------
    name
        What it is.
    value, unit
        How much; seconds are on two cores.
    where
        A piece of the line of docs/performance.md that tells it.
    """

    name: str
    value: float
    unit: str
    where: str


_FILES = "| `events`, 100 M |"
_SKETCH = "| `sketch_nodes`, 100 M |"
_KEYED = "| `sketch_nodes`, keyed, 100 M |"
_RARE = "| SEQ of 2, rare, 100 M |"
_KEY = "| one key of 100,000, 100 M |"
_COUNTING = "| 10 M (1,001 windows) |"
_LOOK = "| Spark plans a scan after a commit, seconds |"
_CHECKPOINT = "| checkpoint, bytes |"
_WRITING = "| Spark writes it, seconds |"
_HEAP = "| Spark's heap after a collection, bytes |"
_RUST = "| delta-rs after a commit, seconds |"
_OPENING = "| delta-rs opens the log, seconds |"
_PYTHON = "| memory of delta-rs, bytes |"

CONSTANTS = (
    Constant("ingest, first batch of 1 M", 6.5, "s", "| `ingest`, first batch of 1 M |"),
    Constant("ingest, first batch of 10 M", 13.0, "s", "| `ingest`, first batch of 10 M |"),
    Constant("ingest, later batch of 10 M", 9.4, "s", "| `ingest`, mean of nine later batches of 10 M |"),
    Constant("sketch of 1 M", 6.3, "s", "| `sketch` of 1 M |"),
    Constant("sketch of 10 M", 7.7, "s", "| `sketch` of 10 M |"),
    Constant("keyed sketch of 100 M", 169.7, "s", "| `sketch` of 100 M, keyed |"),
    Constant("trends of 1 M", 1.8, "s", "| `trends` | 1 M |"),
    Constant("trends of 10 M", 14.8, "s", "| `trends` | 10 M |"),
    Constant("groups of 1 M", 1.0, "s", "| `groups` | 1 M |"),
    Constant("groups of 10 M", 15.3, "s", "| `groups` | 10 M |"),
    Constant("predict of 1 M", 3.8, "s", "| `predict` | 1 M |"),
    Constant("files of events", 1_111_525_003, "bytes of 100 M", _FILES),
    Constant("log of events", 603_506, "bytes of 100 M", _FILES),
    Constant("bodies of the sketch", 336_709_476, "bytes of 100 M", _SKETCH),
    Constant("tops of the sketch", 732_215, "bytes of 100 M", _SKETCH),
    Constant("files of tops", 66, "files of 100 M", _SKETCH),
    Constant("log of the sketch", 516_118, "bytes of 100 M", _SKETCH),
    Constant("filters of the sketch", 289_863_199, "bytes of 100 M", _SKETCH),
    Constant("bodies of the keyed sketch", 1_498_175_331, "bytes of 100 M", _KEYED),
    Constant("tops of the keyed sketch", 273_658_897, "bytes of 100 M", _KEYED),
    Constant("filters of the keyed tops", 111_338_881, "bytes of 100 M", _KEYED),
    Constant("filters and keys of the keyed sketch", 2_376_891_519, "bytes of 100 M", _KEYED),
    Constant("a name's row of statistics", 48.6, "bytes in Arrow", "| `event_statistics`, 100 M |"),
    Constant("a file in the source's list", 178, "bytes", "| the checkpoint's list of 20 source files |"),
    Constant("match_seq, rare", 0.38, "s at 100 M", _RARE),
    Constant("match_seq, rare, verify", 0.51, "s at 100 M", _RARE),
    Constant("read for match_seq, rare", 31_105_845, "bytes of 100 M", _RARE),
    Constant("read for match_seq, rare, verify", 32_360_151, "bytes of 100 M", _RARE),
    Constant("parts read for one key", 233, "parts of 100 M", _KEY),
    Constant("match_seq, one key", 1.31, "s at 100 M", _KEY),
    Constant("match_seq, one key, verify", 3.27, "s at 100 M", _KEY),
    Constant("cet_count, all windows", 5.4, "s at 10 M", _COUNTING),
    Constant("cet_count, 60 windows", 0.44, "s at 10 M", _COUNTING),
    Constant("predict_match", 0.29, "s, 1.6 M live instances", "| `predict_match`, 87,557 forecasts |"),
    Constant("look of Spark, 10,000 files", 4.5, "s of processor time", _LOOK),
    Constant("look of Spark, 1,000,000 files", 32.8, "s of processor time", _LOOK),
    Constant("checkpoint of 1,000,000 files", 122_080_886, "bytes", _CHECKPOINT),
    Constant("writing a checkpoint, 10,000 files", 17.6, "s of processor time", _WRITING),
    Constant("writing a checkpoint, 1,000,000 files", 74.5, "s of processor time", _WRITING),
    Constant("heap, 10,000 files", 119_908_240, "bytes", _HEAP),
    Constant("heap, 1,000,000 files", 2_280_427_008, "bytes", _HEAP),
    Constant("delta-rs opens 1,000,000 files", 4.89, "s of processor time", _OPENING),
    Constant("look of delta-rs, 1,000,000 files", 4.55, "s of processor time", _RUST),
    Constant("memory of delta-rs, 10,000 files", 87_142_400, "bytes", _PYTHON),
    Constant("memory of delta-rs, 1,000,000 files", 1_618_112_512, "bytes", _PYTHON),
)

_VALUES = {constant.name: constant.value for constant in CONSTANTS}


def read_measured(name: str) -> float:
    """The value of a constant."""
    return _VALUES[name]
