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

/* --- the purse -------------------------------------------------------------------------------- */

static uint32_t purse_take(struct write *call, uint32_t pages)
{
	struct purse *const purse = &call->purse;
	uint32_t            place;

	if (purse->count == 0) {
		purse->pages = pages;
		purse->count = space_of_host_take(call->host, pages,
						  call->left < PURSE_MAX ? call->left : PURSE_MAX,
						  purse->places);
	}
	if (purse->count > 0 && purse->pages == pages)
		return purse->places[--purse->count];
	return space_of_host_take(call->host, pages, 1, &place) == 1 ? place : SPACE_NONE;
}

static void purse_put(struct write *call, struct visit *visit, struct freed freed)
{
	struct purse *const purse = &call->purse;

	if (purse->count == PURSE_MAX || (purse->count > 0 && purse->pages != freed.pages)) {
		visit_free(visit, freed.place, freed.pages);
		return;
	}
	purse->pages = freed.pages;
	purse->places[purse->count++] = freed.place;
}

static void purse_empty(struct write *call)
{
	struct purse *const purse = &call->purse;
	struct freed        freed[PURSE_MAX];
	uint32_t            i;

	for (i = 0; i < purse->count; i++)
		freed[i] = (struct freed){ purse->places[i], purse->pages };
	if (purse->count > 0)
		space_of_host_give(call->host, freed, purse->count);
	purse->count = 0;
}

/* --- may it, and as what ---------------------------------------------------------------------- */

static int may_stage(const struct visit *visit, const struct write *call, uint32_t first)
{
	const struct shard *const shard = visit->shard;
	uint32_t                  own;

	if (first == SLOT_NONE)
		return 0;
	if (shard->records[first].state == RECORD_RESIDENT)
		return KVS_E_EXISTS;
	if (shard->records[first].state == RECORD_DOOMED)
		return KVS_E_BUSY;
	own = life_staged(shard, first, client_slot(call->writer.client), call->writer.tag);
	return own == SLOT_NONE ? 0 : KVS_E_BUSY;
}

/* What all records of a visit have in common. */
static struct life_start start_of(const struct visit *visit, const struct write *call)
{
	const unsigned flags = clients_flags(&visit->host->clients, call->writer.client);

	return (struct life_start){
		.tag = call->writer.tag,
		.expiry_ns = lock_until(visit, flags, visit->host->write_ttl_ns),
		.client = client_slot(call->writer.client),
		.flags = (uint8_t)((call->flags & HOST_TEMPORARY ? RECORD_TEMPORARY : 0) |
				   (flags & HOST_NO_TTL ? RECORD_NO_TTL : 0)),
	};
}

/* The place of the object of a tenant (TENANT_NONE: any) that goes for the sake of the call. */
static bool take_victim(struct visit *visit, struct write *call, uint32_t tenant,
			struct freed *ret_freed)
{
	uint32_t slot;

	if (call->budget == 0)
		return false;
	slot = victims_next(visit, tenant);
	if (slot == SLOT_NONE)
		return false;
	call->budget--;
	*ret_freed = victims_evict_keep(visit, slot);
	return true;
}

/* A record, at the cost of an object of its shard when none is left. */
static bool begin(struct visit *visit, struct write *call, struct attempt *attempt, uint32_t first,
		  struct life_start *start)
{
	struct freed freed;

	start->hash = attempt->hash;
	start->bytes = call->bytes[attempt->row];
	start->tenant = attempt->tenant;
	attempt->slot = life_begin(visit, attempt->key, first, start);
	if (attempt->slot != SLOT_NONE)
		return true;
	if (!take_victim(visit, call, TENANT_NONE, &freed))
		return false;
	purse_put(call, visit, freed);
	attempt->slot = life_begin(visit, attempt->key, first, start);
	return true;
}

static void end_row(struct visit *visit, struct write *call, uint32_t row, uint32_t slot,
		    uint32_t place)
{
	const struct record *const record = &visit->shard->records[slot];

	life_place(visit, slot, place);
	call->spans[row] = span_of(visit->host, record);
	call->rc[row] = 0;
	visit_note(visit, HOST_RESERVED, &record->key);
}

/* A tenant at its quota gives up its own objects, those of this shard first. */
static bool charge(struct visit *visit, struct write *call, struct attempt *attempt)
{
	struct tenants *const             tenants = &visit->host->tenants;
	const struct kvs_namespace *const space = &attempt->key->space;
	struct freed                      freed;
	int                               rc;

	if (!visit->host->isolate)
		return true;
	rc = tenants_charge(tenants, space, charge_of(attempt), &attempt->tenant);
	while (rc == KVS_E_CREDIT && take_victim(visit, call, attempt->tenant, &freed)) {
		purse_put(call, visit, freed);
		rc = tenants_charge(tenants, space, charge_of(attempt), &attempt->tenant);
	}
	return rc == 0;
}

static void refund(struct host *host, const struct attempt *attempt)
{
	if (host->isolate)
		tenants_refund(&host->tenants, attempt->tenant, charge_of(attempt));
}

