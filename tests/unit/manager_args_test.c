/* SPDX-License-Identifier: Apache-2.0 */
/* What may be wrong with the arguments of a call: a sentence says it, and nothing has happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "porch.h"

static struct kvs_error err;

static int open_plain(void **state)
{
	static struct porch porch;

	porch_open_on(&porch, NULL);
	*state = &porch;
	return 0;
}

static int shut(void **state)
{
	porch_close(*state);
	return 0;
}

#define INVALID(call, sentence) \
	do { \
		memset(&err, 0, sizeof(err)); \
		assert_int_equal(call, KVS_E_INVALID); \
		assert_int_equal(err.code, KVS_E_INVALID); \
		assert_string_equal(err.message, sentence); \
	} while (0)

static void batches_are_checked_before_anything_else(void **state)
{
	struct porch *const   p = *state;
	struct kvs *const     kvs = p->kvs;
	const kvs_client      me = p->me;
	const struct kvs_key *k = porch_name(p, 0, 2);
	struct kvs_span      *s = p->spans;
	int                  *rc = p->rc;

	INVALID(kvs_reserve_write(NULL, me, k, 1, NULL, s, rc, &err), "kvs: NULL");
	INVALID(kvs_reserve_write(kvs, me, NULL, 1, NULL, s, rc, &err), "keys: NULL");
	INVALID(kvs_reserve_write(kvs, me, k, 0, NULL, s, rc, &err),
		"count: 0 is out of range; use 1 to 4096");
	INVALID(kvs_reserve_write(kvs, me, k, 4097, NULL, s, rc, &err),
		"count: 4097 is out of range; use 1 to 4096");
	INVALID(kvs_reserve_write(kvs, me, k, 1, NULL, NULL, rc, &err), "ret_spans: NULL");
	INVALID(kvs_reserve_write(kvs, me, k, 1, NULL, s, NULL, &err), "ret_rc: NULL");
	INVALID(kvs_finish_write(kvs, me, NULL, 1, rc, &err), "keys: NULL");
	INVALID(kvs_finish_write(kvs, me, k, 0, rc, &err),
		"count: 0 is out of range; use 1 to 4096");
	INVALID(kvs_finish_write(kvs, me, k, 1, NULL, &err), "ret_rc: NULL");
	INVALID(kvs_discard_write(kvs, me, NULL, 1, rc, &err), "keys: NULL");
	INVALID(kvs_discard_write(kvs, me, k, 1, NULL, &err), "ret_rc: NULL");
	INVALID(kvs_lock(kvs, me, NULL, 1, s, rc, &err), "keys: NULL");
	INVALID(kvs_lock(kvs, me, k, 1, NULL, rc, &err), "ret_spans: NULL");
	INVALID(kvs_unlock(kvs, me, k, UINT32_MAX, rc, &err),
		"count: 4294967295 is out of range; use 1 to 4096");
	INVALID(kvs_unlock(kvs, me, k, 1, NULL, &err), "ret_rc: NULL");
	INVALID(kvs_remove(kvs, NULL, 1, true, rc, &err), "keys: NULL");
	INVALID(kvs_remove(kvs, k, 1, true, NULL, &err), "ret_rc: NULL");
	assert_int_equal(kvs_touch(kvs, NULL, 1), KVS_E_INVALID);
	assert_int_equal(kvs_touch(kvs, k, 0), KVS_E_INVALID);
	assert_int_equal(porch_status(p).staged, 0);
}

static void prefetches_are_checked_before_anything_else(void **state)
{
	static const uint32_t windows[17] = { 1,  2,  3,  4,  5,  6,  7,  8, 9,
					      10, 11, 12, 13, 14, 15, 16, 17 };
	static const uint64_t sizes[2] = { 4096, 0 }, large[2] = { 65537, 4096 };
	struct porch *const   p = *state;
	struct kvs *const     kvs = p->kvs;
	const kvs_client      me = p->me;
	const struct kvs_key *k = porch_name(p, 0, 12);
	kvs_prefetch          h = 0;
	struct kvs_ask        ask = { 0 };

	INVALID(kvs_prefetch_submit(NULL, me, k, 1, NULL, &h, &err), "kvs: NULL");
	INVALID(kvs_prefetch_submit(kvs, me, NULL, 1, NULL, &h, &err), "keys: NULL");
	INVALID(kvs_prefetch_submit(kvs, me, k, 0, NULL, &h, &err),
		"count: 0 is out of range; use 1 to 512");
	INVALID(kvs_prefetch_submit(kvs, me, k, 513, NULL, &h, &err),
		"count: 513 is out of range; use 1 to 512");
	INVALID(kvs_prefetch_submit(kvs, me, k, 1, NULL, NULL, &err), "ret_prefetch: NULL");
	ask.bytes_each = sizes;
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"ask: key 1 of 0 bytes; use 1 to object_bytes, 65536");
	ask.bytes_each = large;
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"ask: key 0 of 65537 bytes; use 1 to object_bytes, 65536");
	ask = (struct kvs_ask){ .bytes = 65537 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"ask: key 0 of 65537 bytes; use 1 to object_bytes, 65536");
	ask = (struct kvs_ask){ .struct_size = sizeof(ask) + 1 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err), "ask: struct_size: 57; use 0 or 8 to 56");
	ask = (struct kvs_ask){ .windows = windows };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"ask: windows and group_count: there are windows of 0 groups");
	ask = (struct kvs_ask){ .group_count = 2 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"ask: windows and group_count: there are groups without windows");
	ask = (struct kvs_ask){ .windows = windows, .group_count = 17 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"groups: 17 is out of range; use 1 to 16");
	ask = (struct kvs_ask){ .windows = windows, .group_count = 2, .copies = 33 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 2, &ask, &h, &err),
		"copies: 33 is out of range; with 2 groups use 1 to 32");
	ask = (struct kvs_ask){ .windows = windows, .group_count = 2, .copies = 2 };
	INVALID(kvs_prefetch_submit(kvs, me, k, 6, &ask, &h, &err),
		"count: 6 keys are not whole chunks of 4");
	assert_int_equal(h, 0);
	assert_int_equal(porch_status(p).prefetches, 0);
}

/* A caller that was compiled with a shorter struct: fields behind it are neither read nor written. */
static void shorter_structs_are_of_older_callers(void **state)
{
	struct porch *const      p = *state;
	const struct kvs_key    *k = porch_name(p, 0, 1);
	struct kvs_write         write = { offsetof(struct kvs_write, temporary), 4096, NULL, true, true };
	struct kvs_prefetch_info info;
	kvs_prefetch             prefetch;

	assert_int_equal(kvs_reserve_write(p->kvs, p->me, k, 1, &write, p->spans, p->rc, NULL), 0);
	assert_int_equal(kvs_finish_write(p->kvs, p->me, k, 1, p->rc, NULL), 0);
	assert_int_equal(porch_status(p).temporary, 0);
	write.struct_size = sizeof(write) + 8;
	INVALID(kvs_reserve_write(p->kvs, p->me, k, 1, &write, p->spans, p->rc, &err),
		"write: struct_size: 40; use 0 or 8 to 32");
	prefetch = porch_submit(p, 0, 1, NULL);
	memset(&info, 0x5a, sizeof(info));
	info.struct_size = offsetof(struct kvs_prefetch_info, submit_ns);
	assert_int_equal(kvs_prefetch_info(p->kvs, prefetch, &info), 0);
	assert_int_equal(info.key_count, 1);
	assert_int_equal(info.submit_ns, UINT64_C(0x5a5a5a5a5a5a5a5a));
	info.struct_size = 0;
	assert_int_equal(kvs_prefetch_info(p->kvs, prefetch, &info), KVS_E_INVALID);
	porch_release(p, prefetch);
}

