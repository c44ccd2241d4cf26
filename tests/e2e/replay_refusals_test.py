#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kvstrata replay` refuses: one line that says why, the right exit status, and no file touched."""

import fcntl
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

GOOD = replays.trace_line(0, [1, 2, 3])

suite = tap.Suite()


def contents(folder):
    """Every file below, with what a write to it would change."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")
            if path.is_file()}


def refuses(status, pattern, *arguments):
    before = contents(folder)
    done = command.run("replay", *arguments)
    tap.equal((arguments, done.returncode, done.stdout), (arguments, status, ""))
    assert re.fullmatch(f"kvstrata replay: {pattern}\n", done.stderr), f"{arguments}: {done.stderr}"
    tap.equal(contents(folder), before)


def strata(name, more="capacity=64MiB"):
    return f"strata:{folder / name}?{more}"


def written(name, text):
    path = folder / name
    path.write_text(text)
    return path


@suite.test
def sizes_and_counts_out_of_range_are_refused():
    for flag, value, rule in [
            ("block-bytes", "5000", "is not a multiple of 4KiB"), ("block-bytes", "-4096", "is not a size"),
            ("block-bytes", "0", "is out of range"), ("block-bytes", "1TiB", "is out of range"),
            ("block-bytes", "99999999999999999999", "is not a size"),
            ("host-blocks", "-1", "is not a count"), ("host-blocks", "0", "is out of range"),
            ("device-blocks", "9999999999", "is out of range"), ("device-blocks", "1e3", "is not a count"),
            ("concurrency", "0", "is out of range"), ("concurrency", "1025", "is out of range"),
            ("limit", "0", "is too small"), ("limit", "-5", "is not a count"),
            ("speed", "0", "is out of range"), ("speed", "-1", "is not a number"),
            ("speed", "nan", "is not a number"),
            ("deadline", "-1ms", "is not a duration"), ("deadline", "5 minutes", "is not a duration"),
            ("prefill-tokens-per-s", "0", "is out of range"), ("policy", "random", "is unknown"),
            ("policy", "none", "is unknown"), ("seed", "0x1", "is not a count")]:
        refuses(2, f'--{flag}: "{re.escape(value)}" {rule}.*', f"--{flag}={value}", "--store", strata("new"))


@suite.test
def more_memory_than_the_machine_has_is_refused_before_the_store_is_touched():
    refuses(2, r"host_blocks, device_blocks: \d+ and 256 blocks of 67108864 bytes are \d+ bytes; "
               r"this machine has \d+ available",
            "--host-blocks", 2**28, "--block-bytes", "64MiB", "--store", strata("new"))


@suite.test
def a_device_without_room_for_all_groups_of_a_page_is_refused():
    for groups, blocks in [("full,state", 1), ("window:1,state", 1), ("full,full,full", 2)]:
        refuses(2, f"device_blocks: {blocks} do not hold a page of 512 tokens",
                "--groups", groups, "--device-blocks", blocks, "--store", strata("new"))


@suite.test
def stores_that_cannot_be_are_refused():
    for spec, pattern in [
            ("", '--store: "" is not text; use a string that is not empty'),
            ("redis:localhost", r'store: "redis" is not a kind of store; use none, mem, .*, plugin'),
            ("none:1", "store: none takes no path and no options"),
            ("mem", 'store.capacity: "" is not a size.*'),
            ("mem:-1", 'store.capacity: "-1" is not a size.*'),
            ("mem:1KiB", "store.capacity: .* hold no block of 64 KiB.*"),
            ("mem:9999TiB", "store.capacity: .* are more than .* blocks of 64 KiB"),
            ("strata:?capacity=1GiB", "store.path: is missing; .*"),
            (strata("new", "capacity=1"), "store.capacity: .* too few for blocks of 64 KiB; .* is needed"),
            (strata("new", "capacity=9999TiB"), "store.capacity: .* is more than 16 TiB"),
            (strata("new", "capacity=1GiB&segment=64KiB"), "store.segment: .* holds one block of 64 KiB"),
            (strata("new", "capacity=-64MiB"), 'store.capacity: "-64MiB" is not a size.*'),
            (strata("new", "size=64MiB"), 'store: "size" is not an option of strata; use capacity, .*'),
            (strata("new", "capacity=64MiB&capacity=1GiB"), "store.capacity: is given twice"),
            (strata("new", "capacity=64MiB&verify=maybe"), 'store.verify: "maybe" is neither on nor off'),
            (strata("new", "capacity=64MiB&corrupt_every=-1"), 'store.corrupt_every: "-1" is not a count.*')]:
        refuses(2, pattern, "--store", spec)


@suite.test
def unknown_keys_of_a_config_file_are_refused():
    path = written("config.json", json.dumps({"store": strata("new"), "blok_bytes": 4096}))
    refuses(2, f"{path}: blok_bytes: unknown key; did you mean block_bytes\\?", "--config", path)


@suite.test
def files_that_cannot_be_opened_are_failures():
    store = ["--store", strata("new")]
    refuses(1, ".*nowhere.jsonl: cannot open: No such file or directory",
            "--trace", folder / "nowhere.jsonl", *store)
    refuses(1, ".*: cannot open: Is a directory", "--trace", folder, *store)
    refuses(1, 'store.path: ".*/nowhere/s": cannot be opened: No such file or directory',
            "--store", strata("nowhere/s"))
    refuses(1, 'store.path: ".*": cannot be opened: Is a directory',
            "--store", f"strata:{folder}?capacity=1GiB")
    refuses(1, 'store.path: ".*/new": does not exist; give a capacity to create it: .*',
            "--store", f"strata:{folder}/new")


@suite.test
def a_seed_beside_a_trace_is_refused_as_a_flag_only():
    path = written("one.jsonl", request() + "\n")
    refuses(2, "--seed: given with --trace; it is for generated requests only", "--trace", path, "--seed", 2)
    config = written("seed.json", json.dumps({"seed": 2}))
    command.succeeds("replay", "--config", config, "--trace", path, "--store", "none")


INPUT = "--metrics: .* is an input of this run; use another file"


@suite.test
def an_output_that_is_an_input_is_refused_and_left_as_it_is():
    trace = written("input.jsonl", json.dumps(request()) + "\n")
    before = trace.read_bytes()
    (folder / "again").symlink_to(trace)
    for output in (trace, folder / "again"):
        refuses(2, INPUT, "--trace", trace, "--metrics", output)
        done = command.run("simulate", "--trace", trace, "--plot", output)
        tap.equal((done.returncode, done.stderr.count("\n")), (2, 1))
    tap.equal(trace.read_bytes(), before)
    refuses(2, INPUT, "--store", strata("both"), "--metrics", folder / "both")
    assert not (folder / "both").exists()


@suite.test
def a_sentence_is_one_line_that_leaves_the_terminal_alone():
    hostile = (("--trace", "\n"), ("--store", "mem:1GiB\x1b[31m"), ("--trace", "/nowhere\u009b31m"))
    for flag, value in hostile:
        done = command.run("replay", flag, value)
        assert done.returncode in (1, 2) and done.stderr.count("\n") == 1, done
        assert done.stderr.rstrip("\n").isprintable(), done
    done = command.run("simulate", "--capacity", "0" * 140 + "150")
    tap.equal((done.returncode, done.stderr.count("\n")), (2, 1))


@suite.test
def a_metrics_file_that_cannot_be_opened_is_told_before_the_run():
    done = command.run("replay", "--json", "--limit", 3, "--metrics", folder / "nowhere/metrics")
    tap.equal((done.returncode, done.stdout), (1, ""))
    sentence = "kvstrata replay: metrics: cannot open .*/nowhere/metrics: No such file or directory\n"
    assert re.fullmatch(sentence, done.stderr), done.stderr


@suite.test
def a_metrics_file_that_cannot_hold_them_is_a_failure_with_its_reason():
    command_line = ["replay", "--json", "--limit", 3, "--store", "none", "--metrics", "/dev/full"]
    done = command.run(*command_line)
    tap.equal((done.returncode, json.loads(done.stdout)["requests"]), (1, 3))
    tap.equal(done.stderr,
              "kvstrata replay: metrics: cannot write /dev/full: No space left on device\n")


@suite.test
def a_report_that_cannot_be_written_is_one_line():
    for flags in ([], ["--json"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = command.run_into(full, "replay", "--limit", "3", *flags)
        tap.equal((flags, done.returncode, done.stderr.count("\n")), (flags, 1, 1))
        assert re.match("kvstrata[^:]*: standard output: ", done.stderr), done.stderr


# Lines of a trace


def request(**changes):
    line = {"timestamp": 5, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2], **changes}
    return json.dumps({key: value for key, value in line.items() if value is not None})


@suite.test
def malformed_lines_are_named_by_number_and_rule():
    for line, pattern in [
            ("{", "expected one JSON object: .*"), ("[1]", "not a JSON object; .*"),
            ("\0", "expected one JSON object: .*"), ("{}", "timestamp: missing; .*"),
            (request(timestamp=-1), "timestamp: -1 is not an integer from 0 to .*"),
            (request(timestamp="5"), 'timestamp: "5" is not an integer .*'),
            (request(input_length=0), "input_length: 0 is not an integer from 1 to .*"),
            (request(input_length=10**18), "input_length: 10+ is not an integer .*"),
            (request(input_length=1025), "hash_ids: 2 ids for input_length 1025; expected 3, .*"),
            (request(output_length=None), "output_length: missing; .*"),
            (request(hash_ids=7), "hash_ids: not an array of integers"),
            (request(hash_ids=[1, -2]), "hash_ids.*: -2 is not an integer .*")]:
        path = written("malformed.jsonl", GOOD * 3 + line + "\n" + GOOD)
        refuses(2, f"{path}: line 4: {pattern}", "--trace", path, "--store", "none")


@suite.test
def time_that_goes_backwards_and_blank_lines_are_malformed():
    path = written("malformed.jsonl", request(timestamp=7) + "\n" + request(timestamp=6) + "\n")
    refuses(2, f"{path}: line 2: timestamp: 6 after 7; it must not go backwards", "--trace", path)
    path = written("malformed.jsonl", GOOD + "\n" + GOOD)
    refuses(2, f"{path}: line 2: empty; expected one JSON object a line", "--trace", path)


@suite.test
def a_malformed_line_leaves_a_good_store():
    lines = [replays.trace_line(i, [1, 2, i + 3]) for i in range(200)]
    path, store = written("cut.jsonl", "".join(lines) + "{\n"), strata("kept")
    tap.equal(command.run("replay", "--trace", path, "--store", store).returncode, 2)
    path.write_text("".join(lines))
    again = replays.report("--trace", path, "--store", store, "--deadline", "none")
    tap.equal((again["wrong_bytes"], again["store"]["corrupt"]), (0, 0))
    assert again["store"]["gets"] > 0, again["store"]


# Strata files of others


@suite.test
def a_store_of_other_sizes_is_left_as_it_is():
    replays.report("--limit", 5, "--store", strata("sizes"))
    said = 'store.path: ".*/sizes": has {}; leave the {} out or format it anew'
    refuses(1, said.format("a capacity of 64 MiB, asked for 32 MiB", "capacity"),
            "--store", strata("sizes", "capacity=32MiB"))
    refuses(1, said.format("segments of .*, asked for 4 MiB", "segment"),
            "--store", strata("sizes", "capacity=64MiB&segment=4MiB"))
    refuses(1, 'store.path: ".*/sizes": has segments of .*, which hold no block of 64 MiB; .*',
            "--block-bytes", "64MiB", "--host-blocks", 16, "--store", f"strata:{folder / 'sizes'}")


@suite.test
def a_store_takes_blocks_of_any_size_that_its_segments_hold():
    replays.report("--limit", 5, "--store", strata("any"))
    for size in "128KiB", "4KiB", "64KiB":
        again = replays.report("--limit", 5, "--block-bytes", size, "--store", strata("any"))
        tap.equal((again["wrong_bytes"], again["store"]["corrupt"]), (0, 0))


@suite.test
def a_file_that_is_no_store_is_left_as_it_is():
    path = written("letter.txt", "Dear reader,\n")
    refuses(1, 'store.path: ".*/letter.txt": is no strata file; it is left as it is',
            "--store", strata("letter.txt"))
    tap.equal(path.read_text(), "Dear reader,\n")


@suite.test
def a_store_that_another_process_has_open_is_refused():
    replays.report("--limit", 5, "--store", strata("locked"))
    with open(folder / "locked", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refuses(1, f'store.path: ".*/locked": is open in process {os.getpid()} \\(python3.*\\); '
                "one file serves one store at a time",
                "--store", strata("locked"))
    replays.report("--limit", 5, "--store", strata("locked"))


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
