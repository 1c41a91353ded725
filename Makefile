# Every target creates what it needs in .venv, so each works on a fresh checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := demo-output

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types docs unit fuzz torture newcomer bench site suite growth clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "LogInfer needs Python 3.11 or newer; set PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[report]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $@

install: $(VENV)/.core ## the program and what reports need, into .venv

demo: $(VENV)/.core ## the main job end to end on generated LUBM data, no download
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh $(DEMO)

test: lint docs unit ## all that continuous integration checks

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

fuzz: $(VENV)/.dev ## the tests with other random examples each time
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n 3 --dist worksteal

torture: $(VENV)/.dev ## kill build, suite, evaluate, mine and report 30 times each (a quarter of an hour)
	LOGINFER_KILLS=30 $(BIN)/pytest -q tests/benchmark/construction/test_kill.py tests/evaluation/test_runs_kill.py tests/cli/test_kill.py

newcomer: ## what a newcomer does: a fresh clone, the documentation alone, an own graph and scores, a report
	sh scripts/newcomer.sh

bench: $(VENV)/.bench ## speed and memory against peers (minutes); needs LOGINFER_DATA
	$(BIN)/python -m perf

site: $(VENV)/.core ## light reports of the figures in results/: report-site/ and report-site/evidence
	$(BIN)/loginfer report $(filter-out results/evidence %.md %.json,$(wildcard results/*)) --title "The paper, run again" --out report-site --force
	$(BIN)/loginfer report results/evidence --title "What do systems really learn?" --out report-site/evidence --force

suite: $(VENV)/.core ## build and audit the benchmarks of the paper in suite/ (minutes); needs LOGINFER_DATA
	$(BIN)/loginfer suite build --out suite
	@for folder in suite/LogInfer-*; do $(BIN)/loginfer audit $$folder || exit 1; done

growth: $(VENV)/.bench ## cost against triples, relations and constants (an hour), with plots
	$(BIN)/python -m perf.growth

clean: ## remove everything that was built
	rm -rf $(VENV) $(DEMO) suite site report-site build dist
