/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a reservation when its GET has retired: rows, holds, the tail's hint; and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "errand.h"
#include "match/tail.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec full_and_state[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_STATE(4, 1) };

static uint64_t allocations;
static uint64_t fail_at; /* the number of the allocation that fails; 0: none */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return ++allocations == fail_at ? NULL : __real_malloc(bytes);
}

static void reserve_pages(struct errand *errand, uint32_t pages)
{
	errand_hint(errand, 0, 0, pages);
	assert_int_equal(errand_ask(errand, pages, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand->reservation.tokens, pages * 4);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void A3_8_only_rows_that_came_whole_are_published(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 16, one_full);
	reserve_pages(&errand, 8);
	assert_int_equal(errand_publish(&errand, 0x17, false), 4);
	assert_int_equal(errand_host(&errand).held, 4);
	assert_int_equal(errand_host(&errand).idle, 4);
	assert_int_equal(box_find(&errand.box, STRATUM_HOST, 0, 3), BLOCK_NULL);
	assert_int_not_equal(box_find(&errand.box, STRATUM_HOST, 0, 4), BLOCK_NULL);
	assert_int_equal(errand_local(&errand, 8), 12); /* a shorter prefix, as a probe finds it */
	errand_close(&errand);
}

/* History came, the checkpoint did not: ordinary matching finds no prefix. */
static void A3_8_what_came_need_not_be_a_prefix(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 16, full_and_state);
	errand_hint(&errand, 1, 3, 4);
	reserve_pages(&errand, 4);
	assert_int_equal(errand.reservation.row_count, 5);
	assert_int_equal(errand_publish(&errand, 0xf, false), 4);
	assert_int_equal(errand_local(&errand, 4), 0);
	errand_close(&errand);
}

static void A3_13_a_detached_read_publishes_nothing(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	reserve_pages(&errand, 4);
	cache_reservation_release(errand.box.cache, &errand.reservation);
	assert_int_equal(errand_host(&errand).held, 0);
	assert_int_equal(errand_local(&errand, 4), 0);
	cache_reservation_release(errand.box.cache, &errand.reservation);
	errand_close(&errand);
}

static void A3_8_a_name_that_host_has_meanwhile_keeps_its_block(void **state)
{
	struct errand errand;
	uint32_t      canonical, mine;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	reserve_pages(&errand, 2);
	box_put_host(&errand.box, 0, 1, 2);
	canonical = box_find(&errand.box, STRATUM_HOST, 0, 1);
	mine = errand.rows[1].block;
	assert_int_not_equal(mine, canonical);
	assert_int_equal(errand_publish(&errand, 0x3, true), 2);
	assert_int_equal(errand.rows[1].block, canonical);
	assert_int_equal(pool_refs(cache_pool(errand.box.cache, STRATUM_HOST), 0, mine), 0);
	assert_int_equal(pool_refs(cache_pool(errand.box.cache, STRATUM_HOST), 0, canonical), 2);
	errand_close(&errand);
}

/* What would leave a hole in front of the rest goes last. */
static void A3_8_the_end_of_what_came_is_evicted_first(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 4, one_full);
	reserve_pages(&errand, 4);
	assert_int_equal(errand_publish(&errand, 0xf, false), 4);
	box_put_host(&errand.box, 0, 20, 21);
	assert_int_equal(errand_local(&errand, 4), 12);
	box_put_host(&errand.box, 0, 21, 22);
	assert_int_equal(errand_local(&errand, 4), 8);
	errand_close(&errand);
}

/* --- holds ------------------------------------------------------------------------------------ */

