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


def conversation_trace():
    """The published hour of chat: not in the repository, so a test that needs it may have to skip."""
    beside = pathlib.Path(os.environ["KVSTRATA_SOURCE"]).parent / "shared/traces/conversation_trace.jsonl"
    path = pathlib.Path(os.environ.get("KVSTRATA_TRACE", beside))
    if not path.is_file():
        raise tap.Skip("no conversation trace here; KVSTRATA_TRACE may name it")
    return path
