#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published hour of chat: simulate's exact hits, and a replay of its beginning.

The whole hour through a strata file is tests/trace, which takes a minute.
"""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

CAPACITIES = [1000, 10000, 30000, 50000, None]
HIT_BLOCKS = {"lru": [12831, 60921, 93967, 102290, 105710],
              "fifo": [12509, 52351, 84936, 96228, 105710],
              "lru-leaf": [12847, 61046, 93978, 102290, 105710]}
LRU_TOKEN_RATIOS = [0.045356, 0.215306, 0.332114, 0.361530, 0.373624]
TOTALS = {"requests": 12031, "blocks": 288500, "tokens": 144793823}

suite = tap.Suite()


@suite.test
def X8_simulate_counts_exactly_the_published_hits():
    found = json.loads(command.succeeds(
        "simulate", "--json", "--trace", str(replays.conversation_trace()), "--policy", ",".join(HIT_BLOCKS),
        "--capacity", ",".join(str(capacity or "unlimited") for capacity in CAPACITIES)))
    for key, total in TOTALS.items():
        tap.equal({row[key] for row in found}, {total})
    for policy, expected in HIT_BLOCKS.items():
        row_of = {row["capacity_blocks"]: row for row in found if row["policy"] == policy}
        tap.equal((policy, [row_of[capacity]["hit_blocks"] for capacity in CAPACITIES]), (policy, expected))
    ratios = [row["hit_tokens"] / row["tokens"] for row in found if row["policy"] == "lru"]
    tap.equal([round(ratio, 6) for ratio in ratios], LRU_TOKEN_RATIOS)


@suite.test
def X6_the_beginning_replays_without_a_wrong_byte():
    arguments = ["--trace", replays.conversation_trace(), "--limit", 60, "--deadline", "none",
                 "--host-blocks", 1400, "--store", f"strata:{folder / 'begin'}?capacity=1GiB"]
    first, second = replays.report(*arguments), replays.report(*arguments)
    for figures in (first, second):
        tap.equal((figures["requests"], figures["wrong_bytes"]), (60, 0))
        assert figures["rows_checked"] >= replays.restored_tokens(figures), figures
    # No read lacks credits with so many Host blocks, so only each prompt's last page is computed again.
    tap.equal((second["store"]["puts_new"], second["origin"]["recomputed"]["blocks"]), (0, 60))


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
