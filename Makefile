# `make demo` and `make test` do all the set-up themselves: a virtual environment in .venv, everything from PyPI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help setup demo check test bench format clean

help:
	@echo "make demo    the whole job on the embedded corpus (about 4 minutes on two cores)"
	@echo "make test    all tests      make check   style and types      make bench   benchmarks"

setup: $(VENV)/.dev

$(VENV)/.runtime: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV); }
	@echo "installing Dragoman and what it needs into $(VENV) (torch is large: a few minutes)"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@$(INSTALL) -e ".[dev]"
	@touch $@

demo: $(VENV)/.runtime
	@$(BIN)/dragoman demo

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --level error

# REQUIRE=network,browser fails where emulated hosts or a browser cannot be had; without it they are required where they can.
test: $(VENV)/.dev
	@require="$$(.ci/test-tools),$(REQUIRE)"; set -x; $(BIN)/python -m pytest -n 2 --dist loadgroup --require="$$require"

# The benchmarks that need no corpus of yours; the others say with --help what they need. JoeyNMT is left out if missing.
bench: $(VENV)/.dev
	@test -d demo/run/checkpoints || $(BIN)/dragoman demo
	$(BIN)/python benchmarks/train_cpu.py --data demo/data
	$(BIN)/python benchmarks/decode_cpu.py --run demo/run --source demo/data/test/phrasebook.source.txt

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo .pytest_cache .ruff_cache
