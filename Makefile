# dpbayes: every recipe sets up what it needs in .venv.
.DEFAULT_GOAL := help
.PHONY: help setup setup-run demo test test-slow test-oldest audit mutants house check bench peers synthetic-peers reproduce docs lock
.PHONY: audit-deps clean dist

PYTHON ?= python3
BIN := .venv/bin
# Tests share the machine: two workers unless told otherwise. Tests of one file share a worker, and with it the cluster, the
# browser and the tables that the file makes: pytest 9.2 ignores the groups of pytest-xdist 3.8.
WORKERS ?= 2
UV ?= uv

help: ## list the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# $(call install,LOCK): that lock, hashed, and dpbayes itself, into .venv; by uv where there is one.
define install
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
endef

setup: .venv/.ready ## install dpbayes with all extras and tools into .venv from the hashed lock

.venv/.ready: requirements-dev.lock pyproject.toml
	$(call install,requirements-dev.lock)
	@touch .venv/.ready .venv/.ready-run

setup-run: .venv/.ready-run ## install dpbayes alone, with what it needs to run

.venv/.ready-run: requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@touch .venv/.ready-run

DEMO := out/demo
demo: setup-run ## release two tables and a posterior of a made-up survey, with reports and verification
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@$(BIN)/dpbayes example $(DEMO)/private
	@$(BIN)/dpbayes ledger init $(DEMO)/private/survey.csv --epsilon 4 --delta 1e-6
	@$(BIN)/dpbayes release $(DEMO)/private/survey.csv region 'income|sex' --epsilon 1 --out $(DEMO)/published
	@$(BIN)/dpbayes release $(DEMO)/private/survey.csv education --as posterior --epsilon 0.3 --delta 0 \
	  --out $(DEMO)/posterior
	@$(BIN)/dpbayes verify $(DEMO)/published $(DEMO)/posterior --ledger $(DEMO)/private/survey.ledger
	@echo "Open $(DEMO)/published/report.html and $(DEMO)/posterior/report.html in a browser."
	@echo "To look around, ask questions and plan the next release: $(BIN)/dpbayes studio $(DEMO)"

# Where Python may not write its bytecode beside the source, it writes it here: a process starts twice as fast.
ifdef PYTHONDONTWRITEBYTECODE
test test-slow check: export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode
test test-slow check: export PYTHONDONTWRITEBYTECODE :=
endif

test: setup ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-slow: setup ## run the statistical tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m slow

OLDEST := .venv-oldest
# Nobody requires pandas or polars: the tests meet their majors before today's here.
test-oldest: ## run the tests with the oldest libraries that pyproject.toml admits (needs uv)
	$(UV) venv --quiet --clear --python $(PYTHON) $(OLDEST)
	printf 'pandas<3\npolars<2\n' > $(OLDEST)/bounds.txt
	$(UV) pip compile --quiet --resolution lowest-direct --all-extras --no-header --no-annotate pyproject.toml \
	  --constraints $(OLDEST)/bounds.txt --output-file $(OLDEST)/oldest.txt
	$(UV) pip install --quiet --python $(OLDEST)/bin/python -r $(OLDEST)/oldest.txt --group dev httpx \
	  --constraints $(OLDEST)/bounds.txt
	$(UV) pip install --quiet --python $(OLDEST)/bin/python --no-deps -e .
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile --override-ini filterwarnings=default

audit: setup ## attack everything that is published and print what holds (8 processor minutes; QUICK=1 for 16 seconds)
	$(BIN)/python -m audit $(if $(QUICK),--quick)

mutants: setup ## change the code in one place at a time and see whether a test notices (hours; SAMPLE=50 for minutes)
	$(BIN)/python -m audit.mutants $(if $(SAMPLE),--sample $(SAMPLE) --seed "$$(git rev-parse HEAD)")

house: setup ## measure how large and how tangled the code is, against the ceilings in audit/house.toml
	$(BIN)/python -m audit.house

check: setup ## lint, types, import contracts, doctests, and the documentation, strictly
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m audit.house
	$(BIN)/python -m pytest -q tests/test_docs.py -k "docstrings or links or up_to_date or source or navigation"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup ## measure speed, as ratios in one run; libraries that `make peers` adds are compared too
	$(BIN)/python -m benchmarks

peers: setup ## add other libraries of the field to .venv, for the benchmarks
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-peers.lock ; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-peers.lock ; \
	fi

SYNTHETIC_PEERS := out/peers
synthetic-peers: ## environments with other makers of synthetic records, for `python -m benchmarks synthetic_peers`
	@for each in opendp dpmm; do \
	  $(PYTHON) -m venv $(SYNTHETIC_PEERS)/$$each && \
	  $(SYNTHETIC_PEERS)/$$each/bin/python -m pip install --quiet --upgrade "pip>=25.1" && \
	  $(SYNTHETIC_PEERS)/$$each/bin/python -m pip install --quiet --group synthetic-$$each || exit 1; \
	done

reproduce: setup ## every figure and table of the papers, and the page of claims (about 20 minutes; QUICK=1 for a few)
	$(BIN)/python -m experiments $(if $(QUICK),--quick)

dist: setup ## build archive, wheel, bill of materials and digests into dist/, and try the wheel in an empty environment
	$(BIN)/python packaging/dist.py

docs: setup ## write the reference pages and build the documentation into site/
	$(BIN)/python docs/build_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-annotate --custom-compile-command "make lock" pyproject.toml
lock: ## compile the locks again (needs uv): the run-time first, and the others agree with it
	$(COMPILE) --group build --extra studio --output-file requirements.lock
	$(COMPILE) --all-extras --group dev --constraints requirements.lock --output-file requirements-dev.lock
	$(COMPILE) --all-extras --group dev --group peers --constraints requirements-dev.lock \
	  --output-file requirements-peers.lock

audit-deps: ## look up the locked libraries among published vulnerabilities (needs pip-audit and the network)
	@if ! command -v pip-audit >/dev/null 2>&1; then \
	  echo "audit-deps: pip-audit is not installed, so nothing was audited. Install it: pipx install pip-audit" >&2; exit 1; \
	fi; \
	pip-audit --disable-pip --require-hashes --progress-spinner off -r requirements-dev.lock || { \
	  echo "audit-deps: vulnerabilities are listed above, or the audit could not run (no network?). It has not passed." >&2; exit 1; }

clean: ## remove what the recipes made
	rm -rf .venv $(OLDEST) site build dist out
