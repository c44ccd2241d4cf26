/* SPDX-License-Identifier: Apache-2.0 */
/* What a door tells of itself: status and metrics; quotas, uses, upkeep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <string.h>

#include "named_block.h"
#include "porch.h"

static void a_status_counts_what_there_is(void **state)
{
	struct kvs_status status;
	struct porch      porch;
	kvs_prefetch      prefetch;

	(void)state;
	porch_open_on(&porch, "mem:1MiB");
	porch_write(&porch, 0, 3);
	porch_flush(&porch);
	porch_name(&porch, 10, 2);
	assert_int_equal(kvs_reserve_write(porch.kvs, porch.me, porch.keys, 2, NULL, porch.spans,
					   porch.rc, NULL),
			 0);
	prefetch = porch_submit(&porch, 0, 3, NULL);
	status = porch_status(&porch);
	assert_int_equal(status.struct_size, sizeof(status));
	assert_int_equal(status.host_bytes, 8u << 20);
	assert_int_equal(status.host_used_bytes, 3 * 8192 + 2 * (65536 + 4096));
	assert_int_equal(status.host_staged_bytes, 2 * (65536 + 4096));
	assert_int_equal(status.objects, 3);
	assert_int_equal(status.staged, 2);
	assert_int_equal(status.locks, 3);
	assert_int_equal(status.clients, 1);
	assert_int_equal(status.prefetches, 1);
	assert_int_equal(status.stores, 1);
	assert_int_equal(status.stored_keys, 3);
	assert_int_equal(status.stored_bytes, 3 * PORCH_BYTES);
	/* Those of the prefetch: what the store controller pins is no use of its. */
	assert_int_equal(status.hits, 3);
	assert_int_equal(status.misses, 0);
	assert_true(status.healthy);
	porch_release(&porch, prefetch);
	porch_close(&porch);
}

