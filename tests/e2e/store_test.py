#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata store`: what it makes, tells, finds and removes, and what it refuses."""

import contextlib
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import strata_file  # noqa: E402
import tap  # noqa: E402

MIB = 1 << 20
BLOCK = 16384
NOBODY = "00112233445566778899aabbccddeeff"

suite = tap.Suite()


def store(*arguments):
    return command.succeeds("store", *arguments)


def tells(*arguments):
    return json.loads(store(*arguments, "--json"))


def refuses(status, sentence, name, *arguments):
    """As command.refuses, with a pattern."""
    done = command.run("store", name, *arguments)
    tap.equal((arguments, done.returncode, done.stdout), (arguments, status, ""))
    assert re.fullmatch(f"kvstrata store {name}: {sentence}\n", done.stderr), f"{arguments}: {done.stderr}"


def fill(path, limit=200, capacity="?capacity=64MiB"):
    return replays.report("--limit", limit, "--block-bytes", BLOCK, "--host-blocks", 96, "--device-blocks",
                          128, "--deadline", "none", "--store", f"strata:{path}{capacity}")


def filled():
    """The path of a store with some hundred objects; made once, copied for each."""
    original = folder / "original"
    if not original.exists():
        fill(original)
    path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "kv"
    shutil.copy(original, path)
    return path


def keys_of(path):
    """What list says, as keys that rm takes."""
    return [":".join(line.split()[:4]) for line in store("list", path).splitlines()]


# Format


@suite.test
def format_makes_an_empty_store_with_all_its_disk_space():
    path = folder / "fresh"
    text = store("format", path, "--capacity", "64MiB", "--segment", "2MiB")
    for part in (f"{path}: a new, empty strata store of 64 MiB\n", "  segments   31 of 2 MiB\n",
                 "  room       at least ", " objects of 64 KiB\n", "  disk       all of it is reserved\n"):
        tap.contains(text, part)
    stat = path.stat()
    tap.equal(stat.st_size, 2 * 4096 + 31 * 2 * MIB)
    assert stat.st_blocks * 512 >= stat.st_size, stat
    tap.equal(stat.st_mode & 0o777, 0o600)
    tap.equal((tells("inspect", path)["objects"], store("list", path)), (0, ""))
    assert fill(path, 50)["store"]["puts_new"] > 0
    tap.equal(path.stat().st_size, stat.st_size)


@suite.test
def format_for_machines_and_sparse():
    path = folder / "sparse"
    report = tells("format", "--capacity", "64MiB", "--segment=1MiB", path, "--block-bytes", "16KiB",
                   "--sparse")
    tap.equal({name: report[name] for name in report if name != "id"}, {
        "version": 2, "capacity_bytes": 64 * MIB, "segment_bytes": MIB, "segment_count": 63,
        "block_bytes": BLOCK, "objects_that_fit": 50 * 62, "reserved": False})
    tap.equal(path.stat().st_size, 2 * 4096)
    tap.equal(tells("inspect", path)["id"], report["id"])


@suite.test
def the_objects_that_format_says_fit_do():
    path = folder / "fits"
    report = tells("format", path, "--capacity", "4MiB", "--block-bytes", BLOCK)
    fill(path, 200, "")
    most = tells("inspect", path)["objects"]
    assert report["objects_that_fit"] * 0.9 <= most <= report["objects_that_fit"] * 1.4, (report, most)


@suite.test
def format_refuses_what_is_not_empty_and_says_what_it_is():
    path, letter = filled(), folder / "letter"
    objects = f"{tells('inspect', path)['objects']:,}"
    letter.write_text("Dear reader,\n")
    before = path.read_bytes()
    refuses(1, f'"{path}" holds a strata store of version 2 with {objects} objects; --force overwrites it',
            "format", path, "--capacity", "64MiB")
    refuses(1, f'"{letter}" holds something that is no strata store; --force overwrites it',
            "format", letter, "--capacity", "64MiB")
    tap.equal((path.read_bytes() == before, letter.read_text()), (True, "Dear reader,\n"))
    older = strata_file.StrataFile(path)
    for page in (0, 1):
        older.write(page * 4096 + 8, bytes([1]))
    refuses(1, f'"{path}" holds a strata store of version 1; --force overwrites it',
            "format", path, "--capacity", "64MiB")
    refuses(1, f'store.path: "{path}": has format version 1; this build reads 2; it is left as it is',
            "inspect", path)


