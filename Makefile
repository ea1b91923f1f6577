# spark-watch: `make` lists what there is. `make run` and `make test` need nothing set up beforehand.

PYTHON ?= python3
LISTEN ?= 127.0.0.1:9810
ARGS ?=

BIN := .venv/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run demo check test faults bench score build lock clean python servers

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  LISTEN=HOST:PORT and ARGS='...' reach run and demo; PYTHON=python3.12 names the interpreter."

run: .venv/.runtime ## Watch this machine; the page is on http://127.0.0.1:9810/
	@echo "spark-watch: the page is http://$(LISTEN)/"
	@exec $(BIN)/spark-watch run --listen $(LISTEN) $(ARGS)

demo: .venv/.runtime ## Show a simulated box that goes through the failures one after another
	@echo "spark-watch: the page is http://$(LISTEN)/"
	@exec $(BIN)/spark-watch run --source simulate:demo --listen $(LISTEN) $(ARGS)

check: .venv/.development ## Format, lint, types, import direction, unit tests with branch coverage
	@command -v cc >/dev/null || { echo "spark-watch: the tests build a stand-in NVML with cc, which is missing: apt install gcc libc6-dev" >&2; exit 1; }
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -m "not integration and not long" --cov --cov-fail-under=90 $(ARGS)

test: check servers ## All of check, then the tests against real servers and system tools
	$(BIN)/pytest -m "integration and not long"

faults: .venv/.development ## Break everything under a running daemon, for half an hour
	$(BIN)/pytest tests/faults $(ARGS)

bench: .venv/.development .cache/runtime ## Measure the daemon's own cost on this machine
	$(BIN)/python -m tests.bench --python .cache/runtime/bin/python $(ARGS)

score: .venv/.development ## Score every detector on the labelled traces
	$(BIN)/python -m tests.score $(ARGS)

build: .venv/.development ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

lock: .cache/pip-tools ## Resolve pyproject.toml anew into the two requirement files
	tests/tools/lock.sh .cache/pip-tools $(ARGS)

clean: ## Remove everything that the targets above have made
	rm -rf .venv .cache build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Real Prometheus and Alertmanager, a small system with a real systemd, and schemas of Grafana's types:
# all of it under .cache, nothing installed, nothing started.
servers:
	@tests/tools/fetch_servers.sh .cache/servers
	@tests/tools/make_box.sh .cache/box
	@tests/tools/fetch_grafana_schema.sh .cache/grafana-schema

python:
	@command -v $(PYTHON) >/dev/null || { echo "spark-watch: there is no $(PYTHON) here: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "spark-watch: Python 3.11 or newer is needed and $(PYTHON) is $$($(PYTHON) -V 2>&1); name another with PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "spark-watch: $(PYTHON) cannot make virtual environments here: apt install python3-venv" >&2; exit 1; }

.venv/bin/python: | python
	$(PYTHON) -m venv .venv

# What the product needs, and nothing else: a first look at a Spark should not wait for linters. Its
# command runs the tree as it lies here, as the editable install below does.
LAUNCH := 'import sys; sys.path.insert(0, \"$(CURDIR)\"); from spark_watch.cli import main; sys.exit(main())'

.venv/.runtime: requirements.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.txt
	@printf '%s\n' '#!/bin/sh' "exec '$(CURDIR)/$(BIN)/python' -P -c $(LAUNCH) \"\$$@\"" > $(BIN)/spark-watch
	@chmod +x $(BIN)/spark-watch
	@touch $@

.venv/.development: requirements-dev.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# What a user has, so that no tool of the developers' weighs on what is measured.
.cache/runtime: requirements.txt | python
	rm -rf $@
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements.txt

.cache/pip-tools: | python
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet pip-tools
