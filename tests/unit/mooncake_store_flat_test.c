/* SPDX-License-Identifier: Apache-2.0 */
/* After open a Mooncake store allocates nothing, whatever comes of its calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocs.h"
#include "named_block.h"
#include "wharf.h"

/* The cluster's own memory for one object is here before anything counts. */
static void flat_no_call_allocates(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key odd = key_of(9);
	uint64_t             before;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	byway_make_odd(&wharf->byway, &odd, -800);
	wharf->cluster.object_max = 1;
	before = allocs_count;
	assert_true(!LINKER_WRAPS || before > 0);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_NO_SPACE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 2048), KVS_RESULT_CORRUPT);
	assert_int_equal(wharf_get(wharf, 2, 4096), KVS_RESULT_MISSING);
	assert_int_equal(wharf_get(wharf, 9, 4096), KVS_RESULT_FAILED);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_exists(wharf, 2), KVS_RESULT_MISSING);
	assert_int_equal(wharf_remove(wharf, 2), KVS_RESULT_MISSING);
	(void)wharf_info(wharf);
	assert_int_equal(allocs_count, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flat_no_call_allocates, wharf_setup, wharf_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
