#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why `kvstrata replay` hit what it hit: the reasons add up, each request can be asked, knobs are checked."""

import collections
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

SMALL = ["--limit", 120, "--block-bytes", "4KiB", "--device-blocks", 128, "--host-blocks", 96]
HYBRID = ["--groups", "full:share=1/4,window:2048:share=3/4:block=256,state", "--block-bytes", "64KiB",
          "--limit", 60, "--device-blocks", 96, "--host-blocks", 96]

suite = tap.Suite()


def check_reasons(figures):
    tap.equal(sum(figures["misses"].values()), figures["requests"] - figures["full_hits"])
    tap.equal(figures["wrong_bytes"], 0)


# Every request has one reason


@suite.test
def X6_the_reasons_of_all_requests_without_a_full_hit_add_up():
    for store in ("none", "mem:64MiB", "mem:1MiB"):
        figures = replays.report(*SMALL, "--store", store, "--deadline", "none")
        check_reasons(figures)
        if store == "none":
            tap.equal(figures["misses"]["no_store"], figures["requests"] - figures["full_hits"])
        else:
            tap.equal(figures["misses"]["no_store"], 0)
            assert figures["misses"]["never_stored"] > 0, figures["misses"]


@suite.test
def what_a_small_store_evicted_is_told_from_what_it_never_had():
    figures = replays.report(*SMALL, "--store", "mem:1MiB", "--deadline", "none")
    assert figures["misses"]["evicted"] > 0, figures["misses"]
    tap.equal(replays.report(*SMALL, "--store", "mem:64MiB", "--deadline", "none")["misses"]["evicted"], 0)


@suite.test
def X4_a_request_counts_under_the_word_of_its_sentence():
    """Also where its read brought a part: what ended that is the reason."""
    small = ["--limit", 25, "--seed", 1100, "--block-bytes", "4KiB", "--device-blocks", 16,
             "--host-blocks", 3, "--concurrency", 1, "--deadline", "none", "--host-credits", 100,
             "--store", "mem:16MiB"]
    figures = replays.report(*small)
    assert figures["origin"]["store"]["blocks"] > 0, figures["origin"]
    words = collections.Counter()
    for number in range(25):
        sentence = replays.report(*small, "--explain", number)["explained"]["sentence"]
        ended = re.search(r"ended by (\w+):", sentence)
        words["too_long" if "hit none of" in sentence else ended[1] if ended else "full"] += 1
    tap.equal(words.pop("full", 0), figures["full_hits"])
    tap.equal(dict(words), {reason: count for reason, count in figures["misses"].items() if count})


@suite.test
def the_page_shows_the_sum_and_its_parts():
    page = command.succeeds("replay", *SMALL)
    said = re.search(r"^([\d,]+) requests - ([\d,]+) full hits = ([\d,]+) missed, by reason, each once:\n"
                     r"((?: .*\n)+)", page, re.MULTILINE)
    assert said, page
    requests, full, missed = (int(said[number].replace(",", "")) for number in (1, 2, 3))
    parts = [int(count.replace(",", "")) for count in re.findall(r"[a-z_]+ ([\d,]*\d)", said[4])]
    tap.equal((requests - full, sum(parts)), (missed, missed))


@suite.test
def prompts_that_are_too_long_have_their_reason():
    path = folder / "long.jsonl"
    path.write_text(replays.trace_line(0, [1, 2, 3]) + replays.trace_line(0, [1, 2, 3, 4, 5]))
    figures = replays.report("--trace", path, "--device-blocks", 4, "--concurrency", 1, "--explain", 1)
    check_reasons(figures)
    tap.equal(figures["misses"]["too_long"], 1)
    tap.contains(figures["explained"]["sentence"], "hit none of 2,560 tokens, for the Device holds")


# A request that is asked for


def conversation():
    """The second request goes on with what the first left."""
    path = folder / "two.jsonl"
    path.write_text(replays.trace_line(0, [1, 2, 3], 1400) + replays.trace_line(5, [1, 2, 4, 5], 2000))
    return ["--trace", path, "--concurrency", 1, "--store", "none"]


@suite.test
def explain_says_why_a_request_hit_what_it_did():
    tap.equal(replays.report(*conversation())["explained"], None)
    explained = replays.report(*conversation(), "--explain", 1)["explained"]
    tap.equal(explained["request"], 1)
    assert re.match(r"hit 1,024 of 1,999 tokens, ended by no_store: ", explained["sentence"]), explained
    page = command.succeeds("replay", *map(str, conversation()), "--explain", "1")
    tap.contains(page, "\nrequest 1: " + explained["sentence"] + "\n")


