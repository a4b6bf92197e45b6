# Two commands from nothing: `make demo` and `make test`. Each makes the environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DATA ?= ../shared/data
CACHE ?= benchmarks/cache
SIZE ?= 10k 89k scifact
# What a stranger runs first: no server, no browser, no killed process.
FAST := tests/text tests/fusion tests/rerank tests/legs tests/graph tests/golden tests/memory tests/concurrency tests/tools $(filter-out tests/test_tutorial.py,$(wildcard tests/test_*.py))

# The adapters, each with the packages that its tests need beside its extra. `openai` is a client of the HTTP service,
# `lancedb` a source of imports.
FRAMEWORKS := langchain langgraph llama-index haystack anthropic google-adk openai lancedb
TESTS_OF_langchain := langchain-tests>=1.1,<2
TESTS_OF_openai := openai>=3,<4
EXTRAS_OF_openai := serve,files
EXTRAS_OF_lancedb := lancedb

.PHONY: $(shell sed -nE 's/^([a-z-]+):.*/\1/p' Makefile)

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(STAMP)  ## make the virtual environment

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup      ## index 339 notes and run nine queries
	$(BIN)/python examples/demo.py

# --- tests

test-fast: setup ## the part of the tests that takes about a minute
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not web and not slow" $(FAST)

test: setup browser ## the default test run, about ten minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not web and (not slow or crash)"

test-slow: setup browser ## the tests that take long and rarely fail
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "slow and not crash and not web"

test-web: setup browser ## the web page in Chromium, light and dark
	$(BIN)/python -m pytest -n 2 --dist loadfile -m web

test-stores: setup ## the contract suite on SQLite, PostgreSQL and Qdrant, and the tests of each store
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/contract tests/stores tests/engine/test_copy.py

test-robust: setup ## kills, damage, full disks, load, leaks and a million hostile inputs: about 45 minutes
	PYTHONPATH=tests $(BIN)/python -m robust

test-robust-short: setup ## the same in five minutes
	PYTHONPATH=tests $(BIN)/python -m robust --short

test-integrations: $(FRAMEWORKS:%=integration-%) ## the adapters, each in an environment of its framework, with its own conformance tests

.PRECIOUS: build/integrations/%/.installed # make removes it otherwise, as nothing names it
build/integrations/%/.installed: pyproject.toml
	$(PYTHON) -m venv build/integrations/$*
	build/integrations/$*/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$(or $(EXTRAS_OF_$*),$*)]' \
	  'pytest>=8,<10' 'pytest-asyncio>=0.25,<2' 'pytest-timeout>=2.3,<3' 'mypy>=1.15,<3' $(TESTS_OF_$*:%='%')
	@touch $@

integration-%: build/integrations/%/.installed
	$(if $(EXTRAS_OF_$*),,build/integrations/$*/bin/mypy -m trivet.integrations.$(subst -,_,$*))
	build/integrations/$*/bin/python -m pytest -c tests/integrations/frameworks.ini tests/integrations/test_$(subst -,_,$*).py

test-ray: build/ray/.installed ## bulk embedding on two Ray nodes of this machine, with a worker and a node killed; in an environment of its own
	$(OWN_NETWORK) build/ray/bin/python -m pytest --noconftest tests/models/embedders/test_ray.py tests/models/embedders/test_ray_cluster.py

build/ray/.installed: pyproject.toml
	$(PYTHON) -m venv build/ray
	build/ray/bin/python -m pip install --quiet --disable-pip-version-check -e '.[ray,bench]' 'pytest>=8,<10' 'pytest-timeout>=2.3,<3'
	@touch $@

# Ray listens on every address of a machine. A network of its own, where Linux lets a plain user make one, has only this machine.
OWN_NETWORK = $(shell unshare --map-root-user --net true 2>/dev/null && \
  echo "unshare --map-root-user --net sh -c 'ip link set lo up && exec \"\$$@\"' sh")

browser:         ## install Debian's Chromium for the web page tests, where that is possible
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    { apt-get install -y -qq chromium >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }; }; } || \
	  echo "no browser here and none could be installed: the tests that need one will be skipped"

# --- checks

lint: setup      ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup    ## let ruff rewrite the layout
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

structure: setup ## size and shape of the code, and the files that a search visits; fails over a limit
	$(BIN)/python tools/structure.py --check

