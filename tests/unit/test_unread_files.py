"""Files that were not read, or were changed after that, told without Spark from two lists of them."""

from __future__ import annotations

import random

from patternlake.jobs.ingest.unread_files import _compare_few


def test_lists_of_files_are_compared_by_address_and_time() -> None:
    draw = random.Random(7)
    for _ in range(300):
        read = [(f"file:///d/{draw.randrange(6)}.csv", draw.randrange(2)) for _ in range(draw.randrange(6))]
        there = [(f"file:/d/{name}.csv", draw.randrange(2)) for name in draw.sample(range(6), draw.randrange(6))]
        changed, new = _compare_few(read, there)
        plain = [(path.replace("file:///", "file:/"), time) for path, time in read]
        known = [(path, time, {then for other, then in plain if other == path}) for path, time in there]
        assert changed == sorted(path for path, time, was in known if was and was != {time})
        assert new == any(not was for _, _, was in known)
