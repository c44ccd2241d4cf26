/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant flat, at door B: after open neither its calls nor its threads allocate.
 *
 * As in flat_test.c, the linker leads all calls of our floors and of this program to the counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocs.h"
#include "porch.h"

/* Write, store, lose, prefetch, read, lock; clients come and go, and one leaves a lot behind. */
static void use_door(struct porch *porch, uint32_t first)
{
	kvs_client   client;
	kvs_prefetch prefetch;

	assert_int_equal(kvs_client_open(porch->kvs, &client, NULL), 0);
	porch_write_as(porch, client, first, 20);
	porch_leave_host_of(porch, first + 2, 18);
	assert_int_equal(porch_fetch(porch, first, 20), 20);
	prefetch = porch_submit(porch, first, 30, NULL);
	assert_int_equal(porch_wait(porch, prefetch), 20);
	porch_release(porch, porch_submit(porch, first, 20, NULL));
	porch_release(porch, prefetch);
	assert_int_equal(kvs_touch(porch->kvs, porch_name(porch, first, 5), 5), 0);
	assert_int_equal(kvs_lock(porch->kvs, client, porch->keys, 5, porch->spans, porch->rc, NULL), 0);
	(void)porch_status(porch);
	assert_int_equal(kvs_client_close(porch->kvs, client), 0);
}

static void no_allocation_after_open_of_door_b(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	uint64_t           at_open;
	uint32_t           i;

	(void)state;
	options.host_bytes = 1u << 20;
	options.object_bytes = PORCH_BYTES;
	options.objects = 512;
	options.stores[0] = "mem:8MiB";
	porch_open(&porch, &options);
	at_open = allocs_count;
	assert_true(at_open > 0);
	for (i = 0; i < 80; i++)
		use_door(&porch, i * 20);
	assert_int_equal(allocs_count, at_open);
	/* And it came by the places that matter. */
	assert_true(porch_status(&porch).evicted > 0 && porch_status(&porch).loaded_keys > 1000);
	porch_close(&porch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_allocation_after_open_of_door_b),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
