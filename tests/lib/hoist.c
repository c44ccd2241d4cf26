/* SPDX-License-Identifier: Apache-2.0 */
/* See hoist.h. */
#include "hoist.h"

#include <string.h>

#include "base/bits.h"
#include "transfer/parts.h"

const struct transfer_limits hoist_limits = { .op_credits = 4,
					      .host_credits = 32,
					      .keys_max = 16,
					      .put_keys_max = 4,
					      .backup_max = 8,
					      .negative_max = 8,
					      .history_max = 16,
					      .tail_hint_max = 8,
					      .tails_max = 4,
					      .extension_min = 1,
					      .lookahead_tokens = 1000,
					      .deadline_ns = 1000,
					      .hold_ns = 500 };

const struct group_spec hoist_full[BOX_GROUPS] = { BOX_FULL(HOIST_PAGE, 1) };
const struct group_spec hoist_full_state[BOX_GROUPS] = { BOX_FULL(HOIST_PAGE, 1),
							 BOX_STATE(HOIST_PAGE, 1) };

/* --- opening ---------------------------------------------------------------------------------- */

static void make_prompts(struct hoist *hoist)
{
	uint32_t p, i;

	for (p = 0; p < HOIST_PROMPTS; p++) {
		for (i = 0; i < BOX_PAGES; i++) {
			hoist->hashes[p][i] = p == 0 || i < HOIST_SHARED ? hoist->box.hashes[i]
									 : box_hash(100 * p + i);
		}
		for (i = 0; i < BOX_PAGES * HOIST_PAGE; i++)
			hoist->tokens[p][i] = (int32_t)(1000 * p + i);
		hoist->prompts[p] = (struct prompt){ .tokens = hoist->tokens[p],
						     .token_count = BOX_PAGES * HOIST_PAGE,
						     .page_tokens = HOIST_PAGE };
	}
}

/* Every owner has the room for its part of each parent. */
static void make_memory(struct hoist *hoist, uint32_t parents)
{
	const struct groups *const groups = cache_groups(hoist->box.cache);
	struct hostmap_group       map[GROUPS_MAX];
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		map[g] = (struct hostmap_group){ groups->group[g].spec.packing / hoist->owner.cycle[g],
						 HOIST_BLOCK_BYTES };
	}
	KVS_ASSERT(hostmap_make(map, groups->count, parents, &hoist->hostmap, NULL) == 0);
	KVS_ASSERT(arena_open(arena_part_bytes(hoist->hostmap.parent_bytes, parents), ARENA_LAZY,
			      &hoist->arena, NULL) == 0);
	KVS_ASSERT(arena_carve(hoist->arena, hoist->hostmap.parent_bytes, parents, &hoist->part,
			       NULL) == 0);
}

void hoist_open(struct hoist *hoist, const struct hoist_options *options)
{
	struct transfer_options transfer = { .limits = *options->limits,
					     .part = &hoist->part,
					     .owner = &hoist->owner,
					     .hostmap = &hoist->hostmap,
					     .page_max = BOX_PAGES };
	struct kvs_error        err;
	uint32_t                g;

	*hoist = (struct hoist){ .tick = { .now_ns = 1, .permits = { true, true } } };
	box_open(&hoist->box, HOIST_PAGE, 16, options->host_parents, options->specs);
	make_prompts(hoist);
	hoist->owner = (struct owner){ .rank = options->rank,
				       .count = options->owners ? options->owners : 1 };
	for (g = 0; g < GROUPS_MAX; g++)
		hoist->owner.cycle[g] = g == 0 && options->owners ? options->owners : 1;
	make_memory(hoist, options->host_parents);
	transfer.cache = hoist->box.cache;
	if (transfer_open(&transfer, &hoist->transfer, &err) < 0)
		KVS_PANIC("%s", err.message);
	hoist_tick(hoist);
}

