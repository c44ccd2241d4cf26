#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kvstrata simulate` on an hour of real traffic, whose hit counts are known.

The trace is no part of the repository: KVSTRATA_TRACE names it, or it lies in ../shared/traces.
"""

import json
import os
import pathlib
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import tap  # noqa: E402

CAPACITIES = [1000, 10000, 30000, 50000, None]
HIT_BLOCKS = {
    "lru": [12831, 60921, 93967, 102290, 105710],
    "fifo": [12509, 52351, 84936, 96228, 105710],
    "lru-leaf": [12847, 61046, 93978, 102290, 105710],
}
LRU_TOKEN_RATIOS = [0.045356, 0.215306, 0.332114, 0.361530, 0.373624]

suite = tap.Suite()


def simulate_trace(*arguments):
    beside = pathlib.Path(os.environ["KVSTRATA_SOURCE"], "../shared/traces/conversation_trace.jsonl")
    trace = pathlib.Path(os.environ.get("KVSTRATA_TRACE") or beside)
    if not trace.exists():
        raise tap.Skip("conversation_trace.jsonl is not here; set KVSTRATA_TRACE to its path")
    capacities = ",".join("unlimited" if blocks is None else str(blocks) for blocks in CAPACITIES)
    return command.succeeds("simulate", "--trace", trace, "--capacity", capacities, *arguments)


@suite.test
def the_conversation_trace_gives_its_known_counts():
    rows = json.loads(simulate_trace("--policy", ",".join(HIT_BLOCKS), "--json"))
    tap.equal([(row["policy"], row["capacity_blocks"], row["hit_blocks"]) for row in rows],
              [(policy, blocks, hits) for policy, column in HIT_BLOCKS.items()
               for blocks, hits in zip(CAPACITIES, column)])
    for row in rows:
        tap.equal((row["requests"], row["blocks"], row["tokens"]), (12031, 288500, 144793823))
    ratios = [round(row["hit_tokens"] / row["tokens"], 6) for row in rows if row["policy"] == "lru"]
    tap.equal(ratios, LRU_TOKEN_RATIOS)
    print(f"# lru: {sum(row['seconds'] for row in rows if row['policy'] == 'lru'):.3f} s for all capacities")


@suite.test
def what_a_policy_hits_depends_on_no_other():
    alone = json.loads(simulate_trace("--policy", "s3fifo", "--json"))
    beside = json.loads(simulate_trace("--policy", "host-order,s3fifo", "--json"))[len(alone):]
    for row in alone + beside:
        del row["seconds"]
    tap.equal(alone, beside)


@suite.test
def the_same_seed_gives_the_same_counts():
    first, again, other = (command.succeeds("simulate", "--requests", 500, "--seed", seed, "--json")
                           for seed in (7, 7, 8))
    hits = [[row["hit_blocks"] for row in json.loads(text)] for text in (first, again, other)]
    tap.equal(hits[0], hits[1])
    assert hits[0] != hits[2], hits


@suite.test
def the_picture_is_xml():
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder, "curves.svg")
        command.succeeds("simulate", "--requests", 500, "--plot", picture)
        root = ElementTree.parse(picture).getroot()
    tap.equal(root.tag, "{http://www.w3.org/2000/svg}svg")
    names = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for policy in ("lru", "fifo", "lru-leaf", "s3fifo"):
        tap.contains(names, policy)


suite.run()