@suite.test
def a_request_that_was_not_served_cannot_be_explained():
    done = command.run("replay", *map(str, conversation()), "--explain", "2", "--json")
    tap.equal((done.returncode, done.stderr),
              (command.USAGE, "kvstrata replay: --explain: 2 was not served; requests count from 0, "
                              "and there were 2\n"))
    tap.equal(json.loads(done.stdout)["requests"], 2)


# Without a store, and with a dead one


def integers(figures):
    return {origin: figures["origin"][origin] for origin in ("device", "host")}


@suite.test
def A1_8_a_dead_store_changes_no_hit_of_device_or_host():
    """One request at a time: which of two comes first may depend on when a refusal is heard."""
    arguments = [*SMALL, "--concurrency", 1]
    without = replays.report(*arguments, "--store", "none")
    dead = replays.report(*arguments, "--store", "resp:127.0.0.1:9?connect=lazy")
    tap.equal(integers(dead), integers(without))
    tap.equal(dead["full_hits"], without["full_hits"])
    tap.equal(dead["origin"]["store"], {"blocks": 0, "tokens": 0})
    assert dead["fallbacks"]["cooldown"] + dead["fallbacks"]["backend"] > 0, dead["fallbacks"]
    check_reasons(dead)


# Groups


@suite.test
def X8_groups_of_all_kinds_are_restored_from_the_store_and_right():
    path = folder / "hybrid"
    arguments = [*HYBRID, "--deadline", "none", "--store", f"strata:{path}?capacity=256MiB"]
    replays.report(*arguments)
    figures = replays.report(*arguments)
    check_reasons(figures)
    assert figures["checkpoints_checked"] > 0, figures
    assert figures["origin"]["store"]["tokens"] > 0, figures["origin"]
    tap.equal(figures["store"]["corrupt"], 0)


@suite.test
def chunks_change_nothing_but_how_often_rows_are_looked_at():
    path = folder / "chunks.jsonl"
    path.write_text("".join(replays.trace_line(i, [*range(1, 20 + i), 100 + i]) for i in range(20)))
    whole, chunked = (replays.report("--trace", path, "--concurrency", 1, "--store", "none",
                                     "--chunk-tokens", tokens) for tokens in (65536, 1000))
    tap.equal(integers(chunked), integers(whole))
    tap.equal(whole["rows_checked"], whole["tokens"] + replays.restored_tokens(whole))
    assert chunked["rows_checked"] > whole["rows_checked"], (chunked, whole)
    check_reasons(chunked)


# Knobs


def refuses(pattern, *arguments):
    done = command.run("replay", "--store", f"strata:{folder / 'new'}?capacity=64MiB", *arguments)
    tap.equal((arguments, done.returncode, done.stdout), (arguments, command.USAGE, ""))
    assert re.fullmatch(f"kvstrata replay: {pattern}\n", done.stderr), f"{arguments}: {done.stderr}"
    assert not (folder / "new").exists(), arguments


@suite.test
def knobs_out_of_range_are_refused_with_field_value_and_rule():
    for flag, value, rule in [
            ("op-credits", "0", "is out of range"), ("op-credits", "many", "is not a count"),
            ("host-credits", "0", "is out of range"), ("host-credits", "-1", "is not a count"),
            ("ready-hold", "1 s", "is not a duration"), ("min-extension", "0", "is out of range"),
            ("chunk-tokens", "511", "is out of range"), ("explain", "first", "is not a count")]:
        refuses(f'--{flag}: "{value}" {rule}.*', f"--{flag}={value}")


@suite.test
def marks_and_groups_are_refused_with_their_item():
    for flag, value, sentence in [
            ("watermarks", "jobs=32/48", r'"jobs=32/48": use HIGH/LOW, .*'),
            ("watermarks", "jobs=48", r'"jobs=48": use jobs=48/32, .*'),
            ("watermarks", "load=2/1", r'"load=2/1": use jobs=48/32, .*'),
            ("groups", "full,half", r'"half": a group is full, window:TOKENS or state'),
            ("groups", "window", r'"window": a window is window:TOKENS, .*'),
            ("groups", "full:block=100", r'"full:block=100": block= .* divisor of the 512 tokens .*'),
            ("groups", "full:share=1/3", r'"full:share=1/3": .* no multiple of 4 KiB')]:
        refuses(f"{flag}: {sentence}", f"--{flag}", value)


@suite.test
def a_config_file_has_lists_for_marks_and_groups():
    path = folder / "replay.json"
    path.write_text(json.dumps({"groups": ["full", "window:1024"], "watermarks": ["jobs=8/4", "age=1s/500ms"],
                                "limit": 3, "json": True}))
    tap.equal(json.loads(command.succeeds("replay", "--config", path))["requests"], 3)


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
