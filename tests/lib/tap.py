# SPDX-License-Identifier: Apache-2.0
"""TAP for tests in Python: a test is a function that raises; a skip gives its reason.

    suite = tap.Suite()

    @suite.test
    def help_lists_commands():
        ...

    suite.run()
"""

import re
import sys
import traceback


class Skip(Exception):
    """Raised by a test that this machine cannot run; says what is missing."""


class Suite:
    def __init__(self):
        self.tests = []

    def test(self, function):
        """Decorator: the function's name is the test's; A4_3_ in it is the requirement A4.3."""
        self.add(re.sub(r"\b([A-Z]\d+) (\d+)\b", r"\1.\2", function.__name__.replace("_", " ")), function)
        return function

    def add(self, name, function):
        self.tests.append((name, function))

    def run(self, notes=()):
        """Print TAP and end the process: 0 when nothing failed."""
        print(f"1..{len(self.tests)}")
        failed = sum(not passes(number, *test) for number, test in enumerate(self.tests, 1))
        for note in notes:
            print(f"# {note}")
        sys.exit(1 if failed else 0)


def passes(number, name, function):
    try:
        function()
    except Skip as reason:
        print(f"ok {number} {name} # SKIP {reason}")
    except Exception:  # noqa: BLE001 - whatever a test raises is its failure
        print(f"not ok {number} {name}")
        traceback.print_exc()
        return False
    else:
        print(f"ok {number} {name}")
    return True


def equal(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def contains(text, part):
    assert part in text, f"expected {part!r} in {text!r}"
