# SPDX-License-Identifier: Apache-2.0
# The front door; meson.build is the building.  Every target installs what it lacks (packages.txt).

QUICK = tidy unit model contract sim crash e2e peer fuzz

# A suite beyond those, for .ci/run.
ALSO  ?=
ARGS  ?=
SEEDS ?= 10000
SEED  ?= 1

.PHONY: all run simulate test test-mooncake check soak replay bench clean help packages test-packages \
	check-packages mooncake release

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

test: test-packages
	@tools/test-build build "" $(QUICK) $(ALSO); tools/test-summary build

# Against a real Mooncake Store of this machine; skips, with a reason, where it cannot be installed.
test-mooncake: test-packages mooncake
	@tools/test-build build "" mooncake; tools/test-summary build

check: test-packages check-packages mooncake
	@tools/test-deep build ""

soak: all
	@build/tests/sim/sim --seeds $(SEEDS) --state build/soak.state $(ARGS)
	@for d in none segment put; do \
		build/tests/crash/power --durability $$d --seeds $(SEEDS) || exit 1; done

replay: all
	@build/tests/sim/sim --seed $(SEED)

# Numbers of this machine; never a test.
bench: release
	@tools/bench build-release/src/kvstrata

clean:
	rm -rf build build-*

packages:
	@tools/install-packages build >&2

test-packages:
	@tools/install-packages build test >&2

check-packages:
	@tools/install-packages check >&2

mooncake:
	@tools/install-mooncake || [ $$? -eq 77 ]

help:
	@echo "make                     debug build in build/"
	@echo "make run ARGS=...        kvstrata replay with its built-in traffic, or with ARGS"
	@echo "make simulate ARGS=...   kvstrata simulate"
	@echo "make test                every test, four minutes or so"
	@echo "make test-mooncake       tests against Mooncake Store, which it installs in build-mooncake"
	@echo "make check               the tests with LTO, clang, ASan and UBSan, TSan; a whole trace"
	@echo "make soak SEEDS=10000    many seeds of the simulators, until one fails; goes on"
	@echo "                         where it was interrupted, or with ARGS=--fresh begins anew"
	@echo "make replay SEED=0x7     one simulation again, exactly"
	@echo "make bench               measures simulate, replay and door B and prints tables"
	@echo "make clean               remove every build"
