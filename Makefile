# Every target creates what it needs in .venv, so each works on a fresh checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := demo-output
# What test-lowest and test-pythons run: all that needs neither PyTorch nor real graphs. TESTS=tests/kg runs a part.
TESTS ?= tests/fuzz tests/kg tests/logic tests/engine tests/benchmark tests/cli tests/report $(wildcard tests/test_*.py)
PYTHONS ?= python3.12 python3.13
SBOM_EXTRAS ?= all

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types docs unit test-slow explore fuzz newcomer bench site suite growth sbom test-lowest test-pythons torture clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "LogInfer needs Python 3.11 or newer; set PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Modules are compiled when they are imported, and most of what is installed never is.
$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --no-compile -c constraints.txt -e '.[report]'
	@touch $@

# All at once, and not after .core: pip looks through everything each time.
$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	@touch $(VENV)/.core $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $@

install: $(VENV)/.core ## the program and what reports need, into .venv

demo: $(VENV)/.core ## the main job end to end on generated LUBM data, no download
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh $(DEMO)

test: $(VENV)/.dev ## all that continuous integration checks
	$(MAKE) -j 2 lint docs
	$(MAKE) unit

lint: $(VENV)/.dev ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# One process more than the two cores of continuous integration: tests of Spark and of kills wait a lot.
unit: $(VENV)/.dev ## the tests; those on real graphs need LOGINFER_DATA
	$(BIN)/pytest -n 3 --dist worksteal

test-slow: $(VENV)/.dev ## larger cases of some tests, without which continuous integration ends in time
	$(BIN)/pytest -n 3 --dist worksteal -m slow

explore: $(VENV)/.dev ## the tests with other random examples each time
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n 3 --dist worksteal -m ""

MINUTES ?= 10
fuzz: $(VENV)/.dev ## damaged input for every reader and parser, for MINUTES=10; kernels check the bounds of arrays
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/checked $(BIN)/python -m tests.fuzz --minutes $(MINUTES)

torture: $(VENV)/.dev ## kill build, suite, evaluate, mine and report 30 times each (a quarter of an hour)
	LOGINFER_KILLS=30 $(BIN)/pytest -q tests/benchmark/construction/test_kill.py tests/evaluation/test_runs_kill.py tests/cli/test_kill.py

newcomer: ## what a newcomer does: a fresh clone, the documentation alone, an own graph and scores, a report
	sh scripts/newcomer.sh

bench: $(VENV)/.bench ## speed and memory against peers (minutes); needs LOGINFER_DATA
	$(BIN)/python -m perf

site: $(VENV)/.core ## light reports of the figures in results/: report-site/ and report-site/evidence
	$(BIN)/loginfer report $(filter-out results/evidence results/statements %.md %.json,$(wildcard results/*)) --title "The paper, run again" --out report-site --force
	$(BIN)/loginfer report results/evidence --title "What do systems really learn?" --out report-site/evidence --force

suite: $(VENV)/.core ## build and audit the benchmarks of the paper in suite/ (minutes); needs LOGINFER_DATA
	$(BIN)/loginfer suite build --out suite
	@for folder in suite/LogInfer-*; do $(BIN)/loginfer audit $$folder || exit 1; done

growth: $(VENV)/.bench ## cost against triples, relations and constants (an hour), with plots
	$(BIN)/python -m perf.growth

# An environment of its own, so that nothing counts that only developers need; the tool has another.
sbom: $(VENV)/.python ## what a full installation consists of, as CycloneDX: dist/sbom.cdx.json
	rm -rf $(VENV)-sbom && $(BIN)/python -m venv $(VENV)-sbom/runtime && $(BIN)/python -m venv $(VENV)-sbom/tool
	$(VENV)-sbom/runtime/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt '.[$(SBOM_EXTRAS)]'
	$(VENV)-sbom/runtime/bin/python -m pip --disable-pip-version-check --quiet uninstall --yes pip setuptools
	$(VENV)-sbom/tool/bin/python -m pip --disable-pip-version-check --quiet install 'cyclonedx-bom>=7,<8'
	$(VENV)-sbom/tool/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml -o $(VENV)-sbom/bill.json $(VENV)-sbom/runtime
	mkdir -p dist && mv $(VENV)-sbom/bill.json dist/sbom.cdx.json

test-lowest: $(VENV)/.python ## tests with the lowest dependencies that pyproject.toml allows
	rm -rf $(VENV)-lowest && $(BIN)/python -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct -e '.[report,test]'
	$(VENV)-lowest/bin/pytest -n 3 --dist worksteal $(TESTS)

test-pythons: ## the same tests with Python 3.12 and 3.13, those that are there
	@for python in $(PYTHONS); do \
	    if ! $$python -c '' 2>/dev/null; then echo "$$python: not there, not tested"; continue; fi; \
	    echo "$$python: $$($$python --version)"; \
	    $$python -m venv --clear $(VENV)-$$python || exit 1; \
	    $(VENV)-$$python/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt -e '.[report,test]' || exit 1; \
	    $(VENV)-$$python/bin/pytest -n 3 --dist worksteal $(TESTS) || exit 1; \
	done

clean: ## remove everything that was built
	rm -rf $(VENV) $(VENV)-* $(DEMO) suite site report-site build dist
