"""What Delta and Spark say of a source is said again with the stream, the version and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.sources.errors import ChangedSourceError, explain
from patternlake.jobs.sources.source_files import SourceFiles
from patternlake.udfs.errors import SourceError


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


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PySparkException("java.nio.file.AccessDeniedException: s3a://raw/clicks"), "refuses access"),
        (PySparkException("java.net.ConnectException: Connection refused"), "does not answer"),
    ],
)
def test_a_store_that_does_not_list_a_sources_files_is_told(error: Exception, told: str) -> None:
    with pytest.raises(SourceError, match=f"^stream 's': the store of s3a://raw/clicks {told}"):
        _source_that_raises(error).modified()


def test_other_errors_of_listing_are_as_they_are_and_what_is_not_there_has_no_files() -> None:
    with pytest.raises(PySparkException, match="some other"):
        _source_that_raises(PySparkException("some other")).modified()
    assert _source_that_raises(AnalysisException("no such path")).modified() is None


def _source_that_raises(error: Exception) -> SourceFiles:
    text = "streams: {s: {source: {format: json, path: 's3a://raw/clicks'}, time: at, name: what}}"

    class Source(SourceFiles):
        def whole_files(self) -> Any:
            raise error

    return Source(None, "s", Configuration.from_text(text).streams["s"])  # type: ignore[arg-type]
