"""What Delta and Spark say of a source is said again with the stream, the version and what to do."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from patternlake.jobs.sources.errors import ChangedSourceError, explain


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[DELTA_MISSING_FILES_UNEXPECTED_VERSION] Delta stream cannot resume from version 3; transaction log "
            "starts at 7. Restart the stream with a new checkpoint location. To skip, set 'failOnDataLoss' to false",
            "stream 's': the log of raw has lost commits from version 3 on that were not read",
        ),
        (
            "[DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE] Please delete its checkpoint to restart from scratch.",
            "stream 's': the log of raw has lost commits that were not read",
        ),
        (
            "[DELTA_STREAMING_TRAILING_COMMIT_MISSING] Delta stream detected commits up to version 4 but files after "
            "version 2 are missing from the transaction log.",
            "stream 's': the log of raw has lost commits from version 4 on that were not read",
        ),
    ],
)
def test_a_log_that_was_cleaned_up_is_a_changed_source(said: str, told: str) -> None:
    error = explain(
        PySparkException(said), stream="s", source="raw", columns=[], header=lambda file: [], changed=lambda: None
    )
    assert isinstance(error, ChangedSourceError)
    assert str(error).startswith(told)
    assert "on_change: rebuild" in str(error)
    assert "checkpoint" not in str(error)
    assert "failOnDataLoss" not in str(error)
