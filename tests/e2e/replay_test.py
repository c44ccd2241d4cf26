#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata replay`: every byte is right, every block is accounted for, and all reports agree."""

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

# Little Device and Host, so that much must come back from the store; quick under every sanitizer.
SMALL = ["--limit", "120", "--device-blocks", "128", "--host-blocks", "96", "--deadline", "none"]

FIGURES = {"requests", "blocks", "tokens", "origin", "rows_checked", "wrong_bytes", "store", "restore_ms",
           "ttft_model_ms", "fallbacks", "seconds", "seed", "full_hits", "misses", "waited", "waited_in_vain",
           "storage_events", "checkpoints_checked"}
REFUSALS = ["budget", "admission", "full"]
STORE = {"puts", "puts_new", "gets", "put_bytes", "get_bytes", "put_gb_s", "get_gb_s", "written_bytes",
         "moved_objects", *(f"refused_{reason}" for reason in REFUSALS)}

suite = tap.Suite()


def strata(name, more=""):
    return f"strata:{folder / name}?capacity=256MiB{more}"


def check_sums(figures):
    for unit in ("blocks", "tokens"):
        tap.equal(sum(figures["origin"][origin][unit] for origin in replays.ORIGINS), figures[unit])


def check_bytes(figures):
    """Nothing wrong; a restored row was looked at when it came and, as every row, at the request's end."""
    tap.equal(figures["wrong_bytes"], 0)
    tap.equal(figures["rows_checked"], figures["tokens"] + replays.restored_tokens(figures))


def check_restores(spec):
    figures = replays.report(*SMALL, "--store", spec)
    check_sums(figures)
    check_bytes(figures)
    tap.equal(figures["requests"], 120)
    assert figures["origin"]["store"]["blocks"] > 100, figures["origin"]
    assert figures["store"]["gets"] >= figures["origin"]["store"]["blocks"], figures
    assert 0 < figures["store"]["puts_new"] <= figures["store"]["puts"], figures["store"]
    assert 0 < figures["restore_ms"]["p50"] <= figures["restore_ms"]["p99"], figures["restore_ms"]
    times = figures["ttft_model_ms"]
    assert times["with_store"]["mean"] < times["recompute"]["mean"], times


@suite.test
def X8_X6_restores_from_mem_are_right_and_accounted_for():
    check_restores("mem:256MiB")


@suite.test
def X8_X6_restores_from_strata_are_right_and_accounted_for():
    check_restores(strata("restores"))


@suite.test
def X6_without_a_store_the_origins_are_device_host_and_recomputed():
    figures = replays.report(*SMALL, "--store", "none")
    check_sums(figures)
    check_bytes(figures)
    tap.equal(figures["origin"]["store"], {"blocks": 0, "tokens": 0})
    assert figures["origin"]["device"]["blocks"] > 0, figures["origin"]
    tap.equal(set(figures["store"].values()), {0, ""})
    tap.equal(figures["ttft_model_ms"]["with_store"], figures["ttft_model_ms"]["without_store"])


@suite.test
def without_a_trace_or_a_flag_it_runs():
    figures = replays.report()
    tap.equal((figures["requests"], figures["wrong_bytes"]), (3000, 0))


@suite.test
def the_same_seed_gives_the_same_traffic():
    facts = [[replays.report(*SMALL, "--seed", seed)[key] for key in ("seed", "blocks", "tokens")]
             for seed in (7, 7, 8)]
    tap.equal(facts[0], facts[1])
    assert facts[0][1:] != facts[2][1:], facts


def key_paths(value):
    """Names of all keys, at any depth."""
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(key_paths, value.values()))


def check_explained(names):
    text = pathlib.Path(os.environ["KVSTRATA_SOURCE"], "docs/replay.md").read_text(encoding="utf-8")
    missing = [name for name in sorted(names) if f"`{name}`" not in text]
    assert not missing, f"docs/replay.md does not explain {missing}"


