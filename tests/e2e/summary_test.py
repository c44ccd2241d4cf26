#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/test-summary counts what really happened: crashes, time-outs and builds that broke are failures."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

TOOL = pathlib.Path(os.environ["KVSTRATA_SOURCE"]) / "tools/test-summary"

suite = tap.Suite()


def results(folder, name, cases, ends):
    """A build directory as meson leaves it: cases are XML, ends are (program, result, exit status)."""
    logs = pathlib.Path(folder, name, "meson-logs")
    logs.mkdir(parents=True)
    (logs / "testlog.junit.xml").write_text(f"<testsuites>{cases}</testsuites>")
    lines = [json.dumps({"name": program, "result": result, "returncode": status})
             for program, result, status in ends]
    (logs / "testlog.json").write_text("\n".join(lines))
    return name


def summary(folder, *names):
    done = subprocess.run([sys.executable, TOOL, *names], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def cases(program, *bodies):
    inner = "".join(f'<testcase name="{number}">{body}</testcase>' for number, body in enumerate(bodies, 1))
    return f'<testsuite name="kvstrata.{program}">{inner}<system-out>\x1b[K</system-out></testsuite>'


@suite.test
def passes_of_several_builds_are_summed():
    with tempfile.TemporaryDirectory() as folder:
        first = results(folder, "a", cases("unit", "", ""), [("unit", "OK", 0)])
        second = results(folder, "b", cases("unit", ""), [("unit", "OK", 0)])
        tap.equal(summary(folder, first, second), (0, ["3 passed, 0 failed"]))


@suite.test
def failures_and_skips_are_named():
    skip = "<skipped/><system-out>no io_uring here</system-out>"
    with tempfile.TemporaryDirectory() as folder:
        name = results(folder, "a", cases("unit", "", "<failure/>", skip), [("unit", "FAIL", 1)])
        tap.equal(summary(folder, name), (1, ["skipped  a: unit: 3: no io_uring here", "FAILED  a: unit: 2",
                                              "1 passed, 1 failed, 1 skipped"]))


@suite.test
def a_bad_end_after_good_cases_is_a_failure():
    for result in ("ERROR", "TIMEOUT"):
        with tempfile.TemporaryDirectory() as folder:
            name = results(folder, "a", cases("unit", ""), [("unit", result, -6)])
            tap.equal(summary(folder, name), (1, [f"FAILED  a: unit: {result}, exit status -6",
                                                  "1 passed, 1 failed"]))


@suite.test
def a_build_without_results_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        good = results(folder, "a", cases("unit", ""), [("unit", "OK", 0)])
        tap.equal(summary(folder, good, "b"), (1, ["FAILED  b: not built or not tested",
                                                   "1 passed, 1 failed"]))


@suite.test
def what_said_why_it_did_not_run_is_no_failure():
    skip = "<skipped/><system-out>no Mooncake here</system-out>"
    with tempfile.TemporaryDirectory() as folder:
        name = results(folder, "a", cases("live", skip), [("live", "SKIP", 0)])
        tap.equal(summary(folder, name), (0, ["skipped  a: live: 1: no Mooncake here",
                                              "0 passed, 0 failed, 1 skipped"]))


@suite.test
def nothing_that_ran_is_no_success():
    with tempfile.TemporaryDirectory() as folder:
        tap.equal(summary(folder, results(folder, "a", "", [])), (1, ["0 passed, 0 failed"]))
        tap.equal(summary(folder), (1, ["0 passed, 0 failed"]))


suite.run()
