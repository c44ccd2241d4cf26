/* SPDX-License-Identifier: Apache-2.0 */
/* How many objects existence probes keep from eviction, against a master that grants leases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "mooncake/probes.h"

#define LEASE UINT64_C(1000)
#define MAX 256u
#define OBJECTS 2000u

static struct kvs_key key_at(uint32_t number)
{
	return (struct kvs_key){ .hash = { 1 }, .offset = number };
}

static struct probes *open_probes(uint32_t probe_max)
{
	struct probes *probes = NULL;

	assert_int_equal(probes_open(LEASE, probe_max, &probes), 0);
	return probes;
}

static enum probe look(struct probes *probes, uint32_t number, uint64_t now_ns)
{
	const struct kvs_key key = key_at(number);

	return probes_look(probes, &key, now_ns);
}

static void found(struct probes *probes, uint32_t number, uint64_t now_ns)
{
	const struct kvs_key key = key_at(number);

	probes_found(probes, &key, now_ns);
}

static bool know(struct probes *probes, uint32_t number, uint64_t now_ns)
{
	const struct kvs_key key = key_at(number);

	return probes_know(probes, &key, now_ns);
}

static void what_was_found_is_known_for_half_a_lease(void **state)
{
	struct probes *const probes = open_probes(MAX);

	(void)state;
	assert_int_equal(look(probes, 1, 5000), PROBE_ASK);
	assert_false(know(probes, 1, 5000));
	assert_int_equal(look(probes, 1, 5001), PROBE_ASK);
	found(probes, 1, 5000);
	assert_int_equal(look(probes, 1, 5002), PROBE_FOUND);
	assert_true(know(probes, 1, 5500));
	assert_int_equal(look(probes, 1, 5500), PROBE_FOUND);
	/* From the second question on. */
	assert_int_equal(look(probes, 1, 5501), PROBE_ASK);
	assert_false(know(probes, 1, 5501));
	assert_int_equal(probes_count(probes), 1);
	/* A clock that others read earlier. */
	found(probes, 1, 5400);
	assert_int_equal(look(probes, 1, 5300), PROBE_FOUND);
	probes_audit(probes);
	probes_close(probes);
}

static void what_is_gone_is_asked_for(void **state)
{
	struct probes *const probes = open_probes(MAX);
	const struct kvs_key key = key_at(1);

	(void)state;
	found(probes, 1, 100);
	found(probes, 2, 100);
	assert_int_equal(probes_count(probes), 2);
	probes_forget(probes, &key);
	assert_int_equal(probes_count(probes), 1);
	assert_int_equal(look(probes, 1, 101), PROBE_ASK);
	assert_int_equal(look(probes, 2, 101), PROBE_FOUND);
	probes_forget(probes, &key);
	probes_forget(probes, &key);
	probes_audit(probes);
	probes_close(probes);
}

/* A get that had read it before it went comes back behind. */
static void an_answer_from_before_a_removal_is_none(void **state)
{
	struct probes *const probes = open_probes(MAX);
	const struct kvs_key key = key_at(1);

	(void)state;
	found(probes, 1, 100);
	found(probes, 2, 100);
	probes_removed(probes, &key, 110);
	found(probes, 1, 109);
	assert_false(know(probes, 1, 120));
	assert_int_equal(look(probes, 1, 120), PROBE_ASK);
	found(probes, 1, 111);
	assert_true(know(probes, 1, 121));
	/* What was known before still is. */
	assert_true(know(probes, 2, 121));
	probes_audit(probes);
	probes_close(probes);
}

static void an_answer_from_before_all_was_forgotten_is_none(void **state)
{
	struct probes *const probes = open_probes(MAX);

	(void)state;
	found(probes, 1, 100);
	assert_int_equal(look(probes, 2, 110), PROBE_ASK);
	probes_forget_all(probes, 115);
	assert_false(know(probes, 1, 120));
	found(probes, 2, 105);
	assert_false(know(probes, 2, 120));
	/* But both may have a lease. */
	assert_int_equal(probes_count(probes), 2);
	assert_int_equal(look(probes, 2, 130), PROBE_ASK);
	found(probes, 2, 125);
	assert_true(know(probes, 2, 131));
	/* A get's, which asked for nothing: it began before, or with, or after. */
	found(probes, 4, 114);
	assert_false(know(probes, 4, 131));
	found(probes, 4, 115);
	assert_false(know(probes, 4, 131));
	found(probes, 4, 116);
	assert_true(know(probes, 4, 131));
	assert_int_equal(probes_count(probes), 3);
	assert_int_equal(look(probes, 3, 100 + 2 * LEASE), PROBE_ASK);
	assert_int_equal(probes_count(probes), 1);
	probes_audit(probes);
	probes_close(probes);
}

