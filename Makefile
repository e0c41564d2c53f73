# feedline's commands; `make help` lists them. Each sets up what it needs, so it works on a
# fresh Debian or Ubuntu: system packages by apt-get (as root or through sudo, else the line
# to run is printed), a virtual environment, the build. What is done already is not done again.
#   PYTHON=python3.12   the interpreter to use (default: the newest from 3.11 to 3.13)
#   DATA=folder         pictures for `make demo` and `make bench`
#   JOBS=4              compilers side by side

JOBS  ?= $(shell nproc)
VENV  := .venv
ALL   := .venv-all
STAMP := build/stamps
BIN   := $(VENV)/bin
CLANG_FORMAT := 14
FREE  := .venv-3.13t
TORCH := torch==2.13.0
TORCHVISION := torchvision==0.28.0
export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

SOURCES := $(shell find src -name '*.[ch]') setup.py pyproject.toml
CHECKED := $(wildcard python tests demo benchmarks setup.py)
C_FILES := $(shell find src tests benchmarks -name '*.[ch]' -not -path '*/third_party/*')
ASAN    := build/asan

.PHONY: help demo test test-all build lint format bench clean check-c check-asan check-tsan \
        check-clang check-arm64 check-fuzz check-extension check-interpreters check-torch \
        check-free-threaded check-free-threaded-tsan
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:
	@echo "make demo      load a folder of JPEGs (DATA=folder, or pictures it makes itself)"
	@echo "make test      the test suite, without torch"
	@echo "make test-all  the suite with torch, sanitizers, other interpreters, lints"
	@echo "make build     the extension, in $(VENV)"
	@echo "make bench     the benchmarks, with torch beside it (DATA=folder)"
	@echo "make lint      formatting, ruff, mypy, stubtest"
	@echo "make format    clang-format and ruff format, in place"
	@echo "make clean     removes all that was built"

demo: build
	@$(BIN)/python demo/run.py $(if $(DATA),--data "$(DATA)")

test: build
	@$(BIN)/python -m pytest

test-all: $(STAMP)/system-all lint check-clang check-arm64 check-asan check-tsan check-fuzz \
          check-extension check-interpreters check-free-threaded check-free-threaded-tsan \
          check-torch

build: $(VENV)/built

bench: $(ALL)/built
	@$(ALL)/bin/python -m pytest benchmarks $(if $(DATA),--data "$(DATA)")

# What the legs above stand on.

$(STAMP)/system-%: .ci/setup-system .ci/find-python
	@.ci/setup-system $*
	@mkdir -p $(@D) && touch $@

# The stamps lie in the environments, so that removing one makes it anew.

$(VENV)/made: pyproject.toml | $(STAMP)/system-base
	@echo "making $(VENV)"
	@.ci/make-venv $(VENV)
	@touch $@

$(ALL)/made: pyproject.toml | $(STAMP)/system-base
	@echo "making $(ALL), with torch"
	@.ci/make-venv $(ALL) $(TORCH)
	@$(ALL)/bin/python -m pip install -q --no-deps $(TORCHVISION)
	@touch $@

# The last releases that have wheels for it, see docs/free-threading.md; without a wheel an older
# release is taken, not one that has to be built.
$(FREE)/made: pyproject.toml .ci/build-python-313t | $(STAMP)/system-base
	@echo "making $(FREE), without a GIL"
	@PYTHON=$$(.ci/build-python-313t) EXTRAS=test PIP_ONLY_BINARY=:all: \
	     .ci/make-venv $(FREE) 'numpy<2.5' 'pillow<12.3' pytest-run-parallel
	@touch $@

%/built: %/made $(SOURCES)
	@.ci/build-into $*
	@touch $@

# The legs of test-all.

lint: build $(STAMP)/system-all
	@echo "== lint"
	@# Other versions lay a few lines out differently.
	@if clang-format --version | grep -q 'version $(CLANG_FORMAT)\.'; then \
	     clang-format --dry-run --Werror $(C_FILES); \
	 else echo "clang-format is not version $(CLANG_FORMAT): left out"; fi
	@if command -v clang-tidy >/dev/null; then .ci/clang-tidy; \
	 else echo "clang-tidy is not installed: left out"; fi
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/python -m mypy.stubtest feedline._core --mypy-config-file pyproject.toml

format:
	clang-format -i $(C_FILES)
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

check-c: $(STAMP)/system-base
	@$(MAKE) --no-print-directory -j$(JOBS) -C tests/core build
	@$(MAKE) --no-print-directory -C tests/core check

check-asan: $(STAMP)/system-base
	@echo "== the core under AddressSanitizer and UBSan"
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C tests/core build SAN=address,undefined
	@$(MAKE) --no-print-directory -s -C tests/core check SAN=address,undefined

check-tsan: $(STAMP)/system-base
	@echo "== the core under ThreadSanitizer"
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C tests/core build SAN=thread
	@$(MAKE) --no-print-directory -s -C tests/core check SAN=thread

check-clang: $(STAMP)/system-all
	@echo "== the core with clang, lock annotations checked"
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C tests/core build CC=clang BUILD=$(CURDIR)/build/core-clang

check-arm64: $(STAMP)/system-all
	@echo "== the core compiles for arm64"
	@.ci/compile-arm64

check-fuzz: $(STAMP)/system-all
	@echo "== the fuzz corpora once more"
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C tests/fuzz check

check-extension: build
	@echo "== the extension under AddressSanitizer and UBSan"
	@FEEDLINE_SANITIZE=address,undefined $(BIN)/python setup.py -q build --build-base $(ASAN)/work --build-lib $(ASAN)/lib
	@.ci/run-under-asan $(ASAN)/lib $(BIN)/python

check-interpreters: $(STAMP)/system-base
	@echo "== other interpreters"
	@.ci/other-interpreters

# The interpreter lies outside, where it may be removed: then it is built again, and found by
# what lies here.
check-free-threaded: $(STAMP)/system-base
	@echo "== without a GIL"
	@.ci/build-python-313t
	@$(MAKE) --no-print-directory $(FREE)/built
	@.ci/run-free-threaded $(FREE)/bin/python

check-free-threaded-tsan: $(STAMP)/system-base
	@echo "== without a GIL, extension and interpreter under ThreadSanitizer"
	@.ci/build-python-313t
	@$(MAKE) --no-print-directory $(FREE)/built
	@.ci/run-under-tsan $(FREE) "$$(.ci/build-python-313t --tsan)"

check-torch: $(ALL)/built
	@echo "== the suite with torch"
	@$(ALL)/bin/python -m pytest

clean:
	rm -rf build $(VENV) $(ALL) .venv-3* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f preview.png python/feedline/_core.*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
