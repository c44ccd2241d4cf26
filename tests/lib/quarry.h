/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strata file in a folder of the test's own, with segments so small that each test sees them turn.
 *
 * Objects are those of named_block.h; QUARRY_SLOTS of QUARRY_BLOCK bytes that are put one by one
 * fill a segment, and QUARRY_SLOTS_TOGETHER that are put together.  Every call
 * checks what holds for all: the memory has retired, a put leaves its payload alone, and DONE comes with
 * the right bytes.
 */
#ifndef LIB_QUARRY_H
#define LIB_QUARRY_H

#include <kvstrata/store.h>

#include "place.h"
#include "strata/format.h"
#include "strata/strata.h"

#define QUARRY_BLOCK 8192u
#define QUARRY_SLOTS 4u

#define QUARRY_SLOTS_TOGETHER 5u

/* Head and tallies, the records with headers each, a summary. */
#define QUARRY_SEGMENT_PAGES \
	(STRATA_RECORD_PAGE + QUARRY_SLOTS * (QUARRY_BLOCK / STRATA_PAGE + 1) + 1)
#define QUARRY_SEGMENT (QUARRY_SEGMENT_PAGES * STRATA_PAGE)
#define QUARRY_CAPACITY(segments) (STRATA_SUPERBLOCKS * STRATA_PAGE + (segments) * QUARRY_SEGMENT)

struct quarry {
	struct place           place;
	struct strata_settings set;   /* the test may change it between close and open */
	struct kvs_store      *store; /* NULL: closed */
};

/* Not yet open; so many segments, policy lru. */
void quarry_init(struct quarry *quarry, uint32_t segments);
/* Closes the store when it is open, and removes the file. */
void quarry_fini(struct quarry *quarry);

void quarry_open(struct quarry *quarry);
/* 32 MiB instead, with segments of a usual size: nothing has to make room. */
void quarry_open_large(struct quarry *quarry);
void quarry_close(struct quarry *quarry); /* after an audit */
void quarry_reopen(struct quarry *quarry);

/* What an open is answered, which may leave the store open. */
int quarry_try(struct quarry *quarry, struct kvs_error *ret_err);
/* Refused with this code and a sentence that has `part`, and the file is as it was. */
void quarry_expect_refusal(struct quarry *quarry, int code, const char *part);

/* The file as a crash of its process would leave it now, elsewhere, with the same settings; closed. */
void quarry_crash(const struct quarry *quarry, struct quarry *ret_copy);

enum kvs_result quarry_put(struct quarry *quarry, uint32_t number);
enum kvs_result quarry_get(struct quarry *quarry, uint32_t number);
enum kvs_result quarry_exists(struct quarry *quarry, uint32_t number);
enum kvs_result quarry_remove(struct quarry *quarry, uint32_t number);
enum kvs_result quarry_lock(struct quarry *quarry, uint32_t number);
void            quarry_unlock(struct quarry *quarry, uint32_t number);

/* The same for objects of another size, a multiple of a page up to QUARRY_BLOCK. */
enum kvs_result quarry_put_bytes(struct quarry *quarry, uint32_t number, uint32_t bytes);
enum kvs_result quarry_get_bytes(struct quarry *quarry, uint32_t number, uint32_t bytes);

/* from .. to - 1, each of which must be DONE. */
void quarry_put_range(struct quarry *quarry, uint32_t from, uint32_t to);
void quarry_get_range(struct quarry *quarry, uint32_t from, uint32_t to);
/* How many of them are there, without a use. */
uint32_t quarry_count(struct quarry *quarry, uint32_t from, uint32_t to);

struct kvs_store_info quarry_info(struct quarry *quarry);
struct strata_report  quarry_report(struct quarry *quarry);

/* Bytes of the file. */
void quarry_peek(const struct quarry *quarry, uint64_t offset, void *bytes, size_t count);
void quarry_poke(const struct quarry *quarry, uint64_t offset, const void *bytes, size_t count);
void quarry_flip(const struct quarry *quarry, uint64_t offset); /* one bit */
/* Of a segment; of the nth block that was put alone into a new file, and of its headers. */
uint64_t quarry_segment_at(uint32_t segment);
uint64_t quarry_payload_at(uint32_t nth);
uint64_t quarry_header_at(uint32_t nth);

#endif
