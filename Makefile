# The workshop: each target makes the environment that it needs, once, and again when pyproject.toml
# or a C source changes.
#
#   make demo              train the digit classifier on real handwriting        (ARGS="--model cnn --epochs 5")
#   make test              run the tests; ORACLE=1 also compares with PyTorch, DEVICES=1 tests the devices of
#                          examples/backends, BROWSER=1 pages in Chromium, TENSORCORE_NATIVE=0 NumPy's kernels alone (ARGS="-k views", WORKERS=4)
#   make native            build the C kernels again; without a compiler everything runs on NumPy
#   make sanitize          the tests of the C kernels under ASan and UBSan      (SANITIZER=thread for TSan)
#   make arm               the C kernels built for ARM, and their tests under an emulator
#   make lint              ruff and mypy; `make format` mends what ruff can
#   make bench             the table of times and memory beside PyTorch          (ARGS="--only tiny --page docs/performance.md")
#   make bench-ops         each op beside PyTorch at four sizes, and the slow ones in docs/performance.md
#   make dashboard         asv over the last commits, drawn in .asv/html         (ARGS="--commits 5 --whole")
#   make continuous        counts beside BASE, which must not grow, and times, which warn (BASE=main ARGS=--no-time)
#   make bench-collective  collectives and a distributed step beside PyTorch over gloo, in docs/distributed.md
#   make opdb              PyTorch's own table of operators in both libraries    (ARGS="--only linalg")
#   make array-api         the public suite of the array API standard (SUITE=a checkout of array-api-tests)
#   make gpu               proofs and times on cuda:0, with this machine's Python; STANDIN=1 rehearses without a GPU
#   make pages             write the stubs, and the pages of ops and of missing names, again
#   make docs              build the documentation pages; a warning is an error
#   make pictures          draw the pictures in them from the results            (ARGS=--measure)
#   make types             mypy and pyright on the examples, as their authors would run them
#   make certificates      hold the devices of examples/backends against the conformance suite, and keep what it says
#   make wheel             build sdist and wheel, check them, and use them in a fresh environment
#   make env               everything above in one environment
#   make clean             remove the environment and what the tools left behind

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
WORKERS ?= 2
SANITIZER ?= address,undefined
ARGS ?=

