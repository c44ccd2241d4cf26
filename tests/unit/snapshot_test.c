/* SPDX-License-Identifier: Apache-2.0 */
/* Retraction: what is saved under names, what as an image, and what comes back of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quay.h"

/* A page is 8 tokens: 4 blocks of history, 4 of a window that needs 3, 2 of a state. */
static const struct group_spec hybrid[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 2 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 6, .packing = 2 },
	{ .name = "state", .kind = GROUP_STATE, .block_tokens = 4, .packing = 1 },
};

static const struct quay_spec three_groups = { .groups = hybrid, .group_count = 3, .page_tokens = 8,
					      .device_parents = 40, .host_parents = 40 };

static const struct group_spec full_only[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 1 },
};

static const struct quay_spec one_group = { .groups = full_only, .group_count = 1, .page_tokens = 2,
					   .device_parents = 8, .host_parents = 8, .quiet = true };

/* Compute to `boundary`, publish there as a chunk would, and go on to `end`. */
static void run_past(struct quay *quay, struct quay_request *request, uint32_t boundary, uint32_t end)
{
	quay_run(quay, request, 0, boundary);
	assert_int_equal(quay_grow(quay, request, end), 0);
	quay_forward(quay, request, end);
}

static struct retracted retract(struct quay *quay, struct quay_request *request)
{
	const struct retraction retraction = { .request = request->id, .tables = request->tables,
					       .completed = quay_completed(quay, request),
					       .epoch = request->epoch };
	struct retracted        retracted;

	assert_int_equal(snapshot_retract(&quay->snapshots, &retraction, &retracted, NULL), 0);
	quay_check(quay);
	return retracted;
}

static void finish_copies(struct quay *quay, const struct retracted *retracted)
{
	if (retracted->save_ticket > 0)
		assert_true(quay_done(quay, retracted->save_ticket));
	if (retracted->stash_ticket > 0)
		assert_true(quay_done(quay, retracted->stash_ticket));
	quay_check(quay);
}

/* Overwrite every block of Device that nobody holds. */
static void wipe_device(struct quay *quay)
{
	assert_true(cache_clear_device(quay->cache));
	memset(quay->device, 0xee, sizeof(quay->device));
}

static int restore(struct quay *quay, const struct retracted *retracted, struct quay_request *request,
		   uint64_t hit_tokens, uint64_t *ret_ticket, struct kvs_error *err)
{
	return snapshot_restore(&quay->snapshots, retracted->snapshot, request->tables, hit_tokens,
				ret_ticket, err);
}

/* How many tokens the request would have behind a hit. */
static uint64_t reach(const struct quay *quay, const struct retracted *retracted, uint64_t hit_tokens)
{
	return snapshot_tokens(&quay->snapshots, retracted->snapshot, hit_tokens);
}

/* The request comes again, up to where it stood. */
static void recover(struct quay *quay, const struct quay_request *before, uint32_t probe_pages,
		    struct quay_request *ret_again)
{
	quay_prompt(quay, ret_again, before->id, before->tokens[0], before->token_count);
	assert_int_equal(quay_start(quay, ret_again, probe_pages, (uint32_t)before->computed), 0);
}

/* --- the part that has names ------------------------------------------------------------------ */

static void a_retraction_saves_best_effort_with_the_pins_of_any_copy(void **state)
{
	struct quay *const  quay = quay_new(&one_group);
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 2);
	quay_run(quay, &request, 0, 2);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	retracted = retract(quay, &request);
	assert_int_equal(quay_rows(quay, retracted.save_ticket), 1);
	assert_int_equal(retracted.stash_ticket, 0);
	assert_int_equal(retracted.snapshot, SLOT_NONE);
	assert_int_equal(request.tables[0].count, 0);
	assert_false(cache_clear_device(quay->cache));
	assert_true(quay_done(quay, retracted.save_ticket));
	assert_true(cache_clear_device(quay->cache));
	assert_true(quay_has(quay, STRATUM_HOST, &request, 0, 0));
	quay_free(quay);
}

static void what_a_retraction_releases_leaves_out_blocks_of_another_request(void **state)
{
	struct quay *const  quay = quay_new(&one_group);
	struct quay_request request, other;
	struct table       *tables = request.tables;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 4);
	quay_run(quay, &request, 0, 4);
	quay_publish(quay, &request);
	quay_prompt(quay, &other, 2, 1, 2);
	quay_run(quay, &other, 1, 2);
	assert_int_equal(other.hit, 2);
	assert_int_equal(cache_releasable(quay->cache, &tables, 1), 1);
	cache_free(quay->cache, other.tables);
	assert_int_equal(cache_releasable(quay->cache, &tables, 1), 2);
	quay_finish(quay, &request);
	quay_free(quay);
}

