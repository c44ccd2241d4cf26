#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata replay` as a process: signals, threads, descriptors, and a disk that fills.

Nothing here waits for time to pass.  A trace that is a fifo holds the command where a test wants it: the
command reads as much as its buffer takes, so one byte accepted beyond that buffer and the pipe's own room
means that all earlier requests are in its hands and that it wants more.
"""

import array
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

READ_BYTES = 256 * 1024
BEFORE = 20  # requests handed over before a hold

suite = tap.Suite()


def start(*arguments, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([os.environ["KVSTRATA"], "replay", *map(str, arguments)], **options)


def finish(process):
    """Exit status and outputs as text."""
    out, err = process.communicate()
    return process.returncode, (out or b"").decode(), (err or b"").decode()


# Traces that hold


def first_read():
    """BEFORE requests that fill the command's first read exactly."""
    lines = [replays.trace_line(i, [1, 2, 3, i + 10]) for i in range(BEFORE - 1)]
    last = replays.trace_line(BEFORE, [1, 2, 3, 4], pad="")
    room = READ_BYTES - sum(map(len, lines)) - len(last)
    lines.append(last.replace('"pad": ""', f'"pad": "{"x" * room}"'))
    return "".join(lines).encode()


class Held:
    """A replay of a fifo that has taken BEFORE requests in and now waits inside a read for one more."""

    def __init__(self, *arguments):
        self.path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "fifo"
        os.mkfifo(self.path)
        self.process = start("--trace", self.path, "--json", *arguments)
        self.fifo = open(self.path, "wb", buffering=0)
        room = fcntl.fcntl(self.fifo, fcntl.F_GETPIPE_SZ)
        line = replays.trace_line(BEFORE, [1, 2, 3, 5], pad="x" * room).encode()
        self.write(first_read() + line[:room + 1])
        self.rest = line[room + 1:]

    def write(self, data):
        while data:
            data = data[self.fifo.write(data):]

    def unread_bytes(self):
        count = array.array("i", [0])
        fcntl.ioctl(self.fifo, termios.FIONREAD, count)
        return count[0]

    def wait_until_it_sleeps(self):
        """All that was written is read, so the sleep is that of the next read."""
        while self.unread_bytes() or proc_state(self.process.pid) != "S":
            os.sched_yield()

    def end(self):
        """Give it the rest of its last request; then its report."""
        self.write(self.rest)
        self.fifo.close()
        status, out, err = finish(self.process)
        tap.equal((status, err), (0, ""))
        return json.loads(out)


