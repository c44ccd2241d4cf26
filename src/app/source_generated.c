/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from a seed: people in long conversations with a few assistants.
 *
 * An assistant is a shared system prompt; some are far more popular than others.  Conversations
 * arrive over time and take turns: each prompt is everything said so far plus a new message, and
 * the answer becomes history.  Most messages are short, some carry a document, and that makes the
 * long tail.
 *
 * No text exists, so no history is kept: the id of a page follows from who wrote it.  A page that
 * lies in the system prompt altogether belongs to the assistant; any later full page to the
 * conversation, the same in every turn; a partial last page to its turn alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "app/source_kind.h"
#include "base/prng.h"

/* Arrivals wait while so many talk: 70 are usual at the rates below. */
#define CONVERSATIONS_MAX 128

/* The window of the model: a conversation ends before its next prompt would outgrow it. */
#define PROMPT_TOKENS_MAX 61440u
#define PAGES_MAX (PROMPT_TOKENS_MAX / SOURCE_PAGE_TOKENS)

#define ARRIVAL_MEAN_MS 6000
#define THINK_MEAN_MS 25000
#define BREAK_MEAN_MS 400000
#define MS_PER_ANSWER_TOKEN 20
#define ANSWER_TOKENS_MEAN 350
#define ANSWER_TOKENS_MAX 4096

struct assistant {
	uint32_t share;         /* of a hundred conversations */
	uint32_t prompt_tokens;
};

static const struct assistant assistants[] = {
	{ 40, 1900 }, { 25, 640 }, { 15, 4300 }, { 10, 2600 }, { 6, 9200 }, { 4, 300 },
};

struct conversation {
	uint64_t name;       /* 0: nobody talks here */
	uint64_t next_ms;    /* when the next message is sent */
	uint32_t assistant;
	uint32_t turn;       /* messages sent so far */
	uint32_t turns_left;
	uint64_t tokens;     /* said so far, the system prompt included */
};

struct generated {
	struct source       source;
	struct prng         prng;
	uint64_t            seed;
	uint64_t            request_count;
	uint64_t            done_count;
	uint64_t            arrival_ms; /* of the next conversation */
	uint64_t            conversation_count;
	struct conversation conversations[CONVERSATIONS_MAX];
	uint64_t            ids[PAGES_MAX];
};

/* Ids of one seed are its own; 63 bits, so that they fit a trace file's integers. */
static uint64_t page_id(const struct generated *gen, uint64_t writer, uint64_t page, uint64_t turn)
{
	return mix64(mix64(mix64(mix64(gen->seed) ^ writer) ^ page) ^ turn) >> 1;
}

/* low times a power of two below 2^octaves, and as much again: small is common, large not rare. */
static uint64_t log_uniform(struct prng *prng, uint64_t low, uint64_t octaves)
{
	const uint64_t tokens = low << prng_below(prng, octaves);

	return tokens + prng_below(prng, tokens);
}

/* One message in eight carries a document, an opening one in three. */
static uint64_t message_tokens(struct prng *prng, bool opening)
{
	if (prng_chance(prng, 1, opening ? 3 : 8))
		return log_uniform(prng, 500, opening ? 6 : 4);
	return log_uniform(prng, 12, 5);
}

static uint32_t pick_assistant(struct prng *prng)
{
	uint64_t ticket = prng_below(prng, 100);
	uint32_t i = 0;

	while (ticket >= assistants[i].share)
		ticket -= assistants[i++].share;
	return i;
}

static struct conversation *find_free(struct generated *gen)
{
	uint32_t i;

	for (i = 0; i < CONVERSATIONS_MAX; i++) {
		if (gen->conversations[i].name == 0)
			return &gen->conversations[i];
	}
	return NULL;
}

/* Who speaks next; NULL when nobody talks. */
static struct conversation *find_next(struct generated *gen)
{
	struct conversation *next = NULL;
	uint32_t             i;

	for (i = 0; i < CONVERSATIONS_MAX; i++) {
		struct conversation *talk = &gen->conversations[i];

		if (talk->name != 0 && (!next || talk->next_ms < next->next_ms))
			next = talk;
	}
	return next;
}