/* A program that was compiled with fewer fields gets no more than it has room for. */
static void a_shorter_status_is_not_overrun(void **state)
{
	struct kvs_status status;
	struct porch      porch;

	(void)state;
	porch_open_on(&porch, NULL);
	memset(&status, 0x5a, sizeof(status));
	status.struct_size = offsetof(struct kvs_status, host_used_bytes);
	assert_int_equal(kvs_status(porch.kvs, &status), 0);
	assert_int_equal(status.host_bytes, 8u << 20);
	assert_int_equal(status.struct_size, offsetof(struct kvs_status, host_used_bytes));
	assert_int_equal(status.host_used_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
	porch_close(&porch);
}

static void metrics_are_a_text_of_all_there_is_to_count(void **state)
{
	static const char *const lines[] = {
		"\nkvstrata_host_objects 3\n",
		"\nkvstrata_host_bytes 8388608\n",
		"# TYPE kvstrata_host_hits_total counter\n",
		"\nkvstrata_store_stored_total 6\n",
		"\nkvstrata_prefetch_ended_total{end=\"whole\"} 1\n",
		"\nkvstrata_adapter_up{store=\"0\"} 1\nkvstrata_adapter_up{store=\"1\"} 1\n",
		"\nkvstrata_adapter_stored_bytes_total{store=\"1\"} 12288\n",
		"\nkvstrata_adapter_capacity_bytes{store=\"0\"} 1048576\n",
		"\nkvstrata_adapter_store_bytes_per_second_count{store=\"0\"} 1\n",
	};
	struct kvs_options options = porch_options();
	struct porch       porch;
	static char        text[1 << 16], part[41];
	int                length;
	size_t             i;

	(void)state;
	options.stores[0] = "mem:1MiB";
	options.stores[1] = "mem:2MiB";
	options.prefetch_policy = "retain";
	porch_open(&porch, &options);
	porch_write(&porch, 0, 3);
	porch_leave_host(&porch);
	assert_int_equal(porch_fetch(&porch, 0, 3), 3);
	porch_await_loaded(&porch, 3);
	assert_true(kvs_metrics(porch.kvs, NULL, 0) > 1000);
	length = kvs_metrics(porch.kvs, text, sizeof(text));
	assert_true(length < (int)sizeof(text));
	assert_int_equal(strlen(text), length);
	for (i = 0; i < ARRAY_COUNT(lines); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("no %s in\n%s", lines[i], text);
	}
	/* As snprintf() does. */
	assert_true(kvs_metrics(porch.kvs, part, sizeof(part)) > 1000);
	assert_int_equal(strlen(part), sizeof(part) - 1);
	assert_memory_equal(part, text, sizeof(part) - 1);
	porch_close(&porch);
}

/* --- tenants, uses, watermarks ---------------------------------------------------------------- */

static struct kvs_key key_in(uint8_t space, uint32_t number)
{
	struct kvs_key key = key_of(number);

	key.space.byte[0] = space;
	return key;
}

static int write_in(struct porch *porch, uint8_t space, uint32_t number)
{
	const struct kvs_key   key = key_in(space, number);
	const struct kvs_write write = { .bytes = PORCH_BYTES };
	struct kvs_span        span;
	int                    rc;

	assert_int_equal(
		kvs_reserve_write(porch->kvs, porch->me, &key, 1, &write, &span, &rc, NULL), 0);
	if (rc == 0)
		assert_int_equal(kvs_finish_write(porch->kvs, porch->me, &key, 1, &rc, NULL), 0);
	return rc;
}

static void X11_a_tenant_stays_within_its_quota(void **state)
{
	const struct kvs_namespace one = { { 1 } };
	struct kvs_options         options = porch_options();
	struct porch               porch;
	uint64_t                   removed, left;
	uint32_t                   i;

	(void)state;
	options.isolate = true;
	porch_open(&porch, &options);
	assert_int_equal(kvs_quota(porch.kvs, &one, 4 * 8192, NULL), 0);
	for (i = 0; i < 10; i++) {
		assert_int_equal(write_in(&porch, 1, i), 0);
		assert_int_equal(write_in(&porch, 2, i), 0);
	}
	assert_int_equal(porch_status(&porch).objects, 4 + 10);
	assert_int_equal(kvs_clear(porch.kvs, &one, false, &removed, &left), 0);
	assert_int_equal(removed, 4);
	assert_int_equal(porch_status(&porch).objects, 10);
	porch_close(&porch);
}

static void a_touch_is_a_use(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;

	(void)state;
	options.host_bytes = 64u << 10;
	options.objects = 64;
	options.object_bytes = PORCH_BYTES;
	options.high = options.low = 1;
	porch_open(&porch, &options);
	porch_write(&porch, 0, 8);
	assert_int_equal(kvs_touch(porch.kvs, porch_name(&porch, 0, 2), 2), 0);
	porch_write(&porch, 100, 6);
	assert_int_equal(porch_resident(&porch, 0, 2), 2);
	assert_int_equal(porch_resident(&porch, 2, 6), 0);
	porch_close(&porch);
}

/* Past the high watermark the upkeep makes room down to the low one, ahead of need. */
static void B1_2_room_is_made_ahead_of_need(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;

	(void)state;
	options.host_bytes = 800u << 10; /* a hundred places of 8 KiB */
	options.objects = 200;
	options.object_bytes = PORCH_BYTES;
	options.high = 0.8;
	options.low = 0.4;
	porch_open(&porch, &options);
	porch_write(&porch, 0, 79);
	assert_int_equal(porch_status(&porch).evicted, 0);
	porch_write(&porch, 79, 4);
	while (porch_status(&porch).objects > 44)
		sched_yield();
	assert_int_equal(porch_resident(&porch, 79, 4), 4);
	porch_close(&porch);
}

/* Nobody calls: the upkeep drops a reservation that nobody finished. */
static void what_is_due_expires_by_itself(void **state)
{
	struct kvs_options     options = porch_options();
	const struct kvs_write write = { .bytes = PORCH_BYTES };
	struct porch           porch;

	(void)state;
	options.write_ttl_ns = 1000000;
	porch_open(&porch, &options);
	porch_name(&porch, 0, 2);
	assert_int_equal(kvs_reserve_write(porch.kvs, porch.me, porch.keys, 2, &write, porch.spans,
					   porch.rc, NULL),
			 0);
	while (porch_status(&porch).staged > 0)
		sched_yield();
	assert_int_equal(kvs_finish_write(porch.kvs, porch.me, porch.keys, 2, porch.rc, NULL), 0);
	assert_true(porch.rc[0] == KVS_E_MISSING && porch.rc[1] == KVS_E_MISSING);
	porch_close(&porch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_counts_what_there_is),
		cmocka_unit_test(a_shorter_status_is_not_overrun),
		cmocka_unit_test(metrics_are_a_text_of_all_there_is_to_count),
		cmocka_unit_test(X11_a_tenant_stays_within_its_quota),
		cmocka_unit_test(a_touch_is_a_use),
		cmocka_unit_test(B1_2_room_is_made_ahead_of_need),
		cmocka_unit_test(what_is_due_expires_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