@suite.test
def the_json_report_has_the_promised_keys_and_the_docs_explain_each():
    figures = replays.report("--limit", 3)
    assert FIGURES <= set(figures), FIGURES - set(figures)
    assert STORE <= set(figures["store"]), figures["store"]
    tap.equal(list(figures["origin"]), replays.ORIGINS)
    for origin in replays.ORIGINS:
        tap.equal(list(figures["origin"][origin]), ["blocks", "tokens"])
    tap.equal(list(figures["restore_ms"]), ["p50", "p90", "p99"])
    for way in ("with_store", "recompute"):
        tap.equal(list(figures["ttft_model_ms"][way]), ["mean", "p50", "p99"])
    check_explained(key_paths(figures))


@suite.test
def a_config_file_says_the_same_as_flags():
    path = folder / "replay.json"
    path.write_text(json.dumps({"limit": 20, "json": True, "seed": 3, "store": "none"}))
    by_file = json.loads(command.succeeds("replay", "--config", path))
    by_flags = replays.report("--limit", 20, "--seed", 3, "--store", "none")
    tap.equal(by_file["origin"], by_flags["origin"])


@suite.test
def corruption_without_verification_exits_with_1_and_names_the_block():
    done = command.run("replay", "--json", *SMALL, "--store", strata("liar", "&corrupt_every=9&verify=off"))
    tap.equal(done.returncode, 1)
    said = re.fullmatch(r"kvstrata replay: wrong bytes: (\d+); the first in request (\d+), "
                        r"token (\d+) of its prompt, group 0 \"full\"\n", done.stderr)
    assert said, done.stderr
    tap.equal(json.loads(done.stdout)["wrong_bytes"], int(said[1]))
    assert int(said[1]) > 0 and int(said[2]) < 120, done.stderr


@suite.test
def the_same_corruption_verified_is_a_miss():
    figures = replays.report(*SMALL, "--store", strata("honest", "&corrupt_every=9"))
    check_sums(figures)
    check_bytes(figures)
    assert figures["store"]["corrupt"] > 0, figures["store"]
    assert figures["origin"]["store"]["blocks"] > 0, figures["origin"]


def check_second_run(first, second):
    """All but each prompt's last page is restored; each page of the first run was found there again."""
    tap.equal(sum(first["drops"].values()), 0)
    tap.equal(second["store"]["puts_new"], 0)
    tap.equal(second["origin"]["recomputed"]["blocks"], second["requests"])
    store = second["store"]
    found = store["gets"] + store["puts"] + second["drops"]["gone"]
    assert found >= first["store"]["puts_new"] > 0, (first, second)
    check_bytes(second)


@suite.test
def A4_3_a_second_run_takes_from_the_strata_file_what_the_first_computed():
    arguments = ["--limit", 200, "--deadline", "none",
                 "--store", f"strata:{folder / 'twice'}?capacity=8GiB"]
    check_second_run(replays.report(*arguments), replays.report(*arguments))


@suite.test
def a_read_makes_its_room_without_evicting_what_follows_its_gap():
    """A small Host keeps the ends of prompts longer than their beginnings, so reads fill gaps."""
    store = ["--limit", 200, "--deadline", "none", "--concurrency", 1, "--store", strata("gaps")]
    first = replays.report(*store)
    check_second_run(first, replays.report(*store, "--device-blocks", 128, "--host-blocks", 200))


@suite.test
def A1_4_a_store_that_loses_an_op_is_given_up_with_a_report():
    """The one test that has to wait: nothing tells a silent store from a slow one but time."""
    plan = folder / "lost.json"
    plan.write_text(json.dumps({"inner": "mem:64MiB",
                                "faults": [{"kind": "lost", "op": "exists", "after": 20, "count": 1}]}))
    # The worker that waits for the lost op is left to the end of the process on purpose.
    done = command.run("replay", "--json", "--limit", 60, "--host-blocks", 64, "--store", f"fault:{plan}",
                       env=command.leaving_threads())
    figures = json.loads(done.stdout)
    tap.equal((done.returncode, figures["requests"], figures["wrong_bytes"]), (1, 60, 0))
    assert figures["fallbacks"]["deadline"] > 0, figures["fallbacks"]
    assert done.stderr.startswith("kvstrata replay: store: ") and done.stderr.count("\n") == 1, done.stderr


