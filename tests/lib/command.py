# SPDX-License-Identifier: Apache-2.0
"""The kvstrata command under test, named by the environment variable KVSTRATA."""

import os
import pathlib
import subprocess

import tap

DONE, FAILED, USAGE = 0, 1, 2


def run(*arguments, **options):
    """The finished process, with its output as text."""
    return subprocess.run([os.environ["KVSTRATA"], *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)


def leaving_threads():
    """The environment of a run that cannot join a thread: its store never came back."""
    options = ":".join(filter(None, [os.environ.get("TSAN_OPTIONS"), "report_thread_leaks=0"]))
    return {**os.environ, "TSAN_OPTIONS": options}


def run_into(output, *arguments):
    """The same with standard output into a file of the caller."""
    return subprocess.run([os.environ["KVSTRATA"], *arguments], stdout=output, stderr=subprocess.PIPE,
                          text=True, stdin=subprocess.DEVNULL, check=False)


def succeeds(*arguments):
    """Standard output of a run that ends with 0 and says nothing on standard error."""
    done = run(*arguments)
    assert done.returncode == DONE and not done.stderr, f"{arguments}: {done}"
    return done.stdout


def refuses(status, sentence, *arguments):
    """The run ends with the status and exactly this one line on standard error, and prints nothing else."""
    done = run(*arguments)
    expected = (status, "", sentence + "\n")
    actual = (done.returncode, done.stdout, done.stderr)
    assert actual == expected, f"{arguments}: expected {expected}, got {actual}"


def wait_until_it_stands_at(process, descriptor):
    """In a system call on the descriptor; the kernel shows it, behind the number of the call."""
    call = []
    while len(call) < 2 or call[1] != hex(descriptor):
        assert process.poll() is None, process.returncode
        call = pathlib.Path(f"/proc/{process.pid}/syscall").read_text().split()
        os.sched_yield()


def needs_every_signal():
    """Whoever signals a command that computes."""
    if os.environ["KVSTRATA_SANITIZE"] == "thread":
        raise tap.Skip("ThreadSanitizer holds back a signal to a thread that computes, and may lose it")
