/* SPDX-License-Identifier: Apache-2.0 */
/* See sched.h: the round, and the edges of a request. */
#include "mono_sched/sched.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/list.h"
#include "mono_sched/request.h"

/* More than any engine runs; copy tickets are a multiple of it and fit into 32 bits. */
#define REQUESTS_MAX (UINT32_C(1) << 20)

struct mono_sched {
	struct mono_sched_options options;
	struct coord              coord;
	struct mono_transfer      transfer;
	struct tier               tier;
	struct mono_request      *requests;
	struct slots              slots;
	struct link              *links;
	struct list               waiting; /* SUBMITTED and PREFETCHING, in order of arrival */
	struct fact              *facts;   /* since the last round */
	uint32_t                  fact_count;
	uint32_t                 *copies;  /* of the round */
	uint32_t                  copy_count;
	uint32_t                 *saves;   /* D2H tickets begun between rounds */
	uint32_t                  save_count;
	struct mono_sched_pass   *passes;
	uint32_t                  pass_count;
	uint32_t                 *ready;   /* requests whose fence passed between rounds */
	uint32_t                  ready_count;
	uint32_t                 *scratch; /* page_max block numbers */
	struct prefix_hash       *hashes;  /* page_max of the prompt that comes in */
	struct mono_sched_plan    plan;
};

static int check_options(const struct mono_sched_options *options, struct kvs_error *err)
{
	if (options->page_tokens == 0)
		return err_set(err, KVS_E_INVALID, "page_tokens: 0 is no page; use at least 1");
	if (options->request_max == 0 || options->request_max > REQUESTS_MAX) {
		return err_set(err, KVS_E_INVALID, "request_max: %u is out of range; use 1 to %u",
			       options->request_max, REQUESTS_MAX);
	}
	if (options->page_max == 0 || options->page_max > options->coord.device_blocks) {
		return err_set(err, KVS_E_INVALID,
			       "page_max: %u is out of range; use 1 to the %u blocks of the Device",
			       options->page_max, options->coord.device_blocks);
	}
	return 0;
}

static int open_tables(struct mono_sched *sched)
{
	const struct mono_sched_options *const options = &sched->options;
	const uint32_t                         page_max = options->page_max;
	const uint32_t                         copy_max =
		MONO_SCHED_COPIES_A_REQUEST * options->request_max;
	uint32_t                               i;

	sched->requests = calloc(options->request_max, sizeof(*sched->requests));
	sched->links = calloc(options->request_max, sizeof(*sched->links));
	sched->facts = calloc(options->transfer.op_credits + 1, sizeof(*sched->facts));
	sched->copies = calloc(copy_max, sizeof(*sched->copies));
	sched->saves = calloc(copy_max, sizeof(*sched->saves));
	sched->passes = calloc(options->request_max, sizeof(*sched->passes));
	sched->ready = calloc(options->request_max, sizeof(*sched->ready));
	sched->scratch = calloc(page_max, sizeof(*sched->scratch));
	sched->hashes = calloc(page_max, sizeof(*sched->hashes));
	if (!sched->requests || !sched->links || !sched->facts || !sched->copies ||
	    !sched->saves || !sched->passes || !sched->ready || !sched->scratch ||
	    !sched->hashes || slots_open(&sched->slots, options->request_max) < 0)
		return -ENOMEM;
	list_links_init(sched->links, options->request_max);
	list_init(&sched->waiting);
	for (i = 0; i < options->request_max; i++) {
		if (mono_request_open(&sched->requests[i], page_max) < 0)
			return -ENOMEM;
	}
	return 0;
}

int mono_sched_open(const struct mono_sched_options *options, const struct arena_part *host,
		    struct mono_sched **ret_sched, struct kvs_error *err)
{
	struct mono_sched *sched;
	int                rc = check_options(options, err);

	if (rc < 0)
		return rc;
	sched = calloc(1, sizeof(*sched));
	if (!sched)
		return err_set(err, -ENOMEM, "no memory for the scheduler");
	sched->options = *options;
	rc = coord_open(&sched->coord, &options->coord, err);
	if (rc == 0 && options->with_store) {
		rc = mono_transfer_open(&sched->transfer, &options->transfer, &sched->coord, host,
					err);
	}
	if (rc == 0) {
		rc = tier_open(&sched->tier, &sched->coord,
			       MONO_SCHED_COPIES_A_REQUEST * options->request_max,
			       options->page_max, err);
	}
	if (rc == 0) {
		rc = open_tables(sched);
		if (rc < 0)
			err_set(err, rc, "no memory for %u requests", options->request_max);
	}
	if (rc < 0) {
		mono_sched_close(sched);
		return rc;
	}
	*ret_sched = sched;
	return 0;
}

