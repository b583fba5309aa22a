"""``python -m patternlake`` is the command ``patternlake``."""

from __future__ import annotations

from patternlake.jobs.command_line.commands import main

if __name__ == "__main__":
    main()
