"""``python -m patternlake.jobs.ingest`` is ``patternlake run ingest``."""

from __future__ import annotations

from patternlake.jobs.command_line.commands import main_of

if __name__ == "__main__":
    main_of("ingest")
