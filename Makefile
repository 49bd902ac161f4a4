# `make` alone lists the targets. Nothing here needs root or Docker, and after the first `setup` nothing needs network.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The first that is new enough; else python3, whose version `setup` then complains about.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
# How many processes run tests side by side, each with a Spark session and a broker of its own (about 3 GiB).
WORKERS ?= 2
STAMP := $(VENV)/.installed
JARS := $(VENV)/.jars

.PHONY: help setup run serve unit coverage test integration cluster-test fuzz check format bench bench-serving screenshots lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) $(JARS) ## Virtual environment, locked dependencies, jar cache (once; later runs need no network)
	@:

run: setup ## Play the orders recipe end to end with a local Kafka broker
	@$(BIN)/hybrid demo orders

serve: setup ## Local Kafka, the server and the orders example; stays up until Ctrl-C
	@$(BIN)/hybrid kafka start >/dev/null
	@unset HYBRID_SERVER HYBRID_TOKEN HYBRID_CATALOG HYBRID_WAREHOUSE HYBRID_TAKE_OVER_AFTER_S $${!HYBRID_PINNING_@}; \
	trap '$(BIN)/hybrid kafka stop >/dev/null' EXIT; \
	$(BIN)/hybrid table show orders >/dev/null 2>&1 || { \
	  $(BIN)/hybrid kafka topic create orders --kafka localhost:9092 >/dev/null; \
	  $(BIN)/hybrid table create --kafka localhost:9092 --schema data/orders/orders_schema.json \
	    --config data/orders/orders_table.json --config data/orders/orders_offline_table.json; \
	  $(BIN)/hybrid kafka produce orders data/orders/events.jsonl --kafka localhost:9092 >/dev/null; }; \
	$(BIN)/hybrid serve

# Hundreds of tests start Python processes: each would compile every module if none kept its bytecode.
PYTHON_OF_TESTS := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PYTEST := $(PYTHON_OF_TESTS) -m pytest -n $(WORKERS) --dist loadfile

unit: $(STAMP) ## Tests that start no JVM, broker or other process: about a minute
	@$(PYTHON_OF_TESTS) -m tests.unit_parts $(WORKERS)

# schemathesis is for one slow test: as a plug-in it would be imported by each process.
coverage: $(STAMP) ## `unit` with its slow tests, and which lines they run; fails below the floor in pyproject.toml
	@$(PYTEST) --unit --slow -p no:schemathesis --cov --cov-report=term:skip-covered

test: setup ## The whole test suite
	@$(PYTEST)

integration: setup ## What `unit` leaves out of the whole suite
	@$(PYTEST) --integration

# Needs root, network namespaces, PostgreSQL and versitygw, and the machine for itself: docs/cluster-test.md.
cluster-test: setup ## Kafka, PostgreSQL, an S3 store, Spark and servers, a network namespace each: kills under load
	@$(PYTHON_OF_TESTS) -m pytest -p no:schemathesis --cluster -s tests/cluster

# For example: make fuzz FUZZ_S=60. What is found is printed as a line for tests/hostile/corpus.
FUZZ_S ?= 600
fuzz: setup ## Fuzz all that takes bytes from outside for ten minutes: messages, statements, files, HTTP and more
	@$(BIN)/python -c 'import atheris' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps atheris==3.0.0 # has wheels for Linux only
	@$(BIN)/python -m tests.hostile.fuzz --seconds $(FUZZ_S)

check: $(STAMP) ## Lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict hybrid

format: $(STAMP) ## Write the format that `check` wants
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup ## Measure everything; see benchmarks/
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python -m "benchmarks.$$(basename "$$file" .py)"; done
	@$(MAKE) --no-print-directory bench-serving

# For example: make bench-serving ARGS="--rows 200000 --parts latency". Fetches the other systems the first time.
bench-serving: setup ## The server against Apache Pinot, QuestDB, chdb and DuckDB (ARGS="--help" tells how to measure less)
	@$(BIN)/python -m benchmarks.serving $(ARGS)

screenshots: setup ## Pictures of the console for README and docs (needs Chromium)
	@$(BIN)/python -m tests.console.screenshots

lock: ## Write requirements.lock anew from pyproject.toml (needs pip-tools and network)
	@env -u PIP_FIND_LINKS pip-compile --quiet --generate-hashes --extra dev --extra postgresql --extra spark-connect \
	  --extra store --no-strip-extras --allow-unsafe --no-header --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host -o requirements.lock pyproject.toml

clean: ## Remove the virtual environment, caches and the home folder .hybrid (the jar cache stays)
	@[ ! -x $(BIN)/hybrid ] || $(BIN)/hybrid kafka stop >/dev/null 2>&1 || true
	@rm -rf $(VENV) .hybrid build dist *.egg-info .pytest_cache .coverage .mypy_cache .ruff_cache .hypothesis
	@find hybrid tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: hybrid needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ".\nhint: install a newer one, then: make PYTHON=python3.11 setup")'
	@echo "Setting up $(VENV) (once; a minute or two)" >&2
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@# Else each command may compile it anew. pip would use one processor, for the tests inside packages as well.
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || true # some packages bring what is no Python
	@$(BIN)/python -m compileall -q hybrid
	@touch $@

$(JARS): $(STAMP) hybrid/jvm/jars.lock
	@$(BIN)/hybrid setup
	@touch $@
