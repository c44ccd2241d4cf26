#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What another user of the same cluster does, with the SDK's own client: scribe.py MASTER VERB NAME [BYTES].

put: an object of random bytes; damage: the object again, with its first byte changed; shorten and
lengthen: again, with a byte less or more.
"""

import os
import sys

os.environ.setdefault("GLOG_minloglevel", "2")

from mooncake import store  # noqa: E402

BUFFER_BYTES = 64 << 20

CHANGES = {
    "damage": lambda value: bytes([value[0] ^ 1]) + value[1:],
    "shorten": lambda value: value[:-1],
    "lengthen": lambda value: value + b"\0",
}


def main(master, verb, name, count="0"):
    client = store.MooncakeDistributedStore()
    code = client.setup("127.0.0.1", "P2PHANDSHAKE", 0, BUFFER_BYTES, "tcp", "", master)
    assert code == 0, code
    if verb == "put":
        value = os.urandom(int(count))
    else:
        value = client.get(name)
        assert value, f"{name} is not there"
        client.remove(name, True)
        value = CHANGES[verb](value)
    code = client.put(name, value)
    assert code == 0, code
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