void mono_sched_close(struct mono_sched *sched)
{
	uint32_t i;

	if (!sched)
		return;
	for (i = 0; sched->requests && i < sched->options.request_max; i++)
		mono_request_close(&sched->requests[i]);
	free(sched->requests);
	free(sched->links);
	free(sched->facts);
	free(sched->copies);
	free(sched->saves);
	free(sched->passes);
	free(sched->ready);
	free(sched->scratch);
	free(sched->hashes);
	slots_close(&sched->slots);
	tier_close(&sched->tier);
	mono_transfer_close(&sched->transfer);
	coord_close(&sched->coord);
	free(sched);
}

int mono_sched_submit(struct mono_sched *sched, uint64_t id, const int32_t *tokens,
		      uint64_t token_count, uint32_t *ret_request, struct kvs_error *err)
{
	const uint64_t room = (uint64_t)sched->options.page_max * sched->options.page_tokens;
	uint32_t       slot;

	if (token_count == 0)
		return err_set(err, KVS_E_INVALID, "tokens: a request needs at least one");
	if (token_count > room) {
		return err_set(err, KVS_E_INVALID,
			       "tokens: %" PRIu64 " are too many for one request, which holds "
			       "%" PRIu64 " in %u blocks",
			       token_count, room, sched->options.page_max);
	}
	slot = slots_acquire(&sched->slots);
	if (slot == SLOT_NONE) {
		return err_set(err, KVS_E_FULL, "requests: %u are in already",
			       sched->options.request_max);
	}
	mono_request_begin(&sched->requests[slot], &sched->options, id, tokens, token_count,
			   sched->hashes);
	list_push_tail(&sched->waiting, sched->links, slot);
	*ret_request = slot;
	return 0;
}

static void drop_lease(struct mono_sched *sched, struct mono_request *request)
{
	if (request->lease_id)
		mono_transfer_drop_lease(&sched->transfer, request->lease_id);
	request->lease_id = 0;
}

static void forget(struct mono_sched *sched, uint32_t slot)
{
	struct mono_request *const request = &sched->requests[slot];

	if (list_is_linked(sched->links, slot))
		list_remove(&sched->waiting, sched->links, slot);
	request->state = MONO_REQUEST_FREE;
	slots_release(&sched->slots, slot);
}

bool mono_sched_abort(struct mono_sched *sched, uint32_t slot)
{
	struct mono_request *const request = &sched->requests[slot];

	KVS_ASSERT(slots_busy(&sched->slots, slot));
	request->aborting = request->state == MONO_REQUEST_SUBMITTED ||
			    request->state == MONO_REQUEST_PREFETCHING;
	return request->aborting;
}

static void apply_aborts(struct mono_sched *sched)
{
	uint32_t slot, next;

	for (slot = sched->waiting.head; slot != SLOT_NONE; slot = next) {
		next = sched->links[slot].next;
		if (!sched->requests[slot].aborting)
			continue;
		drop_lease(sched, &sched->requests[slot]);
		forget(sched, slot);
	}
}

/* A wait is over, one way or another: back to admission, which matches the real cache again. */
static void apply_wakes(struct mono_sched *sched, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < sched->transfer.out.wake_count; i++) {
		const struct mono_transfer_wake *const wake = &sched->transfer.out.wakes[i];
		struct mono_request *const             request = &sched->requests[wake->request];

		KVS_ASSERT_CMP(request->state, ==, MONO_REQUEST_PREFETCHING);
		KVS_ASSERT_CMP(request->lease_id, ==, wake->lease_id);
		request->state = MONO_REQUEST_SUBMITTED;
		request->outcome = wake->outcome;
		request->wait_ns = now_ns - request->asked_ns;
		if (wake->outcome != MONO_TRANSFER_READY)
			drop_lease(sched, request);
	}
}

