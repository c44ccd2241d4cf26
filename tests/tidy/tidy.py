#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules as tests: tidy.py ROOT LIBRARY.

Each rule is tried on the tree, and on samples that it must catch.
"""

import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import floors  # noqa: E402
import rules  # noqa: E402
import sizes  # noqa: E402
import source  # noqa: E402
import symbols  # noqa: E402
import tap  # noqa: E402

SAMPLE_FLOORS = "# comment\n0 base\n1 os\n2 key op\n3 store\n"


def refuse(sentences):
    assert not sentences, "\n" + "\n".join(sentences)


def floors_catch_samples():
    floor_of = floors.parse(SAMPLE_FLOORS)

    def sentences(path, *includes):
        text = "".join(f'#include "{include}"\n' for include in includes)
        return floors.check([source.File(path, text)], floor_of)

    refuse(sentences("src/store/a.c", "store/a.h", "key/key.h", "base/err.h"))
    refuse(sentences("tests/unit/a_test.c", "anything/x.h"))
    tap.equal(sentences("src/os/a.c", "store/a.h"), ['src/os/a.c: "store/a.h" looks up'])
    tap.equal(sentences("src/key/a.c", "op/op.h"), ['src/key/a.c: "op/op.h" looks sideways'])
    for path in ("nowhere/x.h", "key.h"):
        tap.equal(sentences("src/key/a.c", path), [f'src/key/a.c: "{path}" names no room of src/FLOORS'])
    tap.equal(sentences("src/attic/a.c"), ["src/attic/a.c: attic is no room of src/FLOORS"])


def symbols_catch_samples():
    tap.equal(symbols.strangers("0 A KVSTRATA_0\n0 T kvs_version@@KVSTRATA_0\n"), [])
    tap.equal(symbols.strangers("0 T map_open\n0 B kvs\n"), ["map_open", "kvs"])


def library_exports_only_its_own(library):
    output = symbols.exported(library)
    tap.contains(output, " kvs_version")
    tap.equal(symbols.strangers(output), [])


def sizes_find_functions():
    text = ("/* int c() { */\nstatic int a(int x,\n\tint y)\n{\n\tb();\n}\n\n"
            "struct s {\n\tint i;\n};\nint b(void)\n{\n}\n")
    found = sizes.functions(source.File("src/base/a.c", text))
    tap.equal(found, [(5, "a", "src/base/a.c"), (3, "b", "src/base/a.c")])


def main(root, library):
    files = source.read_tree(root)
    floor_of = floors.parse(pathlib.Path(root, "src/FLOORS").read_text())
    suite = tap.Suite()
    suite.add("floors look down", lambda: refuse(floors.check(files, floor_of)))
    suite.add("floors: samples are caught", floors_catch_samples)
    suite.add("the library exports kvs_ only", functools.partial(library_exports_only_its_own, library))
    suite.add("exports: samples are caught", symbols_catch_samples)
    for rule in rules.RULES:
        suite.add(rule.name, lambda rule=rule: refuse(rule.findings(files)))
        suite.add(f"{rule.name}: samples are caught", rule.check_samples)
    suite.add("sizes: functions are found", sizes_find_functions)
    suite.run(notes=sizes.report(files))


if __name__ == "__main__":
    main(*sys.argv[1:])
