# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, and C code without its comments and strings."""

import dataclasses
import functools
import os
import pathlib
import re

TEXT_SUFFIXES = {".c", ".h", ".py", ".sh", ".build", ".txt", ".md", ".map", ".json", ""}
SCRIPT_FOLDERS = ("tools/", ".ci/")


@dataclasses.dataclass(frozen=True)
class File:
    path: str  # relative to the root, with slashes
    text: str

    @property
    def is_c(self):
        return self.path.endswith((".c", ".h"))

    @property
    def is_code(self):
        return (self.is_c or self.path.endswith((".py", ".sh", "meson.build", ".map"))
                or self.path == "Makefile" or self.path.startswith(SCRIPT_FOLDERS))

    @property
    def is_test(self):
        return self.path.startswith("tests/")

    @property
    def room(self):
        """The room under src/, or None."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None

    @property
    def lines(self):
        return self.text.splitlines()

    @functools.cached_property
    def code_lines(self):
        return blank_comments_and_strings(self.text).splitlines()


def read_tree(root):
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(x for x in folders if x == ".ci" or not x.startswith((".", "build", "__")))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in TEXT_SUFFIXES and not path.is_symlink() and not name.startswith("."):
                files.append(File(path.relative_to(root).as_posix(), path.read_text(errors="replace")))
    return files


LITERAL = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
                     re.DOTALL | re.VERBOSE)


def blank_comments_and_strings(text):
    """C text of the same shape, so that line numbers stay."""
    return LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
