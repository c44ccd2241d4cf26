# SPDX-License-Identifier: Apache-2.0
"""As much of the SDK as an agent sees, with objects in files and faults on demand.

FAKE_SDK_DIR    the folder that is the cluster
FAKE_SDK_SETUP  what setup() does: a code, "hang", "raise", "exit" or "print"
Names           what follows "!" in one is done to the whole call, see Faults
"""

import ctypes
import errno
import hashlib
import os
import re
import signal
import socket
import struct
import tempfile
import threading

NOT_FOUND, INVALID_PARAMS = -704, -600
URING_SETUP = 425


def hang():
    while True:
        signal.pause()


class Faults:
    """Each gets the addresses and lengths of the call, and may return codes for it."""

    def code(self, value, rows):
        return [int(value)] * max(len(rows), 1)

    def hang(self, value, rows):
        hang()

    def raises(self, value, rows):
        raise RuntimeError(value or "the SDK is unwell\x1b[31m")

    def exit(self, value, rows):
        os._exit(int(value or 0))

    def short(self, value, rows):
        return []

    def odd(self, value, rows):
        return ["what"] * len(rows)

    def garbage(self, value, rows):
        socket.socket(fileno=os.dup(3)).sendall(b"E0000 something was printed\n" * 4)
        hang()

    def stale(self, value, rows):
        """A frame without a flaw, but for an answer to something else."""
        body = struct.pack("<IIq", 0, 1, 4096)
        head = struct.pack("<4sHHQII", b"KVSA", 1, 7, 1, len(body), 0)
        socket.socket(fileno=os.dup(3)).sendall(head + hashlib.sha256(head + body).digest()[:8] + body)
        hang()

    def mute(self, value, rows):
        os.close(3)
        hang()

    def late(self, value, rows):
        """An answer that proves nothing, while a thread goes on writing."""
        self.write_on(rows)
        return [-800] * len(rows)

    def scribble(self, value, rows):
        self.write_on(rows)
        hang()

    def write_on(self, rows):
        def write():
            turn = 0
            while True:
                turn = (turn + 1) % 256
                for pointer, size in rows:
                    ctypes.memset(pointer, turn, size)
                began.set()

        began = threading.Event()
        threading.Thread(target=write, daemon=True).start()
        began.wait()

    def uring(self, value, rows):
        """0 for each row when the kernel refuses a ring, as it must; else what cannot be."""
        libc = ctypes.CDLL(None, use_errno=True)
        ring = libc.syscall(URING_SETUP, 4, ctypes.create_string_buffer(120))
        refused = ring < 0 and ctypes.get_errno() in (errno.ENOSYS, errno.EPERM)
        return [NOT_FOUND if refused else -800] * len(rows)

    def ports(self, value, rows):
        """As uring: for each row, when we are kept off the ports that providers choose."""
        first, last = (int(os.environ.get(f"MC_{end}_PRC_PORT", 0)) for end in ("MIN", "MAX"))
        return [NOT_FOUND if 17000 < first < last < 18000 else -800] * len(rows)


class ReplicateConfig:
    def __init__(self):
        self.replica_num = 1


class MooncakeDistributedStore:
    def __init__(self):
        self.registered = []
        self.folder = os.environ.get("FAKE_SDK_DIR", "")

    # The life of a client

    def setup(self, local_hostname, metadata_server, global_segment_size, local_buffer_size, protocol,
              rdma_devices, master_server_addr, engine=None, tenant_id="default"):
        wanted = os.environ.get("FAKE_SDK_SETUP", "0")
        if wanted == "hang":
            hang()
        if wanted == "raise":
            raise RuntimeError("no cluster today")
        if wanted == "exit":
            os._exit(9)
        if wanted == "print":
            print("here I am", flush=True)
            return 0
        return int(wanted)

    def close(self):
        return 0

    def register_buffer(self, pointer, size):
        if size == 0 or any(pointer < end and start < pointer + size for start, end in self.registered):
            return INVALID_PARAMS
        self.registered.append((pointer, pointer + size))
        return 0

    # Calls

    def path(self, name):
        return os.path.join(self.folder, name.encode().hex())

    @staticmethod
    def fault(names, rows):
        for name in names:
            _, mark, rest = name.partition("!")
            if mark:
                what, _, value = rest.partition("=")
                return getattr(Faults(), what)(value, rows)
        return None

    def is_registered(self, pointer, size):
        return any(start <= pointer and pointer + size <= end for start, end in self.registered)

    def batch_put_from(self, names, pointers, sizes, config):
        rows = list(zip(pointers, sizes))
        codes = self.fault(names, rows)
        return [self.put(name, *row) for name, row in zip(names, rows)] if codes is None else codes

    def put(self, name, pointer, size):
        if not self.is_registered(pointer, size):
            return INVALID_PARAMS
        # Whole at once, as readers see it.
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="~") as file:
            file.write(ctypes.string_at(pointer, size))
            file.flush()
            try:
                os.link(file.name, self.path(name))
            except FileExistsError:
                pass
        return 0

    def batch_get_into(self, names, pointers, sizes):
        rows = list(zip(pointers, sizes))
        codes = self.fault(names, rows)
        return [self.get(name, *row) for name, row in zip(names, rows)] if codes is None else codes

    def get(self, name, pointer, size):
        try:
            with open(self.path(name), "rb") as file:
                payload = file.read()
        except FileNotFoundError:
            return NOT_FOUND
        if len(payload) > size or not self.is_registered(pointer, size):
            return INVALID_PARAMS
        ctypes.memmove(pointer, payload, len(payload))
        return len(payload)

    def is_exist(self, name):
        return int(os.path.exists(self.path(name)))

    def batch_is_exist(self, names):
        codes = self.fault(names, [(0, 0)] * len(names))
        return [self.is_exist(name) for name in names] if codes is None else codes

    def remove(self, name, force=False):
        codes = self.fault([name], [(0, 0)])
        if codes is not None:
            return codes[0]
        try:
            os.unlink(self.path(name))
        except FileNotFoundError:
            return NOT_FOUND
        return 0

    def remove_by_regex(self, pattern, force=False):
        names = [bytes.fromhex(name).decode() for name in os.listdir(self.folder) if name[0] != "~"]
        return sum(self.remove(name) == 0 for name in names if re.match(pattern, name))