/* What a master would hold: one that is asked for has a lease from then on. */
struct master {
	uint64_t lease_end_ns[OBJECTS];
};

static uint32_t leases(const struct master *master, uint64_t now_ns)
{
	uint32_t i, count = 0;

	for (i = 0; i < OBJECTS; i++)
		count += master->lease_end_ns[i] > now_ns;
	return count;
}

/* Everybody looks up everything; each look takes some time, and answers come later or never. */
static void look_up_all(struct probes *probes, struct master *master, struct prng *prng,
			uint64_t *now_ns, uint32_t looks, uint32_t limit)
{
	for (; looks > 0; looks--) {
		const uint32_t number = (uint32_t)prng_below(prng, OBJECTS);
		const uint64_t began_ns = *now_ns;

		if (look(probes, number, *now_ns) == PROBE_ASK) {
			master->lease_end_ns[number] = *now_ns + LEASE;
			*now_ns += prng_below(prng, 3);
			if (prng_below(prng, 4))
				found(probes, number, began_ns);
		}
		*now_ns += prng_below(prng, 2);
		assert_true(leases(master, *now_ns) <= limit);
		assert_true(probes_count(probes) <= MAX);
	}
	probes_audit(probes);
}

static void probes_never_keep_more_than_the_bound(void **state)
{
	static struct master master;
	struct probes *const probes = open_probes(MAX);
	struct prng          prng;
	uint64_t             now_ns = 1 << 20, end_ns;

	(void)state;
	prng_seed(&prng, 7);
	look_up_all(probes, &master, &prng, &now_ns, 20000, MAX);
	assert_true(probes_skipped(probes) > 1000);
	/* Full: the leases above the new bound run out, and are not renewed. */
	probes_refused(probes, now_ns);
	assert_int_equal(probes_bound(probes), MAX / 2);
	for (end_ns = now_ns + LEASE; now_ns < end_ns;) {
		probes_refused(probes, now_ns);
		look_up_all(probes, &master, &prng, &now_ns, 10, MAX);
	}
	assert_int_equal(probes_bound(probes), PROBES_LEAST);
	for (end_ns = now_ns + 4 * LEASE; now_ns < end_ns;) {
		probes_refused(probes, now_ns);
		look_up_all(probes, &master, &prng, &now_ns, 10, PROBES_LEAST);
	}
	probes_close(probes);
}

static void refusals_lower_the_bound_and_time_raises_it(void **state)
{
	struct probes *const probes = open_probes(1000);

	(void)state;
	assert_int_equal(probes_bound(probes), 1000);
	probes_refused(probes, 50);
	assert_int_equal(probes_bound(probes), 500);
	probes_refused(probes, 60);
	probes_refused(probes, 60);
	assert_int_equal(probes_bound(probes), 125);
	probes_refused(probes, 60);
	probes_refused(probes, 60);
	assert_int_equal(probes_bound(probes), PROBES_LEAST);
	/* A clock that others read earlier. */
	probes_refused(probes, 40);
	look(probes, 1, 59 + LEASE);
	assert_int_equal(probes_bound(probes), PROBES_LEAST);
	look(probes, 1, 60 + LEASE);
	assert_int_equal(probes_bound(probes), PROBES_LEAST + 125);
	look(probes, 1, 60 + 3 * LEASE);
	assert_int_equal(probes_bound(probes), PROBES_LEAST + 3 * 125);
	look(probes, 1, UINT64_MAX / 2);
	assert_int_equal(probes_bound(probes), 1000);
	probes_close(probes);
}

static void a_small_bound_stays_as_it_is(void **state)
{
	struct probes *const probes = open_probes(1);

	(void)state;
	probes_refused(probes, 1);
	assert_int_equal(probes_bound(probes), 1);
	assert_int_equal(look(probes, 1, 1), PROBE_ASK);
	assert_int_equal(look(probes, 2, 2), PROBE_SKIP);
	assert_int_equal(probes_skipped(probes), 1);
	/* A get that finds a further one has nowhere to say so. */
	found(probes, 2, 3);
	assert_int_equal(probes_count(probes), 1);
	assert_int_equal(look(probes, 1, 4), PROBE_ASK);
	assert_int_equal(look(probes, 2, 4 + LEASE), PROBE_ASK);
	probes_audit(probes);
	probes_close(probes);
	probes_close(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_found_is_known_for_half_a_lease),
		cmocka_unit_test(what_is_gone_is_asked_for),
		cmocka_unit_test(an_answer_from_before_a_removal_is_none),
		cmocka_unit_test(an_answer_from_before_all_was_forgotten_is_none),
		cmocka_unit_test(probes_never_keep_more_than_the_bound),
		cmocka_unit_test(refusals_lower_the_bound_and_time_raises_it),
		cmocka_unit_test(a_small_bound_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
