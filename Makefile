# Every target bootstraps what it needs: `make demo` works on a fresh clone.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick check format reference bench clean

bin := .venv/bin
# The Java that scripts/setup chose; JAVA_HOME of the caller may be missing or too old.
run = JAVA_HOME="$$(<.venv/java-home)"
# A hanging JVM or lock fails its test, not the whole run.
pytest := $(bin)/pytest --timeout=900 --durations=15
# The experiment of `make bench`.
BENCH ?= pipeline

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv and find Java (every other target does it too)
	@bash scripts/setup

demo: setup ## a live city on this machine
	@$(run) $(bin)/nearcast demo

test: setup ## all tests: first those without a JVM, then those on Spark
	@$(bin)/python -m nearcast.engine.spark.warm # else both workers would compile the same
	$(run) $(pytest) -m "not spark" -n 2 --dist worksteal
	$(run) $(pytest) -m spark -n 2 --dist worksteal

test-quick: setup ## the tests that need no JVM and no patience
	$(pytest) -m "not spark and not slow" -n 2 --dist worksteal

check: setup ## lint, format, types, import layers
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports

format: setup ## rewrite the sources as `make check` wants them
	$(bin)/ruff check --fix
	$(bin)/ruff format

reference: setup ## make the tables of docs/spec.md anew, from the code
	$(bin)/python -m tests.docs.reference

bench: setup ## run one experiment (BENCH=pipeline), keep its results in bench/results/
	@mkdir -p bench/results
	@out="bench/results/$(BENCH)-$$(date -u +%Y%m%dT%H%M%SZ).jsonl"; \
	$(run) $(bin)/nearcast bench $(BENCH) --json | tee "$$out.part"; \
	mv "$$out.part" "$$out"; \
	echo "kept in $$out" >&2

clean: ## remove .venv, caches and Spark's leftovers; results stay
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse bench/results/*.part
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
