/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_reserve(): a record and a place for each row.  Most rows find both in one visit of their
 * shard, at the cost of its own objects when need be; the rest go the long way.
 */
#include "host/reserve.h"

#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"
#include "host/victims.h"

/* --- a visit ---------------------------------------------------------------------------------- */

/* Rows of a bunch that have a record, and no place yet. */
struct homeless {
	uint32_t count;
	uint32_t rows[ROWS_MAX];
	uint32_t slots[ROWS_MAX];
};

static void begin_rows(struct visit *visit, struct reserve *call, const struct bunch *bunch,
		       struct homeless *ret_rows)
{
	struct life_start start = reserve_start(visit, call);
	uint32_t          i;

	ret_rows->count = 0;
	for (i = 0; i < bunch->count; i++) {
		struct attempt attempt = { .key = bunch_key(bunch, i),
					   .hash = bunch_hash(bunch, i),
					   .row = bunch_row(bunch, i) };
		const uint32_t first = life_find(visit->shard, attempt.hash, attempt.key);
		int            rc = call->write.rc[attempt.row];

		if (rc != ROW_WAITS)
			continue;
		rc = reserve_may(visit, call, first);
		if (rc != 0) {
			call->write.rc[attempt.row] = rc;
			call->left--;
			continue;
		}
		attempt.pages = pages_of(call->bytes[attempt.row]);
		if (!reserve_charge(visit, call, &attempt))
			continue;
		if (!reserve_begin(visit, call, &attempt, first, &start)) {
			reserve_refund(visit->host, &attempt);
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
static void place_by_space(struct visit *visit, struct reserve *call, struct homeless *rows)
{
	uint32_t left = 0, i, place;

	/* What expired just now is free as well. */
	visit_give(visit);
	for (i = 0; i < rows->count; i++) {
		place = purse_take(&call->purse, call->host, pages_at(visit, rows->slots[i]),
				   call->left);
		if (place == SPACE_NONE) {
			rows->rows[left] = rows->rows[i];
			rows->slots[left++] = rows->slots[i];
			continue;
		}
		call->left--;
		reserve_end(visit, call, rows->rows[i], rows->slots[i], place);
	}
	rows->count = left;
}

/*
 * A place by evicting objects of the shard.  One that fits is taken over; others go to the space,
 * where a few of them may join.
 */
static uint32_t place_by_victims(struct visit *visit, struct reserve *call, uint32_t pages)
{
	struct freed freed;
	uint32_t     place;

	while (reserve_victim(visit, call, TENANT_NONE, &freed)) {
		if (freed.pages == pages)
			return freed.place;
		visit_free(visit, freed.place, freed.pages);
		visit_give(visit);
		if (space_of_host_take(visit->host, pages, 1, &place) == 1)
			return place;
	}
	return SPACE_NONE;
}

static void swap(struct visit *visit, struct reserve *call, struct homeless *rows)
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
		reserve_end(visit, call, rows->rows[row], rows->slots[row], place);
		if ((budget - call->budget) % VICTIMS_STEP == 0)
			victims_prefetch(visit);
	}
	if (call->budget < budget)
		victims_prefetch(visit);
}

static void serve(struct visit *visit, const struct bunch *bunch, void *arg)
{
	struct reserve *const call = arg;
	struct homeless       rows;
	uint32_t              i;

	call->budget = bunch->count + VISIT_EVICTED_MAX;
	(void)lock_expire(visit);
	if (!clients_is(&visit->host->clients, call->write.writer.client)) {
		for (i = 0; i < bunch->count; i++)
			call->write.rc[bunch_row(bunch, i)] = KVS_E_CLOSED;
		return;
	}
	begin_rows(visit, call, bunch, &rows);
	place_by_space(visit, call, &rows);
	swap(visit, call, &rows);
	for (i = 0; i < rows.count; i++)
		life_drop(visit, rows.slots[i]);
}

/* --- the call --------------------------------------------------------------------------------- */

static bool fits_a_field(const struct host *host, uint64_t bytes)
{
	return bytes > 0 &&
	       bytes <= ((uint64_t)(host->space.place_pages_max - 1) << SPACE_PAGE_BITS);
}

static void settle_whole(struct reserve *call, const struct kvs_key *keys, uint32_t count,
			 struct notices *notices)
{
	uint32_t i;

	for (i = 0; i < count && call->write.rc[i] != KVS_E_FULL; i++)
		;
	if (i == count)
		return;
	rows_run_in(call->host, keys, count, 0, write_undo, &call->write, notices);
	for (i = 0; i < count; i++) {
		if (call->write.rc[i] == 0)
			call->write.rc[i] = KVS_E_FULL;
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

static void run(struct reserve *call, const struct kvs_key *keys, uint32_t count)
{
	struct notices notices;

	notices_init(&notices);
	rows_run_in(call->host, keys, count, call->now_ns, serve, call, &notices);
	purse_empty(&call->purse, call->host);
	if (call->left > 0)
		reserve_far(call, keys, count, &notices);
	if (call->flags & HOST_WHOLE)
		settle_whole(call, keys, count, &notices);
	notices_tell(&notices, call->host->listeners, call->host->listener_count);
	press(call->host);
}

int host_reserve(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 const uint64_t *bytes, uint32_t count, unsigned flags, uint64_t now_ns,
		 struct kvs_span *ret_spans, int *ret_rc)
{
	struct reserve call = { .host = host,
				.write = { writer, ret_rc },
				.flags = flags,
				.bytes = bytes,
				.spans = ret_spans,
				.now_ns = now_ns };
	uint32_t       i;

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
