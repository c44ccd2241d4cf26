/* SPDX-License-Identifier: Apache-2.0 */
/* See rounds.h. */
#include "rounds.h"

#include "base/err.h"
#include "key/prompt.h"
#include "match/full.h"

#define BLOCK_BYTES 4096u

struct mono_sched_options rounds_options(uint32_t device_blocks, uint32_t host_blocks,
					 bool with_store)
{
	return (struct mono_sched_options){
		.coord = { .device_blocks = device_blocks,
			   .host_blocks = host_blocks,
			   .device_policy = "lru",
			   .host_policy = "lru" },
		.transfer = { .op_credits = ROUNDS_CREDITS,
			      .host_credits = host_blocks,
			      .keys_max = ROUNDS_PAGES,
			      .put_keys_max = 4,
			      .backup_queue = 16,
			      .deadline_ns = ROUNDS_DEADLINE,
			      .hold_ns = ROUNDS_HOLD },
		.with_store = with_store,
		.page_tokens = ROUNDS_PAGE,
		.request_max = ROUNDS_REQUESTS,
		.page_max = device_blocks < ROUNDS_PAGES ? device_blocks : ROUNDS_PAGES,
		.replay_tokens = 1,
		.extension_min = 1,
	};
}

void rounds_open(struct rounds *rounds, const struct mono_sched_options *options)
{
	const uint32_t host_blocks = options->coord.host_blocks;
	const size_t   bytes = arena_part_bytes(BLOCK_BYTES, host_blocks);

	*rounds = (struct rounds){ .options = *options };
	KVS_ASSERT(arena_open(bytes, ARENA_LAZY, &rounds->arena, NULL) == 0);
	KVS_ASSERT(arena_carve(rounds->arena, BLOCK_BYTES, host_blocks, &rounds->host, NULL) == 0);
	KVS_ASSERT(mono_sched_open(options, &rounds->host, &rounds->sched, NULL) == 0);
}

void rounds_start(struct rounds *rounds, uint32_t device_blocks, uint32_t host_blocks,
		  bool with_store)
{
	const struct mono_sched_options options = rounds_options(device_blocks, host_blocks,
								 with_store);

	rounds_open(rounds, &options);
}

void rounds_close(struct rounds *rounds)
{
	mono_sched_close(rounds->sched);
	arena_close(rounds->arena);
}

static void tokens_of(uint32_t prompt, uint32_t token_count, int32_t *ret_tokens)
{
	uint32_t i;

	for (i = 0; i < token_count; i++) {
		const bool shared = i < ROUNDS_SHARED * ROUNDS_PAGE;

		ret_tokens[i] = (int32_t)((shared ? prompt / 10 : 1000 + prompt) * 100 + i);
	}
}

enum mono_transfer_outcome rounds_outcome(const struct rounds *rounds, uint64_t id)
{
	const struct mono_sched_result *const result = &rounds->results[id];

	return result->considered ? result->outcome : MONO_TRANSFER_OUTCOME_COUNT;
}

void rounds_keys(const struct rounds *rounds, uint32_t prompt, uint32_t count,
		 struct kvs_key *ret_keys)
{
	int32_t             tokens[ROUNDS_PAGES * ROUNDS_PAGE];
	const struct prompt named = { tokens, count * ROUNDS_PAGE, ROUNDS_PAGE, NULL };
	struct prefix_hash  hashes[ROUNDS_PAGES];
	uint32_t            i;

	KVS_ASSERT_CMP(count, <=, ROUNDS_PAGES);
	tokens_of(prompt, count * ROUNDS_PAGE, tokens);
	prefix_hash_chain(&named, 0, count, NULL, hashes);
	for (i = 0; i < count; i++)
		key_make(&rounds->options.space, &hashes[i], 0, 0, 0, &ret_keys[i]);
}

struct coord_probe rounds_held(const struct rounds *rounds, uint32_t prompt)
{
	const struct prefix_index *const index = &mono_sched_coord(rounds->sched)->index;
	struct kvs_key                   keys[ROUNDS_PAGES];

	rounds_keys(rounds, prompt, ROUNDS_PAGES, keys);
	return (struct coord_probe){
		.device_end = match_full(index, STRATUM_DEVICE, keys, 0, ROUNDS_PAGES, NULL),
		.host_end = match_full(index, STRATUM_HOST, keys, 0, ROUNDS_PAGES, NULL),
	};
}

