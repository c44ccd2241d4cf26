/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between Device and Host: what is taken, what it holds, and when it may be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "death.h"
#include "quay.h"

/* A history and a window of two blocks: 8 tokens publish 4 + 2 blocks. */
static const struct group_spec two_groups[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 1 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 4, .packing = 1 },
};

static const struct quay_spec streaming = { .groups = two_groups, .group_count = 2, .page_tokens = 2,
					   .device_parents = 63, .host_parents = 6 };

/* A prompt of 8 tokens from `first` on, computed, published and given back. */
static void publish_prompt(struct quay *quay, int32_t first, uint32_t tokens)
{
	struct quay_request request;

	quay_prompt(quay, &request, (uint64_t)first, first, tokens);
	quay_run(quay, &request, 0, tokens);
	quay_finish(quay, &request);
}

static void save_prompt(struct quay *quay, int32_t first, uint32_t tokens)
{
	publish_prompt(quay, first, tokens);
	assert_true(quay_done(quay, mover_drain(&quay->mover)));
}

/* --- saves ------------------------------------------------------------------------------------ */

static void A4_1_a_save_is_seen_on_host_and_lets_its_source_go_when_it_is_acknowledged(void **state)
{
	struct quay *const  quay = quay_new(&streaming);
	struct quay_request request;
	uint64_t            id;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 8);
	quay_run(quay, &request, 0, 8);
	quay_publish(quay, &request);
	assert_int_equal(candidates_count(&quay->candidates), 6);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 6);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 0);
	assert_int_equal(cache_host_free(quay->cache), 0);
	quay_finish(quay, &request);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 6);
	assert_false(cache_clear_device(quay->cache));
	quay_check(quay);
	assert_true(quay_done(quay, id));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 0);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	assert_int_equal(cache_available(quay->cache), 63);
	quay_check(quay);
	quay_free(quay);
}

static void rows_stand_group_by_group_in_order_of_publication(void **state)
{
	static const uint32_t groups[] = { 0, 0, 0, 0, 1, 1 };
	static const uint32_t pages[] = { 0, 1, 2, 3, 2, 3 };
	struct quay *const    quay = quay_new(&streaming);
	struct quay_request   request;
	uint64_t              id;
	uint32_t              i;

	(void)state;
	quay_prompt(quay, &request, 1, 1, 8);
	quay_run(quay, &request, 0, 8);
	quay_finish(quay, &request);
	id = mover_drain(&quay->mover);
	for (i = 0; i < 6; i++) {
		const struct mover_row *const row = quay_row(quay, id, i);

		assert_int_equal(row->group, groups[i]);
		assert_memory_equal(&row->name.page.hash, &request.hashes[pages[i]],
				    sizeof(row->name.page.hash));
		assert_int_equal(row->path, COPY_DEVICE_TO_HOST);
		assert_int_equal(row->kind, CELL_CHUNK);
		assert_int_equal(row->tokens, 2);
	}
	quay_done(quay, id);
	quay_free(quay);
}

static void what_host_has_is_not_saved_again(void **state)
{
	struct quay *const quay = quay_new(&streaming);

	(void)state;
	save_prompt(quay, 1, 8);
	assert_true(cache_clear_device(quay->cache));
	publish_prompt(quay, 1, 8);
	assert_int_equal(candidates_count(&quay->candidates), 6);
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(quay->mover.counts.on_host, 6);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	quay_free(quay);
}

static void a_name_twice_in_a_drain_or_in_flight_is_copied_once(void **state)
{
	struct quay_spec spec = streaming;
	struct quay     *quay;
	uint64_t         id;

	(void)state;
	spec.host_parents = 12;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	assert_true(cache_clear_device(quay->cache));
	publish_prompt(quay, 1, 8);
	assert_int_equal(candidates_count(&quay->candidates), 12);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 6);
	assert_int_equal(quay->mover.counts.in_flight, 6);
	assert_int_equal(cache_host_free(quay->cache), 6);
	/* And once more while they are under way. */
	candidates_push(&quay->candidates, &(struct cell_name){ &quay->space, &quay->known[0].hash, 0, 0 });
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(quay->mover.counts.in_flight, 7);
	quay_check(quay);
	assert_true(quay_done(quay, id));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	quay_free(quay);
}