BIN := $(VENV)/bin
RUN := $(BIN)/python
SOURCES = $(wildcard tensorcore plugins tests asv_benchmarks examples docs extras.py)
NATIVE = setup.py $(wildcard tensorcore/shortcuts/*.[ch] plugins/tensorcore_cpu/native/*.[ch] plugins/tensorcore_cpu/native/loops/*.[ch])
TYPED = $(wildcard tensorcore/backend tensorcore/tape tensorcore/autograd tensorcore/plugin.py)

ifdef ORACLE
TEST_EXTRAS := $(VENV)/.extra-test $(VENV)/.extra-peers
ORACLE_OPTION := --oracle
else
TEST_EXTRAS := $(VENV)/.extra-test
endif
ifdef BROWSER
TEST_EXTRAS += $(VENV)/.extra-browser $(VENV)/.extra-docs
endif
ifdef DEVICES
TEST_EXTRAS += $(VENV)/.extra-devices
endif

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export NO_MKDOCS_2_WARNING = 1

.DEFAULT_GOAL := test
.PHONY: demo test native lint format bench ops lazy collective bench-rows bench-ops bench-lazy dashboard continuous bench-collective opdb array-api gpu pages docs \
	pictures types certificates wheel sanitize clang arm env clean

demo: $(VENV)/.extra-demo
	$(RUN) examples/digits.py $(ARGS)

# One thread in each test process: two that take both cores each slow one another down.
test: export OMP_NUM_THREADS ?= 1
test: export OPENBLAS_NUM_THREADS ?= 1
test: $(TEST_EXTRAS)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal $(ORACLE_OPTION) $(ARGS)

native: | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --no-deps --editable .
	$(RUN) -c 'import tensorcore_cpu.native as native; print("native:", native.reason or "built")'

# A copy of the tree with extensions of its own, so that nobody's build is replaced.
COPIED := tensorcore plugins tests asv_benchmarks examples setup.py pyproject.toml README.md LICENSE
SANE := build/sanitize
RUNTIMES = $(foreach one,$(subst address,asan,$(subst undefined,ubsan,$(subst thread,tsan,$(subst $(COMMA), ,$(SANITIZER))))),$(shell gcc -print-file-name=lib$(one).so))
COMMA := ,
# TSan wants addresses that are not random, sees nothing of OpenBLAS's locks, and its shadow counts as memory of the process.
SANE_RUN = $(if $(findstring thread,$(SANITIZER)),setarch -R) $(abspath $(RUN))
SANE_LESS = $(if $(findstring thread,$(SANITIZER)),--deselect tests/cpu/test_native.py::test_an_array_of_whole_huge_pages_takes_no_third_of_them)

sanitize: export TENSORCORE_PLUGINS = tensorcore_cpu
sanitize: $(VENV)/.extra-test
	rm -rf $(SANE)/tree
	mkdir -p $(SANE)/tree
	cp -r $(COPIED) $(SANE)/tree
	find $(SANE)/tree -name '*.so' -delete
	cd $(SANE)/tree && TENSORCORE_NATIVE_FLAGS="-fsanitize=$(SANITIZER) -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1" \
		$(abspath $(RUN)) setup.py -q build_ext --force --build-temp ../objects --inplace
	cd $(SANE)/tree && PYTHONPATH=$(CURDIR)/$(SANE)/tree:$(CURDIR)/$(SANE)/tree/plugins LD_PRELOAD="$(RUNTIMES)" TENSORCORE_NATIVE=1 PYTHONMALLOC=malloc \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="die_after_fork=0 ignore_noninstrumented_modules=1" \
		OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 $(SANE_RUN) -m pytest -q -p no:cacheprovider $(SANE_LESS) \
		tests/cpu/test_native*.py tests/cpu/test_compile.py tests/test_shortcuts.py $(ARGS)

# The same tests of extensions that another compiler made. Needs clang (apt).
OTHER := build/clang

clang: export TENSORCORE_PLUGINS = tensorcore_cpu
clang: $(VENV)/.extra-test
	rm -rf $(OTHER)/tree
	mkdir -p $(OTHER)/tree
	cp -r $(COPIED) $(OTHER)/tree
	find $(OTHER)/tree -name '*.so' -delete
	cd $(OTHER)/tree && CC=clang $(abspath $(RUN)) setup.py -q build_ext --force --build-temp ../objects --inplace
	cd $(OTHER)/tree && PYTHONPATH=$(CURDIR)/$(OTHER)/tree:$(CURDIR)/$(OTHER)/tree/plugins TENSORCORE_NATIVE=1 OMP_NUM_THREADS=2 CC=clang \
		$(abspath $(RUN)) -m pytest -q -p no:cacheprovider tests/cpu/test_native*.py tests/cpu/test_compile.py tests/cpu/test_written.py \
		tests/test_shortcuts.py $(ARGS)

# The kernels for ARM, where NEON is part of every processor: cross-compiled, and run by an emulator, which says nothing about
# times. Needs gcc-aarch64-linux-gnu, qemu-user-static and mmdebstrap (apt). An arm64 Debian's Python is unpacked, not installed.
ARM := build/arm
ARM_PYTHON := 3.11

$(ARM)/python: pyproject.toml | $(VENV)/bin/python
	rm -rf $(ARM)/root $(ARM)/site
	mkdir -p $(ARM)
	mmdebstrap --quiet --variant=extract --arch=arm64 \
		--include=python$(ARM_PYTHON),libpython$(ARM_PYTHON)-dev,libstdc++6 bookworm $(ARM)/root
	$(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $(ARM)/needs
	$(RUN) -m pip install --quiet --target $(ARM)/site --only-binary=:all: --python-version $(ARM_PYTHON) \
		--platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 \
		-r $(ARM)/needs setuptools "pytest>=8.2,<10" "hypothesis>=6.100,<7"
	printf '#!/bin/sh\nPYTHONHOME=%s/usr exec qemu-aarch64-static -0 "$$0" -L %s %s/usr/bin/python%s "$$@"\n' \
		$(CURDIR)/$(ARM)/root $(CURDIR)/$(ARM)/root $(CURDIR)/$(ARM)/root $(ARM_PYTHON) > $@
	chmod +x $@

arm: export TENSORCORE_PLUGINS = tensorcore_cpu
arm: export PYTHONPYCACHEPREFIX = $(CURDIR)/$(ARM)/cache
arm: $(ARM)/python
	rm -rf $(ARM)/tree
	mkdir -p $(ARM)/tree
	cp -r $(COPIED) $(ARM)/tree
	find $(ARM)/tree -name '*.so' -delete
	cd $(ARM)/tree && PYTHONPATH=$(CURDIR)/$(ARM)/site CC="aarch64-linux-gnu-gcc -I$(CURDIR)/$(ARM)/root/usr/include/python$(ARM_PYTHON) -idirafter $(CURDIR)/$(ARM)/root/usr/include" \
		$(CURDIR)/$(ARM)/python setup.py -q build_ext --force --build-temp ../objects --inplace
	cd $(ARM)/tree && PYTHONPATH=$(CURDIR)/$(ARM)/tree:$(CURDIR)/$(ARM)/tree/plugins:$(CURDIR)/$(ARM)/site TENSORCORE_NATIVE=1 OMP_NUM_THREADS=2 \
		$(CURDIR)/$(ARM)/python -m pytest -q -p no:cacheprovider tests/cpu/test_native*.py tests/test_shortcuts.py $(ARGS)

lint: $(VENV)/.extra-lint
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(TYPED)

# What follows from the stubs for users: no settings of ours, and other people's libraries unknown.
types: $(VENV)/.extra-types
	$(BIN)/mypy --config-file= --ignore-missing-imports --follow-imports silent $(wildcard examples/*.py) \
		$(dir $(wildcard examples/backends/*/tensorcore_*/__init__.py)) plugins/template/tensorcore_mine
	$(BIN)/pyright

