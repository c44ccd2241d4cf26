/* SPDX-License-Identifier: Apache-2.0 */
/* Promises about the store as a whole: namespaces, locks, its own report, close, many workers. */
#include "stand.h"

#include <string.h>

#include "base/err.h"
#include "base/prng.h"
#include "named_block.h"
#include "os/os.h"
#include "promises.h"

#define SPACES 2u
#define KEYS_A_SPACE 5u

static struct kvs_key key_in(uint32_t space, uint32_t number)
{
	struct kvs_key key = key_of(number);

	memset(&key.space, (int)space + 1, sizeof(key.space));
	return key;
}

static void put_two_spaces(struct stand *stand)
{
	uint32_t space, i;

	for (space = 0; space < SPACES; space++) {
		for (i = 0; i < KEYS_A_SPACE; i++) {
			const struct kvs_key key = key_in(space, i);
			enum kvs_result      result;

			stand_put_keys(stand, &key, &i, 1, BLOCK, &result);
			assert_int_equal(result, KVS_RESULT_DONE);
		}
	}
}

/* Read a listing in small pieces; a bit for each key of space 0, and above them of space 1. */
static uint32_t list(struct stand *stand, const struct kvs_namespace *space)
{
	uint64_t       cursor = 0;
	uint32_t       seen = 0, count, i, at, rounds = 0;
	struct kvs_key keys[3], key;

	do {
		assert_int_equal(stand->store->ops->list(stand->store, space, &cursor, keys, 3,
							 &count),
				 0);
		assert_in_range(count, 0, 3);
		assert_true(rounds++ < 1000);
		for (i = 0; i < count; i++) {
			for (at = 0; at < SPACES * KEYS_A_SPACE; at++) {
				key = key_in(at / KEYS_A_SPACE, at % KEYS_A_SPACE);
				if (memcmp(&key, &keys[i], sizeof(key)) == 0)
					break;
			}
			assert_in_range(at, 0, SPACES * KEYS_A_SPACE - 1);
			seen |= 1u << at;
		}
	} while (cursor);
	return seen;
}

void listing_sees_one_namespace(void **state)
{
	struct stand              *stand = *state;
	const struct kvs_namespace one = key_in(0, 0).space, other = key_in(1, 0).space,
				   nobody = key_in(2, 0).space;

	if (!stand->store->ops->list) {
		print_message("# %s cannot list\n", stand->subject->name);
		return;
	}
	assert_int_equal(list(stand, NULL), 0);
	put_two_spaces(stand);
	assert_int_equal(list(stand, &one), 0x1f);
	assert_int_equal(list(stand, &other), 0x1f << KEYS_A_SPACE);
	assert_int_equal(list(stand, &nobody), 0);
	assert_int_equal(list(stand, NULL), 0x3ff);
}

