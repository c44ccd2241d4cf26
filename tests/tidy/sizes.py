# SPDX-License-Identifier: Apache-2.0
"""Sizes of functions and files: reported, never judged.

Relies on K&R: the braces around a function's body stand in the first column.
"""

import re
import statistics

LONGEST = 8


def functions(file):
    """(lines, name, path) of each function, from the line with its name to the closing brace."""
    found = []
    name, start = None, 0
    for number, line in enumerate(file.code_lines, 1):
        head = re.match(r"^[A-Za-z_][^;={]*?(\w+)\(", line)
        if head:
            name, start = head.group(1), number
        elif line.startswith("}"):
            if name and line.strip() == "}":
                found.append((number - start + 1, name, file.path))
            name = None
    return found


def describe(title, sized):
    lengths = sorted(lines for lines, *_ in sized)
    if not lengths:
        return [f"{title}: none"]
    p90 = lengths[min(len(lengths) - 1, len(lengths) * 9 // 10)]
    median = round(statistics.median(lengths))
    head = f"{title}: {len(lengths)}, lines: median {median}, p90 {p90}, longest {lengths[-1]}"
    return [head] + [f"  {row[0]:4} {' '.join(row[1:])}" for row in sorted(sized, reverse=True)[:LONGEST]]


def report(files):
    ours = [file for file in files if file.is_c and file.room]
    return describe("functions in src", [row for file in ours for row in functions(file)]) + describe(
        "files in src", [(len(file.lines), file.path) for file in ours])