/* Existing systems lose these candidates; here they wait for the copies that hold the places. */
static void candidates_wait_while_all_of_host_is_in_flight(void **state)
{
	struct quay *const quay = quay_new(&streaming);
	uint64_t           first, second;

	(void)state;
	publish_prompt(quay, 1, 8);
	first = mover_drain(&quay->mover);
	publish_prompt(quay, 101, 8);
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(quay->mover.counts.waited, 6);
	assert_int_equal(candidates_count(&quay->candidates), 6);
	assert_true(quay_done(quay, first));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	/* Now they replace what is colder, and are not there before their own acknowledgement. */
	second = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, second), 6);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 0);
	assert_true(quay_done(quay, second));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	quay_check(quay);
	quay_free(quay);
}

static void a_drain_takes_what_host_has_room_for(void **state)
{
	struct quay_spec spec = streaming;
	struct quay     *quay;
	uint64_t         id;

	(void)state;
	spec.host_parents = 4;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 4);
	assert_int_equal(candidates_count(&quay->candidates), 2);
	assert_true(quay_done(quay, id));
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 2);
	assert_int_equal(quay_row(quay, id, 0)->group, 1);
	assert_true(quay_done(quay, id));
	quay_check(quay);
	quay_free(quay);
}

static void a_candidate_that_device_gave_up_is_skipped(void **state)
{
	struct quay *const quay = quay_new(&streaming);

	(void)state;
	publish_prompt(quay, 1, 8);
	assert_true(cache_clear_device(quay->cache));
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(quay->mover.counts.gone, 6);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	quay_free(quay);
}

static void a_full_queue_drops_its_oldest(void **state)
{
	struct quay_spec spec = streaming;
	struct quay     *quay;
	uint64_t         id;

	(void)state;
	spec.candidates = 4;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	assert_int_equal(quay->candidates.overflowed, 2);
	assert_int_equal(quay->candidates.pushed, 6);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 4);
	assert_memory_equal(&quay_row(quay, id, 0)->name.page.hash, &quay->known[2].hash, 32);
	assert_true(quay_done(quay, id));
	publish_prompt(quay, 101, 8);
	candidates_clear(&quay->candidates);
	assert_int_equal(quay->candidates.cleared, 4);
	assert_int_equal(mover_drain(&quay->mover), 0);
	quay_free(quay);
}

static void candidates_wait_for_tickets_and_rows(void **state)
{
	struct quay_spec spec = streaming;
	struct quay     *quay;
	uint64_t         first, second;

	(void)state;
	spec.host_parents = 32;
	spec.save_ticket_max = 2;
	spec.save_row_max = 5;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 4);
	first = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, first), 4);
	publish_prompt(quay, 101, 4);
	assert_true(mover_can_save(&quay->mover));
	assert_true(mover_can_stash(&quay->mover, 1));
	assert_false(mover_can_stash(&quay->mover, 2));
	second = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, second), 1);
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(candidates_count(&quay->candidates), 3);
	assert_false(mover_can_save(&quay->mover));
	assert_false(mover_can_stash(&quay->mover, 0));
	assert_true(quay_done(quay, first));
	first = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, first), 3);
	quay_check(quay);
	assert_true(quay_done(quay, second));
	assert_true(quay_done(quay, first));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 8);
	quay_free(quay);
}

/* One group's lack of a place does not hold up another's: here blocks of a window still fit a parent. */
static void a_group_without_a_place_does_not_hold_up_others(void **state)
{
	static const struct group_spec packed[] = {
		{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 1 },
		{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 4,
		  .packing = 4 },
	};
	const struct quay_spec         spec = { .groups = packed, .group_count = 2, .page_tokens = 2,
					       .device_parents = 63, .host_parents = 2 };
	struct quay *const             quay = quay_new(&spec);
	struct cell_name               name = { &quay->space, NULL, 1, 0 };
	uint64_t                       id;

	(void)state;
	publish_prompt(quay, 1, 8);
	/* The window's blocks come first, so that one parent is theirs. */
	candidates_clear(&quay->candidates);
	name.hash = &quay->known[2].hash;
	candidates_push(&quay->candidates, &name);
	name.group = 0;
	candidates_push(&quay->candidates, &name);
	name.hash = &quay->known[0].hash;
	candidates_push(&quay->candidates, &name);
	name = (struct cell_name){ &quay->space, &quay->known[3].hash, 1, 0 };
	candidates_push(&quay->candidates, &name);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 3);
	assert_int_equal(quay_row(quay, id, 0)->group, 1);
	assert_int_equal(quay_row(quay, id, 1)->group, 0);
	assert_int_equal(quay_row(quay, id, 2)->group, 1);
	assert_int_equal(candidates_count(&quay->candidates), 1);
	quay_check(quay);
	assert_true(quay_done(quay, id));
	quay_free(quay);
}