@suite.test
def forced_a_store_begins_anew():
    path = filled()
    before = tells("inspect", path)["id"]
    store("format", path, "--capacity", "32MiB", "--force", "--sparse")
    report = tells("inspect", path)
    tap.equal((report["objects"], report["capacity_bytes"], report["put_bytes"]), (0, 32 * MIB, 0))
    assert report["id"] != before
    tap.equal(tells("verify", path)["damage_count"], 0)


@suite.test
def a_disk_that_is_too_small_is_told_at_once():
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    if free > 7 << 40:
        raise tap.Skip("this disk is too large to be too small")
    path, wanted = folder / "large", 2 * free // 4096 * 4096
    sentence = (r'store.path: ".*": needs \S+ [GT]iB of its disk, which has \S+ [GT]iB available '
                r"\(\d+ and \d+ bytes\)")
    refuses(1, sentence, "format", path, "--capacity", wanted)
    assert not path.exists()
    store("format", path, "--capacity", wanted, "--sparse")
    path.unlink()
    path = filled()
    before = path.read_bytes()
    refuses(1, sentence, "format", path, "--capacity", wanted, "--force")
    tap.equal(path.read_bytes() == before, True)


@suite.test
def wrong_sizes_are_refused_and_leave_nothing():
    path = folder / "none"
    for arguments, sentence in [
            ([], "--capacity: is missing; how large may the file become\\?"),
            (["--capacity", "5"], "--capacity: 5 bytes are too few for blocks of 64 KiB; .* is needed"),
            (["--capacity", "9999TiB"], "--capacity: 9999 TiB is more than 16 TiB"),
            (["--capacity", "64GB"], '--capacity: "64GB" is not a size; .*'),
            (["--capacity", "64MiB", "--segment", "1KiB"], "--segment: 1 KiB is not a multiple of 4 KiB .*"),
            (["--capacity", "64MiB", "--segment", "32MiB"], "--capacity: .* are too few .*"),
            (["--capacity", "64MiB", "--block-bytes", "5000"], '--block-bytes: "5000" is not a multiple .*'),
            (["--capacity", "64MiB", "--forse"], "--forse: unknown flag; did you mean --force\\?")]:
        refuses(2, sentence, "format", path, *arguments)
        assert not path.exists(), arguments


# Paths


@suite.test
def paths_that_are_no_store_are_refused_by_all_alike():
    pipe, empty, letter = folder / "pipe", folder / "empty", folder / "text"
    os.mkfifo(pipe)
    empty.touch()
    letter.write_text("x" * 10000)
    for name, more in [("inspect", []), ("verify", []), ("list", []), ("rm", ["--all"])]:
        refuses(2, "needs the PATH of a file or block device; .*", name, *more)
        refuses(2, "needs the PATH of a file or block device; .*", name, "", *more)
        refuses(1, 'store.path: ".*/nowhere": does not exist', name, folder / "nowhere", *more)
        refuses(1, 'store.path: ".*/x": cannot be opened: Not a directory', name, letter / "x", *more)
        refuses(1, 'store.path: ".*": is empty: no strata file', name, empty, *more)
        refuses(1, 'store.path: ".*": is no strata file; it is left as it is', name, letter, *more)
        for other in (pipe, folder, "/dev/null"):
            refuses(2, 'store.path: ".*": is neither a file nor a block device', name, other, *more)
        refuses(2, '".*" is not expected here; flags begin with --', name, empty, "another", *more)
        refuses(2, "--jsno: unknown flag; did you mean --json\\?", name, "--jsno", empty, *more)
    sized = ("--capacity", "64MiB")
    refuses(2, 'store.path: ".*": is neither a file nor a block device', "format", pipe, *sized)
    refuses(1, 'store.path: ".*": cannot be opened: Is a directory', "format", folder, *sized)
    tap.equal((empty.stat().st_size, letter.read_text()), (0, "x" * 10000))


@suite.test
def a_path_may_stand_anywhere():
    path = filled()
    expected = store("list", path, "--limit", 3, "--namespace", NOBODY)
    tap.equal(store("list", "--limit", 3, path, "--namespace", NOBODY), expected)
    tap.equal(store("list", "--limit=3", "--namespace", NOBODY, path), expected)


