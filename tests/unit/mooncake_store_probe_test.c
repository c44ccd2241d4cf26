/* SPDX-License-Identifier: Apache-2.0 */
/* What a Mooncake store remembers of what it found: fewer probes, and a bound on them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "named_block.h"
#include "wharf.h"

static uint32_t probes_made(const struct wharf *wharf)
{
	return wharf->byway.rows[MOONCAKE_EXISTS];
}

static void what_was_found_is_not_asked_for_again(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(probes_made(wharf), 1);
	/* A miss is no knowledge: somebody may put it any time. */
	assert_int_equal(wharf_exists(wharf, 2), KVS_RESULT_MISSING);
	assert_int_equal(wharf_exists(wharf, 2), KVS_RESULT_MISSING);
	assert_int_equal(probes_made(wharf), 3);
}

static void a_batch_asks_for_what_is_not_known(void **state)
{
	struct wharf *const wharf = *state;
	struct kvs_key      keys[4];
	enum kvs_result     result[4];
	uint32_t            i;

	for (i = 0; i < 4; i++)
		keys[i] = key_of(i);
	for (i = 0; i < 3; i++)
		assert_int_equal(wharf_put(wharf, i, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf->store->ops->exists(wharf->store, keys, 4, result), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(result[i], i < 3 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	assert_int_equal(probes_made(wharf), 1 + 3);
	assert_int_equal(wharf->byway.calls[MOONCAKE_EXISTS], 2);
}

static void a_get_finds_too_and_a_miss_forgets(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key key = key_of(1);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(probes_made(wharf), 0);
	/* By another client, with force. */
	byway_find(&wharf->cluster, &key)->name[0] = 'x';
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_MISSING);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_MISSING);
	assert_int_equal(probes_made(wharf), 1);
}

static void a_put_of_what_was_found_moves_nothing(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf->byway.calls[MOONCAKE_PUT], 2);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_EXISTS);
	assert_true(wharf->retired);
	assert_int_equal(wharf->byway.calls[MOONCAKE_PUT], 2);
	assert_int_equal(wharf_remove(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf->byway.calls[MOONCAKE_PUT], 3);
}

/* A broken object goes with the get that saw it: the next put has to be one. */
static void what_a_get_took_away_is_not_known(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key key = key_of(1);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	byway_find(&wharf->cluster, &key)->bytes[0] ^= 1;
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_CORRUPT);
	assert_null(byway_find(&wharf->cluster, &key));
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_MISSING);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
}

/* Nothing is known of a master that went, and a store must not look well from memory alone. */
static void a_failure_forgets_all(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key odd = key_of(9);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	wharf->byway.rc = -ECONNRESET;
	assert_int_equal(wharf_exists(wharf, 2), KVS_RESULT_FAILED);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_FAILED);
	wharf->byway.rc = 0;
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	byway_make_odd(&wharf->byway, &odd, -900);
	assert_int_equal(wharf_get(wharf, 9, 4096), KVS_RESULT_FAILED);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(probes_made(wharf), 5);
}

static void probes_hold_no_more_than_their_bound(void **state)
{
	struct wharf *const wharf = *state;
	uint32_t            i, found = 0;

	wharf_close(wharf);
	wharf->settings.probe_max = PROBES_LEAST;
	byway_init(&wharf->byway, &wharf->cluster);
	wharf_open(wharf);
	for (i = 0; i < 2 * PROBES_LEAST; i++) {
		assert_int_equal(wharf_put(wharf, i, 4096), KVS_RESULT_DONE);
		found += wharf_exists(wharf, i) == KVS_RESULT_DONE;
	}
	assert_int_equal(found, PROBES_LEAST);
	assert_int_equal(probes_made(wharf), PROBES_LEAST);
	/* Not to be known is no miss: whoever wants it may still get it. */
	assert_int_equal(wharf_exists(wharf, i - 1), KVS_RESULT_UNKNOWN);
	assert_int_equal(wharf_get(wharf, i - 1, 4096), KVS_RESULT_DONE);
	assert_non_null(strstr(wharf_info(wharf).note, "65 lookups were not asked"));
}

/* A full pool has the most to gain from fewer leases. */
static void a_refused_put_lowers_the_bound(void **state)
{
	struct wharf *const wharf = *state;
	uint32_t            i, found = 0;

	for (i = 0; i < 2 * PROBES_LEAST; i++)
		assert_int_equal(wharf_put(wharf, i, 4096), KVS_RESULT_DONE);
	wharf->cluster.object_max = wharf->cluster.object_count;
	for (i = 0; i < 10; i++)
		assert_int_equal(wharf_put(wharf, 1000, 4096), KVS_RESULT_NO_SPACE);
	for (i = 0; i < 2 * PROBES_LEAST; i++)
		found += wharf_exists(wharf, i) == KVS_RESULT_DONE;
	assert_int_equal(found, PROBES_LEAST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wharf_setup, wharf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_found_is_not_asked_for_again),
		TEST(a_batch_asks_for_what_is_not_known),
		TEST(a_get_finds_too_and_a_miss_forgets),
		TEST(a_put_of_what_was_found_moves_nothing),
		TEST(what_a_get_took_away_is_not_known),
		TEST(a_failure_forgets_all),
		TEST(probes_hold_no_more_than_their_bound),
		TEST(a_refused_put_lowers_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
