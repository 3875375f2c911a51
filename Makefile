# Everything runs in a virtual environment of its own, with the versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
# Two processes, each of one thread, that take file after file; many tests start processes of their own.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

.PHONY: demo deploy-demo check test mutants lint site site-serve bench notebook results browser clean

demo: .venv/installed
	$(BIN)/feddyn run

# A SuperLink and three SuperNodes of Flower on loopback, with a kill -9 in the middle; ports from 18000 on.
deploy-demo: .venv/installed
	$(BIN)/feddyn deploy demo

# The first tier: all but the slow tests, which tests/conftest.py lists.
check: lint
	$(PYTEST) -m "not slow"

test: .venv/installed
	$(PYTEST)

# Puts faults into copies of the source, one at a time, and fails where no test notices; see docs/mutants.md.
mutants: .venv/installed
	$(BIN)/python -m tests.mutants

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation, for a browser: build/site/index.html. Any warning is a fault. (The variable: MkDocs Material's own advertisement.)
site: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The same while it is written, on 127.0.0.1:8000.
site-serve: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

bench: .venv/peers
	$(BIN)/python -m benchmarks

# Executes the notebook in docs/notebooks and keeps what it shows.
notebook: .venv/installed
	$(BIN)/python -m tests.test_notebook

# What docs prints of its records: tables, counts, times, provenance, the leaderboard, the figures of docs/methods; and the short paper's.
results: .venv/installed
	$(BIN)/python -m benchmarks.results

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Flower and pfl, to be compared with; what cannot be installed is left out of the comparison.
.venv/peers: .venv/installed
	-$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

# Debian's Chromium, for the test of the report's page; that test is skipped where there is no browser. As another user: ROOT=sudo.
browser:
	command -v chromium || ($(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq --no-install-recommends chromium)

clean:
	rm -rf .venv
