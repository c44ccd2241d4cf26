#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata bench`: it measures, says what, and refuses what it does not know.  No figure is judged here."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

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


COPY_FIGURES = {name.format(way) for way in ("h2d", "d2h")
                for name in ("{}_ratio", "{}_gb_s", "memcpy_{}_gb_s", "whole_{}_gb_s")}


@suite.test
def copy_measures_for_machines():
    report = json.loads(command.succeeds("bench", "copy", "--runs", 1, "--set", "4MiB",
                                         "--bytes", "64KiB,1MiB", "--json"))
    tap.equal([(row["bytes"], row["layout"]) for row in report],
              [(65536, "direct"), (65536, "gather"), (1 << 20, "direct"), (1 << 20, "gather")])
    for row in report:
        tap.equal(set(row), COPY_FIGURES | {"bytes", "layout", "set_bytes", "runs"})
        tap.equal((row["set_bytes"], row["runs"]), (4 << 20, 1))
        assert all(row[name] > 0 for name in COPY_FIGURES), row
        for way in ("h2d", "d2h"):
            ratio = row[f"{way}_gb_s"] / row[f"memcpy_{way}_gb_s"]
            assert abs(ratio - row[f"{way}_ratio"]) < 0.01 * ratio, row


@suite.test
def copy_measures_for_people():
    text = command.succeeds("bench", "copy", "--runs=2", "--set=4MiB", "--bytes=256KiB")
    tap.contains(text, "copies by the CPU engine, runs: 2; medians, all blocks verified\n")
    for line in ("  256 KiB   4 MiB        direct ", "  256 KiB   4 MiB        gather ",
                 "  aim: ratios of at least 0.9\n"):
        tap.contains(text, line)


@suite.test
def copy_reports_the_set_that_it_used():
    # 8 whole blocks of 12 KiB, and 6 of 16 KiB: nearly the 100,000 bytes that were asked for.
    arguments = ("bench", "copy", "--runs=1", "--set=100000", "--bytes=12KiB,16KiB,20KiB")
    report = json.loads(command.succeeds(*arguments, "--json"))
    tap.equal([row["set_bytes"] for row in report[::2]], [96 << 10, 96 << 10, 80 << 10])
    tap.equal([row["set_bytes"] for row in report[1::2]], [96 << 10, 96 << 10, 80 << 10])
    text = command.succeeds(*arguments)
    for line in ("  12 KiB    96 KiB       direct ", "  20 KiB    80 KiB       gather "):
        tap.contains(text, line)


@suite.test
def copy_refuses_what_it_cannot_measure():
    def refuses(status, sentence, *arguments):
        command.refuses(status, f"kvstrata bench copy: {sentence}", "bench", "copy", *arguments)

    refuses(2, '--bytes: "5000" is not a multiple of 4KiB', "--bytes", "64KiB,5000")
    refuses(2, '--set: "1MiB" is less than two blocks of 1MiB; use more, or smaller --bytes',
            "--bytes", "1MiB", "--set", "1MiB")
    refuses(2, '--runs: "102" is out of range; use 1 to 101', "--runs", 102)
    refuses(2, '--set: "2TiB" is out of range; use 8KiB to 1TiB', "--set", "2TiB")


def available_bytes():
    """As the kernel tells it: what others use is not to be had."""
    with open("/proc/meminfo", encoding="ascii") as file:
        figures = dict(line.split(":") for line in file)
    return int(figures["MemAvailable"].split()[0]) << 10


