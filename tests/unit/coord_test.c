/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in their three states, and what a request gets of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coord/coord.h"
#include "death.h"
#include "named_block.h"

#define KEYS 8u

static struct kvs_key keys[KEYS];

static void open_coord(struct coord *coord, uint32_t device_blocks, uint32_t host_blocks)
{
	const struct coord_options options = { .device_blocks = device_blocks,
					       .host_blocks = host_blocks,
					       .device_policy = "lru",
					       .host_policy = "lru" };
	uint32_t i;

	assert_int_equal(coord_open(coord, &options, NULL), 0);
	for (i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
}

/* Publish keys[first .. end) as idle blocks. */
static void hold(struct stratum *stratum, uint32_t first, uint32_t end)
{
	uint32_t block, i;

	for (i = first; i < end; i++) {
		block = stratum_acquire(stratum);
		stratum_unpin(stratum, stratum_publish(stratum, &keys[i], block));
	}
}

static void publishing_leaves_the_caller_its_reference(void **state)
{
	struct coord    coord;
	struct stratum *host = &coord.host;
	uint32_t        block;

	(void)state;
	open_coord(&coord, 1, 2);
	block = stratum_acquire(host);
	assert_false(stratum_published(host, block));
	assert_int_equal(stratum_find(host, &keys[0]), SLOT_NONE);
	assert_int_equal(stratum_publish(host, &keys[0], block), block);
	assert_true(stratum_published(host, block));
	assert_int_equal(stratum_find(host, &keys[0]), block);
	assert_int_equal(stratum_room(host), 1);
	coord_audit(&coord);
	stratum_unpin(host, block);
	assert_int_equal(stratum_room(host), 2);
	coord_audit(&coord);
	coord_close(&coord);
}

/* Two computed the same page at once: the second one's block goes, its reference moves. */
static void publishing_a_held_key_moves_the_reference(void **state)
{
	struct coord    coord;
	struct stratum *host = &coord.host;
	uint32_t        first, second;

	(void)state;
	open_coord(&coord, 1, 2);
	first = stratum_acquire(host);
	second = stratum_acquire(host);
	stratum_publish(host, &keys[0], first);
	stratum_unpin(host, first);
	assert_int_equal(stratum_publish(host, &keys[0], second), first);
	assert_int_equal(stratum_refs(host, first), 2);
	assert_int_equal(stratum_refs(host, second), 0);
	assert_int_equal(stratum_room(host), 1);
	coord_audit(&coord);
	stratum_unpin(host, first);
	assert_int_equal(stratum_room(host), 2);
	coord_audit(&coord);
	coord_close(&coord);
}

static void eviction_takes_the_oldest_idle_block_only(void **state)
{
	struct coord    coord;
	struct stratum *host = &coord.host;
	uint32_t        pinned;

	(void)state;
	open_coord(&coord, 1, 3);
	hold(host, 0, 3);
	pinned = stratum_find(host, &keys[0]);
	stratum_pin(host, pinned);
	stratum_touch(host, &keys[1]);
	stratum_touch(host, &keys[7]); /* not held: no matter */
	assert_int_equal(stratum_room(host), 2);
	assert_int_not_equal(stratum_acquire(host), SLOT_NONE);
	assert_int_equal(stratum_find(host, &keys[2]), SLOT_NONE);
	assert_int_not_equal(stratum_acquire(host), SLOT_NONE);
	assert_int_equal(stratum_find(host, &keys[1]), SLOT_NONE);
	assert_int_equal(stratum_acquire(host), SLOT_NONE);
	assert_int_equal(stratum_find(host, &keys[0]), pinned);
	assert_int_equal(host->evicted, 2);
	coord_audit(&coord);
	coord_close(&coord);
}

static void the_other_stratum_keeps_what_one_evicts(void **state)
{
	struct coord coord;

	(void)state;
	open_coord(&coord, 1, 1);
	hold(&coord.device, 0, 1);
	hold(&coord.host, 0, 1);
	hold(&coord.device, 1, 2);
	assert_int_equal(stratum_find(&coord.device, &keys[0]), SLOT_NONE);
	assert_int_not_equal(stratum_find(&coord.host, &keys[0]), SLOT_NONE);
	coord_audit(&coord);
	coord_close(&coord);
}

static void publish_twice(void *arg)
{
	struct coord *const coord = arg;

	stratum_publish(&coord->host, &keys[1], stratum_find(&coord->host, &keys[0]));
}

static void idle_count_off_by_one(void *arg)
{
	struct coord *const coord = arg;

	coord->host.idle_count++;
	coord_audit(coord);
}

static void mistakes_are_panics(void **state)
{
	struct coord coord;

	(void)state;
	open_coord(&coord, 1, 2);
	hold(&coord.host, 0, 1);
	assert_true(death_panics(publish_twice, &coord, NULL, 0));
	assert_true(death_panics(idle_count_off_by_one, &coord, NULL, 0));
	coord_close(&coord);
}

static void a_probe_reserves_nothing_and_goes_from_device_to_host(void **state)
{
	struct coord       coord;
	struct coord_probe probe;

	(void)state;
	open_coord(&coord, 4, 4);
	hold(&coord.device, 0, 2);
	hold(&coord.host, 1, 4);
	probe = coord_probe(&coord, keys, KEYS);
	assert_int_equal(probe.device_end, 2);
	assert_int_equal(probe.host_end, 4);
	probe = coord_probe(&coord, keys, 3);
	assert_int_equal(probe.host_end, 3);
	probe = coord_probe(&coord, keys, 1);
	assert_int_equal(probe.device_end, 1);
	assert_int_equal(probe.host_end, 1);
	probe = coord_probe(&coord, keys, 0);
	assert_int_equal(probe.host_end, 0);
	assert_int_equal(stratum_room(&coord.device), 4);
	assert_int_equal(stratum_room(&coord.host), 4);
	coord_close(&coord);
}

static void admission_pins_hits_sources_and_fresh_blocks_once_each(void **state)
{
	struct coord       coord;
	struct coord_probe hit;
	uint32_t           table[5], sources[5];
	uint32_t           i;

	(void)state;
	open_coord(&coord, 6, 4);
	hold(&coord.device, 0, 2);
	hold(&coord.host, 0, 4);
	assert_int_equal(coord_admit(&coord, keys, 4, 5, table, sources, &hit), 0);
	coord_audit(&coord);
	assert_int_equal(hit.device_end, 2);
	assert_int_equal(hit.host_end, 4);
	for (i = 0; i < 5; i++)
		assert_int_equal(stratum_refs(&coord.device, table[i]), i < 2 ? 2 : 1);
	for (i = 2; i < 4; i++) {
		assert_int_equal(sources[i], stratum_find(&coord.host, &keys[i]));
		assert_int_equal(stratum_refs(&coord.host, sources[i]), 2);
		stratum_unpin(&coord.host, sources[i]);
	}
	assert_int_equal(stratum_room(&coord.device), 1);
	for (i = 0; i < 5; i++)
		stratum_unpin(&coord.device, table[i]);
	assert_int_equal(stratum_room(&coord.device), 6);
	assert_int_equal(stratum_room(&coord.host), 4);
	coord_audit(&coord);
	coord_close(&coord);
}

/* Four blocks, two of them idle hits: room for two more, not for four. */
static void hits_are_no_room_for_the_rest_of_the_table(void **state)
{
	struct coord       coord;
	struct coord_probe hit = { 9, 9 };
	uint32_t           table[5], sources[5];

	(void)state;
	open_coord(&coord, 4, 4);
	hold(&coord.device, 0, 2);
	hold(&coord.host, 2, 3);
	assert_int_equal(coord_admit(&coord, keys, 3, 5, table, sources, &hit), KVS_E_FULL);
	assert_int_equal(hit.device_end, 9);
	assert_int_equal(stratum_room(&coord.device), 4);
	assert_int_equal(stratum_room(&coord.host), 4);
	coord_audit(&coord);
	assert_int_equal(coord_admit(&coord, keys, 3, 4, table, sources, &hit), 0);
	assert_int_equal(stratum_find(&coord.device, &keys[0]), table[0]);
	assert_int_equal(stratum_find(&coord.device, &keys[1]), table[1]);
	coord_audit(&coord);
	coord_close(&coord);
}

/* A hit that a running request holds already is no room to begin with. */
static void hits_in_use_are_shared(void **state)
{
	struct coord       coord;
	struct coord_probe hit;
	uint32_t           first[3], second[3], sources[3];

	(void)state;
	open_coord(&coord, 4, 1);
	hold(&coord.device, 0, 2);
	assert_int_equal(coord_admit(&coord, keys, 2, 3, first, sources, &hit), 0);
	assert_int_equal(coord_admit(&coord, keys, 2, 3, second, sources, &hit), 0);
	assert_int_equal(first[0], second[0]);
	assert_int_equal(first[1], second[1]);
	assert_int_not_equal(first[2], second[2]);
	assert_int_equal(stratum_refs(&coord.device, first[0]), 3);
	assert_int_equal(coord_admit(&coord, keys, 2, 3, first, sources, &hit), KVS_E_FULL);
	coord_audit(&coord);
	coord_close(&coord);
}

/* The refused admission must not have made its hits younger: nothing touched. */
static void a_refused_admission_counts_no_use(void **state)
{
	struct coord       coord;
	struct coord_probe hit;
	uint32_t           table[4], sources[4];

	(void)state;
	open_coord(&coord, 2, 1);
	hold(&coord.device, 0, 2);
	assert_int_equal(coord_admit(&coord, keys, 1, 4, table, sources, &hit), KVS_E_FULL);
	hold(&coord.device, 2, 3);
	assert_int_equal(stratum_find(&coord.device, &keys[0]), SLOT_NONE);
	assert_int_not_equal(stratum_find(&coord.device, &keys[1]), SLOT_NONE);
	coord_close(&coord);
}

static void an_admission_is_a_use_of_its_hits(void **state)
{
	struct coord       coord;
	struct coord_probe hit;
	uint32_t           table[2], sources[2];

	(void)state;
	open_coord(&coord, 2, 2);
	hold(&coord.host, 0, 2);
	assert_int_equal(coord_admit(&coord, keys, 1, 2, table, sources, &hit), 0);
	stratum_unpin(&coord.host, sources[0]);
	hold(&coord.host, 2, 3);
	assert_int_not_equal(stratum_find(&coord.host, &keys[0]), SLOT_NONE);
	assert_int_equal(stratum_find(&coord.host, &keys[1]), SLOT_NONE);
	coord_close(&coord);
}

static void a_use_on_the_device_keeps_the_host_copy_warm(void **state)
{
	struct coord coord;

	(void)state;
	open_coord(&coord, 2, 2);
	hold(&coord.device, 0, 1);
	hold(&coord.host, 0, 2);
	coord_touch(&coord, keys, 1);
	hold(&coord.host, 2, 3);
	assert_int_not_equal(stratum_find(&coord.host, &keys[0]), SLOT_NONE);
	assert_int_equal(stratum_find(&coord.host, &keys[1]), SLOT_NONE);
	coord_close(&coord);
}

static void settling_makes_a_chain_leave_from_its_end(void **state)
{
	const struct coord_options options = { .device_blocks = 3,
					       .host_blocks = 3,
					       .device_policy = "lru-leaf",
					       .host_policy = "lru-leaf" };
	struct coord coord;
	uint32_t     scratch[4];
	uint32_t     i;

	(void)state;
	assert_int_equal(coord_open(&coord, &options, NULL), 0);
	hold(&coord.device, 0, 3);
	hold(&coord.host, 0, 3);
	/* The fourth page is nowhere: it is skipped. */
	coord_settle(&coord, keys, 4, scratch);
	for (i = 3; i > 0; i--) {
		stratum_acquire(&coord.device);
		stratum_acquire(&coord.host);
		assert_int_equal(coord_probe(&coord, keys, 3).device_end, i - 1);
		assert_int_equal(index_find(&coord.index, &keys[i - 1]), SLOT_NONE);
	}
	coord_audit(&coord);
	coord_close(&coord);
}

static void open_refuses_in_a_sentence_and_leaves_nothing(void **state)
{
	struct coord_options options = { .device_blocks = 1,
					 .host_blocks = 1,
					 .device_policy = "lru",
					 .host_policy = "mru" };
	struct kvs_error err;
	struct coord     coord;

	(void)state;
	assert_int_equal(coord_open(&coord, &options, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "\"mru\" is not known"));
	options.device_policy = "none";
	assert_int_equal(coord_open(&coord, &options, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "\"none\" never makes room"));
	options.device_policy = "lru";
	options.host_policy = "none";
	assert_int_equal(coord_open(&coord, &options, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "\"none\" never makes room"));
	coord_close(&coord);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(publishing_leaves_the_caller_its_reference),
		cmocka_unit_test(publishing_a_held_key_moves_the_reference),
		cmocka_unit_test(eviction_takes_the_oldest_idle_block_only),
		cmocka_unit_test(the_other_stratum_keeps_what_one_evicts),
		cmocka_unit_test(mistakes_are_panics),
		cmocka_unit_test(a_probe_reserves_nothing_and_goes_from_device_to_host),
		cmocka_unit_test(admission_pins_hits_sources_and_fresh_blocks_once_each),
		cmocka_unit_test(hits_are_no_room_for_the_rest_of_the_table),
		cmocka_unit_test(hits_in_use_are_shared),
		cmocka_unit_test(a_refused_admission_counts_no_use),
		cmocka_unit_test(an_admission_is_a_use_of_its_hits),
		cmocka_unit_test(a_use_on_the_device_keeps_the_host_copy_warm),
		cmocka_unit_test(settling_makes_a_chain_leave_from_its_end),
		cmocka_unit_test(open_refuses_in_a_sentence_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
