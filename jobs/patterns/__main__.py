"""``python -m patternlake.jobs.patterns`` is ``patternlake run patterns``."""

from __future__ import annotations

from patternlake.jobs.command_line.commands import main_of

if __name__ == "__main__":
    main_of("patterns")
