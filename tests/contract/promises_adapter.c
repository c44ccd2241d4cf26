/* SPDX-License-Identifier: Apache-2.0 */
/* A promise that follows from all others: an adapter works over the store, whichever it is. */
#include "stand.h"

#include <string.h>

#include "adapter/adapter.h"
#include "base/err.h"
#include "named_block.h"
#include "os/os.h"
#include "promises.h"

#define OBJECTS 6u
#define ASKED 8u /* the last two were never stored */
#define FOREVER_NS UINT64_MAX

static const struct adapter_options options = {
	.exec = { .limits = { .outstanding_max = 16, .queue_max = 16, .lock_max = 64 },
		  .workers = { 1, 1, 1 } },
	.op_max = { 4, 4, 4 }
};

struct round {
	struct stand   *stand;
	struct adapter *adapter;
	struct kvs_key  keys[ASKED];
	struct kvs_span spans[ASKED];
	uint64_t        words;
};

static void await(const struct round *round, enum task_kind kind)
{
	const int epoll_fd = os_epoll();
	uint64_t  tag;

	assert_int_equal(os_epoll_add(epoll_fd, adapter_fd(round->adapter, kind), 0), 0);
	while (os_epoll_wait(epoll_fd, &tag, 1, FOREVER_NS) == 0)
		;
	os_close(epoll_fd);
}

static void lend(struct round *round)
{
	uint32_t i;

	for (i = 0; i < ASKED; i++) {
		round->keys[i] = key_of(i);
		round->spans[i] = guarded_lend(&round->stand->guarded, BLOCK);
	}
}

static void give_back(struct round *round, bool retired)
{
	uint32_t i;

	for (i = 0; i < ASKED; i++)
		guarded_back(&round->stand->guarded, &round->spans[i], retired);
	if (*round->stand->guarded.violation)
		fail_msg("%s", round->stand->guarded.violation);
}

static uint64_t store_objects(struct round *round)
{
	struct task_result result;
	uint64_t           id;
	uint32_t           i;

	lend(round);
	for (i = 0; i < OBJECTS; i++)
		fill(round->spans[i].ptr, i, BLOCK);
	assert_int_equal(adapter_submit_store(round->adapter, round->keys, round->spans, OBJECTS, &id),
			 0);
	await(round, TASK_STORE);
	assert_int_equal(adapter_pop_stored(round->adapter, &result, 1), 1);
	assert_int_equal(result.task_id, id);
	assert_true(result.ok);
	give_back(round, result.retired);
	return result.moved_bytes;
}

static void look_up(struct round *round)
{
	uint64_t id;

	assert_int_equal(adapter_submit_lookup(round->adapter, round->keys, ASKED, &id), 0);
	await(round, TASK_LOOKUP);
	assert_true(adapter_query_lookup(round->adapter, id, &round->words));
}

static void load(struct round *round)
{
	uint64_t id;
	bool     retired;
	uint32_t i;

	lend(round);
	assert_int_equal(adapter_submit_load(round->adapter, round->keys, round->spans, ASKED, &id), 0);
	await(round, TASK_LOAD);
	assert_true(adapter_query_load(round->adapter, id, &round->words, &retired));
	for (i = 0; i < ASKED && round->stand->subject->keeps; i++) {
		assert_int_equal(bits_test(&round->words, i), i < OBJECTS);
		if (i < OBJECTS)
			assert_true(is_filled(round->spans[i].ptr, i, BLOCK));
	}
	give_back(round, retired);
}

void B2_5_an_adapter_works_over_it(void **state)
{
	struct stand *const  stand = *state;
	struct round         round = { .stand = stand };
	struct adapter_stats stats;

	assert_int_equal(adapter_open(stand->store, &options, &round.adapter, NULL), 0);
	stand->store = NULL; /* the adapter's now, and closed by it */
	assert_int_equal(store_objects(&round), OBJECTS * BLOCK);
	look_up(&round);
	if (stand->subject->keeps)
		assert_int_equal(round.words, (1u << OBJECTS) - 1);
	load(&round);
	if (stand->subject->keeps)
		assert_int_equal(store_objects(&round), 0);
	adapter_unlock(round.adapter, round.keys, ASKED);
	adapter_stats(round.adapter, &stats);
	assert_int_equal(stats.exec.locks_held, 0);
	assert_int_equal(adapter_close(round.adapter, FOREVER_NS), 0);
	assert_true(guarded_intact(&stand->guarded));
}
