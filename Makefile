PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What an installation depends on: Python sources are installed editable and need no reinstallation.
BUILD := pyproject.toml CMakeLists.txt $(wildcard src/spdp/kernels/native/*)

.PHONY: demo test lint audit bench clean

demo: $(VENV)/.core
	$(BIN)/spdp demo

test: $(VENV)/.dev lint
	$(BIN)/pytest -n auto -m "not audit"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The full-size statistical audits; fast versions of them are in `make test`.
audit: $(VENV)/.dev
	$(BIN)/pytest -n auto -m audit

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(BUILD) | $(VENV)/bin/pip
	$(BIN)/python -m pip install --quiet --editable ".[plots]"
	touch $@

$(VENV)/.dev: $(BUILD) | $(VENV)/bin/pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(VENV)/.core $@

clean:
	rm -rf $(VENV) build
