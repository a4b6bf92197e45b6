# Two commands from nothing: `make demo` and `make test`. Each makes the environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DATA ?= ../shared/data

CACHE ?= benchmarks/cache
SIZE ?= 10k 89k scifact

.PHONY: help demo test test-slow test-stores lint format bench bench-peers bench-load bench-embedding scale docs setup clean gate results weighing ranking aggregation calibration abstention failures browser test-web screenshots test-robust test-robust-short audit wheel

help:            ## what can I run?
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make the virtual environment

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup      ## index a small collection and ask it some questions
	$(BIN)/python examples/demo.py

browser:         ## install Debian's chromium for the page tests, where that is possible
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    { apt-get install -y -qq chromium >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }; }; } || \
	  echo "no browser here and none could be installed: the tests that need one will be skipped"

test: setup browser ## the default test run
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not web and (not slow or crash)"

test-slow: setup browser ## what takes long and hardly ever breaks: every file damaged in six ways, other people's implementations, the data sets
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "slow and not crash and not web"

test-web: setup browser ## the page in a real Chromium, every view, light and dark
	$(BIN)/python -m pytest -n 2 --dist loadfile -m web

screenshots: setup browser ## draw docs/images/ anew from the demo's notes
	$(BIN)/python docs/screenshots.py

test-stores: setup ## the contract on every store: SQLite, PostgreSQL, Qdrant, and what is special to each
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/contract tests/stores tests/test_copying.py

test-robust: setup ## kills, damage, full disks, crowds, leaks, a million hostile inputs: about 45 minutes; figures on the last line
	PYTHONPATH=tests $(BIN)/python -m robust

test-robust-short: setup ## the same in five minutes
	PYTHONPATH=tests $(BIN)/python -m robust --short

audit: setup     ## known weaknesses: in our code (bandit), in what it stands on (pip-audit, where its database can be reached)
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/python tests/robust/advisories.py

wheel:           ## build the wheel, install it in a fresh environment and use it there
	$(PYTHON) tests/robust/smoke.py

lint: setup      ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup    ## let ruff rewrite the layout
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup     ## speed and memory beside SQLite FTS5 + numpy, on DATA/docs_snippets
	$(BIN)/python benchmarks/speed.py --data $(DATA)/docs_snippets --docs

bench-peers: setup ## the same work for us and ten other engines, on DATA (SIZE, ONLY and LIMITS narrow it): docs/BENCHMARKS.md
	PYTHONPATH=benchmarks $(BIN)/python -m peers --data $(DATA) --size $(SIZE) $(if $(ONLY),--only $(ONLY)) $(LIMITS) --docs

bench-load: setup ## documents a second by stage and all together, memory, cores, and the same import again: docs/LOADING.md
	$(BIN)/python benchmarks/loading.py --data $(DATA) --docs

bench-embedding: setup ## what one question costs to embed, and what of it is not the model: docs/EMBEDDING.md
	$(BIN)/python benchmarks/embedding.py --docs

scale: setup     ## how cost grows with the collection, from the newest peers-*.json and stores-*.json: docs/SCALE.md
	$(BIN)/python benchmarks/growth.py --data $(DATA) --docs

gate: setup      ## has the default got worse? On the set that ships, and on SciFact and LoCoMo where DATA has them
	$(BIN)/trivet gate demo --against benchmarks/gate/demo.json --cache $(CACHE)
	@if [ -d $(DATA)/scifact ] && [ -d $(DATA)/locomo ]; then \
	  $(BIN)/trivet gate $(DATA)/scifact --against benchmarks/gate/scifact.json --cache $(CACHE) && \
	  $(BIN)/trivet gate $(DATA)/locomo --without adversarial --against benchmarks/gate/locomo.json --cache $(CACHE); \
	else echo "gate: skipped SciFact and LoCoMo: $(DATA) does not have them (they are not shipped)"; fi

results: setup   ## every system on every set of DATA: docs/RESULTS.md and a report to look at
	$(BIN)/python benchmarks/quality.py --data $(DATA) --cache $(CACHE) --docs --report build/results.html

weighing: setup  ## learn how a question moves the weights, from the training splits of DATA
	$(BIN)/python benchmarks/weighing.py --data $(DATA) --cache $(CACHE)

ranking: setup   ## learn the weights of the learned reranker, from the training splits of DATA
	$(BIN)/python benchmarks/ranking.py $(DATA) --cache $(CACHE)

aggregation: setup ## is a long document as good as its best passage, or as its best three?
	$(BIN)/python benchmarks/aggregation.py $(DATA) --cache $(CACHE)

abstention: setup ## does it know when it has no answer? docs/RELEVANCE.md
	$(BIN)/python benchmarks/abstention.py $(DATA) --cache $(CACHE)

failures: setup   ## where is what it does not find? docs/FAILURES.md
	$(BIN)/python benchmarks/failures.py $(DATA) --cache $(CACHE) --docs

calibration: setup ## fit what relevance means, from the training splits of DATA, and say what it is worth
	$(BIN)/python benchmarks/calibration.py $(DATA) --cache $(CACHE)

docs: setup      ## make docs/CLI.md from the commands' own help, and the demo's picture
	$(BIN)/python docs/cli_page.py
	$(BIN)/python examples/demo.py --svg docs/demo.svg

clean:           ## remove what make made
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