/* --- the short way ---------------------------------------------------------------------------- */

/* Rows of a group that have a record, and no place yet. */
struct homeless {
	uint32_t count;
	uint32_t rows[ROWS_MAX];
	uint32_t slots[ROWS_MAX];
};

static void begin_rows(struct visit *visit, struct write *call, const struct group *group,
		       struct homeless *ret_rows)
{
	struct life_start start = start_of(visit, call);
	uint32_t          i;

	ret_rows->count = 0;
	for (i = 0; i < group->count; i++) {
		struct attempt attempt = { .key = group_key(group, i), .hash = group_hash(group, i),
					   .row = group_row(group, i) };
		const uint32_t first = life_find(visit->shard, attempt.hash, attempt.key);
		int            rc = call->rc[attempt.row];

		if (rc != ROW_WAITS)
			continue;
		rc = may_stage(visit, call, first);
		if (rc != 0) {
			call->rc[attempt.row] = rc;
			call->left--;
			continue;
		}
		attempt.pages = pages_of(call->bytes[attempt.row]);
		if (!charge(visit, call, &attempt))
			continue;
		if (!begin(visit, call, &attempt, first, &start)) {
			refund(visit->host, &attempt);
			continue;
		}
		ret_rows->rows[ret_rows->count] = attempt.row;
		ret_rows->slots[ret_rows->count++] = attempt.slot;
	}
}

static uint32_t pages_at(const struct visit *visit, uint32_t slot)
{
	return pages_of(visit->shard->records[slot].bytes);
}

/* Out of what is free.  Those that find nothing are left. */
static void place_by_space(struct visit *visit, struct write *call, struct homeless *rows)
{
	uint32_t left = 0, i, place;

	/* What expired just now is free as well. */
	visit_give(visit);
	for (i = 0; i < rows->count; i++) {
		place = purse_take(call, pages_at(visit, rows->slots[i]));
		if (place == SPACE_NONE) {
			rows->rows[left] = rows->rows[i];
			rows->slots[left++] = rows->slots[i];
			continue;
		}
		call->left--;
		end_row(visit, call, rows->rows[i], rows->slots[i], place);
	}
	rows->count = left;
}

/*
 * A place by evicting objects of the shard.  One that fits is taken over; others go to the space,
 * where a few of them may join.
 */
static uint32_t place_by_victims(struct visit *visit, struct write *call, uint32_t pages)
{
	struct freed freed;
	uint32_t     place;

	while (take_victim(visit, call, TENANT_NONE, &freed)) {
		if (freed.pages == pages)
			return freed.place;
		visit_free(visit, freed.place, freed.pages);
		visit_give(visit);
		if (space_of_host_take(visit->host, pages, 1, &place) == 1)
			return place;
	}
	return SPACE_NONE;
}

static void swap(struct visit *visit, struct write *call, struct homeless *rows)
{
	const uint32_t budget = call->budget;
	uint32_t       place, row;

	while (rows->count > 0) {
		row = rows->count - 1;
		place = place_by_victims(visit, call, pages_at(visit, rows->slots[row]));
		if (place == SPACE_NONE)
			break;
		rows->count = row;
		call->left--;
		end_row(visit, call, rows->rows[row], rows->slots[row], place);
		if ((budget - call->budget) % VICTIMS_STEP == 0)
			victims_prefetch(visit);
	}
	if (call->budget < budget)
		victims_prefetch(visit);
}

static void serve(struct visit *visit, const struct group *group, void *arg)
{
	struct write *const call = arg;
	struct homeless     rows;
	uint32_t            i;

	call->budget = group->count + VISIT_EVICTED_MAX;
	(void)lock_expire(visit);
	if (!clients_is(&visit->host->clients, call->writer.client)) {
		for (i = 0; i < group->count; i++)
			call->rc[group_row(group, i)] = KVS_E_CLOSED;
		return;
	}
	begin_rows(visit, call, group, &rows);
	place_by_space(visit, call, &rows);
	swap(visit, call, &rows);
	for (i = 0; i < rows.count; i++)
		life_drop(visit, rows.slots[i]);
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
	const uint32_t    first = life_find(visit->shard, attempt->hash, attempt->key);
	struct life_start start;
	int               rc;

	if (!clients_is(&visit->host->clients, call->writer.client))
		return KVS_E_CLOSED;
	rc = may_stage(visit, call, first);
	if (rc != 0)
		return rc;
	start = start_of(visit, call);
	if (!begin(visit, call, attempt, first, &start)) {
		visit_count(visit, HOST_REFUSED_OBJECTS);
		return KVS_E_FULL;
	}
	end_row(visit, call, attempt->row, attempt->slot, place);
	return 0;
}

static int stage_placed(struct write *call, struct attempt *attempt, uint32_t place,
			struct notices *notices)
{
	struct visit visit;
	int          rc;

