#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeds of power failures: power_test.py POWER DURABILITY SEEDS."""

import collections
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

SMOKE_SEEDS = 250
GROUP = 50


def passes(power, *arguments):
    """Standard output of a run that kept every invariant."""
    done = subprocess.run([power, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, f"{done.args}: {done.returncode}\n{done.stderr}"
    return done.stdout


def group_passes(power, durability, covered, first):
    output = passes(power, "--durability", durability, "--seeds", GROUP, "--first", first)
    for name, count in re.findall(r"(\w+)=(\d+)", output):
        covered[name] += int(count)


def everything_was_reached(covered):
    assert covered, "nothing was counted"
    tap.equal([name for name, count in covered.items() if count == 0], [])


def histories_repeat(power, durability):
    passes(power, "--durability", durability, "--seeds", 10, "--first", 0x1f3a, "--twice")


def seed_comes_first_and_last(power, durability):
    output = passes(power, "--durability", durability, "--seed", "0x1f3a").splitlines()
    tap.contains(output[0], "seed 0x1f3a")
    tap.contains(output[-1], "seed 0x1f3a: history ")


def main(power, durability, seeds):
    suite = tap.Suite()
    covered = collections.Counter()
    for first in range(1, SMOKE_SEEDS, GROUP):
        suite.add(f"seeds {first} to {first + GROUP - 1}",
                  functools.partial(group_passes, power, durability, covered, first))
    suite.add("the seeds reach everything that is counted",
              functools.partial(everything_was_reached, covered))
    for check in (histories_repeat, seed_comes_first_and_last):
        suite.add(check.__name__.replace("_", " "), functools.partial(check, power, durability))
    for line in pathlib.Path(seeds).read_text().splitlines():
        if line.startswith(durability + " "):
            _, seed, found = line.split(" ", 2)
            suite.add(f"seed {seed} ({found})",
                      functools.partial(passes, power, "--durability", durability, "--seed", seed))
    suite.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
