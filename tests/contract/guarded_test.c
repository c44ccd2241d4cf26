/* SPDX-License-Identifier: Apache-2.0 */
/* Does the suite catch a liar?  Stores that break the promise of retirement, and one that keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "guarded.h"
#include "named_block.h"
#include "store/store.h"

static char path[] = "/tmp/kvstrata-plan-XXXXXX";

static int file_setup(void **state)
{
	const int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0 ? -1 : 0;
}

static int file_teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* Every get is written to an hour after it failed, or when the store closes. */
static struct kvs_store *open_late(bool claims_retired)
{
	FILE             *file = fopen(path, "w");
	struct kvs_store *store = NULL;
	char              spec[64];

	assert_non_null(file);
	fprintf(file,
		"{\"inner\": \"nil:\", \"faults\": [{\"kind\": \"late_write\", \"op\": \"get\", "
		"\"ms\": 3600000, \"claims_retired\": %s}]}",
		claims_retired ? "true" : "false");
	assert_int_equal(fclose(file), 0);
	snprintf(spec, sizeof(spec), "fault:%s", path);
	assert_int_equal(store_open(spec, BLOCK, "lru", &store, NULL), 0);
	return store;
}

static void get(struct kvs_store *store, struct guarded *guarded)
{
	const struct kvs_key  key = key_of(1);
	const struct kvs_span span = guarded_lend(guarded, BLOCK);
	enum kvs_result       result;
	bool                  retired;

	assert_int_equal(store->ops->get(store, &key, &span, 1, &result, &retired), 0);
	guarded_back(guarded, &span, retired);
}

static void a_false_claim_of_retirement_is_caught(void **state)
{
	struct kvs_store *store = open_late(true);
	struct guarded    guarded;

	(void)state;
	guarded_open(&guarded);
	get(store, &guarded);
	assert_true(guarded_intact(&guarded));
	assert_int_equal(store->ops->close(store), 0);
	assert_false(guarded_intact(&guarded));
	assert_string_equal(guarded.violation, "after it was retired: 8 bytes from 0 of the span are "
					       "0x5c5c5c5c5c5c5c5c");
	guarded_close(&guarded);
}

static void the_same_write_is_no_lie_when_it_was_told(void **state)
{
	struct kvs_store *store = open_late(false);
	struct guarded    guarded;

	(void)state;
	guarded_open(&guarded);
	get(store, &guarded);
	assert_int_equal(store->ops->close(store), 0);
	assert_true(guarded_intact(&guarded));
	guarded_close(&guarded);
}

/* What a store does during its call: one byte outside, or inside. */
static void touch(ptrdiff_t offset, const char *violation)
{
	struct guarded        guarded;
	const struct kvs_span span = (guarded_open(&guarded), guarded_lend(&guarded, 8192));

	((volatile uint8_t *)span.ptr)[offset] ^= 1;
	guarded_back(&guarded, &span, true);
	assert_int_equal(strncmp(guarded.violation, violation, strlen(violation)), 0);
	assert_int_equal(guarded_intact(&guarded), !*violation);
	guarded_close(&guarded);
}

static void room_is_the_store_s_and_nothing_else(void **state)
{
	(void)state;
	touch(0, "");
	touch(8192 + TRAILER - 1, "");
#ifdef IS_POISONED
	print_message("# the guards are poisoned: the sanitizer watches them\n");
#else
	touch(-1, "before the span: 8 bytes from -8 ");
	touch(8192 + TRAILER, "behind the room of the span: 8 bytes from 24576 ");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_false_claim_of_retirement_is_caught),
		cmocka_unit_test(the_same_write_is_no_lie_when_it_was_told),
		cmocka_unit_test(room_is_the_store_s_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, file_setup, file_teardown);
}
