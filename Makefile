# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake. `make help` lists the targets.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE  ?= cmake
# CMAKE_FLAGS = -DLOCUS_OPENMP=OFF, for example

# The tests' Python, where tools/setup.sh made one: then the extension module is built, too.
PYTHON := $(wildcard $(BUILD)/venv/bin/python)
PYTHON_FLAGS := $(if $(PYTHON),-DLOCUS_PYTHON=ON -DPython_EXECUTABLE=$(abspath $(PYTHON)))

ifneq ($(origin CC),default)
export CC
endif
export BUILD JOBS
MAKEFLAGS += --no-print-directory

.PHONY: all demo page tests test test-quick test-full bench measure cross static deb wheel release gallery format check-format install uninstall clean setup \
        setup-tests \
        configure help

all: configure ## build/locus, build/liblocus.so, build/liblocus.a (default)
	@$(CMAKE) --build $(BUILD) -j $(JOBS) --target locus-make

tests: configure ## that and the test programs
	@$(CMAKE) --build $(BUILD) -j $(JOBS)

configure:
	@command -v $(CMAKE) >/dev/null || { echo "cmake is missing; tools/setup.sh installs it" >&2; exit 1; }
	@$(CMAKE) -S . -B $(BUILD) -G "Unix Makefiles" -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(PYTHON_FLAGS) $(CMAKE_FLAGS) \
	    --log-level=WARNING >/dev/null

setup: ## install what is missing (apt), or say what to install
	@tools/setup.sh

setup-tests: ## the same, and a venv under build/ for the tests of the Python package
	@tools/setup.sh tests

demo: setup ## every scheme, judged and timed; build/demo/index.html explains them, build/page/index.html computes
	@$(MAKE) all
	@$(BUILD)/locus demo --output $(BUILD)/demo
	@tools/demo-models.sh $(BUILD)
	@lacks=$$(tools/setup.sh page-missing); if [ -z "$$lacks" ]; then $(MAKE) page | tail -n 1; \
	    else echo "no page that computes: it needs $$lacks"; fi

page: all ## build/page/index.html: the page that computes, where clang for wasm32 is installed
	@lacks=$$(tools/setup.sh page-missing); [ -z "$$lacks" ] || { echo "page: please install $$lacks" >&2; exit 1; }
	@$(CMAKE) -S web -B $(BUILD)/wasm -G "Unix Makefiles" -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/wasm.cmake \
	    --log-level=WARNING >/dev/null
	@$(CMAKE) --build $(BUILD)/wasm -j $(JOBS) >/dev/null
	@python3 web/build.py $(BUILD)/locus $(BUILD)/wasm/locus.wasm $(BUILD)/page/index.html

test: setup-tests ## everything that must be green; at most 20 minutes on 2 cores
	@$(MAKE) tests
	@tests/run.sh normal

test-quick: setup-tests ## a sample of every suite; at most 2 minutes
	@$(MAKE) tests
	@tests/run.sh quick

test-full: setup-tests ## the exhaustive grids, and the sanitizers over everything
	@$(MAKE) tests
	@tests/run.sh full

bench: all ## this machine: kernels against their limits
	@$(BUILD)/locus bench

measure: all ## the benchmark into the tables and the chart of docs/performance.md; 4 minutes
	@python3 tools/measure.py $(BUILD)/locus

cross: ## the library and the program for ARM, RISC-V, musl, macOS and Windows, under build/cross
	@tools/cross.sh

static: ## build/static/locus-x86_64 and -aarch64: the program in one file that needs nothing but Linux
	@tools/cross.sh musl musl-aarch64
	@mkdir -p $(BUILD)/static
	@cp $(BUILD)/cross/musl/locus $(BUILD)/static/locus-x86_64
	@cp $(BUILD)/cross/musl-aarch64/locus $(BUILD)/static/locus-aarch64
	@ls -l $(BUILD)/static

deb: ## build/deb: locus, liblocus0.2, liblocus-dev and python3-locus for this Debian
	@tools/deb.sh

wheel: ## build/wheel: the sdist and the wheel for this machine
	@tools/wheel.sh

release: ## build/release: all that is given away, and its table and sums; RELEASING.md
	@tools/release.sh

gallery: all ## draw docs/gallery anew
	@tools/gallery.sh $(BUILD)/locus docs/gallery

format: ## clang-format 14 over all C sources, in place
	@tools/format.sh

check-format: ## say which sources clang-format would change
	@tools/format.sh --check

install: configure ## the library and the program, nothing else built; PREFIX=/usr/local, DESTDIR= honoured
	@$(CMAKE) --build $(BUILD) -j $(JOBS) --target locus-product
	@DESTDIR="$(DESTDIR)" $(CMAKE) --install $(BUILD)

uninstall: ## remove what the last install wrote
	@DESTDIR="$(DESTDIR)" $(CMAKE) -DMANIFEST=$(BUILD)/install_manifest.txt -P cmake/uninstall.cmake

clean: ## remove the build folder
	@rm -rf $(BUILD)

help:
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