/* Once a request: ask the store, if it could add something to what is here. */
static void prepare(struct mono_sched *sched, uint32_t slot, uint64_t now_ns)
{
	struct mono_request *const request = &sched->requests[slot];
	const struct coord_probe   local = coord_probe(&sched->coord, request->keys,
						       request->reusable);

	request->prepared = true;
	if (request->reusable - local.host_end < sched->options.extension_min)
		return;
	/* A use of all that is here, beyond the gap too: what is missing must not evict it. */
	coord_touch(&sched->coord, request->keys, request->reusable);
	coord_settle(&sched->coord, request->keys, request->reusable, sched->scratch);
	request->considered = true;
	request->asked_ns = now_ns;
	if (mono_transfer_read(&sched->transfer, slot, request->keys + local.host_end,
			       request->reusable - local.host_end, &request->lease_id,
			       &request->outcome))
		request->state = MONO_REQUEST_PREFETCHING;
}

static void count_fetched(struct mono_sched *sched, struct mono_request *request)
{
	uint32_t i;

	for (i = request->hit.device_end; i < request->hit.host_end; i++) {
		request->fetched += mono_transfer_fetched(&sched->transfer, request->lease_id,
							  request->sources[i]);
	}
}

static void run(struct mono_sched *sched, uint32_t slot)
{
	struct mono_request *const request = &sched->requests[slot];

	request->state = MONO_REQUEST_RUNNING;
	sched->passes[sched->pass_count++] = (struct mono_sched_pass){
		.request = slot,
		.id = request->id,
		.table = request->table,
		.page_count = request->page_count,
		.device_pages = request->hit.device_end,
		.hit_pages = request->hit.host_end,
		.token_count = request->token_count,
	};
}

/* Ordinary admission: the real cache decides what is reused.  False when the Device has no room now. */
static bool admit(struct mono_sched *sched, uint32_t slot)
{
	struct mono_request *const request = &sched->requests[slot];
	uint32_t                   load, first, count;

	if (sched->tier.slots.busy_count == sched->tier.slots.count)
		return false;
	if (coord_admit(&sched->coord, request->keys, request->reusable, request->page_count,
			request->table, request->sources, &request->hit) < 0)
		return false;
	list_remove(&sched->waiting, sched->links, slot);
	count_fetched(sched, request);
	first = request->hit.device_end;
	count = request->hit.host_end - first;
	if (count == 0) {
		drop_lease(sched, request);
		run(sched, slot);
		return true;
	}
	load = tier_load(&sched->tier, slot, request->table + first, request->sources + first,
			 count);
	KVS_ASSERT_CMP(load, !=, SLOT_NONE);
	/* The load ticket holds the sources from here on. */
	drop_lease(sched, request);
	request->state = MONO_REQUEST_LOADING;
	sched->copies[sched->copy_count++] = load;
	return true;
}

/* In order of arrival; the first that finds no room stops admission, so that nobody overtakes it for ever. */
static void serve_waiting(struct mono_sched *sched, uint64_t now_ns)
{
	bool     room = true;
	uint32_t slot, next;

	for (slot = sched->waiting.head; slot != SLOT_NONE; slot = next) {
		struct mono_request *const request = &sched->requests[slot];

		next = sched->links[slot].next;
		if (request->state == MONO_REQUEST_SUBMITTED && !request->prepared)
			prepare(sched, slot, now_ns);
		if (request->state == MONO_REQUEST_SUBMITTED && room)
			room = admit(sched, slot);
	}
}

void mono_sched_next(struct mono_sched *sched, uint64_t now_ns,
		     const struct mono_sched_plan **ret_plan)
{
	uint32_t i;

	sched->copy_count = 0;
	sched->pass_count = 0;
	mono_transfer_begin(&sched->transfer, now_ns);
	apply_aborts(sched);
	mono_transfer_tick(&sched->transfer, sched->facts, sched->fact_count);
	sched->fact_count = 0;
	apply_wakes(sched, now_ns);
	for (i = 0; i < sched->ready_count; i++)
		run(sched, sched->ready[i]);
	sched->ready_count = 0;
	for (i = 0; i < sched->save_count; i++)
		sched->copies[sched->copy_count++] = sched->saves[i];
	sched->save_count = 0;
	serve_waiting(sched, now_ns);

	sched->plan = (struct mono_sched_plan){
		.ops = sched->transfer.out.ops,
		.op_count = sched->transfer.out.op_count,
		.copies = sched->copies,
		.copy_count = sched->copy_count,
		.passes = sched->passes,
		.pass_count = sched->pass_count,
	};
	*ret_plan = &sched->plan;
}

