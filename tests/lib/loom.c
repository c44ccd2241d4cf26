/* SPDX-License-Identifier: Apache-2.0 */
/* See loom.h. */
#include "loom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* --- open and close --------------------------------------------------------------------------- */

void loom_init(struct loom *loom, uint32_t page_tokens, uint32_t parents)
{
	memset(loom, 0, sizeof(*loom));
	loom->options = srig_options();
	loom->options.groups = loom->groups;
	loom->options.group_count = 0;
	loom->options.page_tokens = page_tokens;
	loom->options.device_parents = parents;
	loom->options.snapshot_block_max = 16;
}

static struct group_spec *add_group(struct loom *loom, enum group_kind kind, uint32_t block_tokens,
				    uint32_t packing)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	const uint32_t           g = loom->options.group_count++;

	loom->groups[g] = (struct group_spec){ .name = names[g], .kind = kind,
					       .block_tokens = block_tokens, .packing = packing };
	return &loom->groups[g];
}

void loom_full(struct loom *loom, uint32_t block_tokens, uint32_t packing)
{
	add_group(loom, GROUP_FULL, block_tokens, packing);
}

void loom_window(struct loom *loom, uint32_t block_tokens, uint32_t packing, uint32_t window_tokens)
{
	add_group(loom, GROUP_WINDOW, block_tokens, packing)->window_tokens = window_tokens;
}

void loom_state(struct loom *loom, uint32_t block_tokens, uint32_t packing)
{
	add_group(loom, GROUP_STATE, block_tokens, packing);
}

void loom_usual(struct loom *loom, uint32_t parents, uint32_t window_tokens)
{
	loom_init(loom, 2, parents);
	loom_full(loom, 2, 1);
	loom_window(loom, 2, 1, window_tokens);
}

void loom_open(struct loom *loom)
{
	srig_open(&loom->rig, &loom->options);
	loom->rig.held = true;
	loom->sched = loom->rig.sched;
}

void loom_close(struct loom *loom)
{
	srig_close(&loom->rig);
	loom->sched = NULL;
}

/* --- requests --------------------------------------------------------------------------------- */

/* As srig_submit(), but a refusal is an answer. */
static int submit(struct loom *loom, const struct sched_request *request)
{
	const int rc = sched_submit(loom->sched, request, 1, &loom->err);

	if (rc == 0) {
		struct srig_request *const known = srig_request(&loom->rig, "");

		assert_non_null(known);
		*known = (struct srig_request){ .count = request->token_count, .told = request->token_count,
						.prompt = request->token_count, .counting = true };
		(void)snprintf(known->id, sizeof(known->id), "%s", request->id);
		memcpy(known->tokens, request->tokens,
		       request->token_count * sizeof(*request->tokens));
	}
	sched_audit(loom->sched);
	return rc;
}

int loom_try_submit(struct loom *loom, const char *id, int32_t first, uint32_t count,
		    uint32_t new_tokens)
{
	int32_t                    tokens[SRIG_TOKENS];
	const struct sched_request request = { .id = id, .tokens = tokens, .token_count = count,
					       .max_new_tokens = new_tokens,
					       .logits_from = LOGITS_NONE };

	assert_true(count < SRIG_TOKENS);
	srig_tokens(tokens, count, first, 1);
	return submit(loom, &request);
}

void loom_submit(struct loom *loom, const char *id, int32_t first, uint32_t count,
		 uint32_t new_tokens)
{
	if (loom_try_submit(loom, id, first, count, new_tokens) < 0)
		fail_msg("%s", loom->err.message);
}

void loom_submit_tokens(struct loom *loom, const char *id, const int32_t *tokens, uint32_t count,
			uint32_t new_tokens)
{
	const struct sched_request request = { .id = id, .tokens = tokens, .token_count = count,
					       .max_new_tokens = new_tokens,
					       .logits_from = LOGITS_NONE };

	if (submit(loom, &request) < 0)
		fail_msg("%s", loom->err.message);
}

/* --- events ----------------------------------------------------------------------------------- */

static int feed(struct loom *loom, const struct sched_event *event)
{
	uint32_t  applied;
	const int rc = sched_feed(loom->sched, event, 1, &applied, &loom->err);

	sched_audit(loom->sched);
	return rc;
}

int loom_feed(struct loom *loom, enum sched_event_kind kind, const char *id, uint32_t reserve)
{
	const struct sched_event event = { .kind = kind, .id = id, .reserve = reserve };

	return feed(loom, &event);
}

static void expect_feed(struct loom *loom, enum sched_event_kind kind, const char *id,
			uint32_t reserve)
{
	if (loom_feed(loom, kind, id, reserve) < 0)
		fail_msg("%s", loom->err.message);
}

int loom_try_extend(struct loom *loom, const char *id)
{
	const int32_t            token = 7;
	const struct sched_event event = { .kind = SCHED_EXTEND, .id = id, .tokens = &token,
					   .token_count = 1 };

	return feed(loom, &event);
}

void loom_extend(struct loom *loom, const char *id)
{
	srig_extend(&loom->rig, id);
}

void loom_extend_all(struct loom *loom)
{
	srig_extend_all(&loom->rig);
}

void loom_finish(struct loom *loom, const char *id)
{
	expect_feed(loom, SCHED_FINISH, id, 0);
}

void loom_abort(struct loom *loom, const char *id)
{
	expect_feed(loom, SCHED_ABORT, id, 0);
}

void loom_bootstrapped(struct loom *loom, const char *id)
{
	expect_feed(loom, SCHED_BOOTSTRAPPED, id, 0);
}

void loom_prefilled(struct loom *loom, const char *id)
{
	srig_prefilled(&loom->rig, id);
}

void loom_reserve(struct loom *loom, const char *id, uint32_t reserve)
{
	expect_feed(loom, SCHED_RESERVE, id, reserve);
}

/* --- rounds ----------------------------------------------------------------------------------- */

void loom_done(struct loom *loom)
{
	srig_let_copies(&loom->rig);
}

void loom_tell(struct loom *loom, uint64_t ticket)
{
	const struct tick tick = { .now_ns = ++loom->rig.tick.now_ns, .permits = { true, true },
				   .copies = &ticket, .copy_count = 1 };

	sched_next(loom->sched, &tick, &loom->plan);
	/* Nobody does what it says. */
	assert_string_equal(loom_rows(loom), "");
	assert_int_equal(loom->plan->copy_count, 0);
	sched_audit(loom->sched);
}

const char *loom_next(struct loom *loom)
{
	loom->plan = srig_next(&loom->rig);
	return loom_rows(loom);
}

void loom_rounds(struct loom *loom, uint32_t count)
{
	while (count-- > 0) {
		loom_next(loom);
		loom_extend_all(loom);
	}
}