static void the_latest_boundary_is_published_and_saved(void **state)
{
	struct quay *const  quay = quay_new(&one_group);
	struct quay_request request, again;
	struct retracted    retracted;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 6);
	quay_run(quay, &request, 0, 6);
	assert_false(quay_has(quay, STRATUM_DEVICE, &request, 0, 0));
	retracted = retract(quay, &request);
	assert_int_equal(quay_rows(quay, retracted.save_ticket), 3);
	finish_copies(quay, &retracted);
	wipe_device(quay);
	recover(quay, &request, 3, &again);
	assert_int_equal(again.hit, 6);
	assert_true(quay_done(quay, again.load_ticket));
	quay_check_request(quay, &again);
	quay_finish(quay, &again);
	quay_free(quay);
}

static void without_a_place_on_host_there_are_fewer_saves_or_none(void **state)
{
	struct quay_spec    spec = one_group;
	struct quay        *quay;
	struct quay_request request, other;
	struct retracted    first, second;

	(void)state;
	spec.host_parents = 2;
	quay = quay_new(&spec);
	quay_prompt(quay, &request, 1, 1, 6);
	quay_run(quay, &request, 0, 6);
	first = retract(quay, &request);
	assert_int_equal(quay_rows(quay, first.save_ticket), 2);
	quay_prompt(quay, &other, 2, 101, 3);
	quay_run(quay, &other, 0, 3);
	second = retract(quay, &other);
	assert_int_equal(second.save_ticket, 0);
	assert_int_equal(second.snapshot, SLOT_NONE);
	assert_int_equal(quay->snapshots.counts.no_room, 1);
	assert_int_equal(other.tables[0].count, 0);
	finish_copies(quay, &first);
	quay_free(quay);
}

/* Room for the end of a prefix is not made from its own beginning. */
static void saving_a_prefix_does_not_push_out_its_own_beginning(void **state)
{
	struct quay_spec    spec = one_group;
	struct quay        *quay;
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	spec.host_parents = 3;
	quay = quay_new(&spec);
	quay_prompt(quay, &request, 1, 1, 9);
	quay_run(quay, &request, 0, 4);
	quay_publish(quay, &request);
	assert_true(quay_done(quay, mover_save_prefix(&quay->mover, &quay->space, request.hashes, 2)));
	assert_int_equal(quay_grow(quay, &request, 9), 0);
	quay_forward(quay, &request, 9);
	retracted = retract(quay, &request);
	assert_int_equal(quay_rows(quay, retracted.save_ticket), 1);
	assert_int_equal(retracted.snapshot, SLOT_NONE);
	finish_copies(quay, &retracted);
	assert_true(quay_has(quay, STRATUM_HOST, &request, 0, 0));
	assert_true(quay_has(quay, STRATUM_HOST, &request, 0, 1));
	assert_true(quay_has(quay, STRATUM_HOST, &request, 0, 2));
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void without_a_host_a_retraction_only_publishes_and_frees(void **state)
{
	struct quay_spec    spec = one_group;
	struct quay        *quay;
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	spec.host_parents = 0;
	quay = quay_new(&spec);
	quay_prompt(quay, &request, 1, 1, 5);
	quay_run(quay, &request, 0, 5);
	retracted = retract(quay, &request);
	assert_int_equal(retracted.save_ticket, 0);
	assert_int_equal(retracted.snapshot, SLOT_NONE);
	assert_int_equal(quay_cached(quay, STRATUM_DEVICE), 2);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 0);
	quay_free(quay);
}

/* --- images ----------------------------------------------------------------------------------- */

