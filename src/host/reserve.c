/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_reserve(): a record and a place for each row.
 *
 * A row that finds no room in its shard and in the space waits until the batch went through; then,
 * without a lock, it gets its place first, at the cost of objects of all shards, and is staged with
 * it, if it still may be.
 */
#include "host/reserve.h"

#include <string.h>

#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"
#include "host/victims.h"
#include "key/key.h"

/* Of a row that is still to be served. */
#define ROW_WAITS 1

/* One row on its way to a record. */
struct attempt {
	const struct kvs_key *key;
	uint64_t              hash;
	uint32_t              row;
	uint32_t              pages;
	uint32_t              tenant;
	uint32_t              slot;
};

static uint64_t charge_of(const struct attempt *attempt)
{
	return (uint64_t)attempt->pages << SPACE_PAGE_BITS;
}

/* --- may it, and as what ---------------------------------------------------------------------- */

static int may_stage(const struct visit *visit, const struct write *call, uint32_t first)
{
	const struct shard *const shard = visit->shard;
	uint32_t                  own;

	if (!clients_is(&visit->host->clients, call->writer.client))
		return KVS_E_CLOSED;
	if (first == SLOT_NONE)
		return 0;
	if (shard->records[first].state == RECORD_RESIDENT)
		return KVS_E_EXISTS;
	if (shard->records[first].state == RECORD_DOOMED)
		return KVS_E_BUSY;
	own = life_staged(shard, first, client_slot(call->writer.client), call->writer.tag);
	return own == SLOT_NONE ? 0 : KVS_E_BUSY;
}

static struct life_start start_of(const struct visit *visit, const struct write *call,
				  const struct attempt *attempt)
{
	const unsigned flags = clients_flags(&visit->host->clients, call->writer.client);

	return (struct life_start){
		.hash = attempt->hash,
		.bytes = call->bytes[attempt->row],
		.tag = call->writer.tag,
		.expiry_ns = lock_until(visit, flags, visit->host->write_ttl_ns),
		.client = client_slot(call->writer.client),
		.tenant = attempt->tenant,
		.flags = (uint8_t)((call->flags & HOST_TEMPORARY ? RECORD_TEMPORARY : 0) |
				   (flags & HOST_NO_TTL ? RECORD_NO_TTL : 0)),
	};
}

/* A record, at the cost of an object of its shard when none is left. */
static uint32_t begin(struct visit *visit, const struct write *call, const struct attempt *attempt,
		      uint32_t first)
{
	const struct life_start start = start_of(visit, call, attempt);
	uint32_t                slot = life_begin(visit, attempt->key, first, &start);
	uint32_t                victim;

	if (slot != SLOT_NONE)
		return slot;
	victim = victims_next(visit, TENANT_NONE);
	if (victim == SLOT_NONE)
		return SLOT_NONE;
	victims_evict(visit, victim);
	return life_begin(visit, attempt->key, first, &start);
}

static void end_row(struct visit *visit, struct write *call, const struct attempt *attempt,
		    uint32_t place)
{
	life_place(visit, attempt->slot, place);
	call->spans[attempt->row] = span_of(visit->host, &visit->shard->records[attempt->slot]);
	call->rc[attempt->row] = 0;
	visit_note(visit, HOST_RESERVED, attempt->key);
}

/* --- the short way ---------------------------------------------------------------------------- */

/*
 * A place by evicting objects of the shard.  One that fits is taken over; others go to the space,
 * where a few of them may join.
 */
static uint32_t place_by_victims(struct visit *visit, uint32_t pages, uint32_t *budget)
{
	uint32_t place, slot, own;

	while (*budget > 0) {
		slot = victims_next(visit, TENANT_NONE);
		if (slot == SLOT_NONE)
			break;
		--*budget;
		own = pages_of(visit->shard->records[slot].bytes);
		place = victims_evict_keep(visit, slot);
		if (own == pages)
			return place;
		visit_free(visit, place, own);
		visit_give(visit);
		if (space_of_host_take(visit->host, pages, 1, &place) == 1)
			return place;
	}
	return SPACE_NONE;
}

static bool charge(struct visit *visit, struct attempt *attempt)
{
	return !visit->host->isolate ||
	       tenants_charge(&visit->host->tenants, &attempt->key->space, charge_of(attempt),
			      &attempt->tenant) == 0;
}

static void refund(struct host *host, const struct attempt *attempt)
{
	if (host->isolate)
		tenants_refund(&host->tenants, attempt->tenant, charge_of(attempt));
}

static bool stage_here(struct visit *visit, struct write *call, struct attempt *attempt,
		       uint32_t first, uint32_t *budget)
{
	uint32_t place;

	if (!charge(visit, attempt))
		return false;
	attempt->slot = begin(visit, call, attempt, first);
	if (attempt->slot == SLOT_NONE) {
		refund(visit->host, attempt);
		return false;
	}
	if (space_of_host_take(visit->host, attempt->pages, 1, &place) == 0)
		place = place_by_victims(visit, attempt->pages, budget);
	if (place == SPACE_NONE) {
		life_drop(visit, attempt->slot);
		return false;
	}
	end_row(visit, call, attempt, place);
	return true;
}

