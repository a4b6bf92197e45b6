# Two commands from nothing: `make demo` and `make test`. Each makes the environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DATA ?= ../shared/data

.PHONY: help demo test lint format bench docs setup clean

help:            ## what can I run?
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make the virtual environment

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup      ## index a small collection and ask it some questions
	$(BIN)/python examples/demo.py

test: setup      ## the default test run
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: setup      ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup    ## let ruff rewrite the layout
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup     ## speed and memory beside SQLite FTS5 + numpy, on DATA/docs_snippets
	$(BIN)/python benchmarks/speed.py --data $(DATA)/docs_snippets --docs

docs: setup      ## make docs/CLI.md from the commands' own help, and the demo's picture
	$(BIN)/python docs/cli_page.py
	$(BIN)/python examples/demo.py --svg docs/demo.svg

clean:           ## remove what make made
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
