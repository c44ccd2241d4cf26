#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole published hour of chat through real strata files: a minute or two and 5 GiB of disk."""

import json
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command  # noqa: E402
import replays  # noqa: E402
import tap  # noqa: E402

MIB = 1 << 20
BLOCK_BYTES = 64 << 10
RECORD_BYTES = BLOCK_BYTES + 4096  # with its header
USED_LEAST = 0.9  # of the capacity: some segments are kept free or half written
HOST_BLOCKS = 2000
INDEX_BYTES_A_BLOCK = 128
# Code and libraries, Device, tables of requests and of storage operations, buffers of the store's lanes.
OTHER_BYTES = 80 * MIB

suite = tap.Suite()


def simulated_ratio(capacity_blocks):
    row, = json.loads(command.succeeds("simulate", "--json", "--trace", str(replays.conversation_trace()),
                                       "--policy", "lru", "--capacity", str(capacity_blocks)))
    return row["hit_blocks"] / row["blocks"]


def check_whole(capacity_bytes):
    if shutil.disk_usage(folder).free < capacity_bytes + 1024 * MIB:
        raise tap.Skip(f"no room for {capacity_bytes // MIB} MiB; TMPDIR may name a larger disk")
    figures = replays.report("--trace", replays.conversation_trace(), "--host-blocks", HOST_BLOCKS,
                             "--store", f"strata:{folder / str(capacity_bytes)}?capacity={capacity_bytes}")
    tap.equal((figures["requests"], figures["blocks"], figures["wrong_bytes"]), (12031, 288500, 0))
    assert figures["rows_checked"] >= replays.restored_tokens(figures), figures
    # A whole segment goes at a time; that the store hits as if blocks went one by one is what counts.
    used_bytes = figures["store"]["used_bytes"]
    assert USED_LEAST * capacity_bytes <= used_bytes <= capacity_bytes, figures["store"]
    store_blocks = used_bytes // RECORD_BYTES

    ratio = replays.restored_blocks(figures) / figures["blocks"]
    # Host keeps what was restored from it, whether or not the store still has that.
    least, most = (simulated_ratio(store_blocks + more) for more in (0, HOST_BLOCKS))
    print(f"# {capacity_bytes // MIB} MiB: block hit ratio {ratio:.4f}, simulated {least:.4f} to {most:.4f}, "
          f"{figures['seconds']:.0f} s, peak {figures['peak_rss_bytes'] / MIB:.0f} MiB")
    assert least - 0.01 <= ratio <= most + 0.01, (least, ratio, most, figures)
    tap.equal(sum(figures["misses"].values()), figures["requests"] - figures["full_hits"])

    limit = HOST_BLOCKS * BLOCK_BYTES + store_blocks * INDEX_BYTES_A_BLOCK + OTHER_BYTES
    assert figures["peak_rss_bytes"] <= limit, (figures["peak_rss_bytes"], limit)


@suite.test
def X8_an_hour_through_640_MiB_hits_as_simulated():
    check_whole(640 * MIB)


@suite.test
def X8_an_hour_through_4_GiB_hits_as_simulated():
    check_whole(4096 * MIB)


@suite.test
def A4_3_600_requests_again_come_from_the_store():
    # One at a time: of several, what one has read may make room for another before it is admitted.
    arguments = ["--trace", replays.conversation_trace(), "--limit", 600, "--host-blocks", HOST_BLOCKS,
                 "--concurrency", 1, "--deadline", "none",
                 "--store", f"strata:{folder / 'twice'}?capacity=8GiB"]
    first, second = replays.report(*arguments), replays.report(*arguments)
    tap.equal(first["drops"], dict.fromkeys(first["drops"], 0))
    tap.equal((second["store"]["puts_new"], second["wrong_bytes"]), (0, 0))
    tap.equal(second["origin"]["recomputed"]["blocks"], second["requests"])
    found = second["store"]["gets"] + second["store"]["puts"] + second["drops"]["gone"]
    assert found >= first["store"]["puts_new"], (first, second)


with tempfile.TemporaryDirectory() as folder_name:
    folder = pathlib.Path(folder_name)
    suite.run()
