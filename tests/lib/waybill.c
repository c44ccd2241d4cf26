/* SPDX-License-Identifier: Apache-2.0 */
/* See waybill.h. */
#include "waybill.h"

#include <string.h>

#include "base/bits.h"
#include "transfer/parts.h"

const struct transfer_limits waybill_limits = { .op_credits = WAYBILL_OPS,
					       .host_credits = 14,
					       .keys_max = WAYBILL_ROWS,
					       .put_keys_max = 3,
					       .backup_max = 5,
					       .negative_max = WAYBILL_NEGATIVES,
					       .history_max = 8,
					       .tail_hint_max = 4,
					       .tails_max = 2,
					       .extension_min = 2,
					       .lookahead_tokens = 20,
					       .deadline_ns = 60,
					       .hold_ns = 30,
					       .marks = { .jobs_high = 8, .jobs_low = 3 } };

uint32_t waybill_count(const struct waybill *waybill, enum phase phase)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < WAYBILL_OPS; i++)
		count += waybill->flights[i].phase == phase;
	return count;
}

static struct flight *flight_of(struct waybill *waybill, uint32_t claim)
{
	uint32_t i;

	for (i = 0; i < WAYBILL_OPS; i++) {
		struct flight *const flight = &waybill->flights[i];

		if (flight->lease == claim + 1 &&
		    (flight->phase == OUT || flight->phase == ANSWERED))
			return flight;
	}
	return NULL;
}

static struct flight *flight_by_id(struct waybill *waybill, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < WAYBILL_OPS; i++) {
		if (waybill->flights[i].phase != GONE && waybill->flights[i].op.op_id == op_id)
			return &waybill->flights[i];
	}
	KVS_PANIC("op %llu is none", (unsigned long long)op_id);
}

static uint32_t find_negative(const struct waybill *waybill, const struct kvs_key *key)
{
	uint32_t i = 0;

	while (i < waybill->negative_count && memcmp(&waybill->negatives[i], key, sizeof(*key)) != 0)
		i++;
	return i;
}

static void erase_negative(struct waybill *waybill, uint32_t i)
{
	waybill->negative_count--;
	memmove(&waybill->negatives[i], &waybill->negatives[i + 1],
		(waybill->negative_count - i) * sizeof(waybill->negatives[0]));
}

/* --- after every step ------------------------------------------------------------------------- */

/* Blocks of an op lie still; destinations bear no name, and nobody else has them. */
static void check_blocks(struct waybill *waybill, const struct flight *flight)
{
	struct cache *const cache = waybill->hoist.box.cache;
	struct cell_view    view;
	uint32_t            i, group, block;

	for (i = 0; i < flight->op.key_count; i++) {
		const struct cache_block *const had = &flight->blocks[i];

		ticket_block(transfer_find(waybill->hoist.transfer, flight->op.op_id), i, &group,
			     &block);
		KVS_ASSERT(group == had->group && block == had->block);
		KVS_ASSERT_CMP(cache_view(cache, STRATUM_HOST, group, block, &view), ==,
			       flight->op.kind == OP_PUT);
		if (flight->op.kind == OP_GET) {
			KVS_ASSERT_CMP(pool_refs(cache_pool(cache, STRATUM_HOST), group, block),
				       ==, 1);
		}
	}
}

void waybill_check(struct waybill *waybill)
{
	const struct transfer_load load = transfer_load(waybill->hoist.transfer);
	uint32_t                   refs = 0, put_refs = 0, puts = 0, ready = 0;
	uint32_t                   i;

	for (i = 0; i < WAYBILL_OPS; i++) {
		const struct flight *const flight = &waybill->flights[i];

		if (flight->phase == GONE || flight->op.kind == OP_QUERY)
			continue;
		check_blocks(waybill, flight);
		refs += flight->op.key_count;
		put_refs += flight->op.kind == OP_PUT ? flight->op.key_count : 0;
		puts += flight->op.kind == OP_PUT;
	}
	for (i = 0; i < waybill->claim_count; i++) {
		ready += waybill->claims[i].ready;
		refs += waybill->claims[i].ready ? waybill->claims[i].rows : 0;
	}
	KVS_ASSERT_CMP(load.host_refs, ==, refs);
	KVS_ASSERT_CMP(refs, <=, waybill_limits.host_credits);
	KVS_ASSERT_CMP(load.put_refs, ==, put_refs);
	KVS_ASSERT_CMP(put_refs, <=, waybill_limits.host_credits / 2);
	KVS_ASSERT_CMP(load.put_tickets, ==, puts);
	KVS_ASSERT_CMP(puts, <=, WAYBILL_OPS / 2);
	KVS_ASSERT_CMP(load.ready, ==, ready);
	KVS_ASSERT_CMP(load.quarantined, ==, waybill_count(waybill, STUCK));
	KVS_ASSERT_CMP(load.tickets, ==, WAYBILL_OPS - waybill_count(waybill, GONE) + ready);
	KVS_ASSERT_CMP(load.negatives, ==, waybill->negative_count);
	KVS_ASSERT_CMP(load.gate_closed, ==, waybill->closed);
	hoist_audit(&waybill->hoist);
}