void mono_sched_fact(struct mono_sched *sched, const struct fact *fact)
{
	/* One op a ticket is outstanding, so one fact a ticket can come between two rounds. */
	KVS_ASSERT_CMP(sched->fact_count, <, sched->options.transfer.op_credits);
	sched->facts[sched->fact_count++] = *fact;
}

void mono_sched_copied(struct mono_sched *sched, uint32_t tier_ticket)
{
	const struct tier_ticket *const ticket = tier_done(&sched->tier, tier_ticket);
	uint32_t                        i;

	if (ticket->kind == TIER_LOAD) {
		KVS_ASSERT_CMP(sched->requests[ticket->request].state, ==, MONO_REQUEST_LOADING);
		sched->ready[sched->ready_count++] = ticket->request;
	} else {
		/* The Host has these pages only now; unsettled, a chain would leave from its beginning. */
		coord_settle(&sched->coord, ticket->keys, ticket->key_count, sched->scratch);
		for (i = 0; sched->options.with_store && i < ticket->pair_count; i++)
			mono_transfer_offer(&sched->transfer, &ticket->keys[ticket->pairs[i].page]);
	}
	tier_end(&sched->tier, tier_ticket);
}

/* Publish what was computed, start its way to the Host, let the table go. */
void mono_sched_finished(struct mono_sched *sched, uint32_t slot,
			 struct mono_sched_result *ret_result)
{
	struct mono_request *const request = &sched->requests[slot];
	struct coord *const        coord = &sched->coord;
	uint32_t                   save;
	uint32_t                   i;

	KVS_ASSERT_CMP(request->state, ==, MONO_REQUEST_RUNNING);
	for (i = request->hit.device_end; i < request->key_count; i++) {
		request->table[i] = stratum_publish(&coord->device, &request->keys[i],
						    request->table[i]);
	}
	save = tier_save(&sched->tier, request->keys, request->table, request->key_count);
	if (save != SLOT_NONE)
		sched->saves[sched->save_count++] = save;
	for (i = 0; i < request->page_count; i++)
		stratum_unpin(&coord->device, request->table[i]);
	coord_settle(coord, request->keys, request->key_count, sched->scratch);
	mono_request_result(request, sched->options.page_tokens, ret_result);
	forget(sched, slot);
}

int mono_sched_notice(struct mono_sched *sched, const struct retirement_notice *notice)
{
	return mono_transfer_notice(&sched->transfer, notice);
}

const struct tier_ticket *mono_sched_copy(const struct mono_sched *sched, uint32_t tier_ticket)
{
	return &sched->tier.tickets[tier_ticket];
}

struct mono_sched_load mono_sched_load(const struct mono_sched *sched)
{
	return (struct mono_sched_load){
		.requests = sched->slots.busy_count,
		.transfers = mono_transfer_in_flight(&sched->transfer),
		.copies = tier_in_flight(&sched->tier),
		.backups = sched->transfer.backups.count,
		.putting = sched->transfer.put_host_refs,
	};
}

uint64_t mono_sched_wake_ns(const struct mono_sched *sched)
{
	return mono_transfer_wake_ns(&sched->transfer);
}

uint32_t mono_sched_fact_room(const struct mono_sched *sched)
{
	return sched->options.transfer.op_credits - sched->fact_count;
}

bool mono_sched_quarantined(const struct mono_sched *sched)
{
	return sched->transfer.quarantined > 0;
}

void mono_sched_discard_backups(struct mono_sched *sched)
{
	mono_transfer_discard_backups(&sched->transfer);
}

const struct mono_transfer *mono_sched_transfer(const struct mono_sched *sched)
{
	return sched->options.with_store ? &sched->transfer : NULL;
}

const struct coord *mono_sched_coord(const struct mono_sched *sched)
{
	return &sched->coord;
}

uint64_t mono_sched_unsaved(const struct mono_sched *sched)
{
	return sched->tier.unsaved;
}

void mono_sched_audit(struct mono_sched *sched)
{
	coord_audit(&sched->coord);
	tier_audit(&sched->tier);
	slots_audit(&sched->slots);
	list_audit(&sched->waiting, sched->links, sched->options.request_max);
	mono_transfer_audit(&sched->transfer);
}
