# Everything a developer or CI runs, by one name each. Needs make and a Python ≥ 3.11 on PATH; the rest is fetched.

MAKEFLAGS += --no-print-directory
BIN := .venv/bin
# Two is the smallest machine this runs on; the tests of one file stay with one worker, and so do their fixtures.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format bench drift scale fuzz engine wheel clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

# The stamp is newer than pyproject.toml exactly when the environment holds what pyproject.toml asks for.
.venv/.stamp: pyproject.toml tests/prepare deploy/package/backend.py
	@bash tests/prepare python
	@touch $@

# What the program alone needs; an environment that is made for the tests has it as well.
.venv/.runtime: pyproject.toml tests/prepare deploy/package/backend.py
	@bash tests/prepare runtime
	@touch $@

# Ctrl-C is how the demo is meant to end: the shell outlives it (trap), and its exit code 130 is no error.
demo: .venv/.runtime ## the product at work on made-up traffic; more by: make demo OPTIONS='--scenario retrieval-depth --speed 10'
	@trap : INT; $(BIN)/capwatch demo $(OPTIONS) || [ $$? -eq 130 ]

test: .venv/.stamp ## every test; as root missing Debian packages are installed, otherwise their tests are skipped with a word
	@bash tests/prepare debian
	@bash tests/prepare npm
	@$(BIN)/pytest -rs -n $(WORKERS) --dist loadfile

check: lint test ## lint, then test: what CI runs

lint: .venv/.stamp ## format, style, types, import contracts, Dockerfile; no tests
	@$(BIN)/ruff format --check . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/hadolint Dockerfile
	@bash -n tests/prepare .ci/run

format: .venv/.stamp ## put the code in its one form
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

faults: .venv/.stamp ## every mishap with three seeds, from rotations to power cuts; 40 minutes, alone on the machine
	@bash tests/prepare debian
	@CAPWATCH_FAULTS=1 $(BIN)/pytest -rs tests/end_to_end/faults tests/tail/test_model.py

bench: .venv/.stamp ## speed against mtail over a million lines, some minutes; alone on the machine
	@bash tests/prepare debian
	@$(BIN)/python -m tests.bench.mtail

scale: .venv/.stamp ## months of log with everybody coming and going, some minutes: memory, descriptors, state, series; LINES=10000000
	@$(BIN)/python -m tests.bench.soak --lines $(or $(LINES),4000000) --days 20

fuzz: .venv/.stamp ## atheris on what reads bytes, a minute by default: make fuzz TARGET=litellm SECONDS=60; fetches atheris
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/pip install --quiet atheris
	@$(BIN)/python -m tests.fuzz $(or $(TARGET),jsonl) -max_total_time=$(or $(SECONDS),60) -artifact_prefix=.hypothesis/

drift: .venv/.stamp ## silence, delays and rivals of the drift detector on made-up weeks, an hour
	@$(BIN)/python -m tests.bench.drift --rivals --cron --real

engine: .venv/.stamp ## real vLLM, LiteLLM proxy and llama.cpp against what capwatch reads, 10 minutes; environments of 4 GB
	@$(BIN)/python -m tests.end_to_end.engine

wheel: .venv/.stamp ## sdist and wheel into dist/
	@CAPWATCH_PLOTS=required $(BIN)/python -m build --outdir dist .

clean: ## remove what was built, the environment too
	@rm -rf .venv .venv-engine build dist capwatch.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find capwatch tests -name __pycache__ -type d -prune -exec rm -rf {} +
