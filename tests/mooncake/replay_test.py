#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata replay` above a real Mooncake Store: what comes back is right, whatever ends meanwhile."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

PLACE = pathlib.Path(os.environ["KVSTRATA_MOONCAKE"])
SEGMENT_MIB = 512
# Little Device and Host, so that much must come back from the store.
SMALL = ["--limit", 120, "--device-blocks", 128, "--host-blocks", 96, "--deadline", "none"]

suite = tap.Suite()


class Stage:
    """A cluster, and what it is asked."""

    def __init__(self, process):
        self.process = process
        self.port, self.metrics = process.stdout.readline().split()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def objects(self):
        return int(self.ask("metric master_key_count"))

    def spec(self):
        return (f"mooncake:127.0.0.1:{self.port}?metrics=127.0.0.1:{self.metrics}"
                f"&python={PLACE}/bin/python&agent={os.environ['KVSTRATA_MOONCAKE_AGENT']}"
                "&local_hostname=127.0.0.1&reap_timeout=60s")


@contextlib.contextmanager
def stage():
    if not (PLACE / "release").is_file():
        assert "KVSTRATA_MOONCAKE_REQUIRED" not in os.environ, "Mooncake is not installed"
        raise tap.Skip("Mooncake is not installed here; tools/install-mooncake does it")
    with subprocess.Popen([os.environ["KVSTRATA_STAGE"], "1", str(SEGMENT_MIB)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        yield Stage(process)
        process.stdin.close()
        tap.equal(process.wait(), 0)


def check(figures):
    """Nothing wrong; a restored row was looked at when it came and, as every row, at the request's end."""
    tap.equal(figures["wrong_bytes"], 0)
    tap.equal(figures["rows_checked"], figures["tokens"] + replays.restored_tokens(figures))


@suite.test
def A9_4_a_second_run_takes_from_the_cluster_what_the_first_computed():
    with stage() as cluster:
        # One request at a time: among several one may make room for what another has read.
        first, second = (replays.report(*SMALL, "--concurrency", 1, "--store", cluster.spec())
                         for _ in range(2))
        for figures in (first, second):
            check(figures)
            assert figures["origin"]["store"]["blocks"] > 100, figures["origin"]
        tap.equal(sum(first["drops"].values()), 0)
        # All but each prompt's last page, which is computed for its last token.
        tap.equal(second["origin"]["recomputed"]["blocks"], second["requests"])


@suite.test
def A9_4_a_trace_through_the_cluster_is_right():
    trace = replays.conversation_trace()
    with stage() as cluster:
        figures = replays.report("--trace", trace, "--limit", 150, "--device-blocks", 512, "--host-blocks",
                                 256, "--deadline", "none", "--store", cluster.spec())
        check(figures)
        tap.equal(figures["requests"], 150)
        assert figures["origin"]["store"]["blocks"] > 0, figures["origin"]


@suite.test
def A9_5_packed_history_and_states_come_back():
    """Of a window's and a state's blocks several lie in one parent: each has room for its seal."""
    with stage() as cluster:
        groups = ["--groups", "full,window:4096,state", "--concurrency", 1, "--store", cluster.spec()]
        first, second = (replays.report(*SMALL, *groups) for _ in range(2))
        for figures in (first, second):
            tap.equal((figures["wrong_bytes"], figures["drops"]["failed"]), (0, 0))
        assert second["origin"]["store"]["blocks"] > 100, second["origin"]


def agents_of(parent):
    """Processes that a command started for its lanes."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_child = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            if is_child and b"kvstrata-mooncake-agent" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def end_something(cluster, parent, choice, number):
    if number % 4 == 3:
        tap.equal(cluster.ask("restart"), "ok")
        return
    agents = agents_of(parent)
    if agents:
        with contextlib.suppress(ProcessLookupError):
            os.kill(choice.choice(agents), signal.SIGKILL)


def run_until_ended(cluster, replay, wanted):
    """Whenever some more objects are there something ends; a new master has none at first."""
    choice = random.Random(1)
    ended = mark = 0
    while replay.poll() is None and ended <= wanted:
        with contextlib.suppress(subprocess.TimeoutExpired):
            replay.wait(0.05)
        objects = cluster.objects()
        mark = min(mark, objects)
        if objects >= mark + 60:
            if ended < wanted:
                end_something(cluster, replay.pid, choice, ended)
            ended, mark = ended + 1, cluster.objects()


@suite.test
def A10_1_agents_and_masters_that_end_cost_blocks_and_no_byte():
    """At the traffic's own pace, so that the store comes back meanwhile; interrupted once it has done so."""
    with stage() as cluster, tempfile.TemporaryFile("w+") as output:
        replay = subprocess.Popen([os.environ["KVSTRATA"], "replay", "--json", "--limit", "100000", "--speed",
                                   "50", *map(str, SMALL[2:]), "--store", cluster.spec()],
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True)
        run_until_ended(cluster, replay, 8)
        tap.equal(replay.poll(), None)
        replay.send_signal(signal.SIGINT)
        said = replay.stderr.read()
        tap.equal((replay.wait(), said), (command.DONE, ""))
        output.seek(0)
        figures = json.load(output)
        check(figures)
        print(f"# {figures['requests']} requests: {figures['origin']}")


suite.run()