static void a_repeated_or_unknown_completion_is_ignored(void **state)
{
	struct quay *const quay = quay_new(&streaming);
	uint64_t           id;

	(void)state;
	publish_prompt(quay, 1, 8);
	id = mover_drain(&quay->mover);
	assert_false(mover_done(&quay->mover, id + 1));
	assert_false(mover_done(&quay->mover, 0));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 0);
	assert_true(quay_done(quay, id));
	assert_false(mover_done(&quay->mover, id));
	assert_int_equal(quay->mover.counts.ignored, 3);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	assert_null(mover_find(&quay->mover, id));
	quay_check(quay);
	quay_free(quay);
}

static void ids_grow_over_all_kinds_and_never_come_back(void **state)
{
	struct quay *const  quay = quay_new(&streaming);
	struct quay_request request;
	uint64_t            save, load;

	(void)state;
	publish_prompt(quay, 1, 8);
	save = mover_drain(&quay->mover);
	assert_int_equal(save, 1);
	assert_true(quay_done(quay, save));
	assert_true(cache_clear_device(quay->cache));
	quay_prompt(quay, &request, 5, 1, 10);
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	load = request.load_ticket;
	assert_int_equal(load, 2);
	assert_true(quay_done(quay, load));
	quay_forward(quay, &request, 10);
	quay_finish(quay, &request);
	assert_true(mover_find(&quay->mover, save) == NULL);
	publish_prompt(quay, 201, 4);
	assert_int_equal(mover_drain(&quay->mover), 3);
	assert_true(quay_done(quay, 3));
	quay_free(quay);
}

/* Host got the name by another way meanwhile, a store's for one: the copy is let go, and still told of. */
static void A4_6_a_save_tells_all_its_names_even_those_that_host_got_by_another_way(void **state)
{
	struct quay *const quay = quay_new(&streaming);
	struct cell_name   name = { &quay->space, NULL, 0, 0 };
	uint32_t           block;
	uint64_t           id;

	(void)state;
	publish_prompt(quay, 1, 2);
	id = mover_drain(&quay->mover);
	assert_int_equal(quay_rows(quay, id), 2);
	name.hash = &quay->known[0].hash;
	block = cache_host_acquire(quay->cache, 0);
	memcpy(quay->host[0][block], quay->known[0].words, sizeof(quay->known[0].words[0]) * 2);
	assert_int_equal(cache_host_publish(quay->cache, &name, block, CELL_CHUNK), block);
	assert_int_equal(quay_rows(quay, id), 2);
	assert_true(quay_done(quay, id));
	assert_int_equal(cache_find(quay->cache, STRATUM_HOST, &name), block);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 2);
	assert_int_equal(quay_held(quay, STRATUM_HOST), 2);
	quay_check(quay);
	quay_free(quay);
}

/* A scheduler that does not find room asks whether there will be some when copies under way are done. */
static void the_sources_of_saves_are_room_that_will_come(void **state)
{
	struct quay_spec             spec = streaming;
	struct quay                 *quay;
	struct quay_request          request;
	struct demand                demands[] = { demand_dense(6, 0), demand_dense(6, 0) };
	const struct cache_admission admission = { .tables = request.tables, .demands = demands,
						   .completed = { .computed = COMPUTED_NONE } };
	const struct cache_block    *released;
	uint32_t                     count;
	uint64_t                     id;

	(void)state;
	spec.device_parents = 8;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	id = mover_drain(&quay->mover);
	quay_prompt(quay, &request, 2, 101, 8);
	assert_false(cache_can_admit(quay->cache, &admission, NULL, 0));
	released = mover_sources(&quay->mover, &count);
	assert_int_equal(count, 6);
	assert_true(cache_can_admit(quay->cache, &admission, released, count));
	assert_false(cache_can_admit(quay->cache, &admission, released, 3));
	assert_true(quay_done(quay, id));
	mover_sources(&quay->mover, &count);
	assert_int_equal(count, 0);
	assert_true(cache_can_admit(quay->cache, &admission, NULL, 0));
	quay_free(quay);
}

