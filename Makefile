# The front door. `make help` lists what there is.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all asan fuzz setup build gpu-check lint format clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\): *[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo:            ## from nothing to the report: install, build, evaluate the bundled checkpoint
	@scripts/demo.sh

test:            ## install, build and run all tests, the long sweeps sampled (REPLAYEVAL_PRESET=cpu: without CUDA)
	@scripts/test.sh

test-all:        ## all tests with the full sweeps
	@REPLAYEVAL_FULL_SWEEP=1 scripts/test.sh

asan:            ## tests of kernels, checkpoint, datasets and reports with the address and undefined sanitizers
	@scripts/asan.sh

fuzz:            ## mutated inputs to every reader of files, with clang's libFuzzer (RUNS=1000000)
	@scripts/fuzz.sh $(RUNS)

setup:           ## install packages, wheels and text, and no more
	@scripts/setup.sh --tests --lint

build:           ## the release build
	@scripts/setup.sh && scripts/build.sh release

gpu-check:       ## everything that needs a GPU: kernels, bit-exactness, sanitizers, the demo on the device
	@scripts/gpu_check.sh

lint:            ## clang-format, clang-tidy, include arrows, shellcheck
	@scripts/lint.sh

format:          ## clang-format on all tracked C++ and CUDA files
	@scripts/format.sh

clean:           ## remove builds (not the virtual environment, the text or results)
	rm -rf build
