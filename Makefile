# SPDX-License-Identifier: Apache-2.0
# The front door; meson.build is the building.  Every target installs what it lacks (packages.txt).

QUICK = tidy unit model contract sim e2e peer fuzz
DEEP  = unit model contract sim e2e peer fuzz

ARGS  ?=
SEEDS ?= 10000
SEED  ?= 1

.PHONY: all run simulate test check soak replay bench clean help packages check-packages release

all: packages
	@test -f build/build.ninja || meson setup build
	@ninja -C build

# -O2, symbols kept, assertions on.  Standard output is left to the program: its report may go to a file.
release: packages
	@test -f build-release/build.ninja || meson setup build-release --optimization=2 >&2
	@ninja -C build-release --quiet >&2

run: release
	@build-release/src/kvstrata replay $(ARGS)

simulate: release
	@build-release/src/kvstrata simulate $(ARGS)

test: packages
	@tools/test-build build "" $(QUICK); tools/test-summary build

check: packages check-packages
	@tools/test-build build-asan "-Db_sanitize=address,undefined" $(DEEP); \
	tools/test-build build-tsan "-Db_sanitize=thread" $(DEEP); \
	tools/test-build build-lto "--buildtype=release -Db_lto=true" $(DEEP); \
	CC=clang tools/test-build build-clang "" $(DEEP); \
	tools/test-summary build-asan build-tsan build-lto build-clang

soak: all
	@build/tests/sim/sim --seeds $(SEEDS)

replay: all
	@build/tests/sim/sim --seed $(SEED)

# Numbers of this machine; never a test.
bench: release
	@tools/bench build-release/src/kvstrata

clean:
	rm -rf build build-*

packages:
	@tools/install-packages build

check-packages:
	@tools/install-packages check

help:
	@echo "make                     debug build in build/"
	@echo "make run ARGS=...        kvstrata replay with its built-in traffic, or with ARGS"
	@echo "make simulate ARGS=...   kvstrata simulate"
	@echo "make test                every test, a minute or two"
	@echo "make check               the tests under ASan and UBSan, TSan, LTO and clang"
	@echo "make soak SEEDS=10000    the simulator with many seeds; stops at the first failure"
	@echo "make replay SEED=0x1f3a  one simulation again, exactly"
	@echo "make bench               measures simulate and replay and prints tables"
	@echo "make clean               remove every build"
