/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mem store does while payload is on its way.
 *
 * The linker leads its hashing through a function of this program, which calls back into the store
 * from there: the moment that threads would have to hit.  That it returns at all shows that no lock
 * is held then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "store/mem.h"
#include "store/store.h"

#define BLOCK 4096u
#define SLOTS 2u

static struct kvs_store *store;
static void (*during)(void); /* runs once, inside the next put or get that moves bytes */

/* The linker's names. */
uint64_t __real_xxh3_64_seeded(const void *bytes, size_t byte_count, uint64_t seed);
uint64_t __wrap_xxh3_64_seeded(const void *bytes, size_t byte_count, uint64_t seed);

uint64_t __wrap_xxh3_64_seeded(const void *bytes, size_t byte_count, uint64_t seed)
{
	void (*run)(void) = during;

	during = NULL;
	if (run)
		run();
	return __real_xxh3_64_seeded(bytes, byte_count, seed);
}

/* Without the wrapped hash nothing would run. */
static void run_during(void (*run)(void))
{
	if (!LINKER_WRAPS)
		skip();
	during = run;
}

static void open_as(const char *spec, const char *evict_policy)
{
	assert_int_equal(store_open(spec, BLOCK, evict_policy, &store, NULL), 0);
}

static int close_quiet(void **state)
{
	(void)state;
	assert_null(during);
	mem_audit((struct mem *)store);
	assert_int_equal(store->ops->close(store), 0);
	return 0;
}

static int open_lru(void **state)
{
	(void)state;
	open_as("mem:8KiB", "lru");
	return 0;
}

static int open_fifo(void **state)
{
	(void)state;
	open_as("mem:8KiB", "fifo");
	return 0;
}

static int open_none(void **state)
{
	(void)state;
	open_as("mem:8KiB", "none");
	return 0;
}

static int open_corrupt(void **state)
{
	(void)state;
	open_as("mem:8KiB?corrupt_every=1", "lru");
	return 0;
}

static enum kvs_result put(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             words[BLOCK / 8];
	enum kvs_result      result;
	bool                 retired = false;

	fill(words, number, BLOCK);
	assert_int_equal(store->ops->put(store, &key, &(struct kvs_span){ words, BLOCK, BLOCK }, 1,
					 &result, &retired),
			 0);
	assert_true(retired);
	return result;
}

static enum kvs_result get(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             words[BLOCK / 8];
	enum kvs_result      result;
	bool                 retired = false;

	assert_int_equal(store->ops->get(store, &key, &(struct kvs_span){ words, BLOCK, BLOCK }, 1,
					 &result, &retired),
			 0);
	assert_true(retired);
	if (result == KVS_RESULT_DONE)
		assert_true(is_filled(words, number, BLOCK));
	return result;
}

static enum kvs_result exists(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(store->ops->exists(store, &key, 1, &result), 0);
	return result;
}

static enum kvs_result removes(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(store->ops->remove(store, &key, 1, &result), 0);
	return result;
}

static enum kvs_result locks(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(store->ops->lock(store, &key, 1, &result), 0);
	return result;
}

static void unlock(uint32_t number)
{
	const struct kvs_key key = key_of(number);

	store->ops->unlock(store, &key, 1);
}

static uint64_t purge(void)
{
	uint64_t count = 77;

	assert_int_equal(store->ops->purge(store, NULL, &count), 0);
	return count;
}

static uint32_t list(void)
{
	struct kvs_key keys[SLOTS + 1];
	uint64_t       cursor = 0;
	uint32_t       count;

	assert_int_equal(store->ops->list(store, NULL, &cursor, keys, SLOTS + 1, &count), 0);
	assert_int_equal(cursor, 0);
	return count;
}

static struct kvs_store_info described(void)
{
	struct kvs_store_info info;

	store->ops->describe(store, &info);
	return info;
}

/* --- while a put writes ----------------------------------------------------------------------- */

static void look_at_half_written_1(void)
{
	assert_int_equal(put(1), KVS_RESULT_UNKNOWN);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
	assert_int_equal(get(1), KVS_RESULT_MISSING);
	assert_int_equal(removes(1), KVS_RESULT_MISSING);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(exists(2), KVS_RESULT_MISSING);
}

/* Two slots: the one being written is never the victim. */
static void a_key_being_written_is_not_claimed(void **state)
{
	(void)state;
	run_during(look_at_half_written_1);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(get(3), KVS_RESULT_DONE);
}

static void put_3_while_2_is_written(void)
{
	assert_int_equal(put(3), KVS_RESULT_NO_SPACE);
}

static void put_2_while_1_is_written(void)
{
	during = put_3_while_2_is_written;
	assert_int_equal(put(2), KVS_RESULT_DONE);
}

static void with_all_slots_written_a_put_has_no_space(void **state)
{
	(void)state;
	run_during(put_2_while_1_is_written);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(get(2), KVS_RESULT_DONE);
}

static void lock_while_1_is_written(void)
{
	assert_int_equal(locks(1), KVS_RESULT_MISSING);
	unlock(1);
}

static void what_is_being_written_is_not_locked(void **state)
{
	(void)state;
	run_during(lock_while_1_is_written);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
}

static void list_and_purge_while_1_is_written(void)
{
	assert_int_equal(described().object_count, 1);
	assert_int_equal(list(), 1);
	assert_int_equal(purge(), 1);
	assert_int_equal(list(), 0);
}

static void what_is_being_written_is_neither_listed_nor_purged(void **state)
{
	(void)state;
	assert_int_equal(put(2), KVS_RESULT_DONE);
	run_during(list_and_purge_while_1_is_written);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(get(2), KVS_RESULT_MISSING);
}

