#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata replay` on a slow store: nobody waits past the deadline, and the report says what came of it."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import replays  # noqa: E402
import tap  # noqa: E402

REQUESTS = 60
SMALL = ["--limit", REQUESTS, "--block-bytes", "4KiB", "--device-blocks", 64, "--host-blocks", 64]
DEADLINE_MS = 20

suite = tap.Suite()


def replay(ms, *more):
    """A replay on a store each of whose first reads takes so long."""
    plan = folder / f"slow-{ms}.json"
    plan.write_text(json.dumps({"inner": "mem:64MiB", "seed": 1,
                                "faults": [{"kind": "delay", "op": "get", "ms": ms, "count": 12}]}))
    return replays.report(*SMALL, "--store", f"fault:{plan}", *more)


def check(figures):
    """Everything is served, right, and accounted for: by origin, by reason, as times, as waits."""
    tap.equal((figures["requests"], figures["wrong_bytes"]), (REQUESTS, 0))
    tap.equal(sum(origin["tokens"] for origin in figures["origin"].values()), figures["tokens"])
    tap.equal(sum(figures["misses"].values()), REQUESTS - figures["full_hits"])
    assert 0 <= figures["waited_in_vain"] <= figures["waited"] <= REQUESTS, figures
    for machine in ("with_store", "without_store", "recompute"):
        assert figures["ttft_model_ms"][machine]["mean"] > 0, figures["ttft_model_ms"]
    assert figures["ttft_model_ms"]["without_store"]["mean"] <= figures["ttft_model_ms"]["recompute"]["mean"]


@suite.test
def A3_12_reads_that_take_longer_than_the_deadline_are_fallbacks():
    """The first reads take longer; what they bring is in nobody's hit, and later reads are quick again."""
    for ms in (50, 500):
        figures = replay(ms, "--deadline", f"{DEADLINE_MS}ms")
        check(figures)
        assert figures["fallbacks"]["deadline"] > 0, figures["fallbacks"]
        assert figures["storage_events"]["soft_timeouts"] >= figures["fallbacks"]["deadline"], figures
        assert figures["waited_in_vain"] >= figures["fallbacks"]["deadline"], figures


@suite.test
def A3_12_reads_within_the_deadline_are_hits():
    """How fast a machine is is not for a test to say: the deadline here has room for any."""
    figures = replay(5, "--deadline", f"{DEADLINE_MS}ms")
    check(figures)
    figures = replay(5, "--deadline", "none")
    check(figures)
    assert figures["origin"]["store"]["tokens"] > 0, figures["origin"]
    assert figures["restore_ms"]["p99"] >= 4.9, figures["restore_ms"]
    tap.equal(figures["fallbacks"]["deadline"], 0)


@suite.test
def a_deadline_keeps_the_model_from_waiting_for_a_slow_store():
    patient, hurried = (replay(500, "--deadline", deadline) for deadline in ("none", f"{DEADLINE_MS}ms"))
    assert patient["restore_ms"]["p99"] >= 450, patient["restore_ms"]
    assert hurried["storage_events"]["soft_timeouts"] > 0, hurried["storage_events"]
    tap.equal(patient["storage_events"]["soft_timeouts"], 0)


@suite.test
def slow_puts_close_the_gate_and_cost_nothing_else():
    plan = folder / "slow-puts.json"
    plan.write_text(json.dumps({"inner": "mem:64MiB", "seed": 1,
                                "faults": [{"kind": "delay", "op": "put", "ms": 30, "count": 20}]}))
    figures = replays.report(*SMALL, "--store", f"fault:{plan}", "--watermarks", "age=1ms/0")
    check(figures)
    assert figures["storage_events"]["gate_closures"] > 0, figures["storage_events"]
    tap.equal(figures["storage_events"]["pressure_dropped_backups"], figures["drops"]["pressure"])
    open_gate = replays.report(*SMALL, "--store", f"fault:{plan}")
    tap.equal(open_gate["storage_events"]["gate_closures"], 0)
    tap.equal(open_gate["drops"]["pressure"], 0)


@suite.test
def one_credit_reads_and_backs_up_nothing():
    figures = replays.report(*SMALL, "--store", "mem:64MiB", "--op-credits", 1)
    check(figures)
    assert figures["drops"]["disabled"] > 0, figures["drops"]
    assert figures["storage_events"]["queries"] > 0, figures["storage_events"]
    tap.equal(figures["store"]["puts"], 0)


@suite.test
def extensions_below_the_minimum_are_not_asked_for():
    figures = replays.report(*SMALL, "--store", "mem:64MiB", "--min-extension", 10**6)
    check(figures)
    tap.equal((figures["storage_events"]["queries"], figures["waited"]), (0, 0))
    assert figures["misses"]["short"] > 0, figures["misses"]
    assert figures["store"]["puts"] > 0, figures["store"]


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
