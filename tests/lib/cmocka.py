#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a cmocka program and pass on its TAP: cmocka.py PROGRAM [ARGUMENT...].

cmocka reports a skipped test as "not ok 8 # SKIP name", which counts as failed.  Here it becomes "ok 8 -
name # SKIP reason", and the reason is the last comment that the test printed.
"""

import os
import re
import subprocess
import sys

SKIPPED = re.compile(r"not ok (\d+) # SKIP (.*)")


def translate(lines):
    reason = "no reason given"
    for line in lines:
        skipped = SKIPPED.match(line)
        if skipped:
            line = f"ok {skipped[1]} - {skipped[2]} # SKIP {reason}\n"
        if line.startswith("# "):
            reason = line[2:].strip()
        elif line.startswith(("ok ", "not ok ")):
            reason = "no reason given"
        yield line


def main(command):
    environment = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True,
                          errors="replace") as run:
        for line in translate(run.stdout):
            print(line, end="", flush=True)
    # A signal is a negative number, and no exit status may be.
    return run.returncode if run.returncode >= 0 else 128 - run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
