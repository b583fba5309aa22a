"""``python -m patternlake.jobs.command_line`` is ``patternlake``; the file that spark-submit takes."""

from __future__ import annotations

from patternlake.jobs.command_line.commands import main

if __name__ == "__main__":
    main()