static void handles_come_with_places_for_their_answers(void **state)
{
	struct porch *const      p = *state;
	struct kvs *const        kvs = p->kvs;
	struct kvs_prefetch_info info = { .struct_size = sizeof(info) };
	kvs_prefetch             prefetch;
	uint32_t                 number;

	porch_write(p, 0, 1);
	prefetch = porch_submit(p, 0, 1, NULL);
	assert_int_equal(kvs_prefetch_info(kvs, prefetch, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_poll(kvs, prefetch, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_wait(kvs, prefetch, 0, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_spans(kvs, prefetch, p->spans, 1, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_spans(kvs, prefetch, NULL, 1, &number), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_read(kvs, prefetch, NULL, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_info(NULL, prefetch, &info), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_release(NULL, prefetch), KVS_E_INVALID);
	assert_int_equal(kvs_prefetch_poll(kvs, prefetch, &number), 0);
	porch_release(p, prefetch);
	INVALID(kvs_client_open(kvs, NULL, &err), "ret_client: NULL");
	INVALID(kvs_client_open(NULL, &prefetch, &err), "kvs: NULL");
}

static void openings_need_their_pointers(void **state)
{
	struct kvs_options options = porch_options();
	struct kvs        *kvs;

	(void)state;
	INVALID(kvs_open(NULL, &kvs, &err), "options: NULL");
	INVALID(kvs_open(&options, NULL, &err), "ret_kvs: NULL");
	INVALID(kvs_open_json(NULL, &kvs, &err), "path: NULL");
	INVALID(kvs_open_json("x", NULL, &err), "ret_kvs: NULL");
}

static void stores_quotas_and_figures_are_checked(void **state)
{
	struct porch *const        p = *state;
	const struct kvs_namespace space = { { 1 } };
	struct kvs_status          status = { .struct_size = 0 };
	uint32_t                   number = 99;

	INVALID(kvs_store_add(p->kvs, NULL, &number, &err), "spec: NULL");
	INVALID(kvs_store_add(p->kvs, "none", &number, &err),
		"store: none is no store that could be attached");
	assert_int_equal(kvs_store_add(p->kvs, "mem:12", &number, &err), KVS_E_INVALID);
	assert_int_equal(number, 99);
	assert_int_equal(kvs_store_remove(p->kvs, 0, 0, &err), KVS_E_STALE);
	assert_string_equal(err.message, "number: no store has the number 0");
	assert_int_equal(kvs_store_remove(p->kvs, UINT32_MAX, 0, &err), KVS_E_STALE);
	INVALID(kvs_quota(p->kvs, NULL, 1, &err), "tenant: NULL");
	assert_int_equal(kvs_quota(p->kvs, &space, 1, &err), KVS_E_UNSUPPORTED);
	assert_string_equal(err.message, "quota: namespaces are not tenants; open with isolate");
	assert_int_equal(kvs_status(p->kvs, NULL), KVS_E_INVALID);
	assert_int_equal(kvs_status(p->kvs, &status), KVS_E_INVALID);
	assert_int_equal(kvs_metrics(p->kvs, NULL, 1), KVS_E_INVALID);
	assert_int_equal(kvs_clear(p->kvs, NULL, false, NULL, NULL), 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void each_row_answers_for_itself(void **state)
{
	static const uint64_t bytes[6] = { 4096, 0, 65536, 65537, UINT64_MAX, 1 };
	static const int    reserved[6] = { 0, KVS_E_INVALID, 0, KVS_E_INVALID, KVS_E_INVALID, 0 };
	struct porch *const p = *state;
	const struct kvs_write write = { .bytes_each = bytes };
	int                    i;

	porch_name(p, 0, 6);
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 6, &write, p->spans, p->rc, &err), 0);
	for (i = 0; i < 6; i++) {
		assert_int_equal(p->rc[i], reserved[i]);
		assert_int_equal(p->spans[i].bytes, reserved[i] ? 0 : bytes[i]);
		assert_true(reserved[i] ? !p->spans[i].ptr
					: (uintptr_t)p->spans[i].ptr % 4096 == 0);
	}
	/* Again: it is being written. */
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 1, &write, p->spans, p->rc, &err), 0);
	assert_int_equal(p->rc[0], KVS_E_BUSY);
	assert_int_equal(kvs_finish_write(p->kvs, p->me, p->keys, 6, p->rc, &err), 0);
	for (i = 0; i < 6; i++)
		assert_int_equal(p->rc[i], reserved[i] ? KVS_E_MISSING : 0);
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 1, &write, p->spans, p->rc, &err), 0);
	assert_int_equal(p->rc[0], KVS_E_EXISTS);
	assert_int_equal(kvs_finish_write(p->kvs, p->me, p->keys, 1, p->rc, &err), 0);
	assert_int_equal(p->rc[0], KVS_E_STALE);
}

static void a_write_without_a_size_is_of_whole_objects(void **state)
{
	struct porch *const p = *state;

	porch_name(p, 0, 1);
	assert_int_equal(kvs_reserve_write(p->kvs, p->me, p->keys, 1, NULL, p->spans, p->rc, &err),
			 0);
	assert_int_equal(p->rc[0], 0);
	assert_int_equal(p->spans[0].bytes, 65536);
	assert_int_equal(kvs_discard_write(p->kvs, p->me, p->keys, 1, p->rc, &err), 0);
	assert_int_equal(p->rc[0], 0);
	assert_int_equal(porch_status(p).host_used_bytes, 0);
}

/* What does not fit: as many as do, or with `whole` none. */
static void B1_1_room_for_all_or_for_as_many_as_fit(void **state)
{
	struct porch *const p = *state;
	struct kvs_write    write = { .bytes = 65536 };
	uint32_t            taken = 0, i;

	porch_name(p, 0, 200); /* of 68 KiB each, trailers included, in 8 MiB */
	write.whole = true;
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 200, &write, p->spans, p->rc, &err), 0);
	for (i = 0; i < 200; i++) {
		assert_int_equal(p->rc[i], KVS_E_FULL);
		assert_null(p->spans[i].ptr);
	}
	write.whole = false;
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 200, &write, p->spans, p->rc, &err), 0);
	for (i = 0; i < 200; i++) {
		assert_true(p->rc[i] == 0 || p->rc[i] == KVS_E_FULL);
		assert_int_equal(p->spans[i].ptr != NULL, p->rc[i] == 0);
		taken += p->rc[i] == 0;
	}
	assert_int_equal(taken, (8u << 20) / (68u << 10));
	assert_true(porch_status(p).refused >= 2 * (200 - taken));
	/* What was staged is what Host says, and a forced clear takes it, too. */
	assert_int_equal(porch_status(p).staged, taken);
	assert_int_equal(kvs_clear(p->kvs, NULL, false, NULL, NULL), 0);
	assert_int_equal(porch_status(p).staged, taken);
	assert_int_equal(kvs_clear(p->kvs, NULL, true, NULL, NULL), 0);
	assert_int_equal(porch_status(p).staged, 0);
	assert_int_equal(kvs_finish_write(p->kvs, p->me, p->keys, 1, p->rc, &err), 0);
	assert_int_equal(p->rc[0], KVS_E_MISSING);
}