/* 16 tokens have names, 5 more do not: 3 + 3 + 1 blocks hold them. */
static void A2_8_a_retracted_request_goes_on_exactly_where_it_stood(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request, again;
	struct retracted    retracted;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	assert_int_equal(quay_rows(quay, retracted.stash_ticket), 7);
	assert_int_equal(quay_row(quay, retracted.stash_ticket, 2)->tokens, 1);
	assert_int_equal(mover_find(&quay->mover, retracted.stash_ticket)->request, 1);
	assert_false(cache_clear_device(quay->cache));
	finish_copies(quay, &retracted);
	assert_true(snapshot_is_ready(&quay->snapshots, retracted.snapshot));
	wipe_device(quay);
	recover(quay, &request, 2, &again);
	assert_int_equal(again.hit, 16);
	assert_int_equal(reach(quay, &retracted, again.hit), 21);
	assert_int_equal(restore(quay, &retracted, &again, again.hit, &id, NULL), 0);
	assert_int_equal(quay_rows(quay, id), 7);
	assert_true(id > again.load_ticket);
	assert_int_equal(mover_fence(&quay->mover, 0, again.slots[0][10]), id);
	again.computed = 21;
	quay_check(quay);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), quay_rows(quay, again.load_ticket) + 7);
	assert_true(quay_done(quay, again.load_ticket));
	assert_true(quay_done(quay, id));
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	quay_check_request(quay, &again);
	/* On it goes: the page that was restored in part completes, and is right. */
	assert_int_equal(quay_grow(quay, &again, 24), 0);
	quay_forward(quay, &again, 24);
	quay_finish(quay, &again);
	assert_true(quay_has(quay, STRATUM_DEVICE, &request, 2, 5));
	quay_check(quay);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void an_image_is_never_published(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retracted    retracted;
	uint32_t            saved;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	saved = quay_rows(quay, retracted.save_ticket);
	finish_copies(quay, &retracted);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), saved);
	assert_int_equal(quay_held(quay, STRATUM_HOST), saved + 7);
	assert_false(quay_has(quay, STRATUM_HOST, &request, 0, 8));
	/* The places are for the request alone: eviction does not get at them. */
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 7);
	snapshot_drop(&quay->snapshots, retracted.snapshot);
	assert_int_equal(quay_held(quay, STRATUM_HOST), saved);
	quay_check(quay);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* Of the two slots of a state, at 21 tokens that of tokens 20 to 23 is written: it is in the image. */
static void A2_9_a_restored_state_has_its_checkpoint_and_the_slot_it_writes_next(void **state)
{
	struct quay *const           quay = quay_new(&three_groups);
	struct quay_request          request, again;
	struct retracted             retracted;
	struct demand                demands[] = { demand_dense(8, 0), demand_dense(8, 0),
						   demand_sparse(24, 4, 5) };
	struct cache_probe           probe;
	struct cache_admitted        admitted;
	const struct cache_prompt    prompt = { .space = &quay->space, .hashes = again.hashes,
						.page_count = 2 };
	const struct cache_admission admission = { .tables = again.tables, .demands = demands,
						   .probe = &probe,
						   .completed = { .computed = COMPUTED_NONE } };
	uint64_t                     load, id;
	uint32_t                     i, live = 0;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	for (i = 0; i < 7; i++)
		live += quay_row(quay, retracted.stash_ticket, i)->group == 2;
	assert_int_equal(live, 1);
	assert_int_equal(quay_row(quay, retracted.stash_ticket, 6)->position, 5);
	finish_copies(quay, &retracted);
	wipe_device(quay);
	quay_prompt(quay, &again, 1, 1, 40);
	assert_int_equal(cache_probe(quay->cache, &prompt, PROBE_ALL, &probe, NULL), 0);
	assert_int_equal(cache_admit(quay->cache, &admission, &admitted, NULL), 0);
	load = mover_load(&quay->mover, 1, admitted.moves, admitted.load_count);
	assert_int_equal(restore(quay, &retracted, &again, 16, &id, NULL), 0);
	again.epoch = admitted.epoch;
	again.computed = 21;
	again.published = 2;
	assert_true(quay_done(quay, load));
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &again);
	for (i = 0, live = 0; i < again.tables[2].count; i++)
		live += again.slots[2][i] != BLOCK_NULL;
	assert_int_equal(live, 2);
	assert_int_not_equal(again.slots[2][5], BLOCK_NULL);
	assert_int_not_equal(again.slots[2][6], BLOCK_NULL);
	quay_finish(quay, &again);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* A chunk that ran past the boundary left no state there: then no prefix restores, and the image is all. */
