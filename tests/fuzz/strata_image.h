/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small strata file in memory, for fuzzers: made whole, patched by an input's bytes, its checksums
 * made right again where the input asks for that, so that what lies behind them is reached as well.
 *
 * Patches    PAGE, OFFSET (two bytes, the upper four bits are what to do), COUNT, and what PATCH_WRITE
 *            writes.
 * Made       from format.h alone, with the same bytes every time: not by the store under test.
 */
#ifndef STRATA_IMAGE_H
#define STRATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strata/format.h"

/* Room for a page of headers and seven records of a page, or three, two of them of two pages. */
#define IMAGE_SEGMENT_PAGES 12u
#define IMAGE_SEGMENTS 5u
#define IMAGE_PAGES (STRATA_SUPERBLOCKS + IMAGE_SEGMENTS * IMAGE_SEGMENT_PAGES)
/* What a patched geometry may use beyond: the disk is full there. */
#define IMAGE_ROOM_PAGES (IMAGE_PAGES + IMAGE_SEGMENT_PAGES)
#define IMAGE_KEYS 20u

enum image_kind {
	IMAGE_LIVED,  /* sealed segments, dead and superseded records, one as a crash leaves it */
	IMAGE_FULL,   /* every segment is sealed: the next put cleans one */
	IMAGE_FRESH,  /* just formatted */
	IMAGE_KINDS
};

enum image_repair {
	REPAIR_SUPERBLOCKS = 1 << 0,
	REPAIR_HEADS = 1 << 1,
	REPAIR_TALLIES = 1 << 2,
	REPAIR_HEADERS = 1 << 3,
	REPAIR_SUMMARIES = 1 << 4,
	REPAIR_PAYLOADS = 1 << 5 /* what headers and summaries say of the payload that is there now */
};

struct image {
	uint8_t *bytes; /* IMAGE_ROOM_PAGES, page-aligned; zero behind size; NULL: none yet */
	uint64_t size;
	uint64_t bad_pages[(IMAGE_ROOM_PAGES + 63) / 64]; /* cannot be read */
	uint32_t writes_left; /* then the device fails */
	bool     full;        /* or is full */
};

/* What was allocated for one image serves the next. */
void image_make(struct image *image, enum image_kind kind);

/* False when the input had none left. */
bool image_patch(struct image *image, const uint8_t **input, size_t *count);

void image_repair(struct image *image, uint32_t repairs);

/*
 * Some structure differs from those of kind and has a right checksum all the same: the input made it
 * up, and may have made up a payload to go with it.
 */
bool image_is_forged(const struct image *image, enum image_kind kind);

/* Every page can be read, and every write succeeds while there is room. */
bool image_is_sound(const struct image *image);

#endif
