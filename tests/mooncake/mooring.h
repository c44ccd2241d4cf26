/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mooncake store at a cluster, with registered memory of its own: batches in one line, and what lies
 * around each span watched.
 *
 * Keys are named_block.h's, bytes follow from a key's number, whatever their count.  Between calls all
 * memory holds one pattern, so that a byte that comes late shows.
 */
#ifndef MOONCAKE_MOORING_H
#define MOONCAKE_MOORING_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster.h"
#include "named_block.h"
#include "store/store.h"

#define MOORING_ROWS 1024u
#define MOORING_ROOM 128u /* behind each payload: a seal's */
#define MOORING_SPEC_MAX 2048

struct mooring {
	struct kvs_store *store;
	int               fd;
	struct kvs_span   slice; /* all of it */
	uint32_t          bytes; /* of each payload */
	uint32_t          count; /* of a batch */
	bool              retired; /* what the last get or put said */
	struct kvs_key    keys[MOORING_ROWS];
	struct kvs_span   spans[MOORING_ROWS];
	enum kvs_result   results[MOORING_ROWS];
};

/*
 * Of this cluster, with options "timeout=2s&lanes=1", or NULL: of way agent, or of way library where the
 * environment has KVSTRATA_MOONCAKE_WAY=library.
 */
void mooring_spec(const struct cluster *cluster, const char *options, char ret_spec[MOORING_SPEC_MAX]);

bool mooring_is_library(void);

/* Memory alone, for who opens a store of it by himself. */
void mooring_open_memory(struct mooring *mooring, uint64_t memory_bytes);
void mooring_close_memory(struct mooring *mooring);
struct kvs_memory mooring_memory(const struct mooring *mooring);

void mooring_open_spec(struct mooring *mooring, const char *spec, uint32_t block_bytes,
		       uint64_t memory_bytes);
void mooring_open(struct mooring *mooring, const struct cluster *cluster, const char *options,
		  uint32_t block_bytes, uint64_t memory_bytes);
/* Nothing came late. */
void mooring_close(struct mooring *mooring);

/* Count payloads of `bytes` each, of keys from `first`, side by side in memory. */
void mooring_batch(struct mooring *mooring, uint32_t first, uint32_t count, uint32_t bytes);

/* The return code; a put's payload is checked to be untouched, and all that is no room. */
int mooring_put(struct mooring *mooring);
int mooring_get(struct mooring *mooring);
int mooring_exists(struct mooring *mooring);

/* All results of the last call are this one. */
void mooring_expect(const struct mooring *mooring, enum kvs_result result);
uint32_t mooring_count(const struct mooring *mooring, enum kvs_result result);
/* Of each row that is DONE the payload is its key's, until the next call; of others no matter. */
void mooring_expect_payloads(const struct mooring *mooring);

/* Put and get, all of it; then the memory is at rest. */
void mooring_round_trip(struct mooring *mooring, uint32_t first, uint32_t count, uint32_t bytes);
/* Puts of one row, until the first that is not refused as a failed one would be. */
void mooring_await_well(struct mooring *mooring, uint32_t first);

/* Memory holds one pattern; whether it still does. */
void mooring_rest(struct mooring *mooring);
void mooring_expect_rest(const struct mooring *mooring);

/* Bytes by number, for a span of any length. */
void paint(void *bytes, uint32_t number, uint32_t count);
bool is_painted(const void *bytes, uint32_t number, uint32_t count);

/* Processes that this one started to run agents; returns how many. */
uint32_t agents_find(pid_t parent, pid_t *ret_pids, uint32_t pid_max);

#endif
