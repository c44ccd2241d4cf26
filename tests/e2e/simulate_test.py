#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata simulate`: counts, the table, the picture, pipes, memory, and what it refuses."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

KEYS = ["policy", "capacity_blocks", "requests", "blocks", "hit_blocks", "tokens", "hit_tokens", "seconds"]

# Two blocks of room: the second request hits both, the fourth only finds what was used last.
LINES = [[1, 2], [1, 2], [3], [2], [1, 2]]

suite = tap.Suite()


def rows(*arguments):
    return json.loads(command.succeeds("simulate", "--json", *map(str, arguments)))


def small_trace():
    path = folder / "small.jsonl"
    path.write_text("".join(replays.trace_line(i, ids) for i, ids in enumerate(LINES)))
    return path


@suite.test
def X8_each_policy_and_capacity_is_one_object_with_the_promised_keys():
    found = rows("--trace", small_trace(), "--policy", "lru,fifo", "--capacity", "2,3,unlimited")
    tap.equal([list(row) for row in found], [KEYS] * 6)
    tap.equal([(row["policy"], row["capacity_blocks"]) for row in found],
              [(policy, capacity) for policy in ("lru", "fifo") for capacity in (2, 3, None)])
    tap.equal({(row["requests"], row["blocks"], row["tokens"]) for row in found}, {(5, 8, 8 * 512)})


@suite.test
def hits_are_those_of_a_count_by_hand():
    found = rows("--trace", small_trace(), "--policy", "lru", "--capacity", "2,unlimited")
    tap.equal([(row["hit_blocks"], row["hit_tokens"]) for row in found], [(3, 3 * 512), (5, 5 * 512)])


@suite.test
def a_partial_last_page_counts_with_its_own_tokens():
    path = folder / "partial.jsonl"
    path.write_text(replays.trace_line(0, [1, 2], 700) * 2)
    row, = rows("--trace", path, "--policy", "lru", "--capacity", "unlimited")
    tap.equal((row["hit_blocks"], row["hit_tokens"]), (2, 700))


@suite.test
def the_table_says_what_the_json_says():
    text = command.succeeds("simulate", "--trace", str(small_trace()), "--policy", "lru", "--capacity", "2")
    tap.contains(text, "small.jsonl: 5 requests, 8 blocks, 4,096 tokens")
    assert re.search(r"^lru +2 +3 +0\.375000 +1,536 +0\.375000 ", text, re.MULTILINE), text


@suite.test
def without_a_trace_it_runs_and_a_seed_repeats_it():
    def facts(seed):
        found = rows("--requests", 300, "--policy", "lru", "--capacity", "100,unlimited", "--seed", seed)
        return [{key: row[key] for key in KEYS[:-1]} for row in found]

    tap.equal(facts(5), facts(5))
    assert facts(5) != facts(6)


@suite.test
def replay_and_simulate_see_the_same_generated_traffic():
    row, = rows("--requests", 100, "--policy", "lru", "--capacity", "unlimited")
    figures = replays.report("--limit", 100, "--store", "none")
    for key in ("requests", "blocks", "tokens"):
        tap.equal((key, figures[key]), (key, row[key]))


@suite.test
def the_picture_is_svg():
    path = folder / "curves.svg"
    command.succeeds("simulate", "--requests", "200", "--plot", str(path))
    tap.equal(ElementTree.parse(path).getroot().tag, "{http://www.w3.org/2000/svg}svg")


@suite.test
def a_pipe_is_a_trace_too():
    path = folder / "fifo"
    os.mkfifo(path)
    with subprocess.Popen([os.environ["KVSTRATA"], "simulate", "--json", "--trace", path],
                          stdout=subprocess.PIPE) as process:
        with open(path, "w", encoding="ascii") as fifo:
            fifo.write(small_trace().read_text())
        tap.equal(json.load(process.stdout)[0]["requests"], len(LINES))
    tap.equal(process.returncode, 0)


def peak_kib(requests, capacity):
    """Peak memory after so many requests of two new pages each.

    The last line is so long that most of it can only be read when all before it are done, and its end only
    comes when the peak has been read.
    """
    path = folder / f"fifo-{requests}-{capacity}"
    os.mkfifo(path)
    with subprocess.Popen([os.environ["KVSTRATA"], "simulate", "--json", "--policy", "lru", "--capacity",
                           str(capacity), "--trace", path], stdout=subprocess.DEVNULL) as process:
        with open(path, "w", encoding="ascii") as fifo:
            fifo.writelines(replays.trace_line(i, [2 * i, 2 * i + 1]) for i in range(requests))
            fifo.write(replays.trace_line(requests, [0], pad="x" * 600_000).rstrip())
            fifo.flush()
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    tap.equal(process.returncode, 0)
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1])


@suite.test
def memory_grows_with_the_capacity_and_not_with_the_trace():
    if os.environ["KVSTRATA_SANITIZE"] != "none":
        raise tap.Skip("a sanitizer keeps freed memory")
    small = peak_kib(2000, 1000)
    assert peak_kib(40000, 1000) < small + 1024
    assert peak_kib(40000, 50000) > small + 1024


@suite.test
def bad_input_is_one_line():
    good = replays.trace_line(0, [1])
    path = folder / "bad.jsonl"
    path.write_text(good * 2 + "{}\n")
    command.refuses(2, f"kvstrata simulate: {path}: line 3: timestamp: missing; a request has timestamp, "
                       "input_length, output_length and hash_ids", "simulate", "--trace", path)
    command.refuses(1, f"kvstrata simulate: {folder}/none: cannot open: No such file or directory",
                    "simulate", "--trace", folder / "none")
    for arguments in (["--capacity", "0"], ["--capacity", "-1"], ["--capacity", "1,,2"],
                      ["--capacity", "1,"], ["--policy", ",lru"],
                      ["--capacity", "1,1"], ["--policy", "best"], ["--policy", "none"],
                      ["--policy", "lru,lru"], ["--requests", "0"], ["--trace", path, "--seed", "1"]):
        done = command.run("simulate", *arguments)
        tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))


@suite.test
def a_picture_that_cannot_be_written_does_not_cost_the_numbers():
    done = command.run("simulate", "--json", "--requests", 50, "--plot", folder / "nowhere/curves.svg")
    tap.equal((done.returncode, done.stderr.count("\n")), (1, 1))
    assert json.loads(done.stdout), done.stdout


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
