/* SPDX-License-Identifier: Apache-2.0 */
/* See desk.h. */
#include "desk.h"

#include <stdlib.h>
#include <string.h>

#include "named_block.h"
#include "os/os.h"

const struct adapter_options desk_options = {
	.exec = { .limits = { .outstanding_max = 64, .queue_max = 64, .lock_max = 4096 },
		  .workers = { 1, 2, 2 } },
	.op_max = { 8, 8, 8 }
};

static struct desk *start(bool locks, struct kvs_store *other, const struct adapter_options *options)
{
	struct desk *const desk = calloc(1, sizeof(*desk));
	struct kvs_store  *store = other;
	int                kind;

	KVS_ASSERT(desk);
	crate_init(&desk->crate, locks);
	if (!store)
		store = &desk->crate.store;
	KVS_ASSERT(adapter_open(store, options, &desk->adapter, NULL) == 0);
	desk->epoll_fd = os_epoll();
	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		KVS_ASSERT(os_epoll_add(desk->epoll_fd, adapter_fd(desk->adapter, kind),
					(uint64_t)kind) == 0);
	}
	return desk;
}

struct desk *desk_new(bool locks, const struct adapter_options *options)
{
	return start(locks, NULL, options);
}

struct desk *desk_on(struct kvs_store *store, const struct adapter_options *options)
{
	return start(true, store, options);
}

void desk_free(struct desk *desk)
{
	os_close(desk->epoll_fd);
	crate_fini(&desk->crate);
	free(desk);
}

int desk_setup(void **state)
{
	*state = desk_new(true, &desk_options);
	return 0;
}

int desk_teardown(void **state)
{
	struct desk *const desk = *state;

	crate_open(&desk->crate);
	KVS_ASSERT(adapter_close(desk->adapter, DESK_FOREVER_NS) == 0);
	KVS_ASSERT(desk->crate.closed);
	KVS_ASSERT_CMP(crate_locked(&desk->crate), ==, 0);
	desk_free(desk);
	return 0;
}

/* --- batches and waiting ------------------------------------------------- */

struct batch *desk_name(struct desk *desk, uint32_t number, uint32_t count)
{
	struct batch *const batch = &desk->batch;
	uint32_t            i;

	KVS_ASSERT_CMP(count, <=, DESK_KEYS);
	for (i = 0; i < count; i++) {
		batch->keys[i] = key_of(number + i);
		batch->spans[i] =
			(struct kvs_span){ batch->bytes[i], CRATE_BYTES, CRATE_BYTES };
		fill(batch->bytes[i], number + i, CRATE_BYTES);
	}
	memset(batch->words, 0xff, sizeof(batch->words));
	return batch;
}

bool desk_is_readable(const struct desk *desk, enum task_kind kind)
{
	uint64_t  tags[TASK_KIND_COUNT];
	const int count = os_epoll_wait(desk->epoll_fd, tags, TASK_KIND_COUNT, 0);
	int       i;

	for (i = 0; i < count; i++) {
		if (tags[i] == kind)
			return true;
	}
	return false;
}

void desk_await(const struct desk *desk, enum task_kind kind)
{
	uint64_t tags[TASK_KIND_COUNT];

	while (!desk_is_readable(desk, kind))
		os_epoll_wait(desk->epoll_fd, tags, TASK_KIND_COUNT, DESK_FOREVER_NS);
}

struct task_result desk_pop(struct desk *desk)
{
	struct task_result result;

	desk_await(desk, TASK_STORE);
	KVS_ASSERT_CMP(adapter_pop_stored(desk->adapter, &result, 1), ==, 1);
	return result;
}

struct task_result desk_store(struct desk *desk, uint32_t number, uint32_t count)
{
	struct batch *const batch = desk_name(desk, number, count);
	struct task_result  result;
	uint64_t            id;

	KVS_ASSERT(adapter_submit_store(desk->adapter, batch->keys, batch->spans, count, &id) == 0);
	result = desk_pop(desk);
	KVS_ASSERT_CMP(result.task_id, ==, id);
	return result;
}

void desk_await_lookup(struct desk *desk, uint64_t id)
{
	while (!adapter_query_lookup(desk->adapter, id, desk->batch.words))
		desk_await(desk, TASK_LOOKUP);
}

size_t desk_lookup(struct desk *desk, uint32_t number, uint32_t count)
{
	const struct batch *const batch = desk_name(desk, number, count);
	uint64_t                  id;

	KVS_ASSERT(adapter_submit_lookup(desk->adapter, batch->keys, count, &id) == 0);
	desk_await_lookup(desk, id);
	return bits_count(batch->words, count);
}

void desk_unlock(struct desk *desk, uint32_t number, uint32_t count)
{
	const struct batch *const batch = desk_name(desk, number, count);

	adapter_unlock(desk->adapter, batch->keys, count);
}

uint64_t desk_submit_load(struct desk *desk, uint32_t number, uint32_t count)
{
	struct batch *const batch = desk_name(desk, number, count);
	uint64_t            id;

	memset(batch->bytes, 0, sizeof(batch->bytes));
	KVS_ASSERT(adapter_submit_load(desk->adapter, batch->keys, batch->spans, count, &id) == 0);
	return id;
}

bool desk_await_load(struct desk *desk, uint64_t id)
{
	bool retired;

	while (!adapter_query_load(desk->adapter, id, desk->batch.words, &retired))
		desk_await(desk, TASK_LOAD);
	return retired;
}

size_t desk_load(struct desk *desk, uint32_t number, uint32_t count)
{
	static const uint64_t untouched[CRATE_BYTES / 8];
	uint32_t              i;

	KVS_ASSERT(desk_await_load(desk, desk_submit_load(desk, number, count)));
	for (i = 0; i < count; i++) {
		if (bits_test(desk->batch.words, i))
			KVS_ASSERT(is_filled(desk->batch.bytes[i], number + i, CRATE_BYTES));
		else
			KVS_ASSERT(memcmp(desk->batch.bytes[i], untouched, CRATE_BYTES) == 0);
	}
	return bits_count(desk->batch.words, count);
}
