# SPDX-License-Identifier: Apache-2.0
"""Runs of the simulator, as a person would start them."""

import subprocess

SMOKE_SEEDS = 200


def run(program, *arguments):
    command = [program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def passes(program, *arguments):
    """Standard output of a run that kept every invariant."""
    done = run(program, *arguments)
    assert done.returncode == 0 and not done.stderr, f"{done.args}: {done.returncode}\n{done.stderr}"
    return done.stdout
