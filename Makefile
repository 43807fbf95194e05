# The workshop: each target makes the environment that it needs, once, and again when pyproject.toml changes.
#
#   make demo              train the digit classifier on real handwriting        (ARGS="--model cnn --epochs 5")
#   make test              run the tests; ORACLE=1 also compares with PyTorch    (ARGS="-k views", WORKERS=4)
#   make lint              ruff and mypy; `make format` mends what ruff can
#   make bench             the table of times beside PyTorch                     (ARGS="--only tiny")
#   make gpu               tests and times on cuda:0
#   make docs              build the documentation pages
#   make env               everything above in one environment
#   make clean             remove the environment and what the tools left behind

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
WORKERS ?= 2
ARGS ?=

BIN := $(VENV)/bin
RUN := $(BIN)/python
SOURCES = $(wildcard tensorcore plugins tests asv_benchmarks examples)
TYPED = $(wildcard tensorcore/backend tensorcore/tape tensorcore/autograd tensorcore/plugin.py)

ifdef ORACLE
TEST_EXTRAS := $(VENV)/.extra-test $(VENV)/.extra-peers
ORACLE_OPTION := --oracle
else
TEST_EXTRAS := $(VENV)/.extra-test
endif

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := test
.PHONY: demo test lint format bench gpu docs env clean

demo: $(VENV)/.extra-demo
	$(RUN) examples/digits.py $(ARGS)

# One thread in each test process: two that take both cores each slow one another down.
test: export OMP_NUM_THREADS ?= 1
test: export OPENBLAS_NUM_THREADS ?= 1
test: $(TEST_EXTRAS)
	$(RUN) -m pytest -n $(WORKERS) $(ORACLE_OPTION) $(ARGS)

lint: $(VENV)/.extra-lint
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(TYPED)

format: $(VENV)/.extra-lint
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(VENV)/.extra-bench $(VENV)/.extra-peers
	$(RUN) -m asv_benchmarks.table $(ARGS)

# Ends with 3 where there is no GPU and with 4 where this checkout has no CUDA plugin; make shows it as "Error 3".
gpu: $(VENV)/.extra-test $(VENV)/.extra-bench
	$(RUN) -m asv_benchmarks.gpu $(ARGS)

docs: $(VENV)/.extra-docs
	$(BIN)/mkdocs build --strict

env: $(VENV)/.extra-dev

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .asv build dist site out *.egg-info
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "env: expected Python 3.11 or newer, got none; install it or name it with PYTHON="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "env: expected Python 3.11 or newer, got $$($(PYTHON) --version); name another with PYTHON="; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Each stamp is one installed extra; the install is editable, so only a change of pyproject.toml asks for another.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[$*]"
	@touch $@

.PRECIOUS: $(VENV)/.extra-%