static void without_a_host_nothing_is_saved(void **state)
{
	struct quay_spec spec = streaming;
	struct quay     *quay;

	(void)state;
	spec.host_parents = 0;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(mover_save_prefix(&quay->mover, &quay->space, &quay->known[0].hash, 1), 0);
	quay_check(quay);
	quay_free(quay);
}

static void a_prefix_is_saved_past_the_queue_and_the_rest_of_it_waits(void **state)
{
	struct quay_spec    spec = streaming;
	struct quay        *quay;
	struct quay_request request;
	uint64_t            id;

	(void)state;
	spec.quiet = true;
	spec.host_parents = 5;
	quay = quay_new(&spec);
	publish_prompt(quay, 1, 8);
	quay_prompt(quay, &request, 1, 1, 8);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	id = mover_save_prefix(&quay->mover, &quay->space, request.hashes, 4);
	assert_int_equal(quay_rows(quay, id), 5);
	assert_int_equal(candidates_count(&quay->candidates), 1);
	assert_int_equal(quay->mover.counts.waited, 1);
	assert_int_equal(quay->mover.counts.unsaved, 0);
	assert_true(quay_done(quay, id));
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 5);
	quay_check(quay);
	quay_free(quay);
}

/* A cell for which there is no place, or no ticket; those that are under way are no loss. */
static void without_a_queue_what_a_prefix_cannot_save_is_counted(void **state)
{
	struct quay_spec     spec = streaming;
	struct mover_options options = { .save_ticket_max = 1, .save_row_max = 8,
					 .load_ticket_max = 1 };
	struct quay_request  request;
	struct mover         mover;
	struct quay         *quay;
	uint64_t             id;

	(void)state;
	spec.quiet = true;
	spec.host_parents = 5;
	quay = quay_new(&spec);
	options.cache = quay->cache;
	assert_int_equal(mover_open(&mover, &options, NULL), 0);
	publish_prompt(quay, 1, 8);
	quay_prompt(quay, &request, 1, 1, 8);
	id = mover_save_prefix(&mover, &quay->space, request.hashes, 4);
	assert_int_equal(mover_find(&mover, id)->rows.count, 5);
	assert_int_equal(mover.counts.unsaved, 1);
	assert_int_equal(mover_save_prefix(&mover, &quay->space, request.hashes, 4), 0);
	assert_int_equal(mover.counts.in_flight, 5);
	assert_int_equal(mover.counts.unsaved, 1 + 1);
	assert_int_equal(mover.counts.waited, 0);
	assert_true(mover_done(&mover, id));
	assert_int_equal(mover_save_prefix(&mover, &quay->space, request.hashes, 3), 0);
	assert_int_equal(mover.counts.on_host, 4);
	assert_int_equal(mover.counts.unsaved, 1 + 1);
	mover_audit(&mover);
	mover_close(&mover);
	quay_free(quay);
}

/* --- loads ------------------------------------------------------------------------------------ */

static const struct quay_spec host_hit = { .groups = two_groups, .group_count = 2, .page_tokens = 2,
					  .device_parents = 12, .host_parents = 32 };

/* 8 tokens that only Host has. */
static struct quay *open_host_hit(struct quay_request *request)
{
	struct quay *const quay = quay_new(&host_hit);

	save_prompt(quay, 1, 8);
	publish_prompt(quay, 101, 12);
	candidates_clear(&quay->candidates);
	quay_prompt(quay, request, 9, 1, 10);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), 6);
	assert_false(quay_has(quay, STRATUM_DEVICE, request, 0, 0));
	return quay;
}

