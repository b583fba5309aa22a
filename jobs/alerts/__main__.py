"""``python -m patternlake.jobs.alerts`` is ``patternlake run alerts``."""

from __future__ import annotations

from patternlake.jobs.command_line.commands import main_of

if __name__ == "__main__":
    main_of("alerts")
