# `make help` lists the targets. Each sets up what it needs, in .venv*.
PYTHON ?= python3
PYTHONS := $(shell .ci/pythons)
BIN := .venv/bin
INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-core-1.0 test-core-0.3 test-lowest test-newest-python lint types bench soak clean

help: ## List the targets
	@grep -E '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	touch $@

demo: .venv/installed ## Show bare and wrapped agents side by side, on an embedded server
	$(BIN)/langchain-retrying demo

test: .venv/installed ## Run the tests
	$(BIN)/python -m pytest $(COVERAGE)

coverage: COVERAGE := --cov
coverage: test ## Run the tests, and tell which branches they leave out

.venv-%/installed: tests/environments/%.txt pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) --editable '.[test]' --requirement $<
	touch $@

test-core-1.0: .venv-core-1.0/installed ## Run the tests on langchain-core 1.0.0
	.venv-core-1.0/bin/python -m pytest

test-core-0.3: .venv-core-0.3/installed ## Run the tests on langchain 0.3
	.venv-core-0.3/bin/python -m pytest

.venv-lowest/installed: PYTHON := $(or $(firstword $(PYTHONS)),python3)

test-lowest: .venv-lowest/installed ## Run the tests on the lowest versions, with the oldest Python found
	.venv-lowest/bin/python -m pytest

.venv-newest-python/installed: pyproject.toml
	$(or $(lastword $(PYTHONS)),python3) -m venv .venv-newest-python
	.venv-newest-python/bin/python $(INSTALL) --editable '.[demo,test]'
	touch $@

test-newest-python: .venv-newest-python/installed ## Run the tests with the newest Python found
	.venv-newest-python/bin/python -m pytest

lint: .venv/installed ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed ## Check types
	$(BIN)/mypy

bench: .venv/installed ## Measure what the wrapper costs, as ratios wrapped / bare
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/judging.py

soak: .venv/installed ## Make 20,000 calls on a server that fails in all ways, and check each
	$(BIN)/python tests/soak.py --calls 20000 --seed 1

clean: ## Remove what the other targets made
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