static void an_image_reaches_back_to_the_last_boundary_that_all_groups_have(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request, again;
	struct retracted    retracted;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	quay_run(quay, &request, 0, 13);
	retracted = retract(quay, &request);
	/* 7 of the history, 3 of the window (tokens 8 to 12), 1 of the state. */
	assert_int_equal(quay_rows(quay, retracted.stash_ticket), 7 + 3 + 1);
	finish_copies(quay, &retracted);
	wipe_device(quay);
	recover(quay, &request, 1, &again);
	assert_int_equal(again.hit, 0);
	assert_int_equal(restore(quay, &retracted, &again, 0, &id, NULL), 0);
	again.computed = 13;
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &again);
	quay_finish(quay, &again);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* The image lacks what the window no longer reads at 15 tokens; the page that ended at 8 would name it. */
static void what_neither_hit_nor_image_fills_is_never_published(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request, again;
	struct retracted    retracted;
	uint32_t            i;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	quay_run(quay, &request, 0, 15);
	retracted = retract(quay, &request);
	finish_copies(quay, &retracted);
	wipe_device(quay);
	recover(quay, &request, 1, &again);
	assert_int_not_equal(again.slots[1][4], BLOCK_NULL);
	assert_int_equal(restore(quay, &retracted, &again, 0, &id, NULL), 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(again.slots[1][i], BLOCK_NULL);
	again.computed = 15;
	quay_publish(quay, &again);
	assert_false(quay_has(quay, STRATUM_DEVICE, &request, 1, 3));
	assert_true(quay_done(quay, id));
	quay_check(quay);
	quay_finish(quay, &again);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void behind_a_longer_hit_only_the_rest_of_an_image_is_copied(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request, other, again;
	struct retracted    retracted;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	quay_run(quay, &request, 0, 13);
	retracted = retract(quay, &request);
	finish_copies(quay, &retracted);
	/* Another request with the same beginning publishes its boundary at 8. */
	quay_prompt(quay, &other, 2, 1, 8);
	quay_run(quay, &other, 0, 8);
	quay_finish(quay, &other);
	recover(quay, &request, 1, &again);
	assert_int_equal(again.hit, 8);
	assert_int_equal(reach(quay, &retracted, 8), 13);
	assert_int_equal(restore(quay, &retracted, &again, 8, &id, NULL), 0);
	assert_int_equal(quay_rows(quay, id), 3 + 3 + 1);
	again.computed = 13;
	assert_int_equal(again.load_ticket, 0);
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &again);
	quay_finish(quay, &again);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* The names are gone from both strata: what is left of an image is of no use, and the prompt is computed. */
static void behind_a_shorter_hit_an_image_is_no_use(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retracted    retracted;
	struct kvs_error    err;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	assert_int_equal(reach(quay, &retracted, 16), 16);
	finish_copies(quay, &retracted);
	assert_int_equal(reach(quay, &retracted, 16), 21);
	assert_int_equal(reach(quay, &retracted, 8), 8);
	assert_int_equal(reach(quay, &retracted, 19), 19);
	assert_int_equal(reach(quay, &retracted, 24), 24);
	assert_int_equal(restore(quay, &retracted, &request, 8, &id, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "hit_tokens: 8, must be a page boundary from 16 to 21");
	/* As long as the image is, and no boundary: without a look at the tables it would be thrown away. */
	assert_int_equal(restore(quay, &retracted, &request, 21, &id, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "hit_tokens: 21, must be a page boundary from 16 to 21");
	assert_int_equal(quay->snapshots.counts.restored, 0);
	snapshot_drop(&quay->snapshots, retracted.snapshot);
	assert_int_equal(quay->snapshots.counts.dropped, 1);
	quay_check(quay);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void an_image_may_be_dropped_while_its_copies_are_under_way(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retracted    retracted;
	uint32_t            held;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	held = quay_held(quay, STRATUM_HOST);
	snapshot_drop(&quay->snapshots, retracted.snapshot);
	assert_int_equal(quay_held(quay, STRATUM_HOST), held);
	quay_check(quay);
	finish_copies(quay, &retracted);
	assert_int_equal(quay_held(quay, STRATUM_HOST), held - 7);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 0);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* A ticket of its own for the image's first block. */
static uint64_t fill_from_image(struct quay *quay, uint32_t snapshot, uint32_t target)
{
	const struct snapshot_block *const block = snapshot_blocks(&quay->snapshots, snapshot);
	const struct cache_move            move = { .group = block->group,
						    .position = block->position,
						    .source = block->block,
						    .target = target,
						    .from_host = true };

	cache_pin(quay->cache, STRATUM_HOST, move.group, move.source);
	cache_pin(quay->cache, STRATUM_DEVICE, move.group, move.target);
	return mover_bring_back(&quay->mover, 1, &move, 1);
}

static void a_refused_restore_changes_nothing(void **state)
{
	struct quay_spec    spec = three_groups;
	struct quay        *quay;
	struct quay_request request, again;
	struct retracted    retracted;
	struct kvs_error    err;
	uint64_t            filling, id = 77;
	uint32_t            kept;

	(void)state;
	spec.load_ticket_max = 1;
	quay = quay_new(&spec);
	quay_prompt(quay, &request, 1, 1, 40);
	run_past(quay, &request, 16, 21);
	retracted = retract(quay, &request);
	assert_int_equal(restore(quay, &retracted, &request, 16, &id, &err), KVS_E_BUSY);
	assert_string_equal(err.message, "snapshot: 0, its copies to Host are under way");
	finish_copies(quay, &retracted);
	assert_int_equal(restore(quay, &retracted, &request, 16, &id, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group 0 \"full\": tables: position 8 has no block to restore into");
	wipe_device(quay);
	recover(quay, &request, 2, &again);
	assert_int_equal(restore(quay, &retracted, &again, 16, &id, &err), KVS_E_FULL);
	assert_string_equal(err.message, "load_ticket_max: 1, all are in flight");
	assert_true(quay_done(quay, again.load_ticket));
	kept = again.slots[0][8];
	again.slots[0][8] = again.slots[0][0];
	assert_int_equal(restore(quay, &retracted, &again, 16, &id, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "group 0 \"full\": tables: position 8 has a published block, an image needs a private one");
	again.slots[0][8] = kept;
	filling = fill_from_image(quay, retracted.snapshot, kept);
	assert_int_equal(restore(quay, &retracted, &again, 16, &id, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "position 8 is being filled by ticket 4"));
	assert_true(quay_done(quay, filling));
	assert_int_equal(id, 77);
	quay_check(quay);
	assert_int_equal(restore(quay, &retracted, &again, 16, &id, &err), 0);
	assert_true(quay_done(quay, id));
	cache_free(quay->cache, again.tables);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* --- clearing --------------------------------------------------------------------------------- */

static void expect_no_clear(struct quay *quay)
{
	const uint32_t on_device = quay_cached(quay, STRATUM_DEVICE);
	const uint32_t on_host = quay_cached(quay, STRATUM_HOST);

	assert_false(snapshots_clear(&quay->snapshots));
	assert_int_equal(quay_cached(quay, STRATUM_DEVICE), on_device);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), on_host);
	quay_check(quay);
}

/* 7 tokens are no page: all that the request has is an image, and no cell is held by its copies. */
static struct retracted retract_nameless(struct quay *quay, struct quay_request *request)
{
	struct retracted retracted;

	quay_prompt(quay, request, 1, 1, 40);
	quay_run(quay, request, 0, 7);
	retracted = retract(quay, request);
	assert_int_equal(retracted.save_ticket, 0);
	assert_int_equal(quay_rows(quay, retracted.stash_ticket), 4 + 3 + 1);
	return retracted;
}

/*
 * An image that outlived the clear would come back with what was computed before it, under other
 * weights perhaps.
 */
static void A8_2_a_full_clear_waits_for_stashes_and_images(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request, again;
	struct retracted    retracted;
	uint64_t            id;

	(void)state;
	retracted = retract_nameless(quay, &request);
	assert_false(mover_clear(&quay->mover));
	expect_no_clear(quay);
	assert_true(quay_done(quay, retracted.stash_ticket));
	assert_int_equal(reach(quay, &retracted, 0), 7);
	expect_no_clear(quay);
	recover(quay, &request, 0, &again);
	assert_int_equal(restore(quay, &retracted, &again, 0, &id, NULL), 0);
	again.computed = 7;
	expect_no_clear(quay);
	quay_copy_loads(quay);
	quay_check_request(quay, &again);
	/* The request is aborted: its blocks are the ticket's alone. */
	cache_free(quay->cache, again.tables);
	expect_no_clear(quay);
	assert_true(quay_done(quay, id));
	assert_true(snapshots_clear(&quay->snapshots));
	assert_int_equal(quay_held(quay, STRATUM_DEVICE), 0);
	assert_int_equal(quay_held(quay, STRATUM_HOST), 0);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	quay_free(quay);
}

static void A8_2_a_full_clear_waits_for_an_image_to_be_dropped(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	retracted = retract_nameless(quay, &request);
	snapshot_drop(&quay->snapshots, retracted.snapshot);
	expect_no_clear(quay);
	assert_true(quay_done(quay, retracted.stash_ticket));
	assert_true(snapshots_clear(&quay->snapshots));
	assert_int_equal(quay_held(quay, STRATUM_HOST), 0);
	quay_free(quay);
}

/* What the stash copies late is what stood there, though Device was cleared and filled. */
static void clearing_device_beside_a_stash_keeps_what_is_copied(void **state)
{
	struct quay_spec    spec = three_groups;
	struct quay        *quay;
	struct quay_request request, other, again;
	struct retracted    retracted;
	uint32_t            end;
	uint64_t            id;

	(void)state;
	spec.device_parents = 14;
	quay = quay_new(&spec);
	retracted = retract_nameless(quay, &request);
	assert_true(cache_clear_device(quay->cache));
	assert_int_equal(quay_held(quay, STRATUM_DEVICE), 4 + 3 + 1);
	quay_prompt(quay, &other, 2, 101, 40);
	quay_run(quay, &other, 0, 8);
	for (end = 9; end <= 40 && quay_grow(quay, &other, end) == 0; end++)
		quay_forward(quay, &other, end);
	assert_true(end <= 40);
	assert_true(quay_done(quay, retracted.stash_ticket));
	quay_check_request(quay, &other);
	cache_free(quay->cache, other.tables);
	wipe_device(quay);
	recover(quay, &request, 0, &again);
	assert_int_equal(restore(quay, &retracted, &again, 0, &id, NULL), 0);
	again.computed = 7;
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &again);
	quay_finish(quay, &again);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void images_are_bounded_and_whole(void **state)
{
	struct quay_spec    spec = three_groups;
	struct quay        *quay;
	struct quay_request request[3];
	struct retracted    retracted;
	uint32_t            i;

	(void)state;
	spec.snapshots = 1;
	spec.image_blocks = 7;
	quay = quay_new(&spec);
	for (i = 0; i < 3; i++) {
		quay_prompt(quay, &request[i], i, 1 + 100 * (int32_t)i, 24);
		run_past(quay, &request[i], 8, i < 2 ? 13 : 15);
		retracted = retract(quay, &request[i]);
		assert_int_equal(retracted.snapshot, i == 0 ? 0 : SLOT_NONE);
		assert_int_equal(quay->snapshots.counts.too_large, i == 2);
		assert_int_equal(quay->snapshots.counts.no_room, i >= 1);
		finish_copies(quay, &retracted);
	}
	assert_int_equal(quay->snapshots.counts.taken, 1);
	snapshot_drop(&quay->snapshots, 0);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void half_an_image_is_none(void **state)
{
	struct quay_spec    spec = three_groups;
	struct quay        *quay;
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	/* 2 + 2 + 1 parents for the names, and one: two blocks of history, none of the window. */
	spec.host_parents = 6;
	quay = quay_new(&spec);
	quay_prompt(quay, &request, 1, 1, 24);
	run_past(quay, &request, 8, 13);
	retracted = retract(quay, &request);
	assert_int_equal(quay_rows(quay, retracted.save_ticket), 4 + 3 + 1);
	assert_int_equal(retracted.snapshot, SLOT_NONE);
	assert_int_equal(quay->snapshots.counts.no_room, 1);
	assert_int_equal(cache_host_free(quay->cache), 1);
	finish_copies(quay, &retracted);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void a_hole_in_what_is_needed_leaves_no_image(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retracted    retracted;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 24);
	run_past(quay, &request, 8, 13);
	/* As if more had been computed than was told: the state's last slot is given back. */
	cache_unpin(quay->cache, STRATUM_DEVICE, 2, request.slots[2][3]);
	request.slots[2][3] = BLOCK_NULL;
	retracted = retract(quay, &request);
	assert_int_equal(retracted.snapshot, SLOT_NONE);
	assert_int_equal(quay->snapshots.counts.incomplete, 1);
	finish_copies(quay, &retracted);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void bad_input_is_refused_with_its_name(void **state)
{
	struct quay *const  quay = quay_new(&three_groups);
	struct quay_request request;
	struct retraction   retraction = { .tables = request.tables };
	struct retracted    retracted;
	struct kvs_error    err;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 24);
	quay_run(quay, &request, 0, 13);
	retraction.completed = quay_completed(quay, &request);
	retraction.epoch = request.epoch;
	retraction.completed.computed = COMPUTED_NONE;
	assert_int_equal(snapshot_retract(&quay->snapshots, &retraction, &retracted, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "computed: 18446744073709551615 tokens, must be at most 2147483647");
	retraction.completed.computed = 7;
	assert_int_equal(snapshot_retract(&quay->snapshots, &retraction, &retracted, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "computed: 7 tokens, must be at least those of 1 pages, 8");
	retraction.completed.computed = 13;
	retraction.epoch = 99;
	assert_int_equal(snapshot_retract(&quay->snapshots, &retraction, &retracted, &err), KVS_E_INVALID);
	assert_int_equal(quay_cached(quay, STRATUM_DEVICE), 0);
	quay_check_request(quay, &request);
	quay_check(quay);
	quay_finish(quay, &request);
	candidates_clear(&quay->candidates);
	quay_free(quay);
}

static void expect_refused(struct quay *quay, uint32_t snapshot_max, uint32_t block_max,
			   const char *sentence)
{
	struct snapshots snapshots;
	struct kvs_error err;

	assert_int_equal(snapshots_open(&snapshots, &quay->mover, snapshot_max, block_max, &err),
			 KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	snapshots_close(&snapshots);
}

/* Each alone, and both together. */
static void limits_of_images_are_checked_at_open(void **state)
{
	struct quay *const quay = quay_new(&three_groups);
	struct snapshots   snapshots;

	(void)state;
	expect_refused(quay, 0, 4, "snapshot_max: 0, must be 1 to 16777216");
	expect_refused(quay, 4, 0, "block_max: 0, must be 1 to 16777216");
	expect_refused(quay, SNAPSHOT_BLOCKS_MAX + 1, 1,
		       "snapshot_max: 16777217, must be 1 to 16777216");
	expect_refused(quay, 1, SNAPSHOT_BLOCKS_MAX + 1,
		       "block_max: 16777217, must be 1 to 16777216");
	expect_refused(quay, 4097, 4096,
		       "snapshot_max: 4097, with block_max 4096 must be at most 4096");
	/* The product of these is 0 in 32 bits. */
	expect_refused(quay, 1u << 16, 1u << 16,
		       "snapshot_max: 65536, with block_max 65536 must be at most 256");
	assert_int_equal(snapshots_open(&snapshots, &quay->mover, 4096, 4096, NULL), 0);
	snapshots_close(&snapshots);
	quay_free(quay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_retraction_saves_best_effort_with_the_pins_of_any_copy),
		cmocka_unit_test(what_a_retraction_releases_leaves_out_blocks_of_another_request),
		cmocka_unit_test(the_latest_boundary_is_published_and_saved),
		cmocka_unit_test(without_a_place_on_host_there_are_fewer_saves_or_none),
		cmocka_unit_test(saving_a_prefix_does_not_push_out_its_own_beginning),
		cmocka_unit_test(without_a_host_a_retraction_only_publishes_and_frees),
		cmocka_unit_test(A2_8_a_retracted_request_goes_on_exactly_where_it_stood),
		cmocka_unit_test(an_image_is_never_published),
		cmocka_unit_test(A2_9_a_restored_state_has_its_checkpoint_and_the_slot_it_writes_next),
		cmocka_unit_test(an_image_reaches_back_to_the_last_boundary_that_all_groups_have),
		cmocka_unit_test(what_neither_hit_nor_image_fills_is_never_published),
		cmocka_unit_test(behind_a_longer_hit_only_the_rest_of_an_image_is_copied),
		cmocka_unit_test(behind_a_shorter_hit_an_image_is_no_use),
		cmocka_unit_test(an_image_may_be_dropped_while_its_copies_are_under_way),
		cmocka_unit_test(a_refused_restore_changes_nothing),
		cmocka_unit_test(A8_2_a_full_clear_waits_for_stashes_and_images),
		cmocka_unit_test(A8_2_a_full_clear_waits_for_an_image_to_be_dropped),
		cmocka_unit_test(clearing_device_beside_a_stash_keeps_what_is_copied),
		cmocka_unit_test(images_are_bounded_and_whole),
		cmocka_unit_test(half_an_image_is_none),
		cmocka_unit_test(a_hole_in_what_is_needed_leaves_no_image),
		cmocka_unit_test(bad_input_is_refused_with_its_name),
		cmocka_unit_test(limits_of_images_are_checked_at_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
