/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch of keys, shard by shard.
 *
 * A batch is cut into loads of at most ROWS_MAX rows, each key is hashed once, and the rows of a
 * shard are served together, in the order of the batch, while its mutex is held once.
 */
#ifndef HOST_ROWS_H
#define HOST_ROWS_H

#include "host/visit.h"

#define ROWS_MAX 512u

/* The rows of one shard, out of one load: `group` is a word of layouts. */
struct bunch {
	const struct kvs_key *keys;   /* of the load */
	const uint64_t       *hashes; /* of the load */
	const uint16_t       *rows;   /* in the load, ascending */
	uint32_t              count;
	uint32_t              first; /* of the load, in the batch */
};

typedef void rows_serve(struct visit *visit, const struct bunch *bunch, void *call);

/* Serve all rows of a batch and tell what there is to tell. */
void rows_run(struct host *host, const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
	      rows_serve *serve, void *call);
/* The same, but the last of it is the caller's to tell. */
void rows_run_in(struct host *host, const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
		 rows_serve *serve, void *call, struct notices *notices);

/* Row i of a bunch: its key, its hash and its place in the batch. */
static inline const struct kvs_key *bunch_key(const struct bunch *bunch, uint32_t i)
{
	return &bunch->keys[bunch->rows[i]];
}

static inline uint64_t bunch_hash(const struct bunch *bunch, uint32_t i)
{
	return bunch->hashes[bunch->rows[i]];
}

static inline uint32_t bunch_row(const struct bunch *bunch, uint32_t i)
{
	return bunch->first + bunch->rows[i];
}

static inline uint32_t shard_of(const struct host *host, uint64_t hash)
{
	/* The map uses the upper half. */
	return (uint32_t)hash & (host->shard_count - 1);
}

/*
 * Order count rows by shard: ret_rows has those of shard 0 first, ret_ends[s] says where those of
 * shard s end.
 */
void rows_sort(const uint8_t *shards, uint32_t count, uint32_t shard_count, uint16_t *ret_rows,
	       uint16_t *ret_ends);

#endif
