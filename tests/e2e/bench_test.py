#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata bench`: it measures, says what, and refuses what it does not know.  No figure is judged here."""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import tap  # noqa: E402

suite = tap.Suite()

EXEC_FIGURES = {"submissions_per_s_core", "keys_per_s_core", "keys_per_s", "busy_median_us", "busy_p99_us",
                "idle_median_us", "idle_p99_us"}


@suite.test
def exec_measures_for_machines():
    report = json.loads(command.succeeds("bench", "exec", "--runs", 1, "--batch", 8, "--json"))
    tap.equal(set(report), EXEC_FIGURES | {"batch", "runs"})
    tap.equal((report["batch"], report["runs"]), (8, 1))
    assert all(report[name] > 0 for name in EXEC_FIGURES), report
    # A rate of ops and one of their keys are the same rate.
    ratio = report["keys_per_s_core"] / report["submissions_per_s_core"]
    assert abs(ratio - 8) < 0.01, report
    for state in ("busy", "idle"):
        assert report[f"{state}_median_us"] <= report[f"{state}_p99_us"], report


@suite.test
def exec_measures_for_people():
    text = command.succeeds("bench", "exec", "--runs=2", "--batch=64")
    tap.contains(text, "batches of 64 keys, one worker; medians of 2 runs")
    for line in ("keys a second a core", "busy: median, us", "idle: p99, us"):
        tap.contains(text, line)


RESP_FIGURES = {"get_ratio", "put_ratio", "get_gb_s", "put_gb_s", "redis_benchmark_get_gb_s",
                "redis_benchmark_set_gb_s"}


def has_redis():
    missing = [name for name in ("redis-server", "redis-benchmark") if not shutil.which(name)]
    for name in missing:
        print(f"# {name} is not installed")
    return not missing


@suite.test
def resp_measures_for_machines():
    if not has_redis():
        return
    report = json.loads(command.succeeds("bench", "resp", "--runs", 1, "--bytes", "64KiB,1MiB", "--json"))
    tap.equal([row["bytes"] for row in report], [65536, 1 << 20])
    for row in report:
        tap.equal(set(row), RESP_FIGURES | {"bytes", "connections", "pipeline", "runs"})
        tap.equal((row["connections"], row["pipeline"], row["runs"]), (2, 8, 1))
        assert all(row[name] > 0 for name in RESP_FIGURES), row
        for ours, theirs in (("get", "get"), ("put", "set")):
            ratio = row[f"{ours}_gb_s"] / row[f"redis_benchmark_{theirs}_gb_s"]
            assert abs(ratio - row[f"{ours}_ratio"]) < 0.01, row


@suite.test
def resp_measures_for_people():
    if not has_redis():
        return
    text = command.succeeds("bench", "resp", "--runs=1", "--bytes=256KiB", "--connections=1", "--pipeline=2")
    tap.contains(text, "resp, connections: 1, pipeline: 2, runs: 1; medians, every get verified")
    tap.contains(text, "256 KiB")


@suite.test
def resp_refuses_what_it_cannot_measure():
    command.refuses(2, 'kvstrata bench resp: --bytes: "5000" is not a multiple of 4 KiB up to 64 MiB',
                    "bench", "resp", "--bytes", "64KiB,5000")
    command.refuses(2, 'kvstrata bench resp: --server: "6379" is not HOST:PORT',
                    "bench", "resp", "--server", "6379")
    command.refuses(1, "kvstrata bench resp: store.port: cannot connect to 127.0.0.1:1: Connection refused",
                    "bench", "resp", "--server", "127.0.0.1:1")


@suite.test
def each_bench_has_a_help_of_its_own():
    tap.contains(command.succeeds("bench", "--help"), "Usage: kvstrata bench NAME [FLAGS]")
    tap.contains(command.succeeds("help", "bench"), "\nCommands\n  exec    the executor alone")
    text = command.succeeds("bench", "exec", "--help")
    tap.contains(text, "Usage: kvstrata bench exec [FLAGS]")
    tap.contains(text, "--batch")


@suite.test
def what_is_no_bench_is_refused():
    command.refuses(2, "kvstrata bench: needs the name of a bench; kvstrata bench --help lists them", "bench")
    command.refuses(2, 'kvstrata bench: "exe" is not a bench; did you mean exec?', "bench", "exe")
    command.refuses(2, 'kvstrata bench: "zzz" is not a bench; kvstrata bench --help lists them',
                    "bench", "zzz")


@suite.test
def wrong_flags_are_refused():
    command.refuses(2, "kvstrata bench exec: --bach: unknown flag; did you mean --batch?", "bench", "exec",
                    "--bach", "1")
    for value in ("0", "1025"):
        done = command.run("bench", "exec", "--batch", value)
        tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        assert done.stderr.startswith(f'kvstrata bench exec: --batch: "{value}" '), done.stderr


suite.run()
