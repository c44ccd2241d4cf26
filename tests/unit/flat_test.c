/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant flat: after open, tasks of an adapter and the work of controllers do not allocate.
 *
 * The linker is told to --wrap the allocation functions (tests/unit/meson.build), so every call
 * from our floors and from this program goes through the counters of allocs.h, under sanitizers, too.
 * Calls inside shared libraries do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocs.h"
#include "depot.h"
#include "desk.h"

static void no_allocation_after_open_of_an_adapter(void **state)
{
	struct desk *const desk = desk_new(true, &desk_options);
	uint64_t           at_open, told;
	uint32_t           i;

	(void)state;
	at_open = allocs_count;
	for (i = 0; i < 50; i++) {
		assert_true(desk_store(desk, i * 10, 10).ok);
		assert_true(desk_lookup(desk, i * 5, 20) > 0);
		assert_true(desk_load(desk, 0, 1500) > 0);
		desk_unlock(desk, i * 5, 20);
		assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, &told, 1), 0);
	}
	assert_int_equal(allocs_count, at_open);
	assert_int_equal(desk_teardown((void **)&desk), 0);
}

/* Objects flow from Host to the stores and back, some requests end early. */
static void no_allocation_after_open_of_the_controllers(void **state)
{
	static struct depot depot;
	uint64_t            at_open, id, locked;
	uint32_t            i;

	(void)state;
	depot_init(&depot);
	assert_int_equal(store_policy_find("skip-host", &depot.store_policy, NULL), 0);
	depot_open(&depot);
	at_open = allocs_count;
	for (i = 0; i < 30; i++) {
		depot_write(&depot, i * 10, 10);
		depot_flush(&depot);
		id = depot_prefetch(&depot, i * 10, 12);
		if (i % 4 == 3) {
			prefetch_ctrl_cancel(depot.prefetch, id);
			depot_idle(&depot);
			continue;
		}
		assert_int_equal(depot_take(&depot, id, &locked).boundary, 10);
		depot_give_back(&depot, i * 10, locked, 1);
	}
	assert_int_equal(allocs_count, at_open);
	depot_close(&depot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_allocation_after_open_of_an_adapter),
		cmocka_unit_test(no_allocation_after_open_of_the_controllers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