uint32_t rounds_submit(struct rounds *rounds, uint64_t id, uint32_t prompt, uint32_t token_count)
{
	int32_t  tokens[ROUNDS_PAGES * ROUNDS_PAGE];
	uint32_t slot;

	KVS_ASSERT_CMP(id, <, ROUNDS_IDS);
	KVS_ASSERT_CMP(token_count, <=, ROUNDS_PAGES * ROUNDS_PAGE);
	tokens_of(prompt, token_count, tokens);
	KVS_ASSERT(mono_sched_submit(rounds->sched, id, tokens, token_count, &slot, NULL) == 0);
	return slot;
}

void rounds_next(struct rounds *rounds)
{
	mono_sched_next(rounds->sched, rounds->now_ns, &rounds->plan);
	mono_sched_audit(rounds->sched);
}

void rounds_fence(struct rounds *rounds)
{
	uint32_t i;

	for (i = 0; i < rounds->plan->copy_count; i++)
		mono_sched_copied(rounds->sched, rounds->plan->copies[i]);
	mono_sched_audit(rounds->sched);
}

/* Of every prompt, each page and each token has one origin. */
static void check_sums(const struct mono_sched_result *result)
{
	uint64_t pages = 0, tokens = 0;
	int      origin;

	for (origin = 0; origin < MONO_ORIGIN_COUNT; origin++) {
		pages += result->pages[origin];
		tokens += result->tokens[origin];
		KVS_ASSERT_CMP(result->tokens[origin], <=, result->pages[origin] * ROUNDS_PAGE);
	}
	KVS_ASSERT_CMP(pages, ==, (result->token_count + ROUNDS_PAGE - 1) / ROUNDS_PAGE);
	KVS_ASSERT_CMP(tokens, ==, result->token_count);
	/* The last token is always computed: its logits come from nowhere else. */
	KVS_ASSERT_CMP(result->tokens[MONO_ORIGIN_RECOMPUTED], >=, 1);
}

void rounds_finish(struct rounds *rounds)
{
	uint32_t i;

	for (i = 0; i < rounds->plan->pass_count; i++) {
		const struct mono_sched_pass pass = rounds->plan->passes[i];

		mono_sched_finished(rounds->sched, pass.request, &rounds->results[pass.id]);
		KVS_ASSERT_CMP(rounds->results[pass.id].id, ==, pass.id);
		KVS_ASSERT_CMP(rounds->results[pass.id].token_count, ==, pass.token_count);
		check_sums(&rounds->results[pass.id]);
		rounds->finished[pass.id]++;
	}
	mono_sched_audit(rounds->sched);
}

void rounds_step(struct rounds *rounds)
{
	rounds_next(rounds);
	rounds_fence(rounds);
	rounds_finish(rounds);
}

const struct op *rounds_op(const struct rounds *rounds, enum op_kind kind)
{
	const struct op *found = NULL;
	uint32_t         i;

	for (i = 0; i < rounds->plan->op_count; i++) {
		if (rounds->plan->ops[i].kind != kind)
			continue;
		KVS_ASSERT(!found);
		found = &rounds->plan->ops[i];
	}
	return found;
}

void rounds_answer(struct rounds *rounds, const struct op *op, uint64_t ok)
{
	struct fact fact;
	uint32_t    i;

	fact_init(&fact, op);
	fact.retired = true;
	for (i = 0; i < op->key_count; i++) {
		if ((ok >> i) & 1)
			bits_set(fact.ok.words, i);
		else
			fact.reason = OP_REASON_MISS;
	}
	KVS_ASSERT(fact_check(&fact, op, NULL) == 0);
	mono_sched_fact(rounds->sched, &fact);
}

void rounds_keep_puts(struct rounds *rounds)
{
	uint32_t i;

	for (i = 0; i < rounds->plan->op_count; i++) {
		if (rounds->plan->ops[i].kind == OP_PUT)
			rounds_answer(rounds, &rounds->plan->ops[i], UINT64_MAX);
	}
}

void rounds_drain(struct rounds *rounds)
{
	uint32_t round, i;

	for (round = 0; round < 30; round++) {
		rounds_step(rounds);
		for (i = 0; i < rounds->plan->op_count; i++) {
			const struct op *const op = &rounds->plan->ops[i];

			if (op->kind != OP_CANCEL)
				rounds_answer(rounds, op, op->kind == OP_PUT ? UINT64_MAX : 0);
		}
	}
}