static void serve(struct visit *visit, const struct group *group, void *arg)
{
	struct write *const call = arg;
	uint32_t            budget = group->count + VISIT_EVICTED_MAX;
	uint32_t            i;

	(void)lock_expire(visit);
	for (i = 0; i < group->count; i++) {
		struct attempt attempt = { .key = group_key(group, i), .hash = group_hash(group, i),
					   .row = group_row(group, i) };
		const uint32_t first = life_find(visit->shard, attempt.hash, attempt.key);
		int            rc;

		if (call->rc[attempt.row] != ROW_WAITS)
			continue;
		attempt.pages = pages_of(call->bytes[attempt.row]);
		rc = may_stage(visit, call, first);
		if (rc != 0)
			call->rc[attempt.row] = rc;
		else if (!stage_here(visit, call, &attempt, first, &budget))
			call->waiting++;
	}
}

/* --- the long way ----------------------------------------------------------------------------- */

static void count_refusal(struct host *host, uint32_t shard, enum host_counter counter)
{
	os_mutex_lock(&host->shards[shard].mutex);
	host->shards[shard].counters[counter]++;
	os_mutex_unlock(&host->shards[shard].mutex);
}

/* With its place and its charge in hand: is it still wanted? */
static int stage_with(struct visit *visit, struct write *call, struct attempt *attempt,
		      uint32_t place)
{
	const uint32_t first = life_find(visit->shard, attempt->hash, attempt->key);
	const int      rc = may_stage(visit, call, first);

	if (rc != 0)
		return rc;
	attempt->slot = begin(visit, call, attempt, first);
	if (attempt->slot == SLOT_NONE) {
		visit_count(visit, HOST_REFUSED_OBJECTS);
		return KVS_E_FULL;
	}
	end_row(visit, call, attempt, place);
	return 0;
}

static int stage_placed(struct write *call, struct attempt *attempt, uint32_t place,
			struct notices *notices)
{
	struct visit visit;
	int          rc;

	visit_begin(&visit, call->host, shard_of(call->host, attempt->hash), 0, notices);
	rc = stage_with(&visit, call, attempt, place);
	if (rc != 0) {
		visit_free(&visit, place, attempt->pages);
		refund(call->host, attempt);
	}
	visit_end(&visit);
	return rc;
}

static int stage_anywhere(struct write *call, struct attempt *attempt, struct notices *notices)
{
	struct host *const host = call->host;
	const uint32_t     shard = shard_of(host, attempt->hash);
	uint32_t           place;

	if (host->isolate && !victims_make_quota(host, &attempt->key->space, charge_of(attempt), shard,
						 notices, &attempt->tenant)) {
		count_refusal(host, shard, HOST_REFUSED_QUOTA);
		return KVS_E_FULL;
	}
	place = victims_make_place(host, attempt->pages, shard, notices);
	if (place == SPACE_NONE) {
		refund(host, attempt);
		count_refusal(host, shard, HOST_REFUSED_BYTES);
		return KVS_E_FULL;
	}
	return stage_placed(call, attempt, place, notices);
}

static void stage_waiting(struct write *call, const struct kvs_key *keys, uint32_t count)
{
	struct notices notices;
	uint32_t       i;

	notices_init(&notices);
	for (i = 0; i < count; i++) {
		struct attempt attempt = { .key = &keys[i], .row = i };

		if (call->rc[i] != ROW_WAITS)
			continue;
		attempt.hash = key_hash(&keys[i]);
		attempt.pages = pages_of(call->bytes[i]);
		call->rc[i] = stage_anywhere(call, &attempt, &notices);
		notices_tell(&notices, call->host->listeners, call->host->listener_count);
	}
}

/* --- the call --------------------------------------------------------------------------------- */

static bool fits_a_field(const struct host *host, uint64_t bytes)
{
	return bytes > 0 && bytes <= ((uint64_t)(host->space.place_pages_max - 1) << SPACE_PAGE_BITS);
}

static void settle_whole(struct write *call, const struct kvs_key *keys, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count && call->rc[i] != KVS_E_FULL; i++)
		;
	if (i == count)
		return;
	rows_run(call->host, keys, count, 0, reserve_undo, call);
	for (i = 0; i < count; i++) {
		if (call->rc[i] == 0)
			call->rc[i] = KVS_E_FULL;
	}
}

static void press(struct host *host)
{
	if (!host->pressed ||
	    atomic_load_explicit(&host->used_pages, memory_order_relaxed) <= host->high_pages ||
	    atomic_exchange_explicit(&host->is_pressed, true, memory_order_relaxed))
		return;
	host->pressed(host->pressed_arg);
}

int host_reserve(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 const uint64_t *bytes, uint32_t count, unsigned flags, uint64_t now_ns,
		 struct kvs_span *ret_spans, int *ret_rc)
{
	struct write call = { .host = host, .writer = writer, .flags = flags, .bytes = bytes,
			      .spans = ret_spans, .rc = ret_rc };
	uint32_t     i;

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	if (!clients_is(&host->clients, writer.client))
		return KVS_E_CLOSED;
	for (i = 0; i < count; i++)
		ret_rc[i] = fits_a_field(host, bytes[i]) ? ROW_WAITS : KVS_E_INVALID;
	rows_run(host, keys, count, now_ns, serve, &call);
	if (call.waiting > 0)
		stage_waiting(&call, keys, count);
	if (flags & HOST_WHOLE)
		settle_whole(&call, keys, count);
	for (i = 0; i < count; i++) {
		if (ret_rc[i] != 0)
			ret_spans[i] = (struct kvs_span){ 0 };
	}
	press(host);
	return 0;
}