audit: setup     ## known weaknesses in our code (bandit) and in the dependencies (pip-audit, where its database can be reached)
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/python tests/robust/advisories.py

gate: setup      ## compare the quality of the default profile with the stored figures
	$(BIN)/trivet gate demo --against benchmarks/gate/demo.json --cache $(CACHE)
	@if [ -d $(DATA)/scifact ] && [ -d $(DATA)/locomo ]; then \
	  $(BIN)/trivet gate $(DATA)/scifact --against benchmarks/gate/scifact.json --cache $(CACHE) && \
	  $(BIN)/trivet gate $(DATA)/locomo --without adversarial --against benchmarks/gate/locomo.json --cache $(CACHE); \
	else echo "gate: skipped SciFact and LoCoMo: $(DATA) does not have them (they are not shipped)"; fi

wheel:           ## build the wheel, install it in a fresh environment and use it there
	$(PYTHON) tests/robust/smoke.py

image:           ## build the container image and search in it, where docker or podman runs
	@for engine in docker podman none; do $$engine info > /dev/null 2>&1 && break; done; \
	[ $$engine != none ] || { echo "image: neither docker nor podman runs here, nothing was built"; exit 0; }; \
	set -e; $$engine build -f deploy/Containerfile -t trivet .; \
	$$engine run --rm --entrypoint sh trivet -ec 'trivet add "The side door sticks."; trivet search "door"; \
	  trivet keys create admin --scope admin > /dev/null; trivet serve --check'

# --- documentation

site: setup      ## build the documentation into build/site; a warning is an error
	$(BIN)/zensical build --strict --clean

docs: setup      ## write docs/reference/cli.md from the commands' help, and the picture of the demo
	$(BIN)/python tools/cli_page.py
	$(BIN)/python examples/demo.py --svg docs/demo.svg

screenshots: setup browser ## take the screenshots in docs/images/
	$(BIN)/python tools/screenshots.py

# --- measurements; each writes its result file and its page under docs/evidence/

bench: setup     ## speed and memory beside SQLite FTS5 + numpy, on DATA/docs_snippets
	$(BIN)/python benchmarks/speed.py --data $(DATA)/docs_snippets --docs

bench-peers: setup ## the same work for trivet and ten other engines (SIZE, ONLY and LIMITS narrow it)
	PYTHONPATH=benchmarks $(BIN)/python -m peers --data $(DATA) --size $(SIZE) $(if $(ONLY),--only $(ONLY)) $(LIMITS) --docs

bench-load: setup ## documents a second by stage, memory, cores, and the same import again
	$(BIN)/python benchmarks/loading.py --data $(DATA) --docs

bench-embedding: setup ## the cost of embedding one query
	$(BIN)/python benchmarks/embedding.py --docs

scale: setup     ## how cost grows with the collection, from the newest peers-*.json and stores-*.json
	$(BIN)/python benchmarks/growth.py --data $(DATA) --docs

results: setup   ## every system on every data set: quality
	$(BIN)/python benchmarks/quality.py --data $(DATA) --cache $(CACHE) --docs --report build/results.html

generalisation: setup ## what is fitted, judged on sets left out, and small stores; learns the weights of `learned`
	$(BIN)/python benchmarks/generalisation.py --data $(DATA) --cache $(CACHE) --docs

profiles: setup  ## default and careful beside plain systems, at most 300 topics a set
	$(BIN)/python benchmarks/profiles.py $(DATA) --cache $(CACHE) --topics 300 --docs

relevance: setup ## fit relevance as a probability; what a threshold keeps and drops
	$(BIN)/python benchmarks/relevance.py $(DATA) --cache $(CACHE) --docs

remembering: setup ## how well remember tells a copy or a contradiction; fits its coefficients
	$(BIN)/python benchmarks/remembering.py

languages: setup ## words, the built-in and the multilingual model on questions in six languages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[multilingual]'
	$(BIN)/python benchmarks/languages.py

failures: setup  ## where the documents that are not found are ranked
	$(BIN)/python benchmarks/failures.py $(DATA) --cache $(CACHE) --docs

aggregation: setup ## score a long document by its best passage, its best three, or with neighbouring passages
	$(BIN)/python benchmarks/aggregation.py $(DATA) --cache $(CACHE)

clean:           ## remove the environment and the caches
	rm -rf $(VENV) .cache .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis build
