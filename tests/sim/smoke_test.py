#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The smoke seeds of the simulator, each run twice: smoke_test.py SIM SEEDS."""

import collections
import functools
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import simulator  # noqa: E402
import tap  # noqa: E402

GROUP = 25


def group_passes(sim, covered, first):
    output = simulator.passes(sim, "--seeds", GROUP, "--first", first, "--twice")
    for name, count in re.findall(r"(\w+)=(\d+)", output):
        covered[name] += int(count)


def everything_was_reached(covered):
    assert covered, "nothing was counted"
    tap.equal([name for name, count in covered.items() if count == 0], [])


def seed_comes_first_and_last(sim):
    output = simulator.passes(sim, "--seed", "0x1f3a").splitlines()
    tap.equal(output[0], "seed 0x1f3a")
    tap.contains(output[-1], "seed 0x1f3a: history ")


def X7_a_trace_is_the_same_history(sim):
    plain = simulator.passes(sim, "--seed", 7).splitlines()
    traced = simulator.passes(sim, "--seed", 7, "--trace").splitlines()
    tap.equal(traced[-1], plain[-1])
    tap.equal(traced, simulator.passes(sim, "--seed", 7, "--trace").splitlines())
    assert len(traced) > 500, f"a trace of {len(traced)} lines"


def seeds_differ(sim):
    ends = [simulator.passes(sim, "--seed", seed).split()[-1] for seed in range(1, 9)]
    tap.equal(len(set(ends)), len(ends))


def bad_arguments_are_refused(sim):
    for arguments in (["--seed"], ["--seed", "x"], ["--seed", "-1"], ["--seeds", "0"],
                      ["--steps", "99999999999999999999"], ["--speed"], ["--state"]):
        done = simulator.run(sim, *arguments)
        tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        assert done.stderr.startswith(arguments[0] + ": "), done.stderr


def soak_goes_on_where_it_stopped(sim):
    with tempfile.TemporaryDirectory() as place:
        state = pathlib.Path(place) / "state"
        ends = []
        for count, fresh in ((3, []), (6, []), (4, ["--fresh"])):
            done = simulator.run(sim, "--seeds", count, "--steps", 300, "--state", state, *fresh)
            tap.equal(done.returncode, 0)
            ends.append(done.stdout.splitlines())
        tap.equal(ends[0][1], "soak: from the beginning")
        tap.equal(ends[1][1], "soak: goes on behind 3 seeds")
        tap.equal(ends[2][1], "soak: from the beginning")
        whole = simulator.passes(sim, "--seeds", 6, "--steps", 300).splitlines()
        tap.equal(ends[1][2:], whole[1:])
        state.write_text("kvstrata soak 1\nfirst 1\n")
        done = simulator.run(sim, "--seeds", 1, "--steps", 300, "--state", state)
        tap.equal((done.returncode, done.stdout.splitlines()[1]), (0, "soak: from the beginning"))


def old_seed_passes(sim, seed):
    simulator.passes(sim, "--seed", seed, "--twice")


def main(sim, seeds):
    suite = tap.Suite()
    covered = collections.Counter()
    # One thread has no races: where they are looked for, which takes its time, a few seeds will do.
    threaded = os.environ["KVSTRATA_SANITIZE"] == "thread"
    for first in range(1, GROUP if threaded else simulator.SMOKE_SEEDS, GROUP):
        suite.add(f"X7 seeds {first} to {first + GROUP - 1}, twice",
                  functools.partial(group_passes, sim, covered, first))
    if not threaded:
        suite.add("the seeds reach everything that is counted",
                  functools.partial(everything_was_reached, covered))
    for line in pathlib.Path(seeds).read_text().splitlines():
        if not line.startswith("#"):
            seed, found = line.split(" ", 1)
            suite.add(f"seed {seed} ({found})", functools.partial(old_seed_passes, sim, seed))
    for check in (seed_comes_first_and_last, X7_a_trace_is_the_same_history, seeds_differ,
                  bad_arguments_are_refused, soak_goes_on_where_it_stopped):
        suite.add(check.__name__.replace("_", " "), functools.partial(check, sim))
    suite.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
