/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: whole blocks go where the ticket says, and nowhere else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "device/device.h"
#include "named_block.h"

#define BLOCKS 4u
#define BLOCK_BYTES 8192u

struct rig {
	struct arena     *arena;
	struct arena_part host;
	struct device     device;
};

/* Device blocks are filled with names 0 to 3, Host blocks with 100 to 103. */
static void open_rig(struct rig *rig, uint32_t ticket_max)
{
	const size_t bytes = arena_part_bytes(BLOCK_BYTES, BLOCKS);
	uint32_t     i;

	assert_int_equal(arena_open(bytes, ARENA_LAZY, &rig->arena, NULL), 0);
	assert_int_equal(arena_carve(rig->arena, BLOCK_BYTES, BLOCKS, &rig->host, NULL), 0);
	assert_int_equal(device_open(&rig->device, BLOCKS, &rig->host, ticket_max, NULL), 0);
	for (i = 0; i < BLOCKS; i++) {
		fill(device_block(&rig->device, i), i, BLOCK_BYTES);
		fill(arena_block(&rig->host, i).ptr, 100 + i, BLOCK_BYTES);
	}
}

static void close_rig(struct rig *rig)
{
	device_close(&rig->device);
	device_close(&rig->device);
	arena_close(rig->arena);
}

static void assert_device(const struct rig *rig, const uint32_t names[BLOCKS])
{
	uint32_t i;

	for (i = 0; i < BLOCKS; i++)
		assert_true(is_filled(device_block(&rig->device, i), names[i], BLOCK_BYTES));
}

static void assert_host(const struct rig *rig, const uint32_t names[BLOCKS])
{
	uint32_t i;

	for (i = 0; i < BLOCKS; i++)
		assert_true(is_filled(arena_block(&rig->host, i).ptr, names[i], BLOCK_BYTES));
}

static void a_load_fills_device_blocks_only(void **state)
{
	const uint32_t     device[] = { 103, 1, 100, 3 }, host[] = { 100, 101, 102, 103 };
	struct tier_pair   pairs[] = { { 2, 0, 0 }, { 0, 3, 1 } };
	struct tier_ticket ticket = { .kind = TIER_LOAD, .pair_count = 2, .pairs = pairs };
	struct rig         rig;

	(void)state;
	open_rig(&rig, 1);
	device_submit(&rig.device, 0, &ticket);
	assert_device(&rig, device);
	assert_host(&rig, host);
	assert_int_equal(rig.device.h2d_bytes, 2 * BLOCK_BYTES);
	assert_int_equal(rig.device.d2h_bytes, 0);
	close_rig(&rig);
}

static void a_store_fills_host_blocks_only(void **state)
{
	const uint32_t     device[] = { 0, 1, 2, 3 }, host[] = { 3, 101, 102, 0 };
	struct tier_pair   pairs[] = { { 3, 0, 0 }, { 0, 3, 1 } };
	struct tier_ticket ticket = { .kind = TIER_SAVE, .pair_count = 2, .pairs = pairs };
	struct rig         rig;

	(void)state;
	open_rig(&rig, 1);
	device_submit(&rig.device, 0, &ticket);
	assert_device(&rig, device);
	assert_host(&rig, host);
	assert_int_equal(rig.device.d2h_bytes, 2 * BLOCK_BYTES);
	assert_int_equal(rig.device.h2d_bytes, 0);
	close_rig(&rig);
}

/*
 * A store that takes one span a key keeps its trailer behind the payload: a copy must not reach it.
 */
static void a_copy_ends_where_the_trailer_begins(void **state)
{
	struct tier_pair   pair = { 1, 0, 0 };
	struct tier_ticket ticket = { .kind = TIER_SAVE, .pair_count = 1, .pairs = &pair };
	struct rig         rig;
	uint8_t           *trailer;
	uint32_t           i;

	(void)state;
	open_rig(&rig, 1);
	trailer = (uint8_t *)arena_block(&rig.host, 0).ptr + BLOCK_BYTES;
	memset(trailer, 0x5a, ARENA_TRAILER_BYTES);
	device_submit(&rig.device, 0, &ticket);
	for (i = 0; i < ARENA_TRAILER_BYTES; i++)
		assert_int_equal(trailer[i], 0x5a);
	close_rig(&rig);
}

static void fences_come_in_order_of_submission_and_once(void **state)
{
	struct tier_pair   pair = { 0, 0, 0 };
	struct tier_ticket ticket = { .kind = TIER_LOAD, .pair_count = 1, .pairs = &pair };
	struct rig         rig;
	uint32_t           number = 77;

	(void)state;
	open_rig(&rig, 2);
	assert_false(device_poll(&rig.device, &number));
	assert_int_equal(number, 77);
	device_submit(&rig.device, 9, &ticket);
	device_submit(&rig.device, 4, &ticket);
	assert_true(device_poll(&rig.device, &number));
	assert_int_equal(number, 9);
	assert_true(device_poll(&rig.device, &number));
	assert_int_equal(number, 4);
	assert_false(device_poll(&rig.device, &number));
	close_rig(&rig);
}

static void submit_past_the_limit(void *device)
{
	struct tier_ticket ticket = { .kind = TIER_LOAD };

	device_submit(device, 0, &ticket);
	device_submit(device, 1, &ticket);
}

static void a_block_past_the_end(void *device)
{
	device_block(device, BLOCKS);
}

static void mistakes_are_panics(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, 1);
	assert_true(death_panics(submit_past_the_limit, &rig.device, NULL, 0));
	assert_true(death_panics(a_block_past_the_end, &rig.device, NULL, 0));
	close_rig(&rig);
}

/* 2^28 blocks of 64 MiB are 2^54 bytes, and of 2^40 bytes more than 64 bits count. */
static void a_device_larger_than_memory_is_refused(void **state)
{
	static const struct {
		size_t      block_bytes;
		uint32_t    block_count;
		int         code;
		const char *sentence; /* its begin */
	} cases[] = {
		{ 64 << 20, 0, KVS_E_INVALID, "device_blocks: 0, must be 1 to 268435456" },
		{ 64 << 20, (1u << 28) + 1, KVS_E_INVALID,
		  "device_blocks: 268435457, must be 1 to 268435456" },
		{ 64 << 20, 1u << 28, -ENOMEM,
		  "device_blocks: 268435456 blocks of 67108864 bytes are more than the " },
		{ (size_t)1 << 40, 1u << 28, -ENOMEM,
		  "device_blocks: 268435456 blocks of 1099511627776 bytes are more than the " },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct arena_part host = { .block_bytes = cases[i].block_bytes };
		struct device           device;
		struct kvs_error        err;

		assert_int_equal(device_open(&device, cases[i].block_count, &host, 1, &err),
				 cases[i].code);
		assert_memory_equal(err.message, cases[i].sentence, strlen(cases[i].sentence));
		assert_null(device.base);
		device_close(&device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_fills_device_blocks_only),
		cmocka_unit_test(a_store_fills_host_blocks_only),
		cmocka_unit_test(a_copy_ends_where_the_trailer_begins),
		cmocka_unit_test(fences_come_in_order_of_submission_and_once),
		cmocka_unit_test(mistakes_are_panics),
		cmocka_unit_test(a_device_larger_than_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
