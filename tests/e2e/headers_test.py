#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public headers are C99 and compile as C++, each alone; a program links against the shared library."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap  # noqa: E402

SOURCE = pathlib.Path(os.environ["KVSTRATA_SOURCE"])
BUILD = pathlib.Path(os.environ["KVSTRATA_BUILD"])
HEADERS = sorted((SOURCE / "include/kvstrata").glob("*.h"))
COMPILER = os.environ["CC"].split()
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{SOURCE}/include"]
PROGRAM = """
#include <stdio.h>
#include <kvstrata/kvstrata.h>

int main(void)
{
	return puts(kvs_version()) < 0;
}
"""

suite = tap.Suite()


def compile_alone(header, *language):
    """Twice, so that a missing guard shows."""
    text = f"#include <kvstrata/{header.name}>\n" * 2 + "int only_so_that_the_unit_is_not_empty;\n"
    done = subprocess.run([*COMPILER, *language, *STRICT, "-fsyntax-only", "-"], input=text, text=True,
                          capture_output=True, check=False)
    tap.equal((header.name, done.returncode, done.stderr), (header.name, 0, ""))


@suite.test
def headers_are_c99():
    assert HEADERS
    for header in HEADERS:
        compile_alone(header, "-x", "c", "-std=c99")


@suite.test
def headers_are_cplusplus():
    for header in HEADERS:
        compile_alone(header, "-x", "c++", "-std=c++11")


@suite.test
def a_plugin_has_the_name_that_is_looked_up_in_both_languages():
    """In C++ a second declaration with C's linkage is an error where the first has another."""
    for header, kind, macro, symbol in (
            ("store", "kvs_store_ops", "KVS_STORE_PLUGIN", "kvs_store_plugin"),
            ("policy", "kvs_policies", "KVS_POLICIES", "kvs_policies")):
        for language, again in ((("c", "-std=c99"), ""), (("c++", "-std=c++11"), 'extern "C" ')):
            text = (f"#include <kvstrata/{header}.h>\nextern const struct {kind} table;\n{macro}(table)\n"
                    f"{again}const struct {kind} *{symbol}(void);\n")
            done = subprocess.run([*COMPILER, "-x", *language, *STRICT, "-fsyntax-only", "-"],
                                  input=text, text=True, capture_output=True, check=False)
            tap.equal((header, language[0], done.returncode, done.stderr), (header, language[0], 0, ""))


@suite.test
def options_begin_with_their_defaults_in_both_languages():
    text = ("#include <kvstrata/kvstrata.h>\nstruct kvs_options f(void);\nstruct kvs_options f(void)\n"
            "{\n\tstruct kvs_options options = KVS_OPTIONS_INIT;\n\tstruct kvs_write write = KVS_WRITE_INIT;\n"
            "\tstruct kvs_ask ask = KVS_ASK_INIT;\n\n\toptions.object_bytes = write.bytes + ask.bytes;\n"
            "\treturn options;\n}\n")
    for language in (("c", "-std=c99"), ("c++", "-std=c++11")):
        done = subprocess.run([*COMPILER, "-x", *language, *STRICT, "-fsyntax-only", "-"], input=text,
                              text=True, capture_output=True, check=False)
        tap.equal((language, done.returncode, done.stderr), (language, 0, ""))


@suite.test
def a_program_links_against_the_library():
    if os.environ["KVSTRATA_SANITIZE"] != "none":
        raise tap.Skip("a sanitized library needs a sanitized program")
    folder = BUILD / "src"
    with tempfile.TemporaryDirectory() as name:
        program = pathlib.Path(name, "program")
        subprocess.run([*COMPILER, "-x", "c", "-std=c99", *STRICT, "-", "-o", program, f"-L{folder}",
                        f"-Wl,-rpath,{folder}", "-lkvstrata"], input=PROGRAM, text=True, check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=True)
    tap.equal(done.stdout, os.environ["KVSTRATA_VERSION"] + "\n")


suite.run()
