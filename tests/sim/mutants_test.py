#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every planted bug must break an invariant within the smoke seeds: mutants_test.py SIM MUTANT...

The notes name the seed and the invariant that caught each.
"""

import functools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import simulator  # noqa: E402
import tap  # noqa: E402


def is_caught(mutant, kills):
    done = simulator.run(mutant, "--seeds", simulator.SMOKE_SEEDS)
    tap.equal(done.returncode, 1)
    invariant = re.search(r"^invariant (.*)$", done.stderr, re.MULTILINE)
    again = re.search(r"^again: make replay SEED=(0x[0-9a-f]+)$", done.stderr, re.MULTILINE)
    assert invariant and again, done.stderr
    tap.equal(simulator.run(mutant, "--seed", again[1]).stderr, done.stderr)
    kills.append(f"{pathlib.Path(mutant).name}: seed {again[1]}, {invariant[1]}")


def main(sim, *mutants):
    suite = tap.Suite()
    kills = []
    suite.add("the simulator itself passes the smoke seeds",
              lambda: simulator.passes(sim, "--seeds", simulator.SMOKE_SEEDS))
    for mutant in mutants:
        suite.add(f"X7 {pathlib.Path(mutant).name} is caught, and its seed repeats the report",
                  functools.partial(is_caught, mutant, kills))
    suite.run(notes=kills)


if __name__ == "__main__":
    main(*sys.argv[1:])
