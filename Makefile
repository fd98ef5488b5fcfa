# Every target sets up .venv when it is missing or when pyproject.toml or this file changed.
# `make demo` installs the package and its report; the other targets add what tests need.
# Any Python from 3.11 on; PYTHON=... chooses one.
PYTHON ?= $(firstword $(foreach v,3.11 3.12 3.13 3.14,$(shell python$(v) -c 'print("python$(v)")' 2>/dev/null)) python3)
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready
BENCH := .venv-bench
LOWEST := .venv-lowest
DIST := .dist
DIST_TESTS := tests/test_forecasts.py tests/test_release.py tests/metrics/test_simple.py tests/docs/test_generated_pages.py
TORCH ?= torch==2.13.0
PEERS = $(shell $(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['bench'])")

.PHONY: test-dist demo reproduce test test-slow test-laws test-torch test-lowest bench bench-accuracy bench-billion docs lint clean

demo: $(DEMO)
	$(BIN)/calibrant demo

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

# Laws and oracles on more random samples than there is time for in every run.
test-laws: $(READY)
	CALIBRANT_LAWS=thorough $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/theorems tests/metrics tests/fits tests/groups tests/inference tests/recalibration

# The training loss needs PyTorch, which is large: only these tests install it.
test-torch: $(READY)
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pytest -q tests/test_losses.py tests/test_forecasts.py -k 'torch or loss'

# The lowest versions in pyproject.toml and nothing else: every command works, or names the extra it needs.
# Python 3.11 is the one that all of them have wheels for.
test-lowest: pyproject.toml
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet . $$($(PYTHON) tests/lower_bounds.py)
	env -u PYTHONPATH $(LOWEST)/bin/python tests/smoke.py

# What is published: the wheel without extras, where every command works or names the extra it needs, and the
# source distribution, whose tests run from the folder it is unpacked into.
test-dist: $(READY)
	rm -rf $(DIST) && $(BIN)/python -m build --no-isolation --outdir $(DIST)/files .
	$(PYTHON) -m venv $(DIST)/plain
	$(DIST)/plain/bin/python -m pip install --quiet $(DIST)/files/*.whl
	cd $(DIST) && env -u PYTHONPATH plain/bin/python ../tests/smoke.py
	tar -xzf $(DIST)/files/*.tar.gz -C $(DIST)
	cd $(DIST)/calibrant-* && ../../$(BIN)/python -m pytest -q -p no:cacheprovider $(DIST_TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every table and figure of the papers, next to ours: writes docs/reproduced.md and its figures.
reproduce: $(READY)
	$(BIN)/python -m reproduce

# The site: tutorials are executed, and a warning or a dead link is an error.
docs: $(VENV)/.docs
	@mkdir -p docs/_extra && cd docs/_extra && ../../$(BIN)/calibrant demo --quiet > /dev/null
	@$(BIN)/python docs/make_speed.py --csv docs/_extra/speed.csv
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "site: docs/_build/html/index.html"

# Every time next to a yardstick or a peer, on a quiet machine; what is simulated needs hours, but no quiet.
bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks

bench-accuracy: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks accuracy

# 10^9 rows: about 9 GB of Parquet in the temporary folder, skipped where less than 25 GB are free.
bench-billion: $(READY)
	$(BIN)/python -m benchmarks billion
	$(BIN)/python docs/make_speed.py
	$(BIN)/python docs/make_scale.py

$(DEMO): pyproject.toml Makefile
	@command -v $(PYTHON) >/dev/null || { echo "calibrant needs $(PYTHON); set PYTHON=... to another Python >= 3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[report]'
	touch $@

$(READY): $(DEMO)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# Peers have their own environment. One that fails to install is reported as skipped.
$(BENCH)/.ready: pyproject.toml Makefile
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --editable '.[report]'
	$(BENCH)/bin/python -m pip install --quiet $(TORCH) || echo "no torch: its peers are skipped"
	for peer in $(PEERS); do $(BENCH)/bin/python -m pip install --quiet $$peer || echo "skipped $$peer"; done
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(LOWEST) $(DIST) .pytest_cache .mypy_cache .ruff_cache .hypothesis