void hoist_open_plain(struct hoist *hoist, const struct group_spec *specs,
		      const struct transfer_limits *limits)
{
	const struct hoist_options options = { .specs = specs, .limits = limits,
					       .host_parents = 24 };

	hoist_open(hoist, &options);
}

void hoist_open_stored(struct hoist *hoist, const struct transfer_limits *limits)
{
	uint32_t prompt;

	hoist_open_plain(hoist, hoist_full_state, limits);
	for (prompt = 0; prompt < 2; prompt++) {
		hoist_store(hoist, prompt, HOIST_FULL, 0, 4);
		hoist_store(hoist, prompt, HOIST_STATE, 0, 4);
	}
}

void hoist_close(struct hoist *hoist)
{
	hoist_audit(hoist);
	hoist_unpin_all(hoist);
	transfer_close(hoist->transfer);
	cache_close(hoist->box.cache);
	arena_close(hoist->arena);
}

/* --- accounting ------------------------------------------------------------------------------- */

static uint32_t ticket_refs(const struct hoist *hoist, uint32_t group, uint32_t block)
{
	const struct transfer *const transfer = hoist->transfer;
	uint32_t                     refs = 0;
	uint32_t                     slot, i, g, b;

	for (slot = 0; slot < transfer->limits.op_credits; slot++) {
		if (transfer->tickets[slot].state == TICKET_FREE)
			continue;
		for (i = 0; i < ticket_view(&transfer->tickets[slot]).block_count; i++) {
			ticket_block(&transfer->tickets[slot], i, &g, &b);
			refs += g == group && b == block;
		}
	}
	return refs;
}

static uint32_t pin_refs(const struct hoist *hoist, uint32_t group, uint32_t block)
{
	uint32_t refs = 0;
	uint32_t i;

	for (i = 0; i < hoist->pin_count; i++)
		refs += hoist->pins[i].group == group && hoist->pins[i].block == block;
	return refs;
}

void hoist_audit(struct hoist *hoist)
{
	const struct pool *const pool = cache_pool(hoist->box.cache, STRATUM_HOST);
	uint32_t                 parent, slot, g;
	struct cell_view         view;

	transfer_audit(hoist->transfer);
	cache_audit(hoist->box.cache);
	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			KVS_ASSERT_CMP(pool_refs(pool, g, block), ==,
				       (uint32_t)cache_view(hoist->box.cache, STRATUM_HOST, g,
							    block, &view) +
					       ticket_refs(hoist, g, block) +
					       pin_refs(hoist, g, block));
		}
	}
}

/* --- contents --------------------------------------------------------------------------------- */

struct cell_name hoist_name(const struct hoist *hoist, uint32_t prompt, uint32_t group,
			    uint32_t page)
{
	return (struct cell_name){ &hoist->box.space, &hoist->hashes[prompt][page], group, 0 };
}

struct kvs_key hoist_key(const struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page)
{
	return row_key(hoist->transfer, &hoist->box.space, &hoist->hashes[prompt][page], group, 0);
}

struct prefix_hash hoist_tail(const struct hoist *hoist, uint32_t tokens)
{
	const uint32_t     pages = tokens / HOIST_PAGE;
	struct prefix_hash hash;

	prefix_hash_tail(&hoist->prompts[0], pages, tokens % HOIST_PAGE,
			 pages > 0 ? &hoist->hashes[0][pages - 1] : NULL, &hash);
	return hash;
}

struct kvs_key hoist_tail_key(const struct hoist *hoist, uint32_t group, uint32_t tokens)
{
	const struct prefix_hash hash = hoist_tail(hoist, tokens);

	return row_key(hoist->transfer, &hoist->box.space, &hash, group, 0);
}

static uint32_t find_name(const struct hoist *hoist, const struct kvs_key *key)
{
	uint32_t i = 0;

	while (i < hoist->name_count && memcmp(&hoist->names[i], key, sizeof(*key)) != 0)
		i++;
	return i;
}

bool hoist_stored(const struct hoist *hoist, const struct kvs_key *key)
{
	return find_name(hoist, key) < hoist->name_count;
}