@suite.test
def A3_12_a_deadline_of_nothing_lets_every_read_go():
    figures = replays.report(*SMALL[:-1], "0ms", "--store", "mem:256MiB")
    check_bytes(figures)
    assert figures["fallbacks"]["deadline"] > 0, figures["fallbacks"]
    tap.equal(figures["origin"]["store"]["blocks"], 0)


@suite.test
def A3_12_without_a_deadline_none_passes():
    tap.equal(replays.report(*SMALL, "--store", "mem:256MiB")["fallbacks"]["deadline"], 0)


@suite.test
def a_prompt_longer_than_the_device_is_counted_and_computed():
    path = folder / "long.jsonl"
    path.write_text(replays.trace_line(0, [1, 2, 3]) + replays.trace_line(0, [1, 2, 3, 4, 5]))
    figures = replays.report("--trace", path, "--device-blocks", 4, "--concurrency", 1)
    check_sums(figures)
    tap.equal((figures["requests"], figures["blocks"], figures["fallbacks"]["too_long"]), (2, 8, 1))
    tap.equal(figures["ttft_model_ms"]["recompute"]["mean"], 8 * 512 / 2 / 8000 * 1000)


@suite.test
def a_trace_line_of_known_pages_hits_all_but_the_last():
    path = folder / "known.jsonl"
    path.write_text(replays.trace_line(0, [1, 2, 3]) + replays.trace_line(5, [1, 2, 3, 4], 3 * 512 + 1))
    figures = replays.report("--trace", path, "--concurrency", 1)
    tap.equal((replays.restored_blocks(figures), replays.restored_tokens(figures)), (3, 3 * 512))
    tap.equal(figures["origin"]["recomputed"], {"blocks": 4, "tokens": 3 * 512 + 1})


# The page for people


def check_page(*arguments):
    page = command.succeeds("replay", *arguments)
    lines = page.splitlines()
    assert len(lines) <= 40, page
    assert max(map(len, lines)) <= 100, page
    assert not re.search(r"\b-?(nan|inf)\b", page, re.IGNORECASE), page
    tap.contains(page, "wrong bytes: 0")
    return page


@suite.test
def the_page_is_one_page():
    page = check_page(*SMALL)
    for word in [*replays.ORIGINS, "host to store", "p50", "time to first token", "rows checked"]:
        tap.contains(page, word)
    tap.contains(check_page("--limit", "1"), "1 requests")
    assert "host to store" not in check_page("--limit", "3", "--store", "none")


@suite.test
def an_empty_trace_gives_an_empty_page():
    path = folder / "empty.jsonl"
    path.touch()
    tap.contains(check_page("--trace", path), "0 requests, 0 blocks")
    figures = replays.report("--trace", path)
    tap.equal((figures["requests"], figures["tokens"], figures["rows_checked"]), (0, 0, 0))


# Metrics

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z_]+=\"[^\"]*\"(?:,[a-z_]+=\"[^\"]*\")*\})? (\S+)")


def parse_metrics(text):
    """Samples by name and labels; every family is announced by HELP and TYPE before its samples."""
    samples, announced = {}, set()
    for line in text.splitlines():
        comment = re.fullmatch(r"# (HELP|TYPE) (\S+) \S.*", line)
        if comment:
            announced.add((comment[1], comment[2]))
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        family = re.sub(r"_(sum|count|bucket)$", "", sample[1])
        assert {("HELP", family), ("TYPE", family)} <= announced, line
        name = sample[1] + (sample[2] or "")
        assert name not in samples, line
        samples[name] = float(sample[3])
    return samples


