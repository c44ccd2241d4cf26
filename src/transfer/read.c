/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a prompt to a QUERY: what is there, what is missing, and whether it may be asked for.
 *
 * A tail may make the local hit longer, and a longer hit makes the lookahead reach further: both
 * are looked at until neither moves.
 */
#include "base/bits.h"
#include "transfer/parts.h"

struct cache_probe transfer_probe(const struct transfer *transfer, const struct transfer_ask *ask,
				  const struct tail *tails, uint32_t tail_count)
{
	const struct cache_prompt prompt = { .space = ask->space,
					     .hashes = ask->hashes,
					     .page_count = ask->page_count,
					     .tails = tails,
					     .tail_count = tail_count };
	struct cache_probe        probe;

	/* The scheduler checked the prompt, and tails_find() made the tails. */
	KVS_ASSERT_CMP(-cache_probe(transfer->cache, &prompt, PROBE_ALL, &probe, NULL), ==, 0);
	return probe;
}

const struct prefix_hash *asked_hash(const struct ticket *ticket, const struct query_key *key)
{
	if (key->tail != TAIL_NONE)
		return &ticket->tails[key->tail].hash;
	return &ticket->ask.hashes[key->page];
}

/* --- what is there ---------------------------------------------------------------------------- */

struct local {
	struct cache_probe probe;
	uint32_t           tokens;
	uint32_t           tail_count; /* of transfer->found */
};

static uint32_t reach_of(const struct transfer *transfer, const struct transfer_ask *ask,
			 uint32_t local_tokens)
{
	return query_reach(&transfer->query.limits, local_tokens, ask->bound_tokens);
}

/*
 * The tail that the hit ends in stays among those found, whatever longer ones are found behind it:
 * it goes missing only where the list is full of them.
 */
static void keep_tail(struct transfer *transfer, const struct tail *hit, uint32_t count)
{
	if (hit->tokens > 0 && transfer->found[count - 1].tokens > hit->tokens)
		transfer->found[count - 1] = *hit;
}

static struct tail tail_of_hit(const struct transfer *transfer, const struct local *local)
{
	uint32_t i;

	for (i = 0; i < local->tail_count; i++) {
		if (transfer->found[i].tokens == local->tokens)
			return transfer->found[i];
	}
	return (struct tail){ 0 };
}

static struct local look(struct transfer *transfer, const struct transfer_ask *ask)
{
	const bool         any_hint = transfer->tails.age.count > 0;
	struct local       local = { .probe = transfer_probe(transfer, ask, NULL, 0) };
	struct tail_search search = { .space = ask->space,
				      .prompt = ask->prompt,
				      .hashes = ask->hashes,
				      .bound = ask->bound_tokens,
				      .above = (uint32_t)local.probe.host_tokens,
				      /* Without any hint only the bound is a tail. */
				      .page_max = any_hint ? ask->page_count + 1 : 0 };
	struct tail        hit = { 0 };

	local.tokens = search.above;
	do {
		search.reach = reach_of(transfer, ask, local.tokens);
		local.tail_count = tails_find(&transfer->tails, &search, transfer->found,
					      transfer->limits.tails_max);
		if (local.tail_count == 0)
			break;
		keep_tail(transfer, &hit, local.tail_count);
		local.probe = transfer_probe(transfer, ask, transfer->found, local.tail_count);
		local.tokens = (uint32_t)local.probe.host_tokens;
		hit = tail_of_hit(transfer, &local);
	} while (reach_of(transfer, ask, local.tokens) > search.reach);
	return local;
}

/* --- whether to ask --------------------------------------------------------------------------- */

static enum read_outcome refusal(const struct transfer *transfer, const struct transfer_ask *ask,
				 uint32_t local_tokens)
{
	const struct transfer_limits *const limits = &transfer->limits;
	const enum read_outcome             closed = transfer_closed(transfer);

	if (ask->bound_tokens <= local_tokens)
		return READ_COVERED;
	if (ask->bound_tokens - local_tokens < limits->extension_min)
		return READ_SHORT;
	if (closed != READ_ASKED)
		return closed;
	if (transfer->host_refs >= limits->host_credits ||
	    transfer->slots.busy_count == limits->op_credits)
		return READ_CREDITS;
	return READ_ASKED;
}

/* Why the plan has no keys; cut_credits: how many boundaries wanted credits before it. */
static enum read_outcome outcome_of_plan(const struct query *query, uint64_t cut_credits)
{
	switch (query->bypass) {
	case QUERY_ASKED:
		return READ_ASKED;
	case QUERY_COVERED:
		return READ_COVERED;
	case QUERY_SHORT:
		return READ_SHORT;
	case QUERY_NO_BOUNDARY:
		return READ_LOOKAHEAD;
	case QUERY_ABSENT:
		return READ_NEGATIVE;
	case QUERY_CREDITS:
	case QUERY_BYPASS_COUNT:
		break;
	}
	return query->counts.cut_credits > cut_credits ? READ_CREDITS : READ_KEYS;
}

/* What Device restores alone is not looked at: nothing below its split is asked for. */
static struct view view_of(struct transfer *transfer, const struct transfer_ask *ask,
			   const struct local *local)
{
	const struct pages *const pages = cache_pages(transfer->cache);
	const uint32_t            held =
		(uint32_t)local->probe.device_tokens / transfer->groups->page_tokens;

	if (held < ask->page_count) {
		pages_find_all(pages, ask->space, ask->hashes + held, ask->page_count - held,
			       transfer->entries + held);
	}
	return (struct view){ .pages = pages,
			      .entries = transfer->entries,
			      .page_count = ask->page_count,
			      .held_in = HELD_DEVICE | HELD_HOST,
			      .held_pages = held };
}

