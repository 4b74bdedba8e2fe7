# pip alone must do; uv, where it is installed, only makes the same steps quicker.
# torch comes through pip first, so that a pinned CPU wheel that pip knows is not replaced by another.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PIP := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/pip install --disable-pip-version-check) -q
WORKERS ?= 2

.PHONY: demo test soak check format clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt torch
	$(PIP) -c constraints.txt -e '.[all]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -c constraints.txt -e '.[all,dev]'
	touch $@

demo: $(VENV)/.base
	mkdir -p build
	$(BIN)/rooflens analyze resnet18 --on h100-sxm --plot build/resnet18-h100.svg
	$(BIN)/rooflens analyze resnet18 --on h100-sxm --format json -o build/resnet18-h100.json
	@echo "written: build/resnet18-h100.svg build/resnet18-h100.json"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(WORKERS)

# What the tests do ten times, a hundred times: writers killed at random moments, many writers at once.
soak: $(VENV)/.dev
	ROOFLENS_SOAK=100 $(BIN)/python -m pytest -q -m soak

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist
