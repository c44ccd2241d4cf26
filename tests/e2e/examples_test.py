#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say, against the shared library that a user would link."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

MANAGER = os.environ["KVSTRATA_EXAMPLE_MANAGER"]
OBJECTS = "aa bb cc dd ee ff gg hh = 8 of 8\n"

suite = tap.Suite()


def run(*arguments):
    done = subprocess.run([MANAGER, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@suite.test
def objects_go_by_way_of_a_store_in_memory():
    tap.equal(run(), (0, OBJECTS, ""))


@suite.test
def objects_go_by_way_of_a_file_and_stay_there():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        spec = f"strata:{folder}/kv?capacity=256MiB"
        for _ in range(2):
            tap.equal(run(spec), (0, OBJECTS, ""))


@suite.test
def what_cannot_be_opened_is_told_why():
    tap.equal(run("nowhere:x"), (1, "", 'open: stores[0]: store: "nowhere" is not a kind of store; use '
                                        "none, mem, mooncake, nil, resp, strata, fault, plugin\n"))


@suite.test
def examples_are_short():
    lines = pathlib.Path(os.environ["KVSTRATA_SOURCE"], "examples/manager.c").read_text().splitlines()
    assert len(lines) <= 60, len(lines)


suite.run()