format: $(VENV)/.extra-lint
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

# `make bench` prints the table of rows; `make bench ops`, `make bench lazy` and `make bench collective` another one.
TABLE := $(filter ops lazy collective,$(MAKECMDGOALS))
bench: $(addprefix bench-,$(or $(TABLE),rows))
ops lazy collective: bench
	@:

bench-rows: $(VENV)/.extra-bench $(VENV)/.extra-peers
	$(RUN) -m asv_benchmarks.table $(ARGS)

bench-lazy: $(VENV)/.extra-bench $(VENV)/.extra-peers
	$(RUN) -m asv_benchmarks.table --only lazy $(ARGS)

bench-ops: $(VENV)/.extra-bench $(VENV)/.extra-peers
	$(RUN) -m asv_benchmarks.table --ops --page docs/performance.md $(ARGS)

dashboard: $(VENV)/.extra-bench
	$(RUN) -m asv_benchmarks.dashboard $(ARGS)

BASE ?= main
continuous: $(VENV)/.extra-bench
	$(RUN) -m asv_benchmarks.continuous --base $(BASE) $(ARGS)

bench-collective: $(VENV)/.extra-bench $(VENV)/.extra-mpi $(VENV)/.extra-peers
	$(RUN) -m asv_benchmarks.benchmarks.collective --page docs/distributed.md $(ARGS)

opdb: $(VENV)/.extra-peers
	$(RUN) -m tests.opdb --write docs/opdb.md $(ARGS)

# The suite is no package: SUITE is a checkout with its submodule, or one is made.
SUITE ?= .cache/array-api-tests
array-api: $(VENV)/.extra-test
	test -d $(SUITE) || git clone --quiet --depth 1 --recurse-submodules https://github.com/data-apis/array-api-tests $(SUITE)
	$(RUN) -m pip install --quiet pytest-json-report "ndindex>=1.8"
	ARRAY_API_TESTS_MODULE=tensorcore.array_api ARRAY_API_TESTS_VERSION=2024.12 $(RUN) -m pytest -q -W ignore \
		-c $(SUITE)/pytest.ini --rootdir $(SUITE) -n $(WORKERS) --max-examples 100 \
		--xfails-file $(CURDIR)/tests/array_api/suite-xfails.txt $(SUITE)/array_api_tests $(ARGS)

# With the machine's own Python and packages: no environment is made, so that no network is needed. Ends with 3 where there
# is no GPU and with 4 where the plugin does not work; make shows it as "Error 3".
gpu:
	PYTHONPATH=.:plugins $(PYTHON) -m asv_benchmarks.gpu $(if $(STANDIN),--standin) $(ARGS)

pages: $(VENV)/.extra-peers
	$(RUN) -m docs.document
	$(RUN) -m tests.missing

docs: $(VENV)/.extra-docs
	$(BIN)/mkdocs build --strict --site-dir site

pictures: $(VENV)/.extra-demo
	$(RUN) -m docs.pictures $(ARGS)

# JAX takes the longest by far: XLA compiles a program for every shape. The tests check what the certificates say.
certificates: $(VENV)/.extra-devices $(VENV)/.extra-peers
	for one in $(or $(ARGS),torch:silver jax:silver opencl:silver); do name=$${one%:*}; \
		$(RUN) -m pip install --quiet --no-deps --editable examples/backends/$${name}_device && \
		$(RUN) -m tensorcore check $$name --level $${one#*:} --json examples/backends/$${name}_device/certificate.json || \
		exit 1; \
	done

wheel: $(VENV)/.extra-release
	$(RUN) -m tests.release dist

env: $(VENV)/.extra-dev

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .asv build dist site out *.egg-info
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "env: expected Python 3.11 or newer, got none; install it or name it with PYTHON="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "env: expected Python 3.11 or newer, got $$($(PYTHON) --version); name another with PYTHON="; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package, with the C kernels: built once, whatever extras follow. Only pyproject.toml and the C sources ask for it again.
$(VENV)/.package: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	@echo "tensorcore and its C kernels are built, which takes a minute or two and happens once"
	$(RUN) -m pip install --quiet --editable .
	@touch $@

# Each stamp is one installed extra.
$(VENV)/.extra-%: pyproject.toml extras.py | $(VENV)/.package
	$(RUN) extras.py $* > $(VENV)/extra-$*.txt
	$(RUN) -m pip install --quiet --requirement $(VENV)/extra-$*.txt
	@touch $@

.PRECIOUS: $(VENV)/.extra-%
