# SPDX-License-Identifier: Apache-2.0
"""Runs of `kvstrata replay`, and traces for them."""

import json
import os
import pathlib

import command
import tap

PAGE_TOKENS = 512
ORIGINS = ["device", "host", "store", "recomputed"]


def report(*arguments):
    """The JSON report of a replay that ends well."""
    return json.loads(command.succeeds("replay", "--json", *map(str, arguments)))


def restored_blocks(figures):
    return sum(figures["origin"][origin]["blocks"] for origin in ORIGINS[:-1])


def restored_tokens(figures):
    return sum(figures["origin"][origin]["tokens"] for origin in ORIGINS[:-1])


def trace_line(timestamp, ids, tokens=None, **more):
    """A request for full pages unless tokens says otherwise; a trace may hold keys we do not know."""
    return json.dumps({"timestamp": timestamp, "input_length": tokens or PAGE_TOKENS * len(ids),
                       "output_length": 1, "hash_ids": ids, **more}) + "\n"


def find_trace():
    """The published hour of chat, kept out of the repository: KVSTRATA_TRACE, the one beside it, or None."""
    beside = pathlib.Path(__file__).resolve().parents[3] / "shared/traces/conversation_trace.jsonl"
    path = pathlib.Path(os.environ.get("KVSTRATA_TRACE", beside))
    return path if path.is_file() else None


def conversation_trace():
    """The same for a test, which has to skip without it."""
    path = find_trace()
    if not path:
        raise tap.Skip("no conversation trace here; KVSTRATA_TRACE may name it")
    return path
