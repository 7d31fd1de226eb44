# `make help` lists the targets. Each sets up what it needs, in .venv*.
PYTHON ?= python3
BIN := .venv/bin
# What users of langchain 0.3 have, at the lowest versions that are supported.
LOWEST := 'langchain-core==0.3.40' 'tenacity==8.3.0' 'langchain<1' 'langchain-openai<1' \
          'langchain-anthropic<1' 'langgraph<1'

.DEFAULT_GOAL := help
.PHONY: help demo test test-lowest lint types bench clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.venv-lowest/installed: pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' $(LOWEST)
	touch $@

demo: .venv/installed ## Show bare and wrapped agents side by side, on an embedded server
	$(BIN)/langchain-retrying demo

test: .venv/installed ## Run the tests
	$(BIN)/python -m pytest

test-lowest: .venv-lowest/installed ## Run the tests on the lowest supported versions
	.venv-lowest/bin/python -m pytest

lint: .venv/installed ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed ## Check types
	$(BIN)/mypy

bench: .venv/installed ## Measure what the wrapper costs, as ratios wrapped / bare
	$(BIN)/python benchmarks/overhead.py

clean: ## Remove what the other targets made
	rm -rf .venv .venv-lowest .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