def proc_state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def workers(pid):
    """Names of the storage threads; a sanitizer may have a thread of its own."""
    names = [(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    return sorted(name for name in names if name.startswith("kvs-"))


def descriptors(pid):
    """What is open beside the three standard ones, without inode numbers."""
    folder_path = pathlib.Path(f"/proc/{pid}/fd")
    return sorted(re.sub(r":\[\d+\]$", "", os.readlink(folder_path / fd)) for fd in os.listdir(folder_path)
                  if int(fd) > 2)


def libraries(pid):
    return set(re.findall(r"/\S+\.so\S*", pathlib.Path(f"/proc/{pid}/maps").read_text()))


@suite.test
def A1_8_without_a_store_there_are_no_storage_threads_and_no_event_descriptors():
    held = Held("--store", "none")
    tap.equal(workers(held.process.pid), [])
    # The trace, and the Host's memory.
    open_files = [name for name in descriptors(held.process.pid) if "kvstrata-arena" not in name]
    tap.equal(open_files, [str(held.path)])
    tap.equal(held.end()["requests"], BEFORE + 1)


@suite.test
def A1_1_A1_2_a_store_means_worker_threads_of_three_kinds():
    held = Held("--store", "mem:64MiB")
    tap.equal(set(workers(held.process.pid)), {"kvs-query", "kvs-get", "kvs-put"})
    tap.equal([name for name in descriptors(held.process.pid) if name.startswith("anon_inode")],
              ["anon_inode:[eventfd]"])
    tap.equal(held.end()["requests"], BEFORE + 1)


@suite.test
def A1_8_a_store_is_the_only_difference_in_what_is_loaded():
    with_store, without = Held("--store", "mem:64MiB"), Held("--store", "none")
    assert libraries(without.process.pid) <= libraries(with_store.process.pid)
    for held in (with_store, without):
        held.end()


# Interrupts


def check_partial(status, out, err, requests_at_most):
    tap.equal((status, err), (0, ""))
    figures = json.loads(out)
    tap.equal((figures["interrupted"], figures["wrong_bytes"]), (True, 0))
    assert 0 < figures["requests"] <= requests_at_most, figures["requests"]
    tap.equal(sum(origin["blocks"] for origin in figures["origin"].values()), figures["blocks"])


@suite.test
def an_interrupt_while_it_works_gives_the_report_so_far():
    command.needs_every_signal()
    path = folder / "endless"
    os.mkfifo(path)
    process = start("--trace", path, "--json", "--store", f"strata:{folder / 'cut'}?capacity=64MiB")
    written = 0
    with open(path, "wb", buffering=0) as fifo, contextlib.suppress(BrokenPipeError):
        while True:
            line = replays.trace_line(written, [1, 2, 3, written + 10], pad="x" * 2000).encode()
            written += fifo.write(line) == len(line)
            if written == 500:
                process.send_signal(signal.SIGINT)
    check_partial(*finish(process), requests_at_most=written)
    again = replays.report("--limit", 20, "--store", f"strata:{folder / 'cut'}?capacity=64MiB")
    tap.equal((again["wrong_bytes"], again["store"]["corrupt"]), (0, 0))


@suite.test
def an_interrupt_while_it_waits_for_a_pipe_gives_the_report_so_far():
    held = Held("--store", "mem:64MiB")
    held.wait_until_it_sleeps()
    held.process.send_signal(signal.SIGINT)
    check_partial(*finish(held.process), requests_at_most=BEFORE)
    held.fifo.close()


@suite.test
def lines_of_a_pipe_are_replayed_as_they_come():
    """Few bytes, and the pipe stays open: nothing waits for a full buffer."""
    path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "fifo"
    os.mkfifo(path)
    process = start("--trace", path, "--json", "--store", "none")
    with open(path, "wb", buffering=0) as fifo:
        fifo.write("".join(replays.trace_line(i, [1, 2, 3]) for i in range(3)).encode())
        count = array.array("i", [1])
        while count[0] or proc_state(process.pid) != "S":
            os.sched_yield()
            fcntl.ioctl(fifo, termios.FIONREAD, count)
        process.send_signal(signal.SIGINT)
        status, out, err = finish(process)
    check_partial(status, out, err, 3)
    tap.equal(json.loads(out)["requests"], 3)


def start_on_a_terminal(*arguments, **options):
    """The process, and the terminal that its standard error is."""
    ours, theirs = pty.openpty()
    process = start(*arguments, stderr=theirs, **options)
    os.close(theirs)
    return process, ours


def read_until(terminal, word):
    text = b""
    while word not in text:
        text += os.read(terminal, 4096)
    return text.decode()


@suite.test
def an_interrupt_on_a_terminal_clears_the_progress_and_prints_the_page():
    command.needs_every_signal()
    process, terminal = start_on_a_terminal("--limit", 10**9)
    tap.contains(read_until(terminal, b"req/s"), "replaying")
    process.send_signal(signal.SIGINT)
    out = process.stdout.read().decode()
    tap.equal(process.wait(), 0)
    assert re.match(r"interrupted after [\d,]+ requests, ", out), out
    tap.contains(out, "wrong bytes: 0")
    os.close(terminal)


def full_pipe():
    """A pipe that takes no more, so that who writes to it stays."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    return reader, writer


def check_second(number):
    command.needs_every_signal()
    reader, writer = full_pipe()
    process, terminal = start_on_a_terminal("--limit", 10**9, stdout=writer)
    read_until(terminal, b"req/s")
    process.send_signal(number)
    # The report so far: it has counted the first.  A second that came before that could be lost in it.
    command.wait_until_it_stands_at(process, 1)
    process.send_signal(number)
    tap.equal(process.wait(), 128 + number)
    for descriptor in (reader, writer, terminal):
        os.close(descriptor)


@suite.test
def a_second_interrupt_ends_at_once():
    check_second(signal.SIGINT)


@suite.test
def a_second_termination_ends_at_once():
    check_second(signal.SIGTERM)


# Standard descriptors and limits


def closed(numbers, *arguments):
    """The finished replay, started without these descriptors."""
    closing = " ".join(f"{number}>&-" for number in numbers)
    return subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", os.environ["KVSTRATA"], "replay",
                           *map(str, arguments)], capture_output=True, text=True, check=False)


@suite.test
def what_is_printed_without_standard_descriptors_never_lands_in_a_store():
    store = f"strata:{folder}/closed?capacity=64MiB"
    for numbers in ((0, 1, 2), (1,), (1, 2), (0,), (2,)):
        done = closed(numbers, "--limit", 20, "--store", store, "--json")
        tap.equal(done.returncode, 1 if 1 in numbers else 0)
    status, out, err = finish(start("--limit", 20, "--store", store, "--json"))
    tap.equal((status, err), (0, ""))
    figures = json.loads(out)
    tap.equal((figures["store"]["puts_new"], figures["store"]["corrupt"]), (0, 0))


@suite.test
def a_limit_on_file_sizes_is_an_error_or_a_drop_and_never_a_signal():
    def limit(kib):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024))

    status, _, err = finish(start("--limit", 5, preexec_fn=limit(100)))
    assert status == 1 and "File too large" in err and err.count("\n") == 1, (status, err)
    # Room for the Host's 8 MiB, and for less of the store than the run computes.
    status, out, err = finish(start("--limit", 150, "--json", "--host-blocks", 96, "--device-blocks", 128,
                                    "--store", f"strata:{folder}/limited?capacity=9MiB",
                                    preexec_fn=limit(9 * 1024)))
    tap.equal((status, err), (0, ""))
    tap.equal(json.loads(out)["wrong_bytes"], 0)


# A full disk


def check_full_disk(mount):
    """Puts are dropped and counted, and everything else goes on."""
    done = subprocess.run([*mount, os.environ["KVSTRATA"], "replay", "--json", "--limit", "150", "--deadline",
                           "none", "--device-blocks", "128", "--host-blocks", "96", "--store",
                           f"strata:{folder}/small/store?capacity=64MiB"],
                          capture_output=True, text=True, check=False)
    tap.equal((done.returncode, done.stderr), (0, ""))
    figures = json.loads(done.stdout)
    tap.equal((figures["requests"], figures["wrong_bytes"]), (150, 0))
    assert figures["drops"]["no_space"] > 0, figures["drops"]
    tap.equal(figures["store"]["refused_full"], figures["drops"]["no_space"])
    assert figures["origin"]["store"]["blocks"] > 0, figures["origin"]


@suite.test
def A4_5_a_disk_that_fills_is_a_counted_drop():
    """The small disk is a tmpfs in a mount namespace that ends with the command."""
    (folder / "small").mkdir()
    shell = f'mount -t tmpfs -o size=16m tmpfs "{folder}/small" && exec "$@"'
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = ["unshare", "--mount", *root, "sh", "-c", shell, "sh"]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], check=False,
                                                     capture_output=True).returncode:
        raise tap.Skip("this machine lets nobody here mount a small disk")
    check_full_disk(mount)


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
