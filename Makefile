# Each target sets up .venv by itself and re-uses it while pyproject.toml and Makefile are unchanged.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow bench lint clean

demo: $(READY)
	$(BIN)/calibrant demo

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml Makefile
	@command -v $(PYTHON) >/dev/null || { echo "calibrant needs $(PYTHON); set PYTHON=... to another Python >= 3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
