#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every planted bug must break an invariant: mutants_test.py DURABILITY... MUTANT..., as many of each.

The notes name the seed and the invariant that caught each.
"""

import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

# The rarest needs a crash between two certain writes and another soon after; most fall within ten.
SEEDS = 4000


def is_caught(mutant, durability, first, kills):
    command = [mutant, "--durability", durability]
    done = subprocess.run([*command, "--seeds", str(SEEDS), "--first", first], capture_output=True, text=True,
                          check=False)
    tap.equal(done.returncode, 1)
    invariant = re.search(r"^invariant (.*)$", done.stderr, re.MULTILINE)
    again = re.search(r"^again: .* --seed (0x[0-9a-f]+)$", done.stderr, re.MULTILINE)
    assert invariant and again, done.stderr
    replay = subprocess.run([*command, "--seed", again[1]], capture_output=True, text=True, check=False)
    tap.equal(replay.stderr, done.stderr)
    kills.append(f"{pathlib.Path(mutant).name}: {durability}, seed {again[1]}, {invariant[1]}")


def main(*arguments):
    suite = tap.Suite()
    kills = []
    third = len(arguments) // 3
    columns = (arguments[i * third:(i + 1) * third] for i in range(3))
    for durability, first, mutant in zip(*columns):
        suite.add(f"{pathlib.Path(mutant).name} is caught, and its seed repeats the report",
                  functools.partial(is_caught, mutant, durability, first, kills))
    suite.run(notes=kills)


if __name__ == "__main__":
    main(*sys.argv[1:])
