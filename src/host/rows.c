/* SPDX-License-Identifier: Apache-2.0 */
#include "host/rows.h"

#include "base/err.h"
#include "key/key.h"

struct load {
	uint64_t hashes[ROWS_MAX];
	uint16_t rows[ROWS_MAX];
	uint16_t ends[HOST_SHARDS_MAX];
	uint8_t  shards[ROWS_MAX];
};

static_assert(VISIT_ROW_NOTICES * ROWS_MAX + VISIT_ASIDE_MAX <= NOTICES_MAX,
	      "a visit's notices fit");
static_assert(HOST_SHARDS_MAX <= UINT8_MAX + 1 && ROWS_MAX <= UINT16_MAX, "numbers fit");

void rows_sort(const uint8_t *shards, uint32_t count, uint32_t shard_count, uint16_t *ret_rows,
	       uint16_t *ret_ends)
{
	uint32_t i, s, sum = 0;

	for (s = 0; s < shard_count; s++)
		ret_ends[s] = 0;
	for (i = 0; i < count; i++)
		ret_ends[shards[i]]++;
	for (s = 0; s < shard_count; s++) {
		const uint16_t own = ret_ends[s];

		ret_ends[s] = (uint16_t)sum;
		sum += own;
	}
	for (i = 0; i < count; i++)
		ret_rows[ret_ends[shards[i]]++] = (uint16_t)i;
}

/* The buckets are on their way while the rest is hashed. */
static void load_rows(struct load *load, const struct host *host, const struct kvs_key *keys,
		      uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		load->hashes[i] = key_hash(&keys[i]);
		load->shards[i] = (uint8_t)shard_of(host, load->hashes[i]);
		map_prefetch(&host->shards[load->shards[i]].map, load->hashes[i]);
	}
	rows_sort(load->shards, count, host->shard_count, load->rows, load->ends);
}

static void serve_load(struct host *host, const struct load *load, struct bunch *bunch,
		       uint64_t now_ns, struct notices *notices, rows_serve *serve, void *call)
{
	struct visit visit;
	uint32_t     shard, i, begin = 0;

	for (shard = 0; shard < host->shard_count; begin = load->ends[shard++]) {
		bunch->rows = load->rows + begin;
		bunch->count = load->ends[shard] - begin;
		if (bunch->count == 0)
			continue;
		visit_make_room(host, notices, VISIT_ROW_NOTICES * bunch->count + VISIT_ASIDE_MAX);
		visit_begin(&visit, host, shard, now_ns, notices);
		for (i = 0; i < bunch->count; i++)
			map_prefetch_key(&visit.shard->map, bunch_hash(bunch, i));
		serve(&visit, bunch, call);
		visit_end(&visit);
	}
}

void rows_run_in(struct host *host, const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
		 rows_serve *serve, void *call, struct notices *notices)
{
	struct load  load;
	struct bunch bunch = { .hashes = load.hashes };
	uint32_t     load_count;

	for (; bunch.first < count; bunch.first += load_count) {
		load_count = count - bunch.first < ROWS_MAX ? count - bunch.first : ROWS_MAX;
		bunch.keys = keys + bunch.first;
		load_rows(&load, host, bunch.keys, load_count);
		serve_load(host, &load, &bunch, now_ns, notices, serve, call);
	}
}

void rows_run(struct host *host, const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
	      rows_serve *serve, void *call)
{
	struct notices notices;

	notices_init(&notices);
	rows_run_in(host, keys, count, now_ns, serve, call, &notices);
	notices_tell(&notices, host->listeners, host->listener_count);
}
