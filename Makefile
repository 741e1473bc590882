# The front door: everything a person does with this project is one of these.
#
#   make demo     set up, build, train one network in five ways and compare them (a few minutes)
#   make test     set up, build, run all tests
#   make bench    set up, build, measure one training step of a few models
#   make format   clang-format on all sources
#   make lint     clang-tidy on src/; with SINCE=COMMIT on the files that differ from it
#   make asan tsan fuzz   the tests under a sanitizer; the fuzz targets
#   make test-gpu   the tests of what needs a GPU, with the libtorch of the installed PyTorch
#   make clean
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-gpu dev asan tsan fuzz bench format check-format lint clean

JOBS ?= $(shell nproc)
# Most tests wait most of the time.
TEST_JOBS ?= $(shell expr 2 \* $(JOBS))
COHORT := build/release/cohort
SOURCES = $(shell git ls-files '*.h' '*.cpp')

help:
	@sed -n 's/^#   //p' Makefile

setup:
	@tools/setup

setup-%:
	@tools/setup build $*

# Configures a preset: build/PRESET; and builds it.
define configure_preset
mkdir -p build; cmake --preset $(1) --log-level=STATUS >build/$(1)-configure.log 2>&1 || \
  { cat build/$(1)-configure.log; exit 1; }
endef
define build_preset
$(call configure_preset,$(1)); \
grep -A20 -- '-- Cohort' build/$(1)-configure.log | grep -v 'Configuring\|Generating\|written' || true; \
cmake --build build/$(1) -j $(JOBS)
endef

build: setup-build
	@echo "building the release preset"; $(call build_preset,release)

demo: build
	@tools/demo $(COHORT)

dev asan: setup-test
	@echo "building the $@ preset"; $(call build_preset,$@)
	ctest --preset $@ -j $(TEST_JOBS)

# The layers without libtorch, which is not instrumented, and the saved inputs of the fuzzers.
tsan fuzz: setup-test
	@echo "building the $@ preset"; $(call build_preset,$@)
	ctest --preset $@ -j $(TEST_JOBS)

test: dev tsan fuzz

TORCH_PREFIX ?= $(shell python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
test-gpu:
	cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=$(TORCH_PREFIX)
	cmake --build build/gpu -j $(JOBS) --target gpu_test
	ctest --test-dir build/gpu -L gpu --output-on-failure --no-tests=error

bench: build
	$(COHORT) bench step --model mlp-4096 --batch 64 --threads 1
	$(COHORT) bench step --model resnet20 --batch 64 --threads 1
	$(COHORT) bench step --model mnistnet --batch 64 --threads 1

format: setup-lint
	clang-format -i $(SOURCES)

check-format: setup-lint
	@clang-format --dry-run -Werror $(SOURCES) && echo "all sources are formatted"

lint: setup-lint setup-test
	@$(call configure_preset,dev)
	@tools/lint.py -j $(JOBS) build/dev $(SINCE)

clean:
	rm -rf build