void purging_takes_one_namespace(void **state)
{
	struct stand              *stand = *state;
	const struct kvs_namespace one = key_in(0, 0).space;
	uint64_t                   count = 0;
	uint32_t                   i;

	if (!stand->store->ops->purge) {
		print_message("# %s cannot purge\n", stand->subject->name);
		return;
	}
	put_two_spaces(stand);
	assert_int_equal(stand->store->ops->purge(stand->store, &one, &count), 0);
	assert_int_equal(count, KEYS_A_SPACE);
	for (i = 0; i < SPACES * KEYS_A_SPACE; i++) {
		const struct kvs_key key = key_in(i / KEYS_A_SPACE, i % KEYS_A_SPACE);
		enum kvs_result      result;

		assert_int_equal(stand->store->ops->exists(stand->store, &key, 1, &result), 0);
		assert_int_equal(result, i < KEYS_A_SPACE ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
	}
	assert_int_equal(stand->store->ops->purge(stand->store, &one, &count), 0);
	assert_int_equal(count, 0);
}

/* False, with a word, when locks do not hold anything here. */
static bool has_locks(const struct stand *stand)
{
	if (!stand->info.locks)
		print_message("# %s has no locks of its own\n", stand->subject->name);
	return stand->info.locks;
}

/* More than any subject holds. */
static void press(struct stand *stand)
{
	uint32_t i;

	for (i = 0; i < 2 * stand->info.capacity_bytes / BLOCK; i++)
		(void)stand_put(stand, 1000 + i, BLOCK);
}

void locked_objects_are_not_evicted(void **state)
{
	struct stand *stand = *state;

	if (!has_locks(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_put(stand, 2, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_lock(stand, 1), KVS_RESULT_DONE);
	press(stand);
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_exists(stand, 2), KVS_RESULT_MISSING);
}

void locks_count(void **state)
{
	struct stand *stand = *state;

	if (!has_locks(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_lock(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(stand_lock(stand, 1), KVS_RESULT_DONE);
	stand_unlock(stand, 1);
	press(stand);
	assert_int_equal(stand_exists(stand, 1), KVS_RESULT_DONE);
	stand_unlock(stand, 1);
	press(stand);
	press(stand);
	assert_int_equal(stand_exists(stand, 1), KVS_RESULT_MISSING);
}

void unlocking_what_is_not_there_is_no_error(void **state)
{
	struct stand *stand = *state;

	if (!stand->store->ops->unlock) {
		print_message("# %s has no locks\n", stand->subject->name);
		return;
	}
	stand_unlock(stand, 7);
	assert_int_equal(stand_put(stand, 7, BLOCK), KVS_RESULT_DONE);
	stand_unlock(stand, 7);
	assert_int_equal(stand_lock(stand, 7), KVS_RESULT_DONE);
	assert_int_equal(stand_remove(stand, 7), KVS_RESULT_DONE);
	stand_unlock(stand, 7);
}

void removing_takes_what_is_locked(void **state)
{
	struct stand *stand = *state;

	if (!has_locks(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_lock(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(stand_remove(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_MISSING);
	stand_unlock(stand, 1);
}

static struct kvs_store_info described(struct stand *stand)
{
	struct kvs_store_info info;

	memset(&info, 0xff, sizeof(info));
	stand->store->ops->describe(stand->store, &info);
	assert_in_range(info.durability, KVS_DURABILITY_NONE, KVS_DURABILITY_PUT);
	assert_in_range(info.death_retires, KVS_DEATH_NOTHING, KVS_DEATH_DEVICE);
	assert_non_null(memchr(info.note, '\0', sizeof(info.note)));
	if (info.capacity_bytes)
		assert_true(info.used_bytes <= info.capacity_bytes);
	return info;
}

void describe_agrees_with_what_happened(void **state)
{
	struct stand               *stand = *state;
	const struct kvs_store_info before = described(stand);
	struct kvs_store_info       after;

	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_put(stand, 2, 4096), KVS_RESULT_DONE);
	after = described(stand);
	assert_int_equal(after.capacity_bytes, before.capacity_bytes);
	if (!stand_keeps(stand))
		return;
	/* Some servers are asked for nothing but objects. */
	if (after.object_count == 0 && after.capacity_bytes == 0) {
		print_message("# %s knows no counts\n", stand->subject->name);
		return;
	}
	assert_int_equal(after.object_count, before.object_count + 2);
	assert_true(after.used_bytes > before.used_bytes);
	assert_int_equal(stand_remove(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(described(stand).object_count, before.object_count + 1);
	press(stand);
	(void)described(stand);
}

void the_table_is_whole(void **state)
{
	const struct stand                *stand = *state;
	const struct kvs_store_ops *const  ops = stand->store->ops;

	assert_int_equal(ops->abi, KVS_STORE_ABI);
	assert_non_null(ops->name);
	assert_true(ops->open && ops->close && ops->describe && ops->exists && ops->remove);
	assert_true((ops->get && ops->put) || (ops->submit && ops->reap));
	assert_int_equal(!ops->lock, !ops->unlock);
	assert_int_equal(!ops->submit, !ops->reap);
	if (stand->info.locks)
		assert_non_null(ops->lock);
}

void what_should_survive_a_close_does(void **state)
{
	struct stand *stand = *state;

	if (stand->info.durability == KVS_DURABILITY_NONE) {
		print_message("# %s promises nothing behind its close\n", stand->subject->name);
		return;
	}
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	stand_close(stand);
	stand_open(stand);
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_DONE);
}

/* Calls of every outcome, then close: the guards know all the spans. */
void nothing_is_touched_after_close(void **state)
{
	struct stand *stand = *state;
	uint32_t      i;

	for (i = 0; i < 20; i++) {
		(void)stand_put(stand, i, BLOCK);
		(void)stand_get(stand, i, i % 3 ? BLOCK : 4096);
		(void)stand_get(stand, 100 + i, BLOCK);
	}
	assert_true(guarded_intact(&stand->guarded));
	stand_close(stand);
}

/*
 * Asserts of cmocka belong to its own thread, so workers count what is wrong.  Results that races
 * explain are fine; bytes are right or the result is not DONE.
 */
#define STEPS 250u
#define WORKER_KEYS 12u

struct worker {
	struct stand  *stand;
	struct guarded guarded;
	uint32_t       lane; /* and seed */
	uint32_t       wrong;
};

static void work_get(struct worker *worker, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = guarded_lend(&worker->guarded, BLOCK);
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	worker->wrong += stand_move(worker->stand, worker->lane, false, &key, &span, 1, &result,
				    &retired) < 0;
	worker->wrong += worker->stand->subject->keeps && result == KVS_RESULT_DONE &&
			 !is_filled(span.ptr, number, BLOCK);
	worker->wrong += result == KVS_RESULT_CORRUPT || result == KVS_RESULT_FAILED;
	guarded_back(&worker->guarded, &span, retired);
}

static void work_put(struct worker *worker, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = guarded_lend(&worker->guarded, BLOCK);
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	fill(span.ptr, number, BLOCK);
	worker->wrong += stand_move(worker->stand, worker->lane, true, &key, &span, 1, &result,
				    &retired) < 0;
	worker->wrong += !is_filled(span.ptr, number, BLOCK) || result == KVS_RESULT_FAILED;
	guarded_back(&worker->guarded, &span, retired);
}

static void *work(void *arg)
{
	struct worker *const    worker = arg;
	struct kvs_store *const store = worker->stand->store;
	struct prng             prng;
	uint32_t                step;

	prng_seed(&prng, worker->lane);
	for (step = 0; step < STEPS; step++) {
		const uint32_t       number = (uint32_t)prng_below(&prng, WORKER_KEYS);
		const struct kvs_key key = key_of(number);
		enum kvs_result      result = KVS_RESULT_UNKNOWN;

		switch (prng_below(&prng, 8)) {
		case 0:
			worker->wrong += store->ops->remove(store, &key, 1, &result) < 0;
			break;
		case 1:
			worker->wrong += store->ops->exists(store, &key, 1, &result) < 0;
			break;
		case 2:
		case 3:
		case 4:
			work_put(worker, number);
			break;
		default:
			work_get(worker, number);
			break;
		}
	}
	return NULL;
}

void workers_at_once_see_whole_objects(void **state)
{
	static struct worker workers[STAND_WORKERS];
	struct stand        *stand = *state;
	const uint32_t       count = stand->info.one_thread ? 1 : STAND_WORKERS;
	pthread_t            thread[STAND_WORKERS];
	uint32_t             i, wrong = 0;

	for (i = 0; i < count; i++) {
		workers[i] = (struct worker){ .stand = stand, .lane = i };
		stand_guard(stand, i, &workers[i].guarded);
		assert_int_equal(os_thread_start(&thread[i], "worker", work, &workers[i]), 0);
	}
	for (i = 0; i < count; i++) {
		os_thread_join(thread[i]);
		wrong += workers[i].wrong;
	}
	assert_int_equal(wrong, 0);
	stand_close(stand);
	for (i = 0; i < count; i++) {
		assert_true(guarded_intact(&workers[i].guarded));
		guarded_close(&workers[i].guarded);
	}
}