@suite.test
def X6_metrics_are_prometheus_text_and_agree_with_the_json():
    path = folder / "metrics"
    figures = replays.report(*SMALL, "--store", "mem:256MiB", "--metrics", path)
    text = path.read_text()
    assert text.endswith("\n")
    samples = parse_metrics(text)
    check_explained({re.sub(r"(_sum|_count)?(\{.*)?$", "", name) for name in samples})
    store = figures["store"]
    expected = {"kvstrata_requests_total": figures["requests"],
                "kvstrata_put_keys_total": store["puts"], "kvstrata_put_new_keys_total": store["puts_new"],
                "kvstrata_put_bytes_total": store["put_bytes"], "kvstrata_get_keys_total": store["gets"],
                "kvstrata_get_bytes_total": store["get_bytes"],
                "kvstrata_corrupt_keys_total": store["corrupt"],
                "kvstrata_rows_checked_total": figures["rows_checked"],
                "kvstrata_wrong_bytes_total": figures["wrong_bytes"]}
    for origin in replays.ORIGINS:
        name = f'kvstrata_prompt_blocks_total{{origin="{origin}"}}'
        expected[name] = figures["origin"][origin]["blocks"]
    for reason, count in figures["fallbacks"].items():
        expected[f'kvstrata_fallbacks_total{{reason="{reason}"}}'] = count
    for reason, count in figures["misses"].items():
        expected[f'kvstrata_missed_requests_total{{reason="{reason}"}}'] = count
    for event, count in figures["storage_events"].items():
        expected[f'kvstrata_storage_events_total{{event="{event}"}}'] = count
    expected["kvstrata_full_hits_total"] = figures["full_hits"]
    expected["kvstrata_storage_waits_total"] = figures["waited"]
    for reason, count in figures["drops"].items():
        expected[f'kvstrata_dropped_backup_keys_total{{reason="{reason}"}}'] = count
    tap.equal({name: samples.get(name) for name in expected}, expected)
    assert samples["kvstrata_restore_seconds_count"] > 0, samples


# What the store refuses and rewrites


def store_samples(figures):
    store = figures["store"]
    samples = {f'kvstrata_store_refused_puts_total{{reason="{reason}"}}': store[f"refused_{reason}"]
               for reason in REFUSALS}
    return {**samples, "kvstrata_store_moved_objects_total": store["moved_objects"],
            "kvstrata_store_written_bytes_total": store["written_bytes"]}


def report_with_metrics(spec):
    path = folder / "store-metrics"
    figures = replays.report(*SMALL, "--store", spec, "--metrics", path)
    samples = parse_metrics(path.read_text())
    tap.equal({name: count for name, count in samples.items() if "_store_" in name}, store_samples(figures))
    check_bytes(figures)
    return figures


def check_refusals(reason, option):
    """Whatever the store took no block for is counted once, under that reason alone."""
    figures = report_with_metrics(strata(reason, option))
    refused = {reason: figures["store"][f"refused_{reason}"] for reason in REFUSALS}
    tap.equal(refused, {**dict.fromkeys(REFUSALS, 0), reason: figures["drops"]["no_space"]})
    assert refused[reason] > 0, refused
    page = check_page(*SMALL, "--store", strata(f"{reason}-page", option))
    assert re.search(rf"^puts refused, by reason: +{reason} [\d,]+$", page, re.MULTILINE), page


@suite.test
def puts_past_the_write_budget_are_reported():
    check_refusals("budget", "&write_budget=4MiB")


@suite.test
def puts_that_admission_refuses_are_reported():
    check_refusals("admission", "&admit=second")


@suite.test
def what_a_small_store_rewrites_is_reported():
    """A store that cleans writes more than its puts; one with room for all moves and refuses nothing."""
    store = report_with_metrics(f"strata:{folder / 'cleaned'}?capacity=16MiB")["store"]
    assert store["moved_objects"] > 0, store
    assert store["written_bytes"] > store["put_bytes"] + store["moved_objects"] * 64 * 1024, store
    page = check_page(*SMALL, "--store", strata("roomy"))
    assert re.search(r"^  store wrote [\d.]+ MiB in its life; moved 0 objects ", page, re.MULTILINE), page
    tap.contains(page, "puts refused, by reason:     none\n")
    assert "in its life" not in check_page(*SMALL, "--store", "mem:256MiB")


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
