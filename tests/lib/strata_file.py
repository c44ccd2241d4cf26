# SPDX-License-Identifier: Apache-2.0
"""A strata file as bytes, read by docs/design/strata-format.md and not by our own code."""

import pathlib
import struct

PAGE = 4096
HEAD, TALLIES = 0, (1, 2)  # pages of a segment
ENTRY = struct.Struct("<16s32sIIIIQQ")  # namespace, hash, group, offset, page, pages, checksum, sequence
FOOT = struct.Struct("<8sIIQQIIQQQ")  # magic, version, segment, store, sequence, count, ...


class Record:
    def __init__(self, file, segment, fields, headers):
        space, digest, group, offset, page, pages = fields[:6]
        self.key = f"{space.hex()}:{group}:{offset}:{digest.hex()}"
        self.bytes = pages * PAGE
        self.segment = segment
        self.offset = file.segment_offset(segment) + page * PAGE
        self.headers = headers  # where the page is that names it


class StrataFile:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        block = self.read(0, PAGE)
        magic, self.version = struct.unpack_from("<8sI", block)
        assert magic == b"kvstrata", magic
        self.segment_bytes, self.segment_count = struct.unpack_from("<QI", block, 40)

    def read(self, offset, count):
        with open(self.path, "rb") as file:
            file.seek(offset)
            return file.read(count)

    def write(self, offset, data):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def flip(self, offset, bits=1):
        self.write(offset, bytes([self.read(offset, 1)[0] ^ bits]))

    def segment_offset(self, segment):
        return 2 * PAGE + segment * self.segment_bytes

    def foot_offset(self, segment):
        return self.segment_offset(segment + 1) - FOOT.size

    def entry_count(self, segment):
        return FOOT.unpack(self.read(self.foot_offset(segment), FOOT.size))[5]

    def summary_offset(self, segment):
        used = self.entry_count(segment) * ENTRY.size + FOOT.size
        return self.segment_offset(segment + 1) - (used + PAGE - 1) // PAGE * PAGE

    def records(self, segment):
        """Of a sealed segment."""
        count = self.entry_count(segment)
        data = self.read(self.summary_offset(segment), count * ENTRY.size)
        found, end, headers = [], 0, 0
        for fields in ENTRY.iter_unpack(data):
            page, pages = fields[4:6]
            if pages and page != end:
                headers = self.segment_offset(segment) + (page - 1) * PAGE
            if pages:
                end = page + pages
                found.append(Record(self, segment, fields, headers))
        return found

    def tally_offset(self, segment, copy):
        return self.segment_offset(segment) + TALLIES[copy] * PAGE
