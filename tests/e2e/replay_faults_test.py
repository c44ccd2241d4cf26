#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata replay` on a store that fails: every request is served, and the report says what it cost."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import tap  # noqa: E402

suite = tap.Suite()

REQUESTS = 200
SMALL = ("--block-bytes", "4KiB", "--device-blocks", 64, "--json")
AN_HOUR_MS = 3600000


def replay(*faults, requests=REQUESTS, host_blocks=64):
    """The finished process of a small replay on a store with these faults, and its report."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"inner": "mem:64MiB", "seed": 1, "faults": faults}))
    done = command.run("replay", "--store", f"fault:{plan}", *SMALL, "--limit", requests,
                       "--host-blocks", host_blocks, env=command.leaving_threads())
    return done, json.loads(done.stdout)


def serves_everything(report, requests=REQUESTS):
    tap.equal(report["requests"], requests)
    tap.equal(report["wrong_bytes"], 0)


@suite.test
def A1_4_a_late_write_ends_storage_work_and_the_report_comes_before_the_bad_news():
    """It may come until the end of the run, and nobody waits for it longer than a few seconds."""
    done, report = replay({"kind": "late_write", "op": "get", "every": 3, "ms": AN_HOUR_MS})
    tap.equal(done.returncode, command.FAILED)
    tap.equal(done.stderr,
              "kvstrata replay: store: bytes of an operation are quarantined; a restart is required\n")
    serves_everything(report)
    assert report["fallbacks"]["quarantine"] > 0, report["fallbacks"]


@suite.test
def X2_a_late_write_that_landed_ends_a_quarantine_and_storage_goes_on():
    """A second quarantine shows that the first ended, and nothing of any is left at the end."""
    requests = 1500
    done, report = replay({"kind": "late_write", "op": "get", "every": 100, "count": 4, "ms": [1, 2]},
                          requests=requests)
    tap.equal((done.returncode, done.stderr), (command.DONE, ""))
    serves_everything(report, requests)
    assert report["storage_events"]["quarantines"] > 1, report["storage_events"]
    assert report["storage_events"]["published_rows"] > 0, report["storage_events"]


@suite.test
def a_put_that_never_comes_back_holds_up_no_requests():
    """It holds as much of a small Host as puts may have under way before the next request is let in."""
    done, report = replay({"kind": "lost", "op": "put", "after": 3, "count": 1}, host_blocks=9)
    tap.equal(done.returncode, command.FAILED)
    tap.equal(done.stderr,
              "kvstrata replay: store: bytes of an operation are quarantined; a restart is required\n")
    serves_everything(report)
    tap.equal(report["interrupted"], False)


@suite.test
def A5_4_a_store_that_fails_is_left_alone_for_a_while():
    done, report = replay({"kind": "error", "op": "get", "every": 3})
    tap.equal((done.returncode, done.stderr), (command.DONE, ""))
    serves_everything(report)
    assert report["fallbacks"]["cooldown"] > 0, report["fallbacks"]
    assert report["fallbacks"]["backend"] > 0, report["fallbacks"]


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