@suite.test
def more_memory_than_is_to_be_had_is_refused_and_not_touched():
    # Less than what is there, on either side; together more.
    size = available_bytes() * 2 // 3 >> 20
    for name, arguments, sentence in (
            ("copy", ["--set", f"{size}MiB"], rf'--set: "{size}MiB" takes '),
            ("copy", ["--set", "1TiB", "--bytes", "4KiB"], r'--set: "1TiB" takes 3\.02 TiB '),
            ("store", ["--depth", 4096, "--bytes", "64MiB"], r'--depth: "4096" takes 546\.\d+ GiB ')):
        done = command.run("bench", name, *arguments)
        tap.equal((done.returncode, done.stdout), (2, ""))
        assert re.fullmatch(rf"kvstrata bench {name}: {sentence}(\S+ \S+ )?of memory, "
                            r"and \S+ \S+ are available; use less\n", done.stderr), done.stderr


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
    command.refuses(2, 'kvstrata bench resp: --bytes: "5000" is not a multiple of 4KiB',
                    "bench", "resp", "--bytes", "64KiB,5000")
    command.refuses(2, 'kvstrata bench resp: --server: "6379" is not HOST:PORT',
                    "bench", "resp", "--server", "6379")
    command.refuses(1, "kvstrata bench resp: store.port: cannot connect to 127.0.0.1:1: Connection refused",
                    "bench", "resp", "--server", "127.0.0.1:1")


MOONCAKE_FIGURES = {"ratio", "raw_ratio", "gb_s", "raw_gb_s", "sdk_gb_s", "call_us", "raw_call_us",
                    "sdk_call_us", "agent_us"}
STAND_IN = pathlib.Path(__file__).resolve().parents[1] / "sdk"