/* --- while a get reads ------------------------------------------------------------------------ */

static void fill_up_while_1_is_read(void)
{
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(put(4), KVS_RESULT_DONE);
}

static void a_slot_being_read_is_not_evicted(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	run_during(fill_up_while_1_is_read);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(exists(4), KVS_RESULT_DONE);
}

static void put_3_while_1_and_2_are_read(void)
{
	assert_int_equal(put(3), KVS_RESULT_NO_SPACE);
}

static void read_2_while_1_is_read(void)
{
	during = put_3_while_1_and_2_are_read;
	assert_int_equal(get(2), KVS_RESULT_DONE);
}

static void with_all_slots_read_a_put_has_no_space(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	run_during(read_2_while_1_is_read);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_DONE);
}

static void remove_and_refill_while_1_is_read(void)
{
	assert_int_equal(removes(1), KVS_RESULT_DONE);
	assert_int_equal(removes(1), KVS_RESULT_MISSING);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(exists(3), KVS_RESULT_MISSING);
}

static void a_slot_removed_under_a_reader_waits_for_it(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	run_during(remove_and_refill_while_1_is_read);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(put(4), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
}

static void find_1_wrong_and_put_it_again(void)
{
	assert_int_equal(get(1), KVS_RESULT_CORRUPT);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
	assert_int_equal(put(1), KVS_RESULT_DONE);
}

/* The second reader to find it wrong takes nothing more, least of all what came since. */
static void what_two_readers_find_wrong_goes_once(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	run_during(find_1_wrong_and_put_it_again);
	assert_int_equal(get(1), KVS_RESULT_CORRUPT);
	assert_int_equal(described().corrupt_objects, 1);
	assert_int_equal(exists(1), KVS_RESULT_DONE);
	assert_int_equal(described().object_count, 1);
}

/* --- locks, the order, memory ----------------------------------------------------------------- */

static void with_all_slots_locked_a_put_has_no_space(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	assert_int_equal(locks(2), KVS_RESULT_DONE);
	assert_int_equal(locks(3), KVS_RESULT_MISSING);
	assert_int_equal(put(3), KVS_RESULT_NO_SPACE);
	unlock(1);
	unlock(3);
	assert_int_equal(put(3), KVS_RESULT_NO_SPACE);
	assert_int_equal(described().refused_full, 2);
	unlock(1);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(exists(2), KVS_RESULT_DONE);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
}

static void with_policy_none_a_full_store_refuses_and_keeps(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_NO_SPACE);
	assert_int_equal(put(1), KVS_RESULT_EXISTS);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(put(4), KVS_RESULT_NO_SPACE);
	assert_int_equal(described().refused_full, 2);
	assert_int_equal(described().evicted_objects, 0);
	assert_int_equal(described().object_count, 2);
	assert_int_equal(removes(1), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(get(2), KVS_RESULT_DONE);
}

static void unlocking_is_no_use(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	unlock(1);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
}

static void a_lock_goes_with_its_object(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	assert_int_equal(removes(1), KVS_RESULT_DONE);
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
	unlock(1);
}

static void a_purge_takes_what_is_locked(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(locks(1), KVS_RESULT_DONE);
	assert_int_equal(purge(), 2);
	assert_int_equal(purge(), 0);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
}

static void fifo_does_not_look_at_uses(void **state)
{
	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(get(1), KVS_RESULT_DONE);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(exists(1), KVS_RESULT_MISSING);
	assert_int_equal(exists(2), KVS_RESULT_DONE);
}

/* Pages that were written stay the process's; a freed slot is written again before a new one. */
static void memory_is_told_at_its_peak(void **state)
{
	const uint64_t empty = described().memory_bytes;

	(void)state;
	assert_int_equal(put(1), KVS_RESULT_DONE);
	assert_int_equal(described().memory_bytes, empty + BLOCK);
	assert_int_equal(removes(1), KVS_RESULT_DONE);
	assert_int_equal(put(2), KVS_RESULT_DONE);
	assert_int_equal(described().memory_bytes, empty + BLOCK);
	assert_int_equal(put(3), KVS_RESULT_DONE);
	assert_int_equal(purge(), 2);
	assert_int_equal(described().memory_bytes, empty + 2 * BLOCK);
	assert_int_equal(described().used_bytes, 0);
}

#define MEM_TEST(test, open) cmocka_unit_test_setup_teardown(test, open, close_quiet)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEM_TEST(a_key_being_written_is_not_claimed, open_lru),
		MEM_TEST(with_all_slots_written_a_put_has_no_space, open_lru),
		MEM_TEST(what_is_being_written_is_not_locked, open_lru),
		MEM_TEST(what_is_being_written_is_neither_listed_nor_purged, open_lru),
		MEM_TEST(a_slot_being_read_is_not_evicted, open_lru),
		MEM_TEST(with_all_slots_read_a_put_has_no_space, open_lru),
		MEM_TEST(a_slot_removed_under_a_reader_waits_for_it, open_lru),
		MEM_TEST(what_two_readers_find_wrong_goes_once, open_corrupt),
		MEM_TEST(with_all_slots_locked_a_put_has_no_space, open_lru),
		MEM_TEST(with_policy_none_a_full_store_refuses_and_keeps, open_none),
		MEM_TEST(unlocking_is_no_use, open_lru),
		MEM_TEST(a_lock_goes_with_its_object, open_lru),
		MEM_TEST(a_purge_takes_what_is_locked, open_lru),
		MEM_TEST(fifo_does_not_look_at_uses, open_fifo),
		MEM_TEST(memory_is_told_at_its_peak, open_lru),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
