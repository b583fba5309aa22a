# Everything from a bare clone: needs Python >= 3.10, Java 17 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help check demo tour docs pictures test test-lake test-processes test-tools test-lowest test-cluster test-slow test-all bench bench-large lint clean

help:
	@echo "make demo            install into .venv, take real flights through the jobs, ask fifteen questions"
	@echo "make tour            the same in twelve deliveries, with maintenance and the seconds of warm questions"
	@echo "make test            lint, types and the fast tests of the kernels, languages and files: some minutes"
	@echo "make test-lake       the fast tests of jobs and functions on real tables: half an hour"
	@echo "make test-processes  tests that start sessions and processes of their own, as users do"
	@echo "make test-tools      slow tests with tools of others, which are installed: dbt, Airflow, MkDocs, Jupyter, Kafka, beeline"
	@echo "make test-lowest     an import of everything and a small lake with the lowest versions that are promised"
	@echo "make test-cluster    a cluster of Spark's own on this machine, and a store that is made like S3"
	@echo "make test-slow       the slow tests: many processes, kills and races, large data, thousands of random cases"
	@echo "make test-all        all tests, the slow ones too"
	@echo "make docs            the site of the pages, in build/site; runs the notebooks, which takes some minutes"
	@echo "make pictures        draw the pictures of docs/plots.md from its examples"
	@echo "make bench           measurements, each beside its baseline"

check:
	@command -v $(PYTHON) >/dev/null || { echo "missing: $(PYTHON) (Python 3.10 or newer; set PYTHON=... for another name)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "too old: $(PYTHON) is $$($(PYTHON) -V 2>&1), 3.10 or newer is needed"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "missing: Python's venv and ensurepip (on Debian: the package python3-venv)"; exit 1; }
	@command -v java >/dev/null || { echo "missing: java (Java 17 or newer)"; exit 1; }
	@java -version 2>&1 | awk -F'"' '/version/ {split($$2, v, "."); exit v[1] < 17}' || { echo "too old: $$(java -version 2>&1 | head -n 1), Java 17 or newer is needed"; exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | check
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,demo,bench]'
	touch $@

# Delta's jars, once, so that processes that start side by side do not fetch them at the same time, and an archive of the
# classes of Spark's JVM; where none can be made, sessions start without one, which takes longer.
$(VENV)/.jars: $(VENV)/.installed
	$(BIN)/python -m patternlake.sql_ext.archive_classes 2>$(VENV)/jars.log \
		|| { tail -n 1 $(VENV)/jars.log; $(BIN)/python -c 'from patternlake.sql_ext.session import bare_session; bare_session("local[1]").stop()' 2>$(VENV)/jars.log; } \
		|| { tail -n 3 $(VENV)/jars.log; exit 1; }
	touch $@

# The kernels' machine code, kept beside the source: the first batch and the first question would wait for it otherwise.
# Where no source of a kernel has changed, this finds all of it and takes seconds.
$(VENV)/.warm: $(VENV)/.installed $(wildcard udfs/*.py udfs/*/*.py udfs/*/*/*.py)
	@echo "Compiling the kernels of all jobs and functions, once; this takes some minutes …"
	$(BIN)/python -m patternlake.udfs.warming
	touch $@

demo: $(VENV)/.jars $(VENV)/.warm
	$(BIN)/python demo/flights.py

tour: $(VENV)/.jars $(VENV)/.warm
	$(BIN)/python demo/flights.py --tour

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: $(VENV)/.docs $(VENV)/.jars
	NO_MKDOCS_2_WARNING=1 PATTERNLAKE_RUN_NOTEBOOKS=1 $(BIN)/mkdocs build --strict

pictures: $(VENV)/.installed $(VENV)/.jars
	PATTERNLAKE_DRAW_PICTURES=1 $(BIN)/python -m pytest -q tests/sql/test_docs.py -k plots.md

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p patternlake

test: lint $(VENV)/.jars
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow and not processes' tests/unit tests/faults

test-lake: $(VENV)/.jars
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow and not processes' tests/sql

test-processes: $(VENV)/.jars
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'processes and not slow'

# Each is among the slow ones; none skips, as what it needs is installed here or by the test.
TOOLS := tests/sql/test_alerts_to_kafka.py tests/sql/test_dbt.py tests/sql/test_notebooks.py tests/sql/test_other_doors.py \
	tests/sql/test_serve.py tests/unit/test_packaging.py tests/unit/test_schedules.py tests/unit/test_site.py

test-tools: $(VENV)/.jars $(VENV)/.docs
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(TOOLS)

# An environment of its own, with kernels of its own: numba keeps those of one version only.
LOWEST := build/lowest

$(LOWEST)/.installed: pyproject.toml $(VENV)/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable .
	touch $@

test-lowest: $(LOWEST)/.installed $(VENV)/.jars
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/kernels $(LOWEST)/bin/python tests/smoke.py

test-cluster: $(VENV)/.jars
	$(BIN)/python -m pytest -m slow tests/sql/test_cluster.py tests/sql/test_object_store.py

test-slow: $(VENV)/.jars $(VENV)/.docs
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

test-all: lint $(VENV)/.jars $(VENV)/.docs
	$(BIN)/python -m pytest

bench: $(VENV)/.jars
	$(BIN)/python -m benchmarks

bench-large: $(VENV)/.jars
	$(BIN)/python -m benchmarks --large

clean:
	rm -rf $(VENV) build demo/lake demo/data demo/weather demo/output .pytest_cache .mypy_cache .ruff_cache .hypothesis
