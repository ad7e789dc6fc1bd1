# Two commands need nothing but Python 3.11+, pip and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NO_SKIPS ?=
CHAOS ?= --runs 20 --seed 1

.DEFAULT_GOAL := help
.PHONY: help demo test chaos lint format types imports lock bench clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## the main job on real input: evaluate, plant a defect, see it caught
	$(BIN)/recallwatch demo

test: lint types imports ## lint, types, import rules and all tests with coverage
	$(BIN)/python -m tests.run $(if $(NO_SKIPS),--no-skips)

chaos: $(STAMP) ## the kill suite: 20 batches under faults; CHAOS="--runs 100 ..." for more
	$(BIN)/python -m tests.chaos $(CHAOS)

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## rewrite the files as ruff wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

imports: $(STAMP) ## import-linter: who may import whom
	$(BIN)/lint-imports

bench: $(STAMP) ## ratios measured side by side; see bench/README.md
	$(BIN)/python -m bench.run

lock: ## make requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --group dev --output-file requirements.lock pyproject.toml

clean: ## remove the environment and the embedded stack's data
	rm -rf $(VENV) .recallwatch