static void a_host_hit_is_loaded_group_by_group(void **state)
{
	static const uint32_t groups[] = { 0, 0, 0, 0, 1, 1 };
	static const uint32_t positions[] = { 0, 1, 2, 3, 2, 3 };
	struct quay_request   request;
	struct quay *const    quay = open_host_hit(&request);
	uint32_t              i;

	(void)state;
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	assert_int_equal(request.hit, 8);
	assert_int_equal(quay_rows(quay, request.load_ticket), 6);
	assert_int_equal(mover_find(&quay->mover, request.load_ticket)->request, 9);
	for (i = 0; i < 6; i++) {
		const struct mover_row *const row = quay_row(quay, request.load_ticket, i);

		assert_int_equal(row->group, groups[i]);
		assert_int_equal(row->position, positions[i]);
		assert_int_equal(row->path, COPY_HOST_TO_DEVICE);
		assert_int_equal(row->target, request.slots[groups[i]][positions[i]]);
	}
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 6);
	quay_forward(quay, &request, 10);
	quay_check_request(quay, &request);
	quay_check(quay);
	assert_true(quay_done(quay, request.load_ticket));
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	/* A repeated one changes nothing. */
	assert_false(quay_done(quay, request.load_ticket));
	quay_check(quay);
	quay_finish(quay, &request);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 0);
	quay_free(quay);
}

static void what_a_load_brought_is_no_news_for_host(void **state)
{
	struct quay_request request;
	struct quay *const  quay = open_host_hit(&request);

	(void)state;
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	assert_int_equal(candidates_count(&quay->candidates), 6);
	assert_int_equal(mover_drain(&quay->mover), 0);
	assert_int_equal(quay->mover.counts.on_host, 6);
	assert_true(quay_done(quay, request.load_ticket));
	quay_forward(quay, &request, 10);
	quay_finish(quay, &request);
	quay_free(quay);
}

static void A1_12_whoever_reads_a_loaded_block_is_behind_its_fence(void **state)
{
	struct quay_request request, other;
	struct quay *const  quay = open_host_hit(&request);
	uint32_t            position;

	(void)state;
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	/* Published at admission: another request hits it on Device, and has the same fence. */
	quay_prompt(quay, &other, 10, 1, 10);
	assert_int_equal(quay_start(quay, &other, 4, 10), 0);
	assert_int_equal(other.hit, 8);
	assert_int_equal(other.load_ticket, 0);
	for (position = 0; position < 4; position++) {
		assert_int_equal(mover_fence(&quay->mover, 0, other.slots[0][position]),
				 request.load_ticket);
		assert_int_equal(other.slots[0][position], request.slots[0][position]);
	}
	assert_int_equal(mover_fence(&quay->mover, 1, other.slots[1][3]), request.load_ticket);
	assert_int_equal(mover_fence(&quay->mover, 0, other.slots[0][4]), 0);
	assert_true(quay_done(quay, request.load_ticket));
	assert_int_equal(mover_fence(&quay->mover, 0, other.slots[0][0]), 0);
	quay_forward(quay, &request, 10);
	quay_forward(quay, &other, 10);
	quay_check_request(quay, &other);
	quay_finish(quay, &request);
	quay_finish(quay, &other);
	quay_check(quay);
	quay_free(quay);
}

static void an_abort_during_a_load_keeps_both_sides_held(void **state)
{
	struct quay_request request;
	struct quay *const  quay = open_host_hit(&request);

	(void)state;
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	cache_free(quay->cache, request.tables);
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 6);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 6);
	assert_false(cache_clear(quay->cache));
	assert_int_equal(mover_loading(&quay->mover), 1);
	quay_check(quay);
	assert_true(quay_done(quay, request.load_ticket));
	assert_int_equal(quay_pinned(quay, STRATUM_DEVICE), 0);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	assert_int_equal(mover_loading(&quay->mover), 0);
	quay_check(quay);
	quay_free(quay);
}

static void without_a_host_hit_there_is_no_load(void **state)
{
	struct quay *const  quay = quay_new(&host_hit);
	struct quay_request request;

	(void)state;
	quay_prompt(quay, &request, 9, 1, 10);
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	assert_int_equal(request.load_ticket, 0);
	assert_int_equal(quay->mover.last_id, 0);
	quay_forward(quay, &request, 10);
	quay_finish(quay, &request);
	quay_free(quay);
}

static void an_admission_that_is_refused_holds_nothing(void **state)
{
	struct quay_request request, holder;
	struct quay *const  quay = open_host_hit(&request);

	(void)state;
	quay_prompt(quay, &holder, 3, 201, 10);
	quay_run(quay, &holder, 0, 10);
	assert_int_equal(quay_start(quay, &request, 4, 10), KVS_E_FULL);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 0);
	assert_int_equal(mover_loading(&quay->mover), 0);
	quay_finish(quay, &holder);
	quay_free(quay);
}

