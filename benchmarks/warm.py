"""A warm call of `match_seq` beside a warm count of one name's events, taking turns."""

from __future__ import annotations

from typing import Any

from benchmarks.lakes import make_lake, new_folder, sketch_configuration
from benchmarks.measuring import side_by_side
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session

REHEARSALS = 3


def measure(events: int, repeats: int) -> dict[str, Any]:
    """Seconds of the count on the view `events`, of `match_seq` and of `match_seq` with verify."""
    texts = {
        "count": f"SELECT count(*) FROM patternlake.events WHERE stream = '{STREAM}' AND name = 'rare0'",
        "match_seq": f"SELECT * FROM match_seq('{STREAM}', 'rare0 ; rare1', verify => false)",
        "verify": f"SELECT * FROM match_seq('{STREAM}', 'rare0 ; rare1')",
    }
    with new_folder(f"warm_{events}") as folder, spark_session(folder) as spark:
        make_lake(spark, folder, events).build(sketch_configuration(events))
        actions = {name: (lambda text=text: ask(spark, text)) for name, text in texts.items()}
        side_by_side(actions, REHEARSALS)
        return {"events": events, "repeats": repeats, "texts": texts, "seconds": side_by_side(actions, repeats)}
