# SPDX-License-Identifier: Apache-2.0
"""What the shared library exports."""

import subprocess


def strangers(nm_output):
    """Exported names that are not the library's own; a version's own entry has type A."""
    rows = [line.split() for line in nm_output.splitlines()]
    return [name for *_, kind, name in rows if kind != "A" and not name.startswith("kvs_")]


def exported(library):
    command = ["nm", "-D", "--defined-only", library]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
