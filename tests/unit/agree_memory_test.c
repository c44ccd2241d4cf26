/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an agreement: an open takes what it says, one that runs out of it leaves nothing behind,
 * and after an open nothing allocates.
 *
 * Allocations are counted, and made to fail, where the linker leads them (tests/unit/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "council.h"

static uint64_t allocations;
static uint64_t bytes_taken;
static uint64_t fail_at; /* the number of the allocation that fails; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool take(size_t bytes)
{
	bytes_taken += bytes;
	return ++allocations != fail_at;
}

void *__wrap_malloc(size_t bytes)
{
	return take(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return take(count * bytes) ? __real_calloc(count, bytes) : NULL;
}

static void opens_with(uint32_t owners, uint64_t most)
{
	const struct agree_options options = { owners, 100, 7 };
	struct agree              *agree = NULL;
	struct kvs_error           err;
	int                        rc;

	for (fail_at = 1;; fail_at++) {
		allocations = bytes_taken = 0;
		rc = agree_open(&options, &agree, &err);
		if (allocations < fail_at)
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_string_equal(err.message, "ops_max: 100, no memory for the records of so many");
		assert_null(agree);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(bytes_taken, agree_bytes(agree));
	assert_int_equal(allocations, most);
	agree_close(agree);
	fail_at = 0;
}

static void an_open_takes_what_it_says_or_nothing(void **state)
{
	(void)state;
	if (!LINKER_WRAPS)
		skip();
	opens_with(1, 9);
	opens_with(2, 13);
}

/* As many ops and copies as there can be, each with a doubt. */
static void A7_8_rounds_allocate_nothing(void **state)
{
	static struct council council;
	uint32_t              i, rank;

	(void)state;
	council_open(&council, 4, 16, 16);
	allocations = 0;
	for (i = 1; i <= 16; i++) {
		council_expect(&council, i, OP_GET, 3);
		council_expect_copies(&council, i);
		for (rank = 0; rank < 4; rank++) {
			council_fact(&council, rank, 17 - i, OP_GET, 3)->retired = false;
			council_copy(&council, rank, 17 - i);
		}
	}
	assert_int_equal(council_round(&council)->fact_count, 16);
	for (i = 1; i <= 16; i++) {
		for (rank = 0; rank < 4; rank++)
			council_notice(&council, rank, i);
	}
	assert_int_equal(council_round(&council)->notice_count, 16);
	assert_int_equal(allocations, 0);
	council_close(&council);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_takes_what_it_says_or_nothing),
		cmocka_unit_test(A7_8_rounds_allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