/* A tail's blocks are copied, on Device, into private ones: rows of the same ticket. */
static void the_copies_of_a_tail_ride_in_the_load(void **state)
{
	static const struct group_spec full = { .name = "full", .kind = GROUP_FULL, .block_tokens = 2,
						.packing = 1 };
	const struct quay_spec         spec = { .groups = &full, .group_count = 1, .page_tokens = 4,
					       .device_parents = 16, .host_parents = 8 };
	struct quay *const             quay = quay_new(&spec);
	const struct tail              tail = { .tokens = 7, .hash = { { 9 } } };
	struct quay_request            first, second;
	struct demand                  demand = demand_dense(3, 0);
	struct cache_probe             probe;
	struct cache_admitted          admitted;
	const struct cache_prompt      prompt = { .space = &quay->space, .hashes = second.hashes,
						  .page_count = 1, .tails = &tail, .tail_count = 1 };
	const struct cache_admission   admission = { .tables = second.tables, .demands = &demand,
						     .probe = &probe,
						     .completed = { .computed = COMPUTED_NONE } };
	uint64_t                       id;

	(void)state;
	quay_prompt(quay, &first, 1, 1, 7);
	quay_prompt(quay, &second, 2, 1, 10);
	quay_run(quay, &first, 0, 7);
	quay_publish(quay, &first);
	assert_int_equal(cache_publish_tail(quay->cache, first.tables, &quay->space, &tail, 7, first.epoch,
					    CELL_ENDPOINT, NULL), 0);
	cache_free(quay->cache, first.tables);
	assert_int_equal(cache_probe(quay->cache, &prompt, PROBE_ALL, &probe, NULL), 0);
	assert_int_equal(probe.host_tokens, 7);
	assert_int_equal(cache_admit(quay->cache, &admission, &admitted, NULL), 0);
	assert_int_equal(admitted.copy_count, 2);
	id = mover_load(&quay->mover, 2, admitted.moves, admitted.load_count + admitted.copy_count);
	assert_int_equal(quay_row(quay, id, 0)->path, COPY_DEVICE_TO_DEVICE);
	assert_int_equal(quay_row(quay, id, 1)->path, COPY_DEVICE_TO_DEVICE);
	assert_int_equal(quay_row(quay, id, 1)->tokens, 1);
	mover_audit(&quay->mover);
	assert_false(cache_clear_device(quay->cache));
	assert_false(mover_clear(&quay->mover));
	second.computed = 7;
	quay_forward(quay, &second, 10);
	quay_check_request(quay, &second);
	assert_true(quay_done(quay, id));
	cache_free(quay->cache, second.tables);
	assert_true(cache_clear_device(quay->cache));
	candidates_clear(&quay->candidates);
	quay_check(quay);
	quay_free(quay);
}

/* --- clearing --------------------------------------------------------------------------------- */

/* Refused whole: cells and candidates are as they were. */
static void expect_no_clear(struct quay *quay)
{
	const uint32_t on_device = quay_cached(quay, STRATUM_DEVICE);
	const uint32_t on_host = quay_cached(quay, STRATUM_HOST);
	const uint32_t candidates = candidates_count(&quay->candidates);

	assert_false(mover_clear(&quay->mover));
	assert_int_equal(quay_cached(quay, STRATUM_DEVICE), on_device);
	assert_int_equal(quay_cached(quay, STRATUM_HOST), on_host);
	assert_int_equal(candidates_count(&quay->candidates), candidates);
	quay_check(quay);
}

static void expect_clear(struct quay *quay)
{
	assert_true(mover_clear(&quay->mover));
	assert_int_equal(quay_held(quay, STRATUM_DEVICE), 0);
	assert_int_equal(quay_held(quay, STRATUM_HOST), 0);
	assert_int_equal(candidates_count(&quay->candidates), 0);
	quay_check(quay);
}

static void A8_2_a_full_clear_waits_for_saves(void **state)
{
	struct quay *const quay = quay_new(&streaming);
	uint64_t           id;

	(void)state;
	publish_prompt(quay, 1, 8);
	id = mover_drain(&quay->mover);
	publish_prompt(quay, 101, 8);
	expect_no_clear(quay);
	assert_true(quay_done(quay, id));
	assert_int_equal(candidates_count(&quay->candidates), 6);
	expect_clear(quay);
	assert_int_equal(mover_drain(&quay->mover), 0);
	quay_free(quay);
}

