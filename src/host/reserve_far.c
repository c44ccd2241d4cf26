/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The long way of rows that found no room in their shard and in the space.  Without a lock a row
 * gets its charge and its place first, at the cost of objects of all shards; then it is staged with
 * them, if it still may be.
 */
#include "base/err.h"
#include "host/reserve.h"
#include "host/victims.h"
#include "key/key.h"

static void count_refusal(struct host *host, uint32_t shard, enum host_counter counter)
{
	os_mutex_lock(&host->shards[shard].mutex);
	host->shards[shard].counters[counter]++;
	os_mutex_unlock(&host->shards[shard].mutex);
}

/* With its place and its charge in hand: is it still wanted? */
static int stage_with(struct visit *visit, struct reserve *call, struct attempt *attempt,
		      uint32_t place)
{
	const uint32_t    first = life_find(visit->shard, attempt->hash, attempt->key);
	struct life_start start;
	int               rc;

	if (!clients_is(&visit->host->clients, call->write.writer.client))
		return KVS_E_CLOSED;
	rc = reserve_may(visit, call, first);
	if (rc != 0)
		return rc;
	start = reserve_start(visit, call);
	if (!reserve_begin(visit, call, attempt, first, &start)) {
		visit_count(visit, HOST_REFUSED_OBJECTS);
		return KVS_E_FULL;
	}
	reserve_end(visit, call, attempt->row, attempt->slot, place);
	return 0;
}

static int stage_placed(struct reserve *call, struct attempt *attempt, uint32_t place,
			struct notices *notices)
{
	struct visit visit;
	int          rc;

	/* It is reserved, and another may go for its record. */
	visit_make_room(call->host, notices, 2);
	visit_begin(&visit, call->host, shard_of(call->host, attempt->hash), call->now_ns, notices);
	call->budget = 1;
	rc = stage_with(&visit, call, attempt, place);
	if (rc != 0) {
		visit_free(&visit, place, attempt->pages);
		reserve_refund(call->host, attempt);
	}
	visit_end(&visit);
	purse_empty(&call->purse, call->host);
	return rc;
}

static int charge_anywhere(const struct turns *turns, struct attempt *attempt)
{
	int rc;

	if (!turns->host->isolate)
		return 0;
	rc = victims_make_quota(turns, &attempt->key->space, reserve_bytes(attempt),
				&attempt->tenant);
	if (rc != 0) {
		count_refusal(turns->host, turns->first,
			      rc == KVS_E_CREDIT ? HOST_REFUSED_QUOTA : HOST_REFUSED_TENANTS);
	}
	return rc;
}

static int stage_anywhere(struct reserve *call, struct attempt *attempt, struct notices *notices)
{
	struct host *const host = call->host;
	const struct turns turns = { .host = host,
				     .notices = notices,
				     .now_ns = call->now_ns,
				     .first = shard_of(host, attempt->hash) };
	uint32_t           place;

	if (charge_anywhere(&turns, attempt) != 0)
		return KVS_E_FULL;
	place = victims_make_place(&turns, attempt->pages);
	if (place == SPACE_NONE) {
		reserve_refund(host, attempt);
		count_refusal(host, turns.first, HOST_REFUSED_BYTES);
		return KVS_E_FULL;
	}
	return stage_placed(call, attempt, place, notices);
}

/*
 * All or none, and all that could go would not be enough: then nothing more does.  What the short
 * way has evicted already is gone.
 */
static bool is_hopeless(const struct reserve *call, uint32_t count, struct notices *notices)
{
	const struct turns turns = { .host = call->host,
				     .notices = notices,
				     .now_ns = call->now_ns };
	uint64_t           pages = 0;
	uint32_t           i;

	for (i = 0; i < count; i++)
		pages += call->write.rc[i] == ROW_WAITS ? pages_of(call->bytes[i]) : 0;
	return call->flags & HOST_WHOLE && victims_reach(&turns) < pages;
}

static void refuse_waiting(struct reserve *call, const struct kvs_key *keys, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (call->write.rc[i] != ROW_WAITS)
			continue;
		count_refusal(call->host, shard_of(call->host, key_hash(&keys[i])),
			      HOST_REFUSED_BYTES);
		call->write.rc[i] = KVS_E_FULL;
	}
}

void reserve_far(struct reserve *call, const struct kvs_key *keys, uint32_t count,
		 struct notices *notices)
{
	uint32_t i;

	if (is_hopeless(call, count, notices))
		refuse_waiting(call, keys, count);
	for (i = 0; i < count; i++) {
		struct attempt attempt = { .key = &keys[i], .row = i };

		if (call->write.rc[i] != ROW_WAITS)
			continue;
		attempt.hash = key_hash(&keys[i]);
		attempt.pages = pages_of(call->bytes[i]);
		call->write.rc[i] = stage_anywhere(call, &attempt, notices);
	}
}
