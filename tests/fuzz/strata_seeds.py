#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the corpora of strata_fuzz.c and strata_format_fuzz.c: strata_seeds.py

They are patches on the file of strata_image.c.  After a change of the format its offsets change here, and
this writes the corpora anew; what a fuzzer found is kept beside them, in files named found_*.bin.
"""

import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
LAST = 2**64 - 1
WRITE, FILL, COPY, CUT, BAD, NO_WRITES = range(6)

# Settings, checksums to make right, and files: as in strata_fuzz.c and strata_image.h.
PUT_SYNC, S3FIFO, FEW_OBJECTS, LARGE_BLOCKS, NO_PUTS, LOCKS, EARLY_END, PURGE = (1 << bit for bit in range(8))
SUPERBLOCKS, HEADS, TALLIES, HEADERS, SUMMARIES, PAYLOADS = (1 << bit for bit in range(6))
LIVED, FULL, FRESH = range(3)

SEGMENT_PAGES = 12
SEGMENTS = range(5)
HEADERS_PAGE, PAYLOAD_PAGE, SUMMARY = 3, 4, SEGMENT_PAGES - 1
FOOT = 4096 - 64

# Offsets in a superblock, and in what lies in segments.
VERSION, PAGE_BYTES, CAPACITY, SEGMENT_BYTES, SEGMENT_COUNT, DAY, EPOCH, UPDATE, PUT_BYTES = (
    8, 12, 32, 40, 48, 52, 56, 64, 72)
HEAD_SEQUENCE, TALLY_UPDATE, TALLY_DEAD = 24, 32, 56
HEADER_PAGE, HEADER_COUNT, HEADER_ENTRY, HEADER_ENTRIES, ENTRY_ORDINAL = 32, 36, 88, 40, 80
ENTRY, ENTRY_PAGE, ENTRY_PAGES, ENTRY_SEQUENCE, FOOT_COUNT = 80, 56, 60, 72, FOOT + 32


def u32(number):
    return struct.pack("<I", number & 0xFFFFFFFF)


def u64(number):
    return struct.pack("<Q", number & LAST)


def patch(page, offset, data=b"", how=WRITE, count=None):
    return bytes([page, offset & 255, offset >> 8 | how << 4, len(data) if count is None else count]) + data


def at(segment, page=0):
    return 2 + SEGMENT_PAGES * segment + page


def both(offset, data):
    return patch(0, offset, data) + patch(1, offset, data)


def geometry(capacity, segment_bytes):
    count = (capacity - 8192) // segment_bytes
    return both(CAPACITY, u64(capacity) + u64(segment_bytes) + u32(count))


def entry(segment, number, field, data):
    return patch(at(segment, SUMMARY), ENTRY * number + field, data)


def all_entries(field, data):
    return b"".join(entry(segment, number, field, data) for segment in SEGMENTS for number in range(3))


def named(number, field, data, page=HEADERS_PAGE):
    """In the headers of the segment that a crash left."""
    return patch(at(2, page), HEADER_ENTRIES + HEADER_ENTRY * number + field, data)


def each(make, numbers):
    return b"".join(make(number) for number in numbers)


# name: settings, checksums, file, patches
FILES = {
    "whole": (PURGE, 0, LIVED, b""),
    "full_locked": (LOCKS | S3FIFO, 0, FULL, b""),
    "fresh": (PUT_SYNC, 0, FRESH, b""),
    # A catalog of five objects: at open the dead took their places from the living, all of them.
    "few_objects": (FEW_OBJECTS | LARGE_BLOCKS, 0, LIVED, b""),
    "few_objects_full": (FEW_OBJECTS, 0, FULL, b""),
    # 715 million segments were 5.7 GB of tables and as many reads behind the end of the file.
    "geometry_huge": (0, SUPERBLOCKS, LIVED, geometry(2**44, 24576)),
    # A buffer for the largest record of a segment was 1 TiB.
    "segments_huge": (0, SUPERBLOCKS, LIVED, geometry(2**44, 2**40)),
    "segments_huge_four": (0, SUPERBLOCKS, LIVED, geometry(2**42 + 8192, 2**40)),
    "geometry_small": (0, SUPERBLOCKS, LIVED, geometry(8192 + 4 * 24576, 24576)),
    "geometry_odd": (0, SUPERBLOCKS, LIVED, geometry(8192 + 4 * 24577, 24577)),
    "geometry_count": (0, SUPERBLOCKS, LIVED, both(SEGMENT_COUNT, u32(4))),
    "geometry_wraps": (0, SUPERBLOCKS, LIVED, both(CAPACITY, u64(LAST) + u64(2**63) + u32(1))),
    "geometry_no_segment": (0, SUPERBLOCKS, LIVED, both(SEGMENT_BYTES, u64(0))),
    "longer_than_it_says": (0, SUPERBLOCKS, FULL, geometry(8192 + 4 * 49152, 49152)),
    "version": (0, SUPERBLOCKS, LIVED, both(VERSION, u32(3))),
    "page_bytes": (0, SUPERBLOCKS, LIVED, both(PAGE_BYTES, u32(512))),
    "superblock_one": (0, 0, LIVED, patch(1, 0, how=FILL, count=64)),
    "superblock_none": (0, 0, LIVED, patch(1, 0, how=FILL, count=64) + patch(0, 0, how=FILL, count=8)),
    "superblocks_differ": (0, SUPERBLOCKS, LIVED, patch(0, UPDATE, u64(99)) + patch(
        0, CAPACITY, u64(8192 + 4 * 49152) + u64(49152) + u32(4))),
    # Opened once, it counted beyond what the next open believes.
    "epoch_last": (0, SUPERBLOCKS, LIVED, both(EPOCH, u64(2**24 - 1))),
    "epoch_last_but_one": (0, SUPERBLOCKS, LIVED, both(EPOCH, u64(2**24 - 2))),
    "epoch_beyond": (0, SUPERBLOCKS, LIVED, both(EPOCH, u64(2**24))),
    "update_last": (NO_PUTS, SUPERBLOCKS, LIVED, patch(1, UPDATE, u64(LAST))),
    "counters_last": (NO_PUTS, SUPERBLOCKS, LIVED, both(PUT_BYTES, u64(LAST) * 3) + both(DAY, u32(LAST))),
    "head_sequence_last": (0, HEADS, LIVED, patch(at(2), HEAD_SEQUENCE, u64(LAST))),
    "head_sequence_same": (0, HEADS, FULL, each(lambda s: patch(at(s), HEAD_SEQUENCE, u64(3 << 40)), (1, 2))),
    "head_elsewhere": (0, HEADS, LIVED, patch(at(3), 0, how=COPY, count=at(0))),
    "record_sequence_last": (0, HEADERS, LIVED, named(0, ENTRY_SEQUENCE, u64(LAST))),
    "entry_sequence_last": (0, SUMMARIES, LIVED, entry(0, 0, ENTRY_SEQUENCE, u64(LAST))),
    "entries_same_sequence": (0, SUMMARIES, FULL, all_entries(ENTRY_SEQUENCE, u64(3 << 40))),
    "entries_same_key": (0, SUMMARIES | PAYLOADS, FULL, each(lambda s: each(
        lambda number: patch(at(s, SUMMARY), ENTRY * number, how=FILL, count=56), range(3)), SEGMENTS)),
    # More counted in a segment than it has pages.
    "entries_overlap": (0, SUMMARIES | PAYLOADS, FULL, all_entries(ENTRY_PAGE, u32(4) + u32(7))),
    "entries_overlap_summary": (0, SUMMARIES | PAYLOADS, FULL, each(
        lambda s: entry(s, 2, ENTRY_PAGE, u32(9) + u32(3)), SEGMENTS)),
    "entries_backwards": (0, SUMMARIES | PAYLOADS, FULL, entry(0, 0, ENTRY_PAGE, u32(9) + u32(1)) + entry(
        0, 2, ENTRY_PAGE, u32(4) + u32(1))),
    "entries_no_pages": (0, SUMMARIES, FULL, all_entries(ENTRY_PAGES, u32(0))),
    "entry_before_records": (0, SUMMARIES | PAYLOADS, LIVED, entry(0, 0, ENTRY_PAGE, u32(0) + u32(1))),
    "entry_wraps": (0, SUMMARIES, LIVED, entry(0, 0, ENTRY_PAGE, u32(LAST) + u32(2))),
    "entry_beyond": (0, SUMMARIES, LIVED, entry(0, 0, ENTRY_PAGE, u32(11) + u32(1))),
    "count_none": (0, SUMMARIES, LIVED, patch(at(0, SUMMARY), FOOT_COUNT, u32(0))),
    "count_more": (0, SUMMARIES, LIVED, patch(at(0, SUMMARY), FOOT_COUNT, u32(4))),
    "count_two_pages": (0, SUMMARIES, LIVED, patch(at(0, SUMMARY), FOOT_COUNT, u32(51))),
    "count_last": (0, SUMMARIES, LIVED, patch(at(0, SUMMARY), FOOT_COUNT, u32(LAST))),
    "summary_elsewhere": (0, SUMMARIES, LIVED, patch(at(4, SUMMARY), 0, how=COPY, count=at(0, SUMMARY))),
    # The next update was 0, and what was removed came back.
    "tally_last": (NO_PUTS, TALLIES, LIVED, patch(at(0, 2), TALLY_UPDATE, u64(LAST))),
    "tally_all_dead": (0, TALLIES, LIVED, patch(at(0, 2), TALLY_UPDATE, u64(9)) + patch(
        at(0, 2), TALLY_DEAD, b"\xff" * 8)),
    # A copy in the wrong place is written over by the one that follows it.
    "tally_misplaced": (NO_PUTS, TALLIES, LIVED, patch(at(0, 1), TALLY_UPDATE, u64(LAST))),
    "tallies_same": (0, TALLIES, LIVED, patch(at(0, 1), TALLY_UPDATE, u64(2))),
    "tally_elsewhere": (0, TALLIES, FULL, each(
        lambda s: patch(at(s, 1), 0, how=COPY, count=at(0, 1)), range(1, 5))),
    "header_no_pages": (0, HEADERS, LIVED, named(0, ENTRY_PAGES, u32(0))),
    "header_none": (0, HEADERS, LIVED, patch(at(2, HEADERS_PAGE), HEADER_COUNT, u32(0))),
    "header_count_beyond": (0, HEADERS, LIVED, patch(at(2, HEADERS_PAGE), HEADER_COUNT, u32(46))),
    "header_wraps": (0, HEADERS, LIVED, named(0, ENTRY_PAGE, u32(LAST) + u32(2))),
    "header_before_itself": (0, HEADERS | PAYLOADS, LIVED, named(0, ENTRY_PAGE, u32(3) + u32(1))),
    "header_long": (0, HEADERS | PAYLOADS, LIVED, named(2, ENTRY_PAGE, u32(4) + u32(5))),
    # Each claims all that comes behind it, and each was read for that.
    "headers_all_long": (0, HEADERS | PAYLOADS, LIVED, each(
        lambda i: patch(at(2, 3 + i), 0, how=COPY, count=at(2, HEADERS_PAGE)) + patch(
            at(2, 3 + i), HEADER_PAGE, u32(3 + i)) + named(
            0, ENTRY_PAGE, u32(4 + i) + u32(7 - i), 3 + i), range(1, 7))),
    "header_ordinal_same": (0, HEADERS, LIVED, named(2, ENTRY_ORDINAL, u32(0))),
    "header_ordinal_last": (0, HEADERS, LIVED, named(2, ENTRY_ORDINAL, u32(6))),
    "header_ordinal_beyond": (0, HEADERS, LIVED, named(2, ENTRY_ORDINAL, u32(7))),
    "header_at_the_end": (0, HEADERS | PAYLOADS, LIVED, patch(
        at(2, SUMMARY), 0, how=COPY, count=at(2, HEADERS_PAGE)) + patch(
            at(2, SUMMARY), HEADER_PAGE, u32(11))),
    "header_in_payload": (0, HEADERS | PAYLOADS, LIVED, patch(
        at(2, PAYLOAD_PAGE), 0, how=COPY, count=at(2, HEADERS_PAGE)) + patch(
        at(2, PAYLOAD_PAGE), HEADER_PAGE, u32(4))),
    "header_wrong": (0, 0, FULL, patch(at(0, HEADERS_PAGE), 20, b"x")),
    "unsealed": (0, 0, FULL, each(lambda s: patch(at(s, SUMMARY), FOOT, how=FILL, count=8), SEGMENTS)),
    "unsealed_few": (FEW_OBJECTS, 0, FULL, each(
        lambda s: patch(at(s, SUMMARY), FOOT, how=FILL, count=8), SEGMENTS)),
    "payload_wrong": (0, 0, FULL, each(lambda s: patch(at(s, PAYLOAD_PAGE), 100, b"x"), SEGMENTS)),
    "payload_all_wrong": (LOCKS, 0, FULL, each(
        lambda s: each(lambda page: patch(at(s, page), 100, b"x"), range(4, 9)), SEGMENTS)),
    "cut_in_record": (0, 0, FULL, patch(at(2, PAYLOAD_PAGE), 100, how=CUT)),
    "cut_in_superblock": (0, 0, FULL, patch(1, 100, how=CUT)),
    "cut_after_head": (0, 0, LIVED, patch(at(0, 1), 0, how=CUT)),
    "cut_all": (0, 0, LIVED, patch(0, 0, how=CUT)),
    "bad_superblock": (0, 0, LIVED, patch(0, 0, how=BAD)),
    "bad_head": (0, 0, LIVED, patch(at(0), 0, how=BAD) + patch(at(1, 1), 0, how=BAD)),
    "bad_summary": (0, 0, FULL, patch(at(0, SUMMARY), 0, how=BAD) + patch(at(1, PAYLOAD_PAGE), 0, how=BAD)),
    "bad_payloads": (LOCKS, 0, FULL, each(
        lambda s: each(lambda page: patch(at(s, page), 0, how=BAD), (4, 5, 7)), SEGMENTS)),
    "writes_fail_at_once": (PUT_SYNC, 0, LIVED, patch(0, 0, how=NO_WRITES, count=0)),
    "writes_fail_early": (PUT_SYNC, 0, LIVED, patch(0, 0, how=NO_WRITES, count=2)),
    "writes_fail_late": (PUT_SYNC, 0, FULL, patch(0, 0, how=NO_WRITES, count=11)),
    "disk_full_at_once": (0, 0, LIVED, patch(0, 1, how=NO_WRITES, count=1)),
    "disk_full_early": (LOCKS, 0, FULL, patch(0, 1, how=NO_WRITES, count=3)),
    "disk_full_late": (LOCKS, 0, FULL, patch(0, 1, how=NO_WRITES, count=20)),
}

# name: page, checksums, patches
PAGES = {
    "superblock": (0, 0, b""),
    "superblock_geometry": (0, SUPERBLOCKS, geometry(2**44, 24576)),
    "head": (at(0), HEADS, patch(at(0), HEAD_SEQUENCE, u64(LAST))),
    "tally": (at(0, 1), TALLIES, patch(at(0, 1), TALLY_UPDATE, u64(LAST))),
    "header": (at(2, HEADERS_PAGE), HEADERS, named(0, ENTRY_PAGES, u32(LAST))),
    "header_count": (at(2, HEADERS_PAGE), HEADERS, patch(at(2, HEADERS_PAGE), HEADER_COUNT, u32(46))),
    "header_whole": (at(2, HEADERS_PAGE), 0, b""),
    "summary": (at(0, SUMMARY), SUMMARIES, patch(at(0, SUMMARY), FOOT_COUNT, u32(LAST))),
    "summary_entries": (at(0, SUMMARY), SUMMARIES, entry(0, 1, ENTRY_PAGE, u32(4) + u32(LAST))),
    "summary_whole": (at(0, SUMMARY), 0, b""),
}


def write(folder, inputs):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    for old in (CORPUS / folder).iterdir():
        if not old.name.startswith("found_"):
            old.unlink()
    for name, (*head, patches) in inputs.items():
        (CORPUS / folder / f"{name}.bin").write_bytes(bytes(head) + patches)


if __name__ == "__main__":
    write("strata", FILES)
    write("strata_format", PAGES)