@suite.test
def what_may_not_be_read_is_refused():
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise tap.Skip("root may read everything, and there is no setpriv here")
    path = filled()
    path.chmod(0)
    drop = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    folder.chmod(0o755)
    path.parent.chmod(0o755)
    done = subprocess.run([*drop, os.environ["KVSTRATA"], "store", "inspect", str(path)], check=False,
                          capture_output=True, text=True)
    if "setpriv: failed to execute" in done.stderr:
        raise tap.Skip("nobody else may run the program where it lies")
    tap.equal((done.returncode, done.stdout, done.stderr),
              (1, "", f'kvstrata store inspect: store.path: "{path}": cannot be opened: Permission denied\n'))


@suite.test
def unknown_parts_are_refused():
    command.refuses(2, "kvstrata store: needs the name of a store command; kvstrata store --help lists them",
                    "store")
    command.refuses(2, 'kvstrata store: "inspekt" is not a store command; did you mean inspect?',
                    "store", "inspekt", "x")


@suite.test
def every_part_has_help():
    text = command.succeeds("store", "--help")
    for name in ("format", "inspect", "verify", "list", "rm"):
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE), text
        own = command.succeeds("store", name, "--help")
        assert own.startswith(f"Usage: kvstrata store {name} PATH"), own
        tap.contains(own, f"\nExamples\n  kvstrata store {name} ")
        tap.contains(own, "\n  --json ")
        assert not [line for line in own.splitlines() if len(line) > 110], own


# Inspect and list


@suite.test
def inspect_tells_the_same_to_people_and_machines():
    path = filled()
    report, text = tells("inspect", path), store("inspect", path)
    listed = tells("list", path)
    tap.equal(report["objects"], len(listed))
    tap.equal([(use["objects"], use["payload_bytes"]) for use in report["namespaces"]],
              [(len(listed), sum(key["bytes"] for key in listed))])
    tap.equal(report["namespaces"][0]["namespace"], listed[0]["namespace"])
    tap.equal((report["version"], report["in_use_by"], report["opens"]), (2, None, 1))
    tap.equal(report["live_bytes"], len(listed) * BLOCK)
    tap.equal(report["segments_free"] + len(report["segments"]), report["segment_count"])
    tap.equal(sum(segment["objects"] for segment in report["segments"]), len(listed))
    ages = [(segment["age"], segment["sequence"]) for segment in report["segments"]]
    tap.equal(ages, sorted(ages))
    assert report["put_bytes"] >= len(listed) * BLOCK, report
    assert 1 < report["write_amplification"] < 2, report
    tap.equal(report["written_bytes"], report["written_today_bytes"])
    tap.equal(set(report["recovery"].values()), {0})
    for part in (f"{path}: strata store, version 2, id {report['id']}\n",
                 f"payload of {len(listed)} objects\n",
                 f"write amplification {report['write_amplification']:.2f}\n",
                 "found in order: nothing torn, nothing damaged\n", report["namespaces"][0]["namespace"],
                 "   age   segment  state        records     objects  live\n"):
        tap.contains(text, part)
    tap.equal(len(re.findall(r"^ +\d+ +\d+  sealed .*\[[#-]{20}\] +\d+ %$", text, re.MULTILINE)),
              len(report["segments"]))


@suite.test
def many_segments_are_shown_in_groups():
    path = folder / "many"
    store("format", path, "--capacity", "64MiB", "--segment", "256KiB", "--block-bytes", BLOCK)
    fill(path, 200, "")
    report, text = tells("inspect", path), store("inspect", path)
    assert len(report["segments"]) > 32, len(report["segments"])
    groups = re.findall(r"^ +(\d+) to +(\d+) +(\d+) +([\d,]+)  \[[#-]{20}\] +\d+ %$", text, re.MULTILINE)
    tap.equal(len(groups), 10)
    tap.equal((groups[0][0], groups[-1][1]), ("1", str(len(report["segments"]))))
    tap.equal(sum(int(group[2]) for group in groups), len(report["segments"]))
    tap.equal(sum(int(group[3].replace(",", "")) for group in groups), report["objects"])


