# Everything runs in a virtual environment of its own, with the versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/installed
	$(BIN)/feddyn run

test: .venv/installed
	$(BIN)/pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m benchmarks

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv
