#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user meets first: help, exit statuses, and what wrong flags and files get."""

import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import tap  # noqa: E402

COMMANDS = ["replay", "simulate", "store", "config", "bench"]
SIZE_RULE = "is not a size; use an integer or a number with KiB, MiB, GiB, TiB"

suite = tap.Suite()


@suite.test
def help_teaches_each_command_with_an_example():
    text = command.succeeds("--help")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S.*\n +\$ kvstrata {name}", text, re.MULTILINE), text
    tap.contains(text, "Exit status: 0 done, 1 the work failed, 2 the arguments or the configuration are")
    tap.equal(command.succeeds("help"), text)
    tap.equal(command.succeeds("-h"), text)


@suite.test
def help_of_a_command_lists_flags_and_examples():
    for name in COMMANDS:
        text = command.succeeds(name, "--help")
        assert text.startswith(f"Usage: kvstrata {name} "), text
        tap.contains(text, "\nExamples\n")
        tap.contains(text, f"kvstrata {name}")
        tap.equal(command.succeeds("help", name), text)
        tap.equal(command.succeeds(name, "--no-such-flag", "-h"), text)
    tap.contains(command.succeeds("replay", "--help"), "  --block-bytes SIZE ")
    tap.contains(command.succeeds("replay", "--help"), "  --config FILE ")


@suite.test
def help_fits_a_terminal():
    for arguments in [["--help"]] + [[name, "--help"] for name in COMMANDS]:
        long = [line for line in command.succeeds(*arguments).splitlines() if len(line) > 110]
        assert not long, long


@suite.test
def version_is_the_projects():
    tap.equal(command.succeeds("--version"), f"kvstrata {os.environ['KVSTRATA_VERSION']}\n")


@suite.test
def wrong_commands_are_refused():
    command.refuses(2, "kvstrata: needs a command; kvstrata --help lists them")
    command.refuses(2, 'kvstrata: "replai" is not a command; did you mean replay?', "replai")
    command.refuses(2, 'kvstrata: "replai" is not a command; did you mean replay?', "help", "replai")
    command.refuses(2, 'kvstrata: "zzz" is not a command; kvstrata --help lists them', "zzz")
    command.refuses(2, 'kvstrata: "" is not a command; kvstrata --help lists them', "")
    command.refuses(2, 'kvstrata: "--json" is not a command; kvstrata --help lists them', "--json")


@suite.test
def wrong_flags_are_refused():
    command.refuses(2, "kvstrata replay: --blok-bytes: unknown flag; did you mean --block-bytes?",
                    "replay", "--blok-bytes", "64KiB")
    command.refuses(2, f'kvstrata replay: --block-bytes: "64KB" {SIZE_RULE}', "replay", "--block-bytes=64KB")
    command.refuses(2, f'kvstrata replay: --block-bytes: "-1" {SIZE_RULE}', "replay", "--block-bytes", "-1")
    command.refuses(2, 'kvstrata replay: --block-bytes: "5000" is not a multiple of 4KiB',
                    "replay", "--block-bytes=5000")
    command.refuses(2, "kvstrata replay: --seed: given twice; use it once", "replay", "--seed=1", "--seed=2")
    command.refuses(2, "kvstrata replay: --config: needs FILE", "replay", "--config")
    command.refuses(2, 'kvstrata replay: "trace.jsonl" is not expected here; flags begin with --',
                    "replay", "trace.jsonl")


@suite.test
def missing_files_are_named():
    command.refuses(2, "kvstrata replay: nowhere.json: No such file or directory",
                    "replay", "--config", "nowhere.json")
    command.refuses(2, "kvstrata config: nowhere.json: No such file or directory",
                    "config", "check", "nowhere.json")


def checks(content):
    """Arguments of `config check` for a file with this content, and the file's name."""
    path = folder / "kvstrata.json"
    path.write_text(content)
    return str(path), ("config", "check", path)


@suite.test
def config_check_prints_values_and_sources():
    _, arguments = checks('{"block_bytes": "1MiB", "seed": 7}')
    text = command.succeeds(*arguments)
    assert re.search(r"^block_bytes +=+ 1MiB +\(file\)$", text, re.MULTILINE), text
    assert re.search(r"^seed +=+ 7 +\(file\)$", text, re.MULTILINE), text
    assert re.search(r"^host_blocks +=+ \d+ +\(default\)$", text, re.MULTILINE), text


@suite.test
def passwords_are_never_shown():
    spec = "resp:127.0.0.1:1?password=Sekr3t"
    for content in (json.dumps({"store": spec}), json.dumps({"store": spec + "&db=x"})):
        path = folder / "secret.json"
        path.write_text(content)
        done = command.run("config", "check", path)
        assert "Sekr3t" not in done.stdout + done.stderr, done
        path.write_text(json.dumps({"stores": ["mem:64MiB", *json.loads(content).values()]}))
        done = command.run("config", "check", "manager", path)
        assert done.returncode == 0 and "Sekr3t" not in done.stdout + done.stderr, done
    for arguments in ((spec,), ("replay", "--store", spec), ("replay", spec)):
        done = command.run(*arguments)
        assert done.returncode and "Sekr3t" not in done.stdout + done.stderr, done


@suite.test
def config_check_knows_the_file_of_the_manager():
    def check(content):
        name, (*words, path) = checks(content)
        return name, (*words, "manager", path)

    _, arguments = check('{"host_bytes": "2GiB", "stores": ["mem:1GiB", "nil"], "read_ttl_ns": "90s"}')
    text = command.succeeds(*arguments)
    for line in ("host_bytes = 2GiB (file)", "stores = mem:1GiB,nil (file)", "read_ttl_ns = 90s (file)",
                 "prefetches = 64 (default)", "close_timeout_ns = 5s (default)"):
        assert re.search("^" + re.sub(r" ", " +", re.escape(line).replace("\\ ", " ")) + "$", text,
                         re.MULTILINE), (line, text)
    for content, sentence in {
            '{"host_byte": 4096}': "host_byte: unknown key; did you mean host_bytes?",
            '{"prefetch_keys": 70000}': "prefetch_keys: 70000 is out of range; use 1 to 65536",
            '{"low": 0.99}': "low: 0.99 is more than high, 0.95",
            '{"object_bytes": "2GiB"}': "object_bytes: \"2GiB\" is out of range; use 4KiB to 1048572KiB",
    }.items():
        name, arguments = check(content)
        command.refuses(2, f"kvstrata config: {name}: {sentence}", *arguments)
    command.refuses(2, "kvstrata config: needs two arguments; use kvstrata config check [manager] FILE",
                    "config", "check", "replay", "x.json")


@suite.test
def config_check_refuses_wrong_files():
    cases = {
        '{"block_byte": 4096}': "block_byte: unknown key; did you mean block_bytes?",
        '{"block_bytes": "64KB"}': f'block_bytes: "64KB" {SIZE_RULE}',
        '{"block_bytes": true}': f"block_bytes: true {SIZE_RULE}",
        '{"block_bytes": 5000}': "block_bytes: 5000 is not a multiple of 4KiB",
        '{"seed": 1, "seed": 2}': "line 1, column 18: duplicate object key near '\"seed\"'",
        '{"seed": 1,}': "line 1, column 12: string or '}' expected near '}'",
        "[]": "must hold one JSON object of options",
    }
    for content, sentence in cases.items():
        name, arguments = checks(content)
        command.refuses(2, f"kvstrata config: {name}: {sentence}", *arguments)


@suite.test
def config_check_survives_any_prefix_of_a_file():
    content = json.dumps({"block_bytes": "64KiB", "seed": 7, "json": True})
    for end in range(len(content)):
        _, arguments = checks(content[:end])
        done = command.run(*arguments)
        tap.equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))


@suite.test
def config_needs_check_and_a_file():
    sentence = "kvstrata config: needs two arguments; use kvstrata config check [manager] FILE"
    command.refuses(2, sentence, "config")
    command.refuses(2, sentence, "config", "check")
    command.refuses(2, sentence, "config", "chekc", "x.json")


@suite.test
def output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = command.run_into(full, "--help")
    tap.equal((done.returncode, done.stderr), (1, "kvstrata: standard output: No space left on device\n"))


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