/* Temporary objects never go to a store, and go with their last reader. */
static void B1_4_temporary_objects_go_with_their_reader(void **state)
{
	struct porch *const p = *state;
	struct kvs_write    write = { .bytes = 4096, .temporary = true };
	kvs_prefetch        prefetch;

	assert_int_equal(kvs_store_add(p->kvs, "mem:1MiB", NULL, &err), 0);
	porch_name(p, 0, 2);
	assert_int_equal(
		kvs_reserve_write(p->kvs, p->me, p->keys, 2, &write, p->spans, p->rc, &err), 0);
	assert_int_equal(kvs_finish_write(p->kvs, p->me, p->keys, 2, p->rc, &err), 0);
	assert_int_equal(porch_status(p).temporary, 2);
	prefetch = porch_submit(p, 0, 2, NULL);
	assert_int_equal(porch_wait(p, prefetch), 2);
	porch_flush(p);
	assert_int_equal(porch_status(p).stored_keys, 0);
	porch_release(p, prefetch);
	assert_int_equal(porch_resident(p, 0, 2), 0);
	assert_int_equal(porch_status(p).host_used_bytes, 0);
}

int main(void)
{
#define ON(name) cmocka_unit_test_setup_teardown(name, open_plain, shut)
	const struct CMUnitTest tests[] = {
		ON(batches_are_checked_before_anything_else),
		ON(prefetches_are_checked_before_anything_else),
		ON(shorter_structs_are_of_older_callers),
		ON(handles_come_with_places_for_their_answers),
		cmocka_unit_test(openings_need_their_pointers),
		ON(stores_quotas_and_figures_are_checked),
		ON(each_row_answers_for_itself),
		ON(a_write_without_a_size_is_of_whole_objects),
		ON(B1_1_room_for_all_or_for_as_many_as_fit),
		ON(B1_4_temporary_objects_go_with_their_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