@suite.test
def list_is_one_line_a_key():
    path = filled()
    lines, objects = store("list", path).splitlines(), tells("list", path)
    tap.equal(len(lines), len(objects))
    for line, key in zip(lines, objects):
        tap.equal(line, "{namespace} {group} {offset} {hash} {bytes}".format(**key))
        assert re.fullmatch(r"[0-9a-f]{32} \d+ \d+ [0-9a-f]{64} 16384", line), line
    tap.equal(len(set(lines)), len(lines))
    tap.equal(store("list", path, "--limit", 7).splitlines(), lines[:7])
    tap.equal(tells("list", path, "--limit", 7), objects[:7])
    tap.equal(store("list", path, "--namespace", objects[0]["namespace"].upper()).splitlines(), lines)
    tap.equal(store("list", path, "--namespace", NOBODY), "")
    tap.equal(tells("list", path, "--namespace", NOBODY), [])
    for wrong in ("0", NOBODY + "0", "g" + NOBODY[1:]):
        refuses(2, f'--namespace: "{wrong}" is not a namespace; use 32 hexadecimal digits',
                "list", path, "--namespace", wrong)
    refuses(2, '--limit: "0" is too small.*', "list", path, "--limit", 0)


@suite.test
def output_that_finds_no_reader_is_one_line():
    path = filled()
    for name in ("inspect", "verify", "list"):
        for more in ([], ["--json"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = command.run_into(full, "store", name, str(path), *more)
            tap.equal((name, done.returncode, done.stderr.count("\n")), (name, 1, 1))
            tap.contains(done.stderr, "standard output: No space left on device")
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([os.environ["KVSTRATA"], "store", name, str(path), *more], stdout=writer,
                                  stderr=subprocess.PIPE, text=True, check=False, restore_signals=False)
            os.close(writer)
            tap.equal((name, done.returncode, done.stderr.count("\n")), (name, 1, 1))
            tap.contains(done.stderr, "standard output: Broken pipe")


# Verify


def check_damage(path, expected):
    """Exactly these pieces of damage, each (segment, offset, key, what), for machines and for people."""
    done = command.run("store", "verify", path, "--json")
    report = json.loads(done.stdout)
    names = ("segment", "offset", "key", "what")
    tap.equal([tuple(damage[name] for name in names) for damage in report["damage"]], expected)
    tap.equal((done.returncode, report["damage_count"]), (1, len(expected)))
    tap.equal(done.stderr, f'kvstrata store verify: "{path}" is damaged: {len(expected)} found\n')
    done = command.run("store", "verify", path)
    tap.equal(done.returncode, 1)
    for segment, offset, key, what in expected:
        place = "" if segment is None else f"in segment {segment} "
        tap.contains(done.stdout, f"damage {place}at {offset}: {what}\n"
                     + (f"  {key}, {BLOCK} bytes\n" if key else ""))
    tap.contains(done.stdout, f"; damage: {len(expected)}\n")
    return report


@suite.test
def verify_reads_everything():
    path = filled()
    report, inspected = tells("verify", path), tells("inspect", path)
    tap.equal((report["damage"], report["damage_count"], report["interrupted"], report["in_use"]),
              ([], 0, False, False))
    tap.equal((report["objects"], report["payload_bytes"]), (inspected["objects"], inspected["live_bytes"]))
    text = store("verify", path)
    head = f"{path}: {report['objects']} objects, "
    assert re.fullmatch(head + r"\S+ MiB of payload, read in \S+ s at \S+ \S+/s; damage: none\n", text), text


def sealed_segments(path):
    return [segment["segment"] for segment in tells("inspect", path)["segments"]]


def live_records(path):
    file, live = strata_file.StrataFile(path), set(keys_of(path))
    return [record for segment in sealed_segments(path) for record in file.records(segment)
            if record.key in live]


@suite.test
def a_wrong_byte_in_an_object_is_found_wherever_it_is():
    path, dice = filled(), random.Random(1)
    file, records = strata_file.StrataFile(path), live_records(path)
    for offset in (0, BLOCK - 1, dice.randrange(BLOCK)):
        record = dice.choice(records)
        file.flip(record.offset + offset, 1 << dice.randrange(8))
        report = check_damage(path, [(record.segment, record.offset, record.key,
                                      "its payload does not match its checksum")])
        tap.equal(report["objects"], len(records))
        shutil.copy(folder / "original", path)


@suite.test
def a_wrong_byte_in_a_structure_is_found_wherever_it_is():
    path, dice = filled(), random.Random(2)
    file, keys = strata_file.StrataFile(path), keys_of(path)
    tap.equal(store("rm", path, "--key", keys[0]), "objects removed: 1\n")
    shutil.copy(path, folder / "tallied")
    segments = sealed_segments(path)
    tallies = [(segment, file.tally_offset(segment, copy)) for segment in segments for copy in (0, 1)
               if file.read(file.tally_offset(segment, copy), 8) == b"kvs-dead"]
    tap.equal(len(tallies), 1)

    def check(start, count, expected):
        for offset in (0, count - 1, dice.randrange(count)):
            shutil.copy(folder / "tallied", path)
            file.flip(start + offset, 1 << dice.randrange(8))
            check_damage(path, [expected])

    for page in (0, 1):
        check(page * 4096, 4096, (None, page * 4096, None, "one of two superblocks is damaged"))
    segment = dice.choice(segments)
    start = file.segment_offset(segment)
    check(start, 4096, (segment, start, None, "its head is damaged"))
    record = dice.choice(live_records(path))
    check(record.headers, 4096, (record.segment, record.headers, None, "a page of headers is damaged"))
    segment, start = tallies[0]
    check(start, 4096, (segment, start, None, "one of its two tallies is damaged"))
    segment = dice.choice(segments)
    start, count = file.summary_offset(segment), file.entry_count(segment)
    check(start, count * strata_file.ENTRY.size, (segment, start, None, "its summary is damaged"))
    start = file.foot_offset(segment)
    check(start, 64, (segment, start - (4096 - 64), None, "the foot of its summary is damaged"))


@suite.test
def segments_that_were_wiped_or_cut_off_are_missed():
    path = filled()
    file, segments = strata_file.StrataFile(path), sealed_segments(path)
    missed = (None, 0, None, "segments that were in use have no head: wiped, or cut off")
    file.write(file.segment_offset(segments[0]), bytes(4096))
    check_damage(path, [missed])
    shutil.copy(folder / "original", path)
    file.write(file.segment_offset(segments[-1]), random.Random(3).randbytes(file.segment_bytes))
    check_damage(path, [missed])
    shutil.copy(folder / "original", path)
    os.truncate(path, file.segment_offset(max(segments)))
    check_damage(path, [missed])
    # The next close knows how many there are.
    store("rm", path, "--key", keys_of(path)[0])
    tap.equal(tells("verify", path)["damage_count"], 0)


@suite.test
def much_damage_is_all_listed():
    path = filled()
    file, records = strata_file.StrataFile(path), live_records(path)
    for record in records:
        file.flip(record.offset)
    expected = [(record.segment, record.offset, record.key, "its payload does not match its checksum")
                for record in sorted(records, key=lambda record: record.offset)]
    check_damage(path, expected)


@suite.test
def damage_in_what_counts_no_more_is_none():
    path = filled()
    file, records = strata_file.StrataFile(path), live_records(path)
    store("rm", path, "--key", records[0].key)
    file.flip(records[0].offset)
    tap.equal(tells("verify", path)["damage_count"], 0)


@suite.test
def an_open_for_writing_mends_structures():
    path = filled()
    file = strata_file.StrataFile(path)
    store("rm", path, "--key", keys_of(path)[0])
    segments = sealed_segments(path)
    tally = next(offset for segment in segments for copy in (0, 1)
                 if file.read(offset := file.tally_offset(segment, copy), 8) == b"kvs-dead")
    for offset in (100, 4096 + 100, file.segment_offset(segments[-1]) + 100, tally + 1000,
                   file.summary_offset(segments[1]), file.foot_offset(segments[2])):
        shutil.copy(path, folder / "mended")
        strata_file.StrataFile(folder / "mended").flip(offset)
        tap.equal(command.run("store", "verify", folder / "mended").returncode, 1)
        store("rm", folder / "mended", "--namespace", NOBODY)
        tap.equal(tells("verify", folder / "mended")["damage_count"], 0)


@suite.test
def what_is_opened_again_after_damage_goes_on():
    """A damaged object is given up when it is asked for, a damaged summary is written anew."""
    path = filled()
    file, records = strata_file.StrataFile(path), live_records(path)
    file.flip(records[0].offset)
    file.flip(file.summary_offset(records[-1].segment))
    tap.equal(tells("rm", path, "--key", records[0].key)["removed"], 1)
    report = tells("verify", path)
    tap.equal((report["damage_count"], report["objects"]), (0, len(records) - 1))


# Ctrl-C


class Held:
    """A verify on a terminal whose output is stopped, as by Ctrl-S: it stands at its first progress bar."""

    def __init__(self, path, *arguments):
        self.ours, self.theirs = pty.openpty()
        termios.tcflow(self.theirs, termios.TCOOFF)
        self.process = subprocess.Popen([os.environ["KVSTRATA"], "store", "verify", str(path), *arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.theirs)

    def interrupt(self):
        """Once it writes to the terminal."""
        command.wait_until_it_stands_at(self.process, 2)
        self.process.send_signal(signal.SIGINT)

    def go_on(self):
        """What it says on the terminal."""
        termios.tcflow(self.theirs, termios.TCOON)
        os.close(self.theirs)
        text = drain(self.ours)
        os.close(self.ours)
        return text


def drain(terminal):
    text = b""
    with contextlib.suppress(OSError):
        while True:
            text += os.read(terminal, 65536)
    return text.decode()


def wait_until_delivered(pid, number):
    """A second signal of a number that still waits would be lost in the first."""
    bit = pending = 1 << (number - 1)
    while pending & bit:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        pending = int(re.search(r"^ShdPnd:\s*(\w+)$", status, re.MULTILINE)[1], 16)
        os.sched_yield()


@suite.test
def an_interrupt_gives_what_was_seen_so_far():
    path = filled()
    for flags in ([], ["--json"]):
        held = Held(path, *flags)
        held.interrupt()
        tap.contains(held.go_on(), "kvstrata store verify: interrupted; the rest was not read")
        out = held.process.stdout.read().decode()
        tap.equal(held.process.wait(), 1)
        if flags:
            report = json.loads(out)
            tap.equal((report["interrupted"], report["objects"]), (True, 1))
        else:
            tap.contains(out, "interrupted; so far")


@suite.test
def a_second_interrupt_ends_it_at_once():
    """The first one ends its waiting; it waits again to erase the bar."""
    held = Held(filled())
    held.interrupt()
    wait_until_delivered(held.process.pid, signal.SIGINT)
    held.interrupt()
    tap.equal(held.process.wait(), 130)
    held.process.stdout.close()
    held.go_on()


@suite.test
def progress_tells_bytes_and_rate_on_a_terminal():
    ours, theirs = pty.openpty()
    process = subprocess.Popen([os.environ["KVSTRATA"], "store", "verify", str(filled())],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    text = drain(ours)
    tap.contains(process.stdout.read().decode(), "damage: none")
    tap.equal(process.wait(), 0)
    assert re.search(r"verifying \d+ MiB  \[[#-]{20}\]  \d+ %  [\d,]+ MiB/s  ", text), text
    assert text.endswith("\r\x1b[K"), text
    os.close(ours)


# Beside a process that uses the store


class Busy:
    """A replay that goes on until it is ended."""

    def __init__(self, path, place=None):
        pipe = (place or path.parent) / "requests"
        os.mkfifo(pipe)
        self.process = subprocess.Popen(
            [os.environ["KVSTRATA"], "replay", "--trace", str(pipe), "--json", "--block-bytes", str(BLOCK),
             "--host-blocks", "32", "--device-blocks", "32", "--deadline", "none", "--store",
             f"strata:{path}"], stdout=subprocess.PIPE)
        self.pipe = open(pipe, "w", encoding="ascii")
        self.count = 0
        # It opens the pipe first, then the store.
        while tells("inspect", path)["in_use_by"] is None:
            os.sched_yield()

    def work(self, requests):
        for _ in range(requests):
            self.count += 1
            self.pipe.write(replays.trace_line(self.count, [self.count * 2, self.count * 2 + 1]))
        self.pipe.flush()

    def end(self):
        self.pipe.close()
        out = self.process.stdout.read()
        tap.equal(self.process.wait(), 0)
        return json.loads(out)


def small_store():
    path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "kv"
    store("format", path, "--capacity", "3MiB", "--segment", "128KiB", "--block-bytes", BLOCK)
    return path


@suite.test
def inspect_and_verify_work_while_a_replay_writes():
    """A small store whose segments are used again and again."""
    path = small_store()
    busy = Busy(path)
    unsealed = 0
    for _ in range(30):
        busy.work(200)
        done = command.run("store", "verify", path, "--json")
        tap.equal((done.returncode, done.stderr, json.loads(done.stdout)["damage"]), (0, "", []))
        report = tells("inspect", path)
        unsealed += report["recovery"]["unsealed_segments"]
        tap.equal(report["in_use_by"], {"pid": busy.process.pid, "name": "kvstrata"})
        store("list", path)
    who = rf"process {busy.process.pid} \(kvstrata\)"
    assert re.search(f"^in use by {who}: ", store("inspect", path), re.MULTILINE)
    assert re.search(f"^in use by {who}: ", store("verify", path), re.MULTILINE)
    sentence = f'store.path: ".*": is open in {who}; one file serves one store at a time'
    refuses(1, sentence, "rm", path, "--all")
    refuses(1, sentence, "format", path, "--capacity", "3MiB")
    refuses(1, sentence, "format", path, "--capacity", "3MiB", "--force")
    tap.equal(busy.end()["wrong_bytes"], 0)
    assert unsealed > 0
    report = tells("inspect", path)
    tap.equal((report["in_use_by"], report["recovery"]["unsealed_segments"]), (None, 0))
    tap.equal(tells("verify", path)["damage_count"], 0)


def crashed():
    """The path of a store whose process was killed, and a segment that it had begun to fill."""
    while True:
        path = small_store()
        busy = Busy(path)
        busy.work(2000)
        while tells("inspect", path)["objects"] < 20:
            os.sched_yield()
        busy.process.kill()
        busy.process.wait()
        busy.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            busy.pipe.close()
        begun = [segment["segment"] for segment in tells("inspect", path)["segments"]
                 if segment["state"] != "sealed" and segment["objects"]]
        if begun:
            return path, begun[0]


@suite.test
def a_crash_leaves_torn_records_at_most_and_no_damage():
    path, begun = crashed()
    report = tells("verify", path)
    tap.equal((report["damage_count"], report["in_use"]), (0, False))
    assert report["recovery"]["unsealed_segments"] > 0, report
    tap.contains(store("verify", path), "as after a crash")
    tap.contains(store("inspect", path), "segments without a summary: read whole, as after a crash\n")
    file = strata_file.StrataFile(path)
    file.flip(file.segment_offset(begun) + 4 * 4096)
    again = tells("verify", path)
    tap.equal((again["damage_count"], again["objects"], again["recovery"]["torn_records"]),
              (0, report["objects"] - 1, report["recovery"]["torn_records"] + 1))
    store("rm", path, "--namespace", NOBODY)
    tap.equal(tells("verify", path)["recovery"], dict.fromkeys(report["recovery"], 0))


# Remove


@suite.test
def rm_removes_keys():
    path = filled()
    keys = keys_of(path)
    missing = keys[0][:-4] + "beef"
    tap.equal(store("rm", path, "--key", f"{keys[3]},{keys[5].upper()},{missing}"),
              "objects removed: 2; not there: 1\n")
    tap.equal(keys_of(path), [key for key in keys if key not in (keys[3], keys[5])])
    tap.equal(tells("rm", path, "--key", missing), {"removed": 0, "missing": 1})
    tap.equal(tells("rm", path, "--key", ",".join(keys)), {"removed": len(keys) - 2, "missing": 2})
    tap.equal((keys_of(path), tells("verify", path)["damage_count"]), ([], 0))


@suite.test
def rm_removes_a_namespace_or_all():
    path = filled()
    objects = tells("list", path)
    tap.equal(tells("rm", path, "--namespace", NOBODY), {"removed": 0, "missing": 0})
    tap.equal(store("rm", path, "--namespace", objects[0]["namespace"]), f"objects removed: {len(objects)}\n")
    report = tells("inspect", path)
    tap.equal((report["objects"], report["namespaces"], report["live_bytes"]), (0, [], 0))
    path = filled()
    tap.equal(tells("rm", path, "--all")["removed"], len(objects))
    tap.equal(tells("rm", path, "--all")["removed"], 0)
    assert fill(path)["store"]["puts_new"] > 0


@suite.test
def rm_refuses_what_it_does_not_understand():
    path = filled()
    before = path.read_bytes()
    for arguments, sentence in [
            ([], "needs one of --namespace HEX, --key KEY, --all: what is to go\\?"),
            (["--all", "--namespace", NOBODY], "needs one of .*"),
            (["--namespace", "xyz"], '--namespace: "xyz" is not a namespace; use 32 hexadecimal digits'),
            (["--key", "xyz"], '--key: "xyz" is not a key; use NAMESPACE:GROUP:OFFSET:HASH, .*'),
            (["--key", keys_of(path)[0] + ","], '--key: "[0-9a-f:]*\\.\\.\\." has an empty item; .*'),
            (["--key", "xyz,"], '--key: "xyz," has an empty item; use commas between items only'),
            (["--key", "0" * 5000], '--key: "0{64}\\.\\.\\." is too long; use at most 127 characters')]:
        refuses(2, sentence, "rm", path, *arguments)
    tap.equal(path.read_bytes() == before, True)


# Devices


@contextlib.contextmanager
def loop_device(name, size):
    path = folder / name
    with open(path, "wb") as file:
        file.truncate(size)
    if not shutil.which("losetup") or os.geteuid() != 0:
        raise tap.Skip("loop devices are root's, who needs losetup")
    done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise tap.Skip("no loop device can be had here")
    device = done.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@suite.test
def a_device_is_formatted_whole_and_what_lay_there_is_no_damage():
    with loop_device("disk", 64 * MIB) as device:
        tap.contains(store("format", device, "--block-bytes", BLOCK),
                     f"{device}: a new, empty strata store of 64 MiB\n")
        assert fill(device, 200, "")["store"]["puts_new"] > 0
        objects = tells("inspect", device)["objects"]
        refuses(1, f'"{device}" holds a strata store of version 2 with {objects} objects; .*',
                "format", device)
        for segment in ("512KiB", "2MiB"):
            store("format", device, "--block-bytes", BLOCK, "--segment", segment, "--force")
            tap.equal(tells("inspect", device)["objects"], 0)
            tap.equal(tells("verify", device)["damage_count"], 0)
            fill(device, 60, "")
            report = tells("verify", device)
            tap.equal((report["damage_count"], report["recovery"]["damaged_structures"]), (0, 0))
        refuses(2, r'store.path: ".*": store.capacity: 1 GiB is more than the device has, 64 MiB',
                "format", device, "--capacity", "1GiB", "--force")


@suite.test
def a_device_in_use_is_refused_and_free_when_its_user_has_ended():
    with loop_device("taken", 64 * MIB) as device:
        store("format", device, "--block-bytes", BLOCK)
        busy = Busy(pathlib.Path(device), pathlib.Path(tempfile.mkdtemp(dir=folder)))
        busy.work(300)
        while not tells("inspect", device)["objects"]:
            os.sched_yield()
        who = rf"process {busy.process.pid} \(kvstrata\)"
        for name, more in (("rm", ["--all"]), ("format", ["--force"])):
            refuses(1, f'store.path: ".*": is open in {who}; one file serves one store at a time',
                    name, device, *more)
        busy.end()
        assert tells("rm", device, "--all")["removed"] > 0
        for _ in range(3):
            fill(device, 20, "")
            store("format", device, "--force")


@suite.test
def a_device_of_somebody_else_is_no_empty_one():
    """btrfs leaves the first 64 KiB free."""
    with loop_device("other", 64 * MIB) as device:
        with open(device, "r+b") as file:
            file.seek(65536)
            file.write(b"_BHRfS_M")
        refuses(1, f'"{device}" holds something that is no strata store; --force overwrites it',
                "format", device)
        done = command.run("replay", "--limit", 5, "--store", f"strata:{device}")
        tap.equal((done.returncode, done.stdout), (1, ""))
        tap.contains(done.stderr, "is no strata file; it is left as it is")
        refuses(1, 'store.path: ".*": is no strata file; it is left as it is', "rm", device, "--all")


@suite.test
def rm_makes_no_store_of_an_empty_device():
    with loop_device("blank", 64 * MIB) as device:
        refuses(1, 'store.path: ".*": is no strata file; it is left as it is', "rm", device, "--all")
        tap.equal(pathlib.Path(device).read_bytes().strip(b"\0"), b"")


with tempfile.TemporaryDirectory(dir="/var/tmp") as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