static void arrive(struct generated *gen, struct conversation *talk)
{
	const uint32_t assistant = pick_assistant(&gen->prng);

	*talk = (struct conversation){
		/* Names of assistants lie below. */
		.name = ARRAY_COUNT(assistants) + ++gen->conversation_count,
		.next_ms = gen->arrival_ms,
		.assistant = assistant,
		.turns_left = 1 + (uint32_t)log_uniform(&gen->prng, 1, 4),
		.tokens = assistants[assistant].prompt_tokens,
	};
	gen->arrival_ms += prng_exponential(&gen->prng, ARRIVAL_MEAN_MS);
}

/* Seat everybody who arrives before the next message is sent. */
static struct conversation *next_speaker(struct generated *gen)
{
	struct conversation *next = find_next(gen);
	struct conversation *seat = find_free(gen);

	while (seat && (!next || gen->arrival_ms <= next->next_ms)) {
		arrive(gen, seat);
		next = find_next(gen);
		seat = find_free(gen);
	}
	return next;
}

static void name_pages(struct generated *gen, const struct conversation *talk, uint32_t page_count)
{
	const uint64_t full_pages = talk->tokens / SOURCE_PAGE_TOKENS;
	const uint64_t shared_pages = assistants[talk->assistant].prompt_tokens /
				      SOURCE_PAGE_TOKENS;
	uint32_t       i;

	for (i = 0; i < page_count; i++) {
		const uint64_t writer = i < shared_pages ? talk->assistant : talk->name;

		gen->ids[i] = page_id(gen, writer, i, i < full_pages ? 0 : talk->turn);
	}
}

/* The answer is read and thought about; one time in six something else comes between. */
static void think(struct generated *gen, struct conversation *talk, uint64_t answer_tokens)
{
	const uint64_t pause_mean_ms = prng_chance(&gen->prng, 1, 6) ? BREAK_MEAN_MS
								     : THINK_MEAN_MS;

	talk->tokens += answer_tokens;
	talk->next_ms += answer_tokens * MS_PER_ANSWER_TOKEN + 1000 +
			 prng_exponential(&gen->prng, pause_mean_ms);
	if (--talk->turns_left == 0)
		talk->name = 0;
}

static uint64_t draw_answer(struct prng *prng)
{
	const uint64_t tokens = 1 + prng_exponential(prng, ANSWER_TOKENS_MEAN);

	return tokens < ANSWER_TOKENS_MAX ? tokens : ANSWER_TOKENS_MAX;
}

static int generated_next(struct source *source, struct source_request *ret_request,
			  struct kvs_error *err)
{
	struct generated    *gen = (struct generated *)source;
	struct conversation *talk;
	uint64_t             message;

	(void)err;
	if (gen->done_count == gen->request_count)
		return 0;
	for (;;) {
		talk = next_speaker(gen);
		message = message_tokens(&gen->prng, talk->turn == 0);
		if (talk->tokens + message <= PROMPT_TOKENS_MAX)
			break;
		talk->name = 0;
	}
	talk->turn++;
	talk->tokens += message;
	*ret_request = (struct source_request){
		.index = gen->done_count++,
		.timestamp_ms = talk->next_ms,
		.input_tokens = talk->tokens,
		.output_tokens = draw_answer(&gen->prng),
		.page_count = (uint32_t)source_pages(talk->tokens),
		.page_ids = gen->ids,
	};
	KVS_ASSERT_CMP(ret_request->page_count, <=, PAGES_MAX);
	name_pages(gen, talk, ret_request->page_count);
	think(gen, talk, ret_request->output_tokens);
	return 1;
}

static double generated_progress(const struct source *source)
{
	const struct generated *gen = (const struct generated *)source;

	return (double)gen->done_count / (double)gen->request_count;
}

static void generated_close(struct source *source)
{
	free(source);
}

static const struct source_kind generated_kind = { .next = generated_next,
						   .progress = generated_progress,
						   .close = generated_close };

int source_open_generated(uint64_t seed, uint64_t request_count, struct source **ret_source,
			  struct kvs_error *err)
{
	struct generated *gen;

	if (request_count == 0)
		return err_set(err, KVS_E_INVALID, "requests: 0; use at least 1");
	gen = calloc(1, sizeof(*gen));
	if (!gen)
		return err_set(err, -ENOMEM, "requests: no memory for the generator");
	gen->source.kind = &generated_kind;
	gen->seed = seed;
	gen->request_count = request_count;
	prng_seed(&gen->prng, seed);
	*ret_source = &gen->source;
	return 0;
}
