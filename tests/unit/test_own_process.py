"""What processes of PatternLake's own choose for themselves."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

_CHOOSE = "from patternlake.delta_tables.spark.own_process import choose_memory; choose_memory(); "
_TELL = "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"


def told(program: str, **environment: str) -> str:
    others = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**others, **environment}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "program",
    [
        _CHOOSE,
        "from patternlake.jobs.command_line.commands import main; main(['--version']); ",
        "import patternlake.sql_ext.worker_daemon; ",
        "import benchmarks; ",
    ],
    ids=["chosen", "command", "worker", "benchmark"],
)
def test_arrow_takes_memory_from_the_c_library(program: str) -> None:
    assert told(program + _TELL).splitlines()[-1] == "system"


def test_the_memory_that_the_environment_names_stays() -> None:
    assert told(_CHOOSE + _TELL, ARROW_DEFAULT_MEMORY_POOL="mimalloc") == "mimalloc"


_FAULTS = """
import resource, numpy
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        numpy.ones(1 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what is kept, glibc alone is told")
def test_memory_that_is_freed_is_not_touched_anew() -> None:
    kept = int(told(_CHOOSE + _FAULTS))
    as_the_environment_chooses = int(told(_CHOOSE + _FAULTS, MALLOC_MMAP_THRESHOLD_="131072"))
    assert 10 * kept < as_the_environment_chooses


def test_where_arrow_is_loaded_nothing_is_chosen() -> None:
    assert told(f"import os, pyarrow; {_CHOOSE} print(os.environ.get('ARROW_DEFAULT_MEMORY_POOL'))") == "None"


def test_the_package_alone_loads_neither_arrow_nor_spark() -> None:
    assert told("import sys, patternlake; print({'pyarrow', 'pyspark', 'numpy'} & {*sys.modules})") == "set()"