void hoist_store_key(struct hoist *hoist, const struct kvs_key *key)
{
	if (hoist_stored(hoist, key))
		return;
	KVS_ASSERT_CMP(hoist->name_count, <, HOIST_NAMES);
	hoist->names[hoist->name_count++] = *key;
}

void hoist_store(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t first, uint32_t end)
{
	for (; first < end; first++) {
		const struct kvs_key key = hoist_key(hoist, prompt, group, first);

		hoist_store_key(hoist, &key);
	}
}

void hoist_unstore(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t first,
		   uint32_t end)
{
	for (; first < end; first++) {
		const struct kvs_key key = hoist_key(hoist, prompt, group, first);
		const uint32_t       i = find_name(hoist, &key);

		if (i < hoist->name_count)
			hoist->names[i] = hoist->names[--hoist->name_count];
	}
}

void hoist_publish_name(struct hoist *hoist, const struct cell_name *name)
{
	const uint32_t block = cache_host_acquire(hoist->box.cache, name->group);

	KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
	cache_host_publish(hoist->box.cache, name, block, CELL_CHUNK);
	transfer_published(hoist->transfer, name);
}

void hoist_publish(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page)
{
	const struct cell_name name = hoist_name(hoist, prompt, group, page);

	hoist_publish_name(hoist, &name);
}

uint32_t hoist_find(const struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page)
{
	const struct cell_name name = hoist_name(hoist, prompt, group, page);

	return cache_find(hoist->box.cache, STRATUM_HOST, &name);
}

uint32_t hoist_pin_all(struct hoist *hoist, uint32_t group)
{
	uint32_t count = 0;
	uint32_t block;

	for (; (block = cache_host_acquire(hoist->box.cache, group)) != BLOCK_NULL; count++) {
		KVS_ASSERT_CMP(hoist->pin_count, <, ARRAY_COUNT(hoist->pins));
		hoist->pins[hoist->pin_count++] = (struct cache_block){ group, block };
	}
	return count;
}

void hoist_unpin_all(struct hoist *hoist)
{
	while (hoist->pin_count > 0) {
		const struct cache_block *const pin = &hoist->pins[--hoist->pin_count];

		cache_unpin(hoist->box.cache, STRATUM_HOST, pin->group, pin->block);
	}
}

/* --- rounds ----------------------------------------------------------------------------------- */

enum read_outcome hoist_read(struct hoist *hoist, uint32_t prompt, uint32_t tokens)
{
	const struct transfer_ask ask = { .request = 100 + prompt,
					  .prompt = &hoist->prompts[prompt],
					  .space = &hoist->box.space,
					  .hashes = hoist->hashes[prompt],
					  .page_count = tokens / HOIST_PAGE,
					  .bound_tokens = tokens };
	const enum read_outcome   outcome =
		transfer_read(hoist->transfer, &ask, &hoist->lease, &hoist->shortfall);

	hoist_audit(hoist);
	return outcome;
}

struct lease hoist_ask(struct hoist *hoist, uint32_t prompt, uint32_t tokens)
{
	const enum read_outcome outcome = hoist_read(hoist, prompt, tokens);

	if (outcome != READ_ASKED)
		KVS_PANIC("not asked: %s", read_outcome_name(outcome));
	return hoist->lease;
}

void hoist_offer(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page)
{
	const struct cell_name name = hoist_name(hoist, prompt, group, page);

	transfer_offer(hoist->transfer, &name);
}

void hoist_fact(struct hoist *hoist, const struct fact *fact)
{
	KVS_ASSERT_CMP(hoist->tick.fact_count, <, HOIST_FACTS);
	hoist->facts[hoist->tick.fact_count++] = *fact;
}

void hoist_notice(struct hoist *hoist, uint64_t op_id)
{
	KVS_ASSERT_CMP(hoist->tick.notice_count, <, HOIST_FACTS);
	hoist->notices[hoist->tick.notice_count++].op_id = op_id;
}