void rounds_compute(struct rounds *rounds, uint32_t prompt, uint32_t token_count)
{
	rounds_submit(rounds, 0, prompt, token_count);
	rounds_drain(rounds);
}

const struct op *rounds_get(struct rounds *rounds, uint64_t id, uint32_t prompt,
			    uint32_t token_count, uint64_t found)
{
	rounds_submit(rounds, id, prompt, token_count);
	rounds_next(rounds);
	rounds_answer(rounds, rounds_op(rounds, OP_QUERY), found);
	rounds_next(rounds);
	KVS_ASSERT(rounds_op(rounds, OP_GET));
	return rounds_op(rounds, OP_GET);
}

uint32_t rounds_device_room(const struct rounds *rounds)
{
	return stratum_room(&mono_sched_coord(rounds->sched)->device);
}

uint32_t rounds_host_room(const struct rounds *rounds)
{
	return stratum_room(&mono_sched_coord(rounds->sched)->host);
}

bool rounds_at_rest(const struct rounds *rounds)
{
	const struct coord_options *const all = &rounds->options.coord;
	const struct mono_sched_load      load = mono_sched_load(rounds->sched);

	return load.requests == 0 && load.transfers == 0 && load.copies == 0 && load.backups == 0 &&
	       load.putting == 0 && rounds_device_room(rounds) == all->device_blocks &&
	       rounds_host_room(rounds) == all->host_blocks;
}

static void take_plan(struct rounds *rounds)
{
	uint32_t i;

	for (i = 0; i < rounds->plan->op_count; i++) {
		if (rounds->plan->ops[i].kind == OP_CANCEL)
			continue;
		KVS_ASSERT_CMP(rounds->pending_count, <, ROUNDS_CREDITS);
		rounds->pending[rounds->pending_count++] = rounds->plan->ops[i];
	}
	for (i = 0; i < rounds->plan->copy_count; i++) {
		KVS_ASSERT_CMP(rounds->copy_count, <, ROUNDS_COPIES);
		rounds->copies[rounds->copy_count++] = rounds->plan->copies[i];
	}
}

static void fence_some(struct rounds *rounds, struct prng *prng)
{
	uint64_t count = prng_below(prng, rounds->copy_count + 1);

	for (; count > 0; count--) {
		const uint64_t at = prng_below(prng, rounds->copy_count);

		mono_sched_copied(rounds->sched, rounds->copies[at]);
		rounds->copies[at] = rounds->copies[--rounds->copy_count];
	}
}

static void answer_some(struct rounds *rounds, struct prng *prng)
{
	uint64_t count = prng_below(prng, rounds->pending_count + 1);

	for (; count > 0; count--) {
		const uint64_t at = prng_below(prng, rounds->pending_count);
		/* Whole every other time, so that reads succeed often enough. */
		const uint64_t ok = prng_below(prng, 2) ? UINT64_MAX : prng_u64(prng);

		rounds_answer(rounds, &rounds->pending[at], ok);
		rounds->pending[at] = rounds->pending[--rounds->pending_count];
	}
}

void rounds_traffic(struct rounds *rounds, struct prng *prng)
{
	const uint32_t tokens_max = rounds->options.page_max * ROUNDS_PAGE;
	uint32_t       prompt, token_count, slot;

	if (mono_sched_load(rounds->sched).requests < rounds->options.request_max) {
		prompt = 10 + (uint32_t)prng_below(prng, 13);
		token_count = 1 + (uint32_t)prng_below(prng, tokens_max);
		slot = rounds_submit(rounds, prng_below(prng, ROUNDS_IDS), prompt, token_count);
		if (prng_below(prng, 10) == 0)
			mono_sched_abort(rounds->sched, slot);
	}
	answer_some(rounds, prng);
	rounds->now_ns += prng_below(prng, ROUNDS_DEADLINE / 2);
	rounds_next(rounds);
	take_plan(rounds);
	fence_some(rounds, prng);
	rounds_finish(rounds);
}

void rounds_end_traffic(struct rounds *rounds)
{
	while (rounds->pending_count > 0)
		rounds_answer(rounds, &rounds->pending[--rounds->pending_count], 0);
	while (rounds->copy_count > 0)
		mono_sched_copied(rounds->sched, rounds->copies[--rounds->copy_count]);
	rounds_drain(rounds);
}
