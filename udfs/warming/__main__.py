"""``python -m patternlake.udfs.warming``: compile all kernels, and say what is being waited for."""

from __future__ import annotations

import sys

from patternlake.udfs.warming import warm

for warmed, seconds in warm():
    sys.stdout.write(f"  {warmed}: {seconds:.0f} s\n")
    sys.stdout.flush()