/* --- what the manager says -------------------------------------------------------------------- */

static void absorb_op(struct waybill *waybill, const struct op *op)
{
	const struct ticket *const ticket = transfer_find(waybill->hoist.transfer, op->op_id);
	struct flight             *flight = waybill->flights;
	uint32_t                   i;

	KVS_ASSERT_CMP(op->op_id, >, waybill->last_id);
	KVS_ASSERT(!waybill->closed && !waybill->intent && waybill->hoist.tick.permits.storage);
	KVS_ASSERT_CMP(op->key_count, <=, WAYBILL_ROWS);
	waybill->last_id = op->op_id;
	while (flight->phase != GONE)
		flight++;
	KVS_ASSERT_CMP(flight - waybill->flights, <, WAYBILL_OPS);
	*flight = (struct flight){ .phase = OUT, .op = *op };
	for (i = 0; op->kind != OP_PUT && i < waybill->claim_count; i++) {
		if (waybill->claims[i].lease.id == ticket->lease.id)
			flight->lease = i + 1;
	}
	waybill->put_rows += op->kind == OP_PUT ? op->key_count : 0;
	for (i = 0; i < op->key_count; i++) {
		flight->keys[i] = op->keys[i];
		if (op->kind == OP_QUERY) {
			KVS_ASSERT_CMP(find_negative(waybill, &op->keys[i]), ==,
				       waybill->negative_count);
		} else {
			ticket_block(ticket, i, &flight->blocks[i].group, &flight->blocks[i].block);
		}
	}
}

/* Of a tick before its facts land: who is cancelled may be answered with the same tick. */
static void absorb_cancels(struct waybill *waybill)
{
	const struct transfer_outputs *const out = transfer_out(waybill->hoist.transfer);

	for (; waybill->cancels < out->op_count; waybill->cancels++) {
		struct flight *flight;

		if (out->ops[waybill->cancels].kind != OP_CANCEL)
			continue;
		flight = flight_by_id(waybill, out->ops[waybill->cancels].op_id);
		KVS_ASSERT(!flight->cancelled && flight->lease == 0);
		flight->cancelled = true;
	}
}

void waybill_absorb(struct waybill *waybill)
{
	const struct transfer_outputs *const out = transfer_out(waybill->hoist.transfer);

	for (; waybill->absorbed < out->op_count; waybill->absorbed++) {
		if (out->ops[waybill->absorbed].kind != OP_CANCEL)
			absorb_op(waybill, &out->ops[waybill->absorbed]);
	}
	absorb_cancels(waybill);
}

static void let_go(struct waybill *waybill, uint32_t claim)
{
	struct flight *const flight = flight_of(waybill, claim);

	waybill->claims[claim].waiting = false;
	waybill->claims[claim].ready = false;
	if (flight)
		flight->lease = 0;
}

void waybill_drop(struct waybill *waybill, uint32_t claim)
{
	waybill->left_waiting += waybill->claims[claim].waiting;
	let_go(waybill, claim);
	transfer_drop_lease(waybill->hoist.transfer, waybill->claims[claim].lease);
	waybill_absorb(waybill);
}

/* What one claim must hear on this tick; READ_ASKED: it depends, or nothing. */
static enum read_outcome must_hear(struct waybill *waybill, uint32_t claim, bool closes,
				   bool lets_go)
{
	struct flight *const flight = flight_of(waybill, claim);
	const bool           query = flight->op.kind == OP_QUERY;

	if (closes && query)
		return READ_PRESSURE;
	if (lets_go && query)
		return READ_MAINTENANCE;
	if (waybill->claims[claim].until_ns <= waybill->hoist.tick.now_ns)
		return READ_DEADLINE;
	return READ_ASKED;
}