/* Its request is gone: only the ticket is left. */
static void A8_2_a_full_clear_waits_for_loads(void **state)
{
	struct quay_request request;
	struct quay *const  quay = open_host_hit(&request);

	(void)state;
	assert_int_equal(quay_start(quay, &request, 4, 10), 0);
	expect_no_clear(quay);
	cache_free(quay->cache, request.tables);
	expect_no_clear(quay);
	assert_false(cache_clear_device(quay->cache));
	assert_true(quay_done(quay, request.load_ticket));
	expect_clear(quay);
	quay_free(quay);
}

/* The targets of a load that nobody has published: private, and the ticket's alone. */
static void clearing_device_beside_a_load_keeps_its_targets(void **state)
{
	struct quay_request          request, other;
	struct quay *const           quay = open_host_hit(&request);
	struct demand                demands[] = { demand_dense(2, 0), demand_dense(2, 0) };
	struct cache_probe           probe;
	struct cache_admitted        admitted;
	const struct cache_prompt    prompt = { .space = &quay->space, .hashes = request.hashes,
						.page_count = 4 };
	const struct cache_admission admission = { .tables = request.tables, .demands = demands,
						   .probe = &probe,
						   .completed = { .computed = COMPUTED_NONE } };
	uint64_t                     id;

	(void)state;
	assert_int_equal(cache_probe(quay->cache, &prompt, PROBE_ALL, &probe, NULL), 0);
	assert_int_equal(cache_admit(quay->cache, &admission, &admitted, NULL), 0);
	id = mover_load(&quay->mover, request.id, admitted.moves, admitted.load_count);
	cache_free(quay->cache, request.tables);
	assert_true(cache_clear_device(quay->cache));
	assert_int_equal(quay_held(quay, STRATUM_DEVICE), 6);
	assert_int_equal(quay_pinned(quay, STRATUM_HOST), 6);
	expect_no_clear(quay);
	/* Whoever comes now gets other blocks: copies as late as these do not touch its words. */
	quay_prompt(quay, &other, 3, 201, 6);
	quay_run(quay, &other, 0, 6);
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &other);
	quay_finish(quay, &other);
	expect_clear(quay);
	quay_free(quay);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void expect_refused(const struct quay *quay, uint32_t save_tickets, uint32_t save_rows,
			   uint32_t load_tickets, const char *sentence)
{
	const struct mover_options options = { .cache = quay->cache,
					       .save_ticket_max = save_tickets,
					       .save_row_max = save_rows,
					       .load_ticket_max = load_tickets };
	struct mover               mover;
	struct kvs_error           err;

	assert_int_equal(mover_open(&mover, &options, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	mover_close(&mover);
}

static void limits_are_checked_at_open(void **state)
{
	struct quay *const         quay = quay_new(&streaming);
	const struct mover_options least = { .cache = quay->cache, .save_ticket_max = 1,
					     .save_row_max = 1, .load_ticket_max = 1 };
	const struct mover_options most = { .cache = quay->cache,
					    .save_ticket_max = MOVER_TICKETS_MAX, .save_row_max = 1,
					    .load_ticket_max = MOVER_TICKETS_MAX };
	struct mover               mover;
	struct candidates          candidates;
	struct kvs_error           err;

	(void)state;
	assert_int_equal(mover_open(&mover, &least, &err), 0);
	assert_true(mover_bytes(&mover) > 0);
	assert_int_equal(mover_drain(&mover), 0);
	mover_close(&mover);
	assert_int_equal(mover_open(&mover, &most, &err), 0);
	mover_close(&mover);
	expect_refused(quay, 0, 1, 1, "save_ticket_max: 0, must be 1 to 1048576");
	expect_refused(quay, 1, 0, 1, "save_row_max: 0, must be 1 to 67108864");
	expect_refused(quay, 1, 1, 0, "load_ticket_max: 0, must be 1 to 1048576");
	expect_refused(quay, UINT32_MAX, 1, 1,
		       "save_ticket_max: 4294967295, must be 1 to 1048576");
	expect_refused(quay, 1, UINT32_MAX, 1, "save_row_max: 4294967295, must be 1 to 67108864");
	expect_refused(quay, 1, 1, UINT32_MAX,
		       "load_ticket_max: 4294967295, must be 1 to 1048576");
	expect_refused(quay, MOVER_TICKETS_MAX + 1, 1, 1,
		       "save_ticket_max: 1048577, must be 1 to 1048576");
	expect_refused(quay, 1, 1, MOVER_TICKETS_MAX + 1,
		       "load_ticket_max: 1048577, must be 1 to 1048576");
	expect_refused(quay, 1, MOVER_ROWS_MAX - 62, 1,
		       "save_row_max: 67108802, and 63 blocks of Device, must be at most 67108864");
	assert_int_equal(candidates_open(&candidates, 0, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "capacity: 0, must be 1 to 16777216");
	candidates_close(&candidates);
	assert_int_equal(candidates_open(&candidates, CANDIDATES_MAX + 1, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "capacity: 16777217, must be 1 to 16777216");
	candidates_close(&candidates);
	quay_free(quay);
}

static void close_early(void *arg)
{
	quay_free(arg);
}

static void load_too_many(void *arg)
{
	const struct cache_move move = { .group = 0, .source = 1, .target = 1, .from_host = true };
	struct quay *const      quay = arg;

	while (mover_can_load(&quay->mover))
		quay->mover.loading_tickets++;
	mover_load(&quay->mover, 0, &move, 1);
}

static void misuse_is_caught(void **state)
{
	struct quay *const quay = quay_new(&streaming);
	uint64_t           id;

	(void)state;
	publish_prompt(quay, 1, 8);
	id = mover_drain(&quay->mover);
	assert_true(death_panics(close_early, quay, NULL, 0));
	assert_true(death_panics(load_too_many, quay, NULL, 0));
	assert_true(quay_done(quay, id));
	quay_free(quay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A4_1_a_save_is_seen_on_host_and_lets_its_source_go_when_it_is_acknowledged),
		cmocka_unit_test(rows_stand_group_by_group_in_order_of_publication),
		cmocka_unit_test(what_host_has_is_not_saved_again),
		cmocka_unit_test(a_name_twice_in_a_drain_or_in_flight_is_copied_once),
		cmocka_unit_test(candidates_wait_while_all_of_host_is_in_flight),
		cmocka_unit_test(a_drain_takes_what_host_has_room_for),
		cmocka_unit_test(a_candidate_that_device_gave_up_is_skipped),
		cmocka_unit_test(a_full_queue_drops_its_oldest),
		cmocka_unit_test(candidates_wait_for_tickets_and_rows),
		cmocka_unit_test(a_group_without_a_place_does_not_hold_up_others),
		cmocka_unit_test(a_repeated_or_unknown_completion_is_ignored),
		cmocka_unit_test(ids_grow_over_all_kinds_and_never_come_back),
		cmocka_unit_test(A4_6_a_save_tells_all_its_names_even_those_that_host_got_by_another_way),
		cmocka_unit_test(the_sources_of_saves_are_room_that_will_come),
		cmocka_unit_test(without_a_host_nothing_is_saved),
		cmocka_unit_test(a_prefix_is_saved_past_the_queue_and_the_rest_of_it_waits),
		cmocka_unit_test(without_a_queue_what_a_prefix_cannot_save_is_counted),
		cmocka_unit_test(a_host_hit_is_loaded_group_by_group),
		cmocka_unit_test(what_a_load_brought_is_no_news_for_host),
		cmocka_unit_test(A1_12_whoever_reads_a_loaded_block_is_behind_its_fence),
		cmocka_unit_test(an_abort_during_a_load_keeps_both_sides_held),
		cmocka_unit_test(without_a_host_hit_there_is_no_load),
		cmocka_unit_test(an_admission_that_is_refused_holds_nothing),
		cmocka_unit_test(the_copies_of_a_tail_ride_in_the_load),
		cmocka_unit_test(A8_2_a_full_clear_waits_for_saves),
		cmocka_unit_test(A8_2_a_full_clear_waits_for_loads),
		cmocka_unit_test(clearing_device_beside_a_load_keeps_its_targets),
		cmocka_unit_test(limits_are_checked_at_open),
		cmocka_unit_test(misuse_is_caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