struct fact hoist_answer(struct hoist *hoist, const struct op *op)
{
	struct fact fact;
	uint32_t    i;

	fact_init(&fact, op);
	fact.retired = true;
	for (i = 0; i < op->key_count; i++) {
		if (op->kind == OP_PUT)
			hoist_store_key(hoist, &op->keys[i]);
		if (hoist_stored(hoist, &op->keys[i])) {
			bits_set(fact.ok.words, i);
			continue;
		}
		fact.reason = OP_REASON_MISS;
		if (op->kind == OP_GET)
			bits_set(fact.object_fault.words, i);
	}
	return fact;
}

void hoist_tick(struct hoist *hoist)
{
	hoist->tick.facts = hoist->facts;
	hoist->tick.notices = hoist->notices;
	transfer_begin(hoist->transfer);
	transfer_tick(hoist->transfer, &hoist->tick);
	hoist->tick.fact_count = 0;
	hoist->tick.notice_count = 0;
	hoist_audit(hoist);
}

void hoist_tick_of(struct hoist *hoist, struct fact fact)
{
	hoist_fact(hoist, &fact);
	hoist_tick(hoist);
}

void hoist_serve(struct hoist *hoist)
{
	const struct op op = hoist_last_op(hoist);

	hoist_tick_of(hoist, hoist_answer(hoist, &op));
}

struct op hoist_get(struct hoist *hoist, uint32_t prompt, uint32_t tokens)
{
	struct op op;

	hoist_ask(hoist, prompt, tokens);
	hoist_serve(hoist);
	op = hoist_last_op(hoist);
	KVS_ASSERT_CMP(op.kind, ==, OP_GET);
	return op;
}

uint32_t hoist_op_count(const struct hoist *hoist)
{
	return transfer_out(hoist->transfer)->op_count;
}

struct op hoist_last_op(const struct hoist *hoist)
{
	const struct transfer_outputs *const out = transfer_out(hoist->transfer);

	KVS_ASSERT_CMP(out->op_count, >, 0);
	return out->ops[out->op_count - 1];
}

struct transfer_wake hoist_wake(const struct hoist *hoist)
{
	const struct transfer_outputs *const out = transfer_out(hoist->transfer);

	KVS_ASSERT_CMP(out->wake_count, ==, 1);
	return out->wakes[0];
}

/* --- expectations ----------------------------------------------------------------------------- */

void hoist_expect_wake(const struct hoist *hoist, struct lease lease, enum read_outcome outcome)
{
	const struct transfer_wake wake = hoist_wake(hoist);

	KVS_ASSERT_CMP(wake.lease.id, ==, lease.id);
	if (wake.outcome != outcome)
		KVS_PANIC("woken: %s", read_outcome_name(wake.outcome));
}

void hoist_expect_home(const struct hoist *hoist)
{
	const struct transfer_load load = transfer_load(hoist->transfer);

	KVS_ASSERT_CMP(load.tickets, ==, 0);
	KVS_ASSERT_CMP(load.host_refs, ==, 0);
	KVS_ASSERT_CMP(load.quarantined, ==, 0);
	KVS_ASSERT(transfer_is_quiet(hoist->transfer));
	KVS_ASSERT_CMP(transfer_wake_ns(hoist->transfer), ==, UINT64_MAX);
}

void hoist_expect_cancel(const struct hoist *hoist, uint64_t op_id)
{
	const struct op cancel = hoist_last_op(hoist);

	KVS_ASSERT_CMP(cancel.kind, ==, OP_CANCEL);
	KVS_ASSERT_CMP(cancel.op_id, ==, op_id);
	KVS_ASSERT_CMP(cancel.key_count, ==, 0);
}

uint64_t hoist_counter(const struct hoist *hoist, enum transfer_counter counter)
{
	return transfer_counts(hoist->transfer).counters[counter];
}

uint64_t hoist_drops(const struct hoist *hoist, enum backup_drop reason)
{
	return transfer_counts(hoist->transfer).drops[reason];
}