/* Nothing else than what must be; else what became of its op. */
static void check_wake(struct waybill *waybill, uint32_t claim, enum read_outcome must,
		       const struct transfer_wake *wake)
{
	const struct flight *const flight = flight_of(waybill, claim);
	const struct fact *const   fact = &flight->fact;
	const bool                 query = flight->op.kind == OP_QUERY;

	KVS_ASSERT_CMP(wake->shortfall.tokens, <=, wake->shortfall.wanted_tokens);
	if (must != READ_ASKED || wake->outcome == READ_LOCAL) {
		KVS_ASSERT(must == READ_ASKED || must == wake->outcome);
		return;
	}
	KVS_ASSERT_CMP(flight->phase, ==, ANSWERED);
	KVS_ASSERT(wake->outcome != READ_DEADLINE && wake->outcome != READ_PRESSURE);
	if (query) {
		KVS_ASSERT(wake->outcome != READ_READY);
		KVS_ASSERT_CMP(wake->outcome == READ_FROZEN, ==,
			       !waybill->hoist.tick.permits.storage);
	} else if (!fact->retired) {
		KVS_ASSERT_CMP(wake->outcome, ==, READ_QUARANTINE);
	} else {
		KVS_ASSERT_CMP(wake->outcome == READ_READY, ==, bits_count(fact->ok.words, 64) > 0);
	}
}

static const struct transfer_wake *wake_of(const struct waybill *waybill, uint32_t claim)
{
	const struct transfer_outputs *const out = transfer_out(waybill->hoist.transfer);
	const struct transfer_wake          *wake = NULL;
	uint32_t                             i;

	for (i = 0; i < out->wake_count; i++) {
		if (out->wakes[i].lease.id != waybill->claims[claim].lease.id)
			continue;
		KVS_ASSERT(!wake);
		wake = &out->wakes[i];
	}
	return wake;
}

/* --- a tick ----------------------------------------------------------------------------------- */

static void hear(struct waybill *waybill, bool closes, bool lets_go)
{
	uint32_t heard = 0;
	uint32_t i;

	for (i = 0; i < waybill->claim_count; i++) {
		struct claim *const               claim = &waybill->claims[i];
		const struct transfer_wake *const wake = wake_of(waybill, i);
		enum read_outcome                 must;

		heard += wake != NULL;
		if (!claim->waiting) {
			KVS_ASSERT(!wake);
			claim->ready = claim->ready && claim->until_ns > waybill->hoist.tick.now_ns;
			continue;
		}
		must = must_hear(waybill, i, closes, lets_go);
		KVS_ASSERT(wake || must == READ_ASKED);
		if (!wake)
			continue;
		check_wake(waybill, i, must, wake);
		if (wake->outcome == READ_READY) {
			claim->waiting = false;
			claim->ready = true;
			claim->rows =
				(uint32_t)bits_count(flight_of(waybill, i)->fact.ok.words, 64);
			claim->until_ns = waybill->hoist.tick.now_ns + waybill_limits.hold_ns;
			continue;
		}
		let_go(waybill, i);
	}
	KVS_ASSERT_CMP(heard, ==, transfer_out(waybill->hoist.transfer)->wake_count);
}

/* What a fact says of objects; and may[]: what its rows may have published. */
static void learn(struct waybill *waybill, const struct flight *flight, struct kvs_key *may,
		  uint32_t *may_count)
{
	uint32_t i;

	for (i = 0; i < flight->op.key_count; i++) {
		const struct kvs_key *const key = &flight->keys[i];
		const bool                  ok = bits_test(flight->fact.ok.words, i);
		const uint32_t              known = find_negative(waybill, key);

		if (flight->op.kind == OP_PUT && ok && known < waybill->negative_count)
			erase_negative(waybill, known);
		if (flight->op.kind == OP_GET && bits_test(flight->fact.object_fault.words, i) &&
		    known == waybill->negative_count) {
			if (waybill->negative_count == WAYBILL_NEGATIVES)
				erase_negative(waybill, 0);
			waybill->negatives[waybill->negative_count++] = *key;
		}
		if (flight->op.kind == OP_GET && ok && flight->fact.retired)
			may[(*may_count)++] = *key;
	}
}