	visit_begin(&visit, call->host, shard_of(call->host, attempt->hash), call->now_ns, notices);
	call->budget = 1;
	rc = stage_with(&visit, call, attempt, place);
	if (rc != 0) {
		visit_free(&visit, place, attempt->pages);
		refund(call->host, attempt);
	}
	visit_end(&visit);
	purse_empty(call);
	return rc;
}

static int charge_anywhere(const struct turns *turns, struct attempt *attempt)
{
	int rc;

	if (!turns->host->isolate)
		return 0;
	rc = victims_make_quota(turns, &attempt->key->space, charge_of(attempt), &attempt->tenant);
	if (rc != 0) {
		count_refusal(turns->host, turns->first,
			      rc == KVS_E_CREDIT ? HOST_REFUSED_QUOTA : HOST_REFUSED_TENANTS);
	}
	return rc;
}

static int stage_anywhere(struct write *call, struct attempt *attempt, struct notices *notices)
{
	struct host *const host = call->host;
	const struct turns turns = { .host = host, .notices = notices, .now_ns = call->now_ns,
				     .first = shard_of(host, attempt->hash) };
	uint32_t           place;

	if (charge_anywhere(&turns, attempt) != 0)
		return KVS_E_FULL;
	place = victims_make_place(&turns, attempt->pages);
	if (place == SPACE_NONE) {
		refund(host, attempt);
		count_refusal(host, turns.first, HOST_REFUSED_BYTES);
		return KVS_E_FULL;
	}
	return stage_placed(call, attempt, place, notices);
}

/* All or none, and all that could go would not be enough: then nothing does. */
static bool is_hopeless(const struct write *call, uint32_t count, struct notices *notices)
{
	const struct turns turns = { .host = call->host, .notices = notices,
				     .now_ns = call->now_ns };
	uint64_t           pages = 0;
	uint32_t           i;

	for (i = 0; i < count; i++)
		pages += call->rc[i] == ROW_WAITS ? pages_of(call->bytes[i]) : 0;
	return call->flags & HOST_WHOLE && victims_reach(&turns) < pages;
}

static void refuse_waiting(struct write *call, const struct kvs_key *keys, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (call->rc[i] != ROW_WAITS)
			continue;
		count_refusal(call->host, shard_of(call->host, key_hash(&keys[i])),
			      HOST_REFUSED_BYTES);
		call->rc[i] = KVS_E_FULL;
	}
}

static void stage_waiting(struct write *call, const struct kvs_key *keys, uint32_t count,
			  struct notices *notices)
{
	uint32_t i;

	if (is_hopeless(call, count, notices))
		refuse_waiting(call, keys, count);
	for (i = 0; i < count; i++) {
		struct attempt attempt = { .key = &keys[i], .row = i };

		if (call->rc[i] != ROW_WAITS)
			continue;
		attempt.hash = key_hash(&keys[i]);
		attempt.pages = pages_of(call->bytes[i]);
		call->rc[i] = stage_anywhere(call, &attempt, notices);
	}
}

/* --- the call --------------------------------------------------------------------------------- */

static bool fits_a_field(const struct host *host, uint64_t bytes)
{
	return bytes > 0 && bytes <= ((uint64_t)(host->space.place_pages_max - 1) << SPACE_PAGE_BITS);
}

static void settle_whole(struct write *call, const struct kvs_key *keys, uint32_t count,
			 struct notices *notices)
{
	uint32_t i;

	for (i = 0; i < count && call->rc[i] != KVS_E_FULL; i++)
		;
	if (i == count)
		return;
	rows_run_in(call->host, keys, count, 0, reserve_undo, call, notices);
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

static void run(struct write *call, const struct kvs_key *keys, uint32_t count)
{
	struct notices notices;

	notices_init(&notices);
	rows_run_in(call->host, keys, count, call->now_ns, serve, call, &notices);
	purse_empty(call);
	if (call->left > 0)
		stage_waiting(call, keys, count, &notices);
	if (call->flags & HOST_WHOLE)
		settle_whole(call, keys, count, &notices);
	notices_tell(&notices, call->host->listeners, call->host->listener_count);
	press(call->host);
}

int host_reserve(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 const uint64_t *bytes, uint32_t count, unsigned flags, uint64_t now_ns,
		 struct kvs_span *ret_spans, int *ret_rc)
{
	struct write call = { .host = host, .writer = writer, .flags = flags, .bytes = bytes,
			      .spans = ret_spans, .rc = ret_rc, .now_ns = now_ns };
	uint32_t     i;

	if (count > HOST_KEYS_MAX || flags & ~(unsigned)(HOST_TEMPORARY | HOST_WHOLE))
		return KVS_E_INVALID;
	if (!clients_is(&host->clients, writer.client))
		return KVS_E_CLOSED;
	for (i = 0; i < count; i++) {
		ret_rc[i] = fits_a_field(host, bytes[i]) ? ROW_WAITS : KVS_E_INVALID;
		call.left += ret_rc[i] == ROW_WAITS;
	}
	run(&call, keys, count);
	for (i = 0; i < count; i++) {
		if (ret_rc[i] != 0)
			ret_spans[i] = (struct kvs_span){ 0 };
	}
	return 0;
}
