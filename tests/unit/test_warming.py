"""What is compiled at set-up is what the jobs run: they meet no types of arrays that were not compiled for."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from naive.machine_cases import random_events
from unit.machines.test_machine_batches import engine, found_by, table

from patternlake.udfs import warming
from patternlake.udfs.machines.batch_rows import INSTANCE

pytestmark = pytest.mark.slow


def signatures() -> set[tuple[str, Any]]:
    """Every kernel of the package with the types that it is compiled for so far."""
    return {
        (f"{value.__module__}.{value.__name__}", signature)
        for name, module in list(sys.modules.items())
        if name.startswith("patternlake.udfs.")
        for value in vars(module).values()
        if hasattr(value, "nopython_signatures")
        for signature in value.nopython_signatures
    }


def test_what_the_jobs_call_is_compiled_for_the_types_that_they_call_it_with() -> None:
    assert [jobs for jobs, _ in warming.warm()] == list(warming.WARMED)
    compiled = signatures()
    for kernel in (
        "patternlake.udfs.sketch.hashing._write_keyed",
        "patternlake.udfs.trends.sweep.sweep",
        "patternlake.udfs.groups.running._run",
        "patternlake.udfs.machines.running._run",
        "patternlake.udfs.machines.trials._judge",
    ):
        assert kernel in {name for name, _ in compiled}
    # Other subscriptions, over other types, by key and not, with what an earlier batch remembers.
    events = sorted(random_events(random.Random(1), 40), key=lambda event: (event.time, event.position))
    for partition in ("PARTITION BY key", ""):
        found = found_by(engine(partition), table(events[:20], partition, []).to_batches())
        instances = [row for row in found if row["kind"] == INSTANCE]
        found_by(engine(partition), table(events[20:], partition, instances).to_batches())
    assert signatures() == compiled