/* The answered ops are over, and so are those in doubt of which a notice came. */
static void land(struct waybill *waybill, const bool *attached, const bool *noticed,
		 struct kvs_key *may, uint32_t *may_count)
{
	struct kvs_key ignored[WAYBILL_ROWS];
	uint32_t       i, ignored_count;

	for (i = 0; i < WAYBILL_OPS; i++) {
		struct flight *const flight = &waybill->flights[i];

		if (noticed[i])
			flight->phase = GONE;
		if (flight->phase != ANSWERED)
			continue;
		ignored_count = 0;
		learn(waybill, flight, attached[i] ? may : ignored,
		      attached[i] ? may_count : &ignored_count);
		flight->phase = flight->fact.retired || flight->op.kind == OP_QUERY ? GONE : STUCK;
		flight->lease = 0;
	}
}

/* Which pages Host holds. */
struct presence {
	bool page[HOIST_PROMPTS][WAYBILL_GROUPS][WAYBILL_PAGES];
};

static void snapshot(const struct waybill *waybill, struct presence *ret_there)
{
	uint32_t p, g, n;

	for (p = 0; p < HOIST_PROMPTS; p++) {
		for (g = 0; g < WAYBILL_GROUPS; g++) {
			for (n = 0; n < WAYBILL_PAGES; n++) {
				ret_there->page[p][g][n] =
					hoist_find(&waybill->hoist, p, g, n) != BLOCK_NULL;
			}
		}
	}
}

/* What is on Host now was there, or came with a retired and attached GET. */
static void check_published(const struct waybill *waybill, const struct presence *before,
			    const struct kvs_key *may, uint32_t may_count)
{
	struct presence after;
	uint32_t p, g, n, i;

	snapshot(waybill, &after);
	for (p = 0; p < HOIST_PROMPTS; p++) {
		for (g = 0; g < WAYBILL_GROUPS; g++) {
			for (n = 0; n < WAYBILL_PAGES; n++) {
				const struct kvs_key key = hoist_key(&waybill->hoist, p, g, n);

				for (i = 0; i < may_count && memcmp(&may[i], &key, sizeof(key)) != 0; i++)
					;
				KVS_ASSERT(!after.page[p][g][n] || before->page[p][g][n] ||
					   i < may_count);
			}
		}
	}
}

/* The facts of what is answered; attached[]: somebody will still wait when they are applied. */
static void bring_facts(struct waybill *waybill, bool closes, bool lets_go, bool *ret_attached)
{
	uint32_t i;

	for (i = 0; i < WAYBILL_OPS; i++) {
		const struct flight *const flight = &waybill->flights[i];

		ret_attached[i] = flight->phase != GONE && flight->lease != 0 &&
				  must_hear(waybill, flight->lease - 1, closes, lets_go) ==
					  READ_ASKED;
		if (flight->phase == ANSWERED)
			hoist_fact(&waybill->hoist, &flight->fact);
	}
}

void waybill_tick(struct waybill *waybill, uint32_t elapsed_ns, const bool *noticed)
{
	struct hoist *const hoist = &waybill->hoist;
	struct presence     before;
	bool                attached[WAYBILL_OPS];
	struct kvs_key      may[WAYBILL_OPS * WAYBILL_ROWS];
	uint32_t            may_count = 0;
	const uint32_t      jobs = hoist->tick.pressure.queued_jobs;
	const bool          closes = !waybill->closed && jobs >= waybill_limits.marks.jobs_high;
	uint32_t            i;

	snapshot(waybill, &before);
	hoist->tick.now_ns += elapsed_ns;
	bring_facts(waybill, closes, waybill->intent_new, attached);
	hoist_tick(hoist);
	waybill->closed = closes || (waybill->closed && jobs > waybill_limits.marks.jobs_low);
	waybill->absorbed = 0;
	waybill->cancels = 0;
	hear(waybill, closes, waybill->intent_new);
	waybill->intent_new = false;
	absorb_cancels(waybill);
	land(waybill, attached, noticed, may, &may_count);
	check_published(waybill, &before, may, may_count);
	waybill_absorb(waybill);
	/* One that was answered and not woken has its GET out. */
	for (i = 0; i < waybill->claim_count; i++)
		KVS_ASSERT(!waybill->claims[i].waiting || flight_of(waybill, i));
}