def with_stand_in(*arguments):
    """Beside an SDK of the tests' own, whose objects are files; a master is all that listens."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as master:
        environment = dict(os.environ, PYTHONPATH=str(STAND_IN), FAKE_SDK_DIR=folder)
        done = command.run("bench", "mooncake", "--master", f"127.0.0.1:{master.getsockname()[1]}",
                           "--bytes", "4KiB", "--batch", "2,4", "--runs", 1, *arguments, env=environment)
        tap.equal((done.returncode, done.stderr), (0, ""))
        tap.equal(list(pathlib.Path(folder).iterdir()), [])
    return done.stdout


@suite.test
def mooncake_measures_for_machines():
    report = json.loads(with_stand_in("--json", "--threads", 2))
    tap.equal(set(report), {"threads", "runs", "note", "rows", "small", "executor"})
    tap.equal((report["threads"], report["runs"], report["executor"]), (2, 1, []))
    for rows, threads in ((report["rows"], 2), (report["small"], 1)):
        tap.equal([(row["bytes"], row["batch"], row["threads"]) for row in rows],
                  [(4096, 2, threads), (4096, 4, threads)])
        for row in rows:
            for way in ("get", "put"):
                figures = row[way]
                tap.equal(set(figures), MOONCAKE_FIGURES)
                assert all(figures[name] > 0 for name in MOONCAKE_FIGURES - {"agent_us"}), row
                for ours in ("", "raw_"):
                    ratio = figures[f"{ours}gb_s"] / figures["sdk_gb_s"]
                    assert abs(ratio - figures[f"{ours}ratio"]) < 0.01 * ratio, row


@suite.test
def mooncake_measures_for_people():
    text = with_stand_in("--share", "--threads", 2)
    for line in ("mooncake, threads: 2, runs: 1; medians\nTCP; this says nothing about RDMA\n",
                 "\n  4 KiB         2  get ", "  aims: ratios of at least 0.97\n",
                 "  a batch of 4 KiB objects, one thread, us\n"):
        tap.contains(text, line)
    # Nobody stops somebody else's master.
    assert "paused" not in text, text


@suite.test
def mooncake_says_what_it_lacks():
    with tempfile.TemporaryDirectory() as folder:
        bare = pathlib.Path(folder) / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        bare.chmod(0o755)
        done = command.run("bench", "mooncake", "--python", bare)
    tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
    tap.contains(done.stderr, "has no module mooncake; install the wheel mooncake-transfer-engine-non-cuda ")
    command.refuses(1, 'kvstrata bench mooncake: mooncake_master: "/nowhere" cannot be run: '
                       "No such file or directory", "bench", "mooncake", "--python", "/nowhere")


@suite.test
def mooncake_refuses_what_it_cannot_measure():
    def refuses(status, sentence, *arguments):
        command.refuses(status, f"kvstrata bench mooncake: {sentence}", "bench", "mooncake", *arguments)

    for batch in ("0", "257", "x", "-1"):
        refuses(2, f'--batch: "{batch}" is out of range; use 1 to 256', "--batch", f"16,{batch}")
    refuses(2, '--batch: "5" is one too many; use at most 4', "--batch", "1,2,3,4,5")
    refuses(2, '--batch: "16," has an empty item; use commas between items only', "--batch", "16,")
    refuses(2, '--threads: "17" is out of range; use 1 to 16', "--threads", 17)
    refuses(2, '--master: "50051" is not HOST:PORT', "--master", "50051")
    refuses(1, "--master: cannot connect to 127.0.0.1:1: Connection refused", "--master", "127.0.0.1:1")


FIO_FIGURES = {"get_ratio", "put_ratio", "cpu_ratio", "get_cpu_ratio", "put_cpu_ratio",
               *(f"fio_{side}_{what}" for side in ("get", "put")
                 for what in ("gb_s", "p50_us", "p99_us", "cpu_ms_per_gb", "depth", "jobs"))}
STORE_FIGURES = {"xxh3_gb_s", "xxh3_cpu_ms_per_gb",
                 *(f"{side}_{what}" for side in ("get", "put")
                   for what in ("gb_s", "p50_us", "p99_us", "cpu_ms_per_gb"))}
STEADY_FIGURES = {"put_steady_gb_s", "put_steady_refused"}
SMALL = ("bench", "store", "--moved", "8MiB", "--runs", 1)


def without_programs():
    """An environment in which no fio can be found."""
    return dict(os.environ, PATH="/nowhere")


def store_report(folder, *arguments, **options):
    """The JSON of a small run, which leaves nothing behind."""
    done = command.run(*SMALL, "--path", folder, "--json", *arguments, **options)
    tap.equal((done.returncode, done.stderr), (0, ""))
    tap.equal(list(pathlib.Path(folder).iterdir()), [])
    return json.loads(done.stdout)


def check_store_row(row, measured, missing):
    tap.equal(set(row), measured | missing | {"bytes", "moved_bytes", "runs", "depth", "fio",
                                              "put_synced_gb_s"})
    tap.equal({name for name in missing if row[name] is not None}, set())
    tap.equal({name for name in measured if not isinstance(row[name], (int, float))}, set())
    assert all(row[name] > 0 for name in measured if name.endswith("gb_s")), row
    for side in ("get", "put"):
        assert row[f"{side}_p50_us"] <= row[f"{side}_p99_us"], row


@suite.test
def store_measures_for_machines():
    if not shutil.which("fio"):
        raise tap.Skip("fio is not installed")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        report = store_report(folder, "--bytes", "64KiB,1MiB", "--depth", 16)
    tap.equal([row["bytes"] for row in report], [65536, 1 << 20])
    for row in report:
        check_store_row(row, STORE_FIGURES | FIO_FIGURES, STEADY_FIGURES)
        tap.equal((row["moved_bytes"], row["runs"], row["depth"]), (8 << 20, 1, 16))
        tap.contains(row["fio"], "fio-")
        for side in ("get", "put"):
            assert row[f"fio_{side}_depth"] in (32, 128) and row[f"fio_{side}_jobs"] in (1, 2), row
            ratio = row[f"{side}_gb_s"] / row[f"fio_{side}_gb_s"]
            assert abs(ratio - row[f"{side}_ratio"]) < 0.01 * ratio, row
        tap.equal(row["cpu_ratio"], max(row["get_cpu_ratio"], row["put_cpu_ratio"]))


@suite.test
def store_measures_alone_where_there_is_no_fio():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        row, = store_report(folder, "--bytes", "64KiB", "--evict", env=without_programs())
        check_store_row(row, STORE_FIGURES | STEADY_FIGURES, FIO_FIGURES)
        tap.equal(row["fio"], None)
        text = command.run(*SMALL, "--path", folder, "--bytes", "4MiB", env=without_programs()).stdout
    tap.contains(text, "runs: 1; medians, every get verified\nfio is not installed: ")
    for line in ("  bytes     get GB/s     fio   ratio", "  CPU, ms/GB\n", "  latency, us\n",
                 "  4 MiB: 8 MiB a pass, at most 128 rows under way\n",
                 "  aims: get at least 1.0, put at least 0.95"):
        tap.contains(text, line)


@suite.test
def store_measures_for_people():
    if not shutil.which("fio"):
        raise tap.Skip("fio is not installed")
    text = command.succeeds(*SMALL, "--bytes=256KiB")
    tap.contains(text, "strata file below /var/tmp, runs: 1; medians, every get verified\n"
                       "beside fio-")
    tap.contains(text, "  256 KiB: 8 MiB a pass, at most 256 rows under way; fio's best: get ")


@suite.test
def store_refuses_what_it_cannot_measure():
    def refuses(sentence, *arguments):
        command.refuses(2, f"kvstrata bench store: {sentence}", "bench", "store", *arguments)

    refuses('--bytes: "5000" is not a multiple of 4KiB', "--bytes", "64KiB,5000")
    refuses('--bytes: "64KB" is not a size; use an integer or a number with KiB, MiB, GiB, TiB',
            "--bytes", "64KB")
    refuses('--runs: "0" is out of range; use 1 to 101', "--runs", 0)
    refuses('--moved: "1MiB" is less than two objects of 1MiB; use more, or smaller --bytes',
            "--moved", "1MiB", "--bytes", "1MiB")
    refuses('--path: "/nowhere": No such file or directory', "--path", "/nowhere")
    refuses('--path: "/etc/passwd" takes no directory: Not a directory', "--path", "/etc/passwd")
    done = command.run("bench", "store", "--moved", "900GiB")
    tap.equal((done.returncode, done.stdout), (2, ""))
    tap.contains(done.stderr, "are needed; use another, or a smaller --moved\n")


CALLS = ["fill", "replace", "lock", "hit"]
STORES = ["nil", "mem", "strata"]
DOOR = ["bench", "manager", "--objects", "4096", "--moved", "4MiB", "--runs", "1"]


@suite.test
def manager_measures_for_machines():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        rows = json.loads(command.succeeds(*DOOR, "--path", folder, "--bytes", "8KiB,64KiB", "--batch", 16,
                                           "--json"))
        tap.equal(list(pathlib.Path(folder).iterdir()), [])
    tap.equal([row["call"] for row in rows], CALLS + ["prefetch"] * 6)
    for row in rows[:4]:
        tap.equal(set(row), {"call", "batch", "keys_per_s_core", "keys_per_s_core_all"})
        # A thread's own time is part of the process's.
        assert row["batch"] == 16 and 0 < row["keys_per_s_core_all"] <= 1.1 * row["keys_per_s_core"], row
    tap.equal([(row["bytes"], row["store"]) for row in rows[4:]],
              [(size, store) for size in (8192, 65536) for store in STORES])
    for row in rows[4:]:
        assert row["objects"] == max(128, (4 << 20) // row["bytes"]), row
        assert all(row[name] > 0 for name in ("gb_s", "keys_per_s", "cpu_us_key")), row
        tap.equal("ratio" in row, row["store"] == "strata")
        if "ratio" in row:
            # Each of the three is printed with some digits only.
            assert abs(row["gb_s"] / row["bench_store_gb_s"] / row["ratio"] - 1) < 0.01, row


@suite.test
def manager_measures_for_people():
    text = command.succeeds(*DOOR, "--bytes=64KiB")
    tap.contains(text, "door B, one thread, batches of 64, 4096 objects in Host; medians of 1 runs\n")
    for line in ("  reserve and finish, filling ", "aim: above 12000000\n", "aim: above 6000000\n",
                 "  lock and unlock ", "  prefetch of what Host has ", "  nil ", "  mem ", "  strata ",
                 "aim: at least 0.9\n"):
        tap.contains(text, line)


@suite.test
def manager_refuses_what_it_cannot_measure():
    def refuses(sentence, *arguments):
        command.refuses(2, f"kvstrata bench manager: {sentence}", "bench", "manager", *arguments)

    refuses('--bytes: "5000" is not a multiple of 4KiB', "--bytes", "64KiB,5000")
    refuses('--batch: "0" is out of range; use 1 to 4096', "--batch", 0)
    refuses('--path: "/nowhere": No such file or directory', "--path", "/nowhere")


OPEN_FIGURES = {"open_cpu_s", "open_wall_s", "memory_bytes_per_object", "file_bytes"}


@suite.test
def open_measures_for_machines():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        text = command.succeeds("bench", "open", "--objects", 2000, "--runs", 2, "--path", folder, "--json")
        tap.equal(list(pathlib.Path(folder).iterdir()), [])
    report = json.loads(text)
    tap.equal(set(report), OPEN_FIGURES | {"objects", "payload_bytes", "runs"})
    tap.equal((report["objects"], report["payload_bytes"], report["runs"]), (2000, 4096, 2))
    assert all(report[name] > 0 for name in OPEN_FIGURES), report
    assert report["file_bytes"] >= 2000 * 4096, report


@suite.test
def open_measures_for_people():
    text = command.succeeds("bench", "open", "--objects=500", "--payload=64KiB", "--runs=1")
    tap.contains(text, "open of a strata file with 500 objects of 64 KiB, file: ")
    for line in ("  CPU, s ", "  time, s ", "  memory, bytes an object "):
        tap.contains(text, line)


@suite.test
def open_refuses_what_it_cannot_measure():
    def refuses(sentence, *arguments):
        command.refuses(2, f"kvstrata bench open: {sentence}", "bench", "open", *arguments)

    refuses('--payload: "5000" is not a multiple of 4KiB', "--payload", 5000)
    refuses('--runs: "0" is out of range; use 1 to 101', "--runs", 0)
    refuses('--path: "/nowhere": No such file or directory', "--path", "/nowhere")
    done = command.run("bench", "open", "--objects", 60000000, "--payload", "1MiB")
    tap.equal((done.returncode, done.stdout), (2, ""))
    tap.contains(done.stderr, "are needed; use another, or a smaller --objects\n")


@suite.test
def match_measures_for_machines():
    rows = json.loads(command.succeeds("bench", "match", "--tokens", 4096, "--runs", 1, "--json"))
    ways = [row for row in rows if "sha_ratio" in row]
    tap.equal([row["case"] for row in ways], [f"{q} {where}" for q in ("q128", "q16")
                                              for where in ("cold", "device", "host")])
    for row in ways:
        parts = [row[name] for name in ("hash_us", "match_us", "plan_us")]
        assert min(parts) > 0 and abs(sum(parts) / row["sha_us"] - row["sha_ratio"]) < 0.01, row
    tap.equal([row["case"] for row in rows if "page_us" in row], ["q128 page", "q16 page"])
    index = [row for row in rows if row["case"] == "index"]
    tap.equal([row["entries"] for row in index], [10_000, 100_000, 1_000_000])
    assert all(row["page_ns"] > 0 and row["scattered_ns"] > 0 for row in index), index
    assert all(row["entry_bytes"] > 64 for row in index), index


@suite.test
def match_measures_for_people():
    text = command.succeeds("bench", "match", "--tokens=4096", "--runs=2")
    tap.contains(text, "a prompt of 4096 tokens, pages of 128; full, window 4096 and state; medians of 2")
    for line in ("  q128 cold ", "  q16 host ", "  q16 ", "  1,000,000 ", "  last : first "):
        tap.contains(text, line)


@suite.test
def match_refuses_what_is_no_prompt():
    command.refuses(2, 'kvstrata bench match: --tokens: "255" is out of range; use 256 to 16777216', "bench",
                    "match", "--tokens", 255)


@suite.test
def tick_measures_for_machines():
    row = json.loads(command.succeeds("bench", "tick", "--outstanding", 100, "--runs", 1, "--json"))
    tap.equal((row["few"]["outstanding"], row["many"]["outstanding"], row["completions"]), (10, 100, 64))
    for size in ("few", "many"):
        assert all(row[size][figure] > 0 for figure in ("quiet_ns", "queries_us", "gets_us")), row
    assert abs(row["many"]["quiet_ns"] / row["few"]["quiet_ns"] - row["quiet_ratio"]) < 0.01, row


@suite.test
def tick_measures_for_people():
    text = command.succeeds("bench", "tick", "--outstanding=100", "--runs=1")
    for line in ("  reads outstanding  ", "  no completion, ns  ", "  64 QUERYs answered, ",
                 "  64 GETs retired, "):
        tap.contains(text, line)


@suite.test
def tick_refuses_fewer_than_few():
    command.refuses(2, 'kvstrata bench tick: --outstanding: "9" is out of range; use 10 to 100000', "bench",
                    "tick", "--outstanding", 9)


@suite.test
def an_interrupted_bench_leaves_nothing():
    command.needs_every_signal()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        arguments = [os.environ["KVSTRATA"], "bench", "open", "--objects", "200000", "--path", folder]
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
            # It catches signals before it makes the store's file.
            while not list(pathlib.Path(folder).glob("*/store")) and process.poll() is None:
                pass
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        tap.equal((process.returncode, said), (
            1, "kvstrata bench open: interrupted; the files are removed, and nothing is reported\n"))
        tap.equal(list(pathlib.Path(folder).iterdir()), [])


@suite.test
def each_bench_has_a_help_of_its_own():
    tap.contains(command.succeeds("bench", "--help"), "Usage: kvstrata bench NAME [FLAGS]")
    text = command.succeeds("help", "bench")
    tap.contains(text, "\nCommands\n  copy     copies between Device and Host memory")
    for name in ("exec", "mooncake", "open", "resp", "store"):
        tap.contains(text, f"\n  {name:8} ")
        tap.contains(command.succeeds("bench", name, "--help"), f"Usage: kvstrata bench {name} [FLAGS]")
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
def a_list_of_sizes_is_refused_alike_by_every_bench():
    for name in ("copy", "mooncake", "resp", "store"):
        def refuses(sentence, sizes, name=name):
            command.refuses(2, f"kvstrata bench {name}: {sentence}", "bench", name, "--bytes", sizes)

        for sizes in ("64KiB,", ",64KiB", "64KiB,,1MiB", ","):
            refuses(f'--bytes: "{sizes}" has an empty item; use commas between items only', sizes)
        # Not the 64 KiB that its first characters would be.
        refuses('--bytes: "00000000000000000000000000655360000" is out of range; use 4KiB to 64MiB',
                "00000000000000000000000000655360000")
        refuses('--bytes: "0" is out of range; use 4KiB to 64MiB', "0")
        for size in ("x", "-5"):
            refuses(f'--bytes: "{size}" is not a size; use an integer or a number with KiB, MiB, GiB, TiB',
                    size)
        refuses('--bytes: "65536" is given twice', "64KiB,1MiB,65536")
        refuses('--bytes: "36KiB" is one too many; use at most 8 sizes',
                ",".join(f"{4 * i}KiB" for i in range(1, 10)))


@suite.test
def wrong_flags_are_refused():
    command.refuses(2, "kvstrata bench exec: --bach: unknown flag; did you mean --batch?", "bench", "exec",
                    "--bach", "1")
    for value in ("0", "1025"):
        done = command.run("bench", "exec", "--batch", value)
        tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        assert done.stderr.startswith(f'kvstrata bench exec: --batch: "{value}" '), done.stderr


suite.run()