static enum read_outcome plan(struct transfer *transfer, const struct transfer_ask *ask,
			      const struct local *local)
{
	const struct view view = view_of(transfer, ask, local);
	struct query_ask  question = { .view = &view,
				       .space = ask->space,
				       .hashes = ask->hashes,
				       .tails = transfer->found,
				       .tail_count = local->tail_count,
				       .local_tokens = local->tokens,
				       .bound_tokens = ask->bound_tokens,
				       .credits = transfer->limits.host_credits -
						  transfer->host_refs };
	const uint64_t    cut_credits = transfer->query.counts.cut_credits;

	if (negatives_mark(transfer, ask, transfer->found, local->tail_count)) {
		question.page_absent = transfer->page_bits;
		question.tail_absent = transfer->tail_bits;
	}
	query_plan(&transfer->query, &question);
	if (question.page_absent)
		negatives_unmark(transfer, ask, local->tail_count);
	return outcome_of_plan(&transfer->query, cut_credits);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void name_keys(struct transfer *transfer, struct ticket *ticket)
{
	const struct query *const query = &transfer->query;
	uint32_t                  i;

	/* What is put while the store is asked may be missing in the answer, and is not lost. */
	ticket->was_put = (struct op_mask){ 0 };
	for (i = 0; i < query->key_count; i++) {
		const struct query_key *const key = &query->keys[i];
		const uint32_t                g = query_key_group(query, key);

		ticket->asked[i] = *key;
		if (history_has(transfer, ticket->ask.space, asked_hash(ticket, key), key->column))
			bits_set(ticket->was_put.words, i);
		ticket->keys[i] = row_key(transfer, ticket->ask.space, asked_hash(ticket, key), g,
					  key->column - transfer->groups->group[g].first_column);
	}
	ticket->op.key_count = query->key_count;
	op_own_all(&ticket->op);
}

static struct lease begin(struct transfer *transfer, const struct transfer_ask *ask,
			  const struct local *local, const struct shortfall *shortfall)
{
	struct ticket *const ticket = ticket_take(transfer, OP_QUERY);
	uint32_t             i;

	KVS_ASSERT(ticket != NULL);
	ticket->lease = (struct lease){ ticket_slot(transfer, ticket), ticket->op.op_id };
	ticket->ask = *ask;
	for (i = 0; i < local->tail_count; i++)
		ticket->tails[i] = transfer->found[i];
	ticket->tail_count = local->tail_count;
	ticket->shortfall = *shortfall;
	ticket->wanted_tokens = transfer->query.boundaries[0].at.tokens;
	ticket->wanted_end = transfer->query.boundaries[0].key_end;
	name_keys(transfer, ticket);
	ticket->deadline_ns = transfer_until(transfer, transfer->limits.deadline_ns);
	list_push_tail(&transfer->waits, transfer->timed, ticket->lease.ticket);
	watch_begin(transfer, ticket, &ticket->keys[ticket->wanted_end - 1]);
	ticket_step(transfer, ticket, TICKET_ON_START_READ, NULL);
	return ticket->lease;
}

/* Why the longest boundary of the plan is not the bound; READ_READY where it is. */
static enum read_outcome cut_by(const struct transfer *transfer, const struct transfer_ask *ask)
{
	static const enum read_outcome causes[] = { [QUERY_CUT_NONE] = READ_LOOKAHEAD,
						    [QUERY_CUT_CREDITS] = READ_CREDITS,
						    [QUERY_CUT_KEYS] = READ_KEYS,
						    [QUERY_CUT_ABSENT] = READ_NEGATIVE };

	if (transfer->query.boundaries[0].at.tokens == ask->bound_tokens)
		return READ_READY;
	return causes[transfer->query.cut];
}

/* What keeps boundaries away, when it is a block. */
static void point_at_barrier(const struct transfer *transfer, struct shortfall *shortfall)
{
	const struct query *const query = &transfer->query;

	KVS_ASSERT(query->has_barrier);
	shortfall->group = query_key_group(query, &query->barrier);
	shortfall->position = query_key_position(query, &query->barrier);
}

enum read_outcome transfer_read(struct transfer *transfer, const struct transfer_ask *ask,
				struct lease *ret_lease, struct shortfall *ret_shortfall)
{
	struct shortfall  shortfall = { .group = SHORTFALL_NONE,
					.wanted_tokens = ask->bound_tokens };
	struct local      local;
	enum read_outcome outcome;

	KVS_ASSERT_CMP(ask->page_count, <=, transfer->page_max);
	KVS_ASSERT_CMP(ask->page_count, ==, ask->bound_tokens / transfer->groups->page_tokens);
	local = look(transfer, ask);
	shortfall.tokens = local.tokens;
	outcome = refusal(transfer, ask, local.tokens);
	if (outcome == READ_ASKED)
		outcome = plan(transfer, ask, &local);
	shortfall.cause = outcome == READ_ASKED ? cut_by(transfer, ask) : outcome;
	if (shortfall.cause == READ_NEGATIVE)
		point_at_barrier(transfer, &shortfall);
	if (outcome == READ_ASKED) {
		*ret_lease = begin(transfer, ask, &local, &shortfall);
	} else {
		transfer->counts.outcomes[outcome]++;
		transfer->counts.counters[TRANSFER_PRESSURE_BYPASSES] += outcome == READ_PRESSURE;
	}
	*ret_shortfall = shortfall;
	return outcome;
}