static void A3_9_a_hold_keeps_what_was_read_and_nothing_else(void **state)
{
	struct errand errand;
	uint32_t      page;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	box_put_host(&errand.box, 0, 0, 2);
	errand_hint(&errand, 0, 2, 6);
	assert_int_equal(errand_ask(&errand, 6, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.row_count, 4);
	/* While the GET is under way its targets stay; what it builds on does not. */
	box_put_host(&errand.box, 0, 20, 23);
	assert_int_equal(box_find(&errand.box, STRATUM_HOST, 0, 0), BLOCK_NULL);
	assert_int_equal(errand_publish(&errand, 0xf, true), 4);
	assert_int_equal(cache_host_acquire(errand.box.cache, 0), 2); /* that of page 1 */
	cache_unpin(errand.box.cache, STRATUM_HOST, 0, 2);
	box_put_host(&errand.box, 0, 24, 30);
	for (page = 2; page < 6; page++)
		assert_false(box_view(&errand.box, STRATUM_HOST, 0, page).idle);
	assert_int_equal(errand_local(&errand, 6), 0); /* the dependency is gone: no hit */
	cache_reservation_release(errand.box.cache, &errand.reservation);
	for (page = 2; page < 6; page++)
		assert_true(box_view(&errand.box, STRATUM_HOST, 0, page).idle);
	errand_close(&errand);
}

/* Admission takes references of its own on the Host sources, so that the hold may end. */
static void A3_9_admission_takes_over_from_the_hold(void **state)
{
	const struct demand   demand = demand_dense(1, 0);
	struct errand         errand;
	struct box_request    request;
	struct cache_admitted admitted;
	uint32_t              i;

	(void)state;
	errand_open(&errand, 4, 8, 4, one_full);
	reserve_pages(&errand, 4);
	errand_publish(&errand, 0xf, true);
	box_request(&errand.box, &request);
	assert_int_equal(box_probe(&errand.box, &request, 4)->host_tokens, 16);
	assert_int_equal(box_admit(&errand.box, &request, &demand, true, NULL, &admitted), 0);
	assert_int_equal(admitted.load_count, 4);
	cache_reservation_release(errand.box.cache, &errand.reservation);
	assert_int_equal(errand_host(&errand).idle, 0);
	for (i = 0; i < 4; i++)
		cache_moved(errand.box.cache, &admitted.moves[i]);
	assert_int_equal(errand_host(&errand).idle, 4);
	cache_free(errand.box.cache, request.tables);
	errand_close(&errand);
}

/* --- maintenance ------------------------------------------------------------------------------ */

static void expect_no_clear(struct errand *errand)
{
	const struct errand_host before = errand_host(errand);
	const uint32_t           local = errand_local(errand, 4);
	const uint32_t           removed = errand->box.removed;
	struct errand_host       after;

	assert_false(cache_clear(errand->box.cache));
	cache_audit(errand->box.cache);
	cache_reservation_audit(errand->box.cache, &errand->reservation);
	after = errand_host(errand);
	assert_memory_equal(&after, &before, sizeof(after));
	assert_int_equal(errand_local(errand, 4), local);
	assert_int_equal(errand->box.removed, removed);
}

/* Rows whose GET did not retire, in quarantine for good perhaps; then the hold; then pins alone. */
static void A8_2_a_full_clear_waits_for_reservations_holds_and_pins(void **state)
{
	struct errand errand;
	struct cache *cache;
	uint32_t      stratum;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	cache = errand.box.cache;
	box_put(&errand.box, 0, 0, 1);
	errand_hint(&errand, 0, 1, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	expect_no_clear(&errand);
	assert_int_equal(errand_publish(&errand, 0x7, true), 3);
	expect_no_clear(&errand);
	cache_reservation_release(cache, &errand.reservation);
	for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
		const uint32_t page = stratum == STRATUM_HOST ? 1 : 0;
		const uint32_t block = box_find(&errand.box, (enum stratum_id)stratum, 0, page);

		cache_pin(cache, (enum stratum_id)stratum, 0, block);
		expect_no_clear(&errand);
		cache_unpin(cache, (enum stratum_id)stratum, 0, block);
	}
	assert_int_equal(errand_local(&errand, 4), 16);
	assert_true(cache_clear(cache));
	assert_int_equal(errand_local(&errand, 4), 0);
	assert_int_equal(errand_host(&errand).held, 0);
	errand_close(&errand);
}

static void A8_2_clearing_device_does_not_ask_for_reservations(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	box_put(&errand.box, 0, 0, 1);
	errand_hint(&errand, 0, 1, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	assert_true(cache_clear_device(errand.box.cache));
	assert_int_equal(errand_publish(&errand, 0x7, true), 3);
	assert_int_equal(errand_host(&errand).published, 3);
	errand_close(&errand);
}

/* --- tails ------------------------------------------------------------------------------------ */

static void A3_10_a_reservation_says_what_a_tail_hint_needs_once_the_tail_is_published(void **state)
{
	struct tail_hint hints[TAILS_PER_PAGE];
	struct errand    errand;
	struct tails     tails;
	uint32_t         came;

	(void)state;
	for (came = 0; came < 2; came++) {
		const struct cache_reservation *const r = &errand.reservation;

		errand_open(&errand, 4, 4, 8, one_full);
		errand_hint(&errand, 0, 0, 2);
		errand_tail(&errand, 11, 1);
		assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_ROWS);
		assert_int_equal(r->tokens, 11);
		assert_false(r->tail_published);
		errand_publish(&errand, came ? 0x7 : 0x3, false);
		assert_int_equal(r->tail_published, came);
		assert_int_equal(errand_local(&errand, 2), came ? 11 : 8);
		assert_int_equal(tails_open(&tails, 4, 4, NULL), 0);
		if (r->tail_published) {
			tails_record(&tails, &r->space, r->has_prior ? &r->prior_hash : NULL,
				     r->tail_tokens, &r->tail_hash);
		}
		assert_int_equal(tails_behind(&tails, &errand.box.space, &errand.box.hashes[1], hints),
				 came);
		if (came) {
			assert_int_equal(hints[0].token_count, 3);
			assert_memory_equal(&hints[0].hash, &errand.tails[0].hash, sizeof(hints[0].hash));
		}
		tails_close(&tails);
		errand_close(&errand);
	}
	errand_open(&errand, 4, 4, 8, one_full);
	errand_tail(&errand, 3, 1);
	assert_int_equal(errand_ask(&errand, 0, ERRAND_CREDITS), RESERVE_ROWS);
	assert_false(errand.reservation.has_prior);
	errand_close(&errand);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void a_reserver_without_memory_leaves_nothing_behind(void **state)
{
	struct reserver  reserver;
	struct errand    errand;
	struct kvs_error err;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	errand_open(&errand, 4, 4, 4, one_full);
	for (allocations = 0, fail_at = 1; fail_at <= 3; fail_at++, allocations = 0) {
		assert_int_equal(reserver_open(&reserver, errand.box.cache, 1, &err), -ENOMEM);
		assert_string_equal(err.message, "no memory to reserve for prompts of 32 pages");
		assert_int_equal(reserver_bytes(&reserver), 0);
	}
	fail_at = 0;
	assert_int_equal(reserver_bytes(&errand.reserver), 32 * 4 + 3 * 4 + 33 * 12);
	errand_close(&errand);
}

static void A3_5_a_reservation_allocates_nothing(void **state)
{
	struct errand errand;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	errand_open(&errand, 4, 4, 8, one_full);
	allocations = 0;
	reserve_pages(&errand, 8);
	errand_publish(&errand, 0xff, true);
	cache_reservation_release(errand.box.cache, &errand.reservation);
	assert_int_equal(allocations, 0);
	errand_close(&errand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_8_only_rows_that_came_whole_are_published),
		cmocka_unit_test(A3_8_what_came_need_not_be_a_prefix),
		cmocka_unit_test(A3_13_a_detached_read_publishes_nothing),
		cmocka_unit_test(A3_8_a_name_that_host_has_meanwhile_keeps_its_block),
		cmocka_unit_test(A3_8_the_end_of_what_came_is_evicted_first),
		cmocka_unit_test(A3_9_a_hold_keeps_what_was_read_and_nothing_else),
		cmocka_unit_test(A3_9_admission_takes_over_from_the_hold),
		cmocka_unit_test(A8_2_a_full_clear_waits_for_reservations_holds_and_pins),
		cmocka_unit_test(A8_2_clearing_device_does_not_ask_for_reservations),
		cmocka_unit_test(A3_10_a_reservation_says_what_a_tail_hint_needs_once_the_tail_is_published),
		cmocka_unit_test(a_reserver_without_memory_leaves_nothing_behind),
		cmocka_unit_test(A3_5_a_reservation_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
