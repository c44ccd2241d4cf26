/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a slotted store does while its medium is busy.
 *
 * The medium here calls back into the store from inside its own I/O, which is the moment that
 * threads would have to hit.  That it returns at all shows that no lock is held then.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "store/slotted.h"

#define BLOCK 64u
#define SLOTS 2u

struct probe {
	struct medium     medium;
	struct kvs_store *store;
	uint64_t          words[SLOTS][BLOCK / 8];
	uint32_t          erased[SLOTS];
	int               write_rc, read_rc, erase_rc;
	void (*during)(struct probe *probe); /* runs once, inside the next I/O */
};

static void run_during(struct probe *probe)
{
	void (*during)(struct probe *) = probe->during;

	probe->during = NULL;
	if (during)
		during(probe);
}

static int probe_write(struct medium *medium, uint32_t slot, uint64_t sequence,
		       const struct object *object, const void *payload)
{
	struct probe *probe = (struct probe *)medium;

	(void)sequence;
	run_during(probe);
	memcpy(probe->words[slot], payload, object->bytes);
	return probe->write_rc;
}

static int probe_read(struct medium *medium, uint32_t slot, void *payload, uint32_t bytes)
{
	struct probe *probe = (struct probe *)medium;

	run_during(probe);
	memcpy(payload, probe->words[slot], bytes);
	return probe->read_rc;
}

static int probe_erase(struct medium *medium, uint32_t slot)
{
	struct probe *probe = (struct probe *)medium;

	probe->erased[slot]++;
	return probe->erase_rc;
}

static void probe_close(struct medium *medium)
{
	free(medium);
}

static const struct medium_ops probe_medium = {
	.write = probe_write, .read = probe_read, .erase = probe_erase, .close = probe_close
};

static const struct kvs_store_ops probe_ops = SLOTTED_OPS("probe", NULL, NULL);

static int probe_setup(void **state)
{
	const struct slotted_traits traits = { .slot_count = SLOTS,
					       .block_bytes = BLOCK,
					       .capacity_bytes = SLOTS * BLOCK,
					       .span_align = 1,
					       .durability = KVS_DURABILITY_PROCESS };
	const struct kvs_store_config config = { .struct_size = sizeof(config),
						 .place = "",
						 .block_bytes = BLOCK,
						 .evict_policy = "lru" };
	struct probe               *probe = calloc(1, sizeof(*probe));
	struct slotted             *slotted;

	probe->medium.ops = &probe_medium;
	assert_int_equal(slotted_open(&probe_ops, &probe->medium, &traits, &config, &slotted, NULL),
			 0);
	probe->store = &slotted->store;
	*state = probe;
	return 0;
}

static int probe_teardown(void **state)
{
	struct probe *probe = *state;

	slotted_audit((struct slotted *)probe->store);
	assert_int_equal(slotted_close(probe->store), 0);
	return 0;
}

static enum kvs_result put(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             words[BLOCK / 8];
	enum kvs_result      result;
	bool                 retired;

	fill(words, number, BLOCK);
	assert_int_equal(slotted_put(probe->store, &key, &(struct kvs_span){ words, BLOCK, BLOCK },
				     1, &result, &retired),
			 0);
	return result;
}

static enum kvs_result get(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             words[BLOCK / 8];
	enum kvs_result      result;
	bool                 retired;

	assert_int_equal(slotted_get(probe->store, &key, &(struct kvs_span){ words, BLOCK, BLOCK },
				     1, &result, &retired),
			 0);
	if (result == KVS_RESULT_DONE)
		assert_true(is_filled(words, number, BLOCK));
	return result;
}

static enum kvs_result exists(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(slotted_exists(probe->store, &key, 1, &result), 0);
	return result;
}

static enum kvs_result removes(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(slotted_remove(probe->store, &key, 1, &result), 0);
	return result;
}

static void look_at_half_written_1(struct probe *probe)
{
	assert_int_equal(put(probe, 1), KVS_RESULT_UNKNOWN);
	assert_int_equal(exists(probe, 1), KVS_RESULT_MISSING);
	assert_int_equal(get(probe, 1), KVS_RESULT_MISSING);
	assert_int_equal(removes(probe, 1), KVS_RESULT_MISSING);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 2), KVS_RESULT_MISSING);
}

/* Two slots: the one being written is never the victim. */
static void a_key_being_written_is_not_claimed(void **state)
{
	struct probe *probe = *state;

	probe->during = look_at_half_written_1;
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(get(probe, 3), KVS_RESULT_DONE);
}

static void fill_up_while_1_is_read(struct probe *probe)
{
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 4), KVS_RESULT_DONE);
}

static void a_slot_being_read_is_not_evicted(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	probe->during = fill_up_while_1_is_read;
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 4), KVS_RESULT_DONE);
}

static void put_3_while_1_and_2_are_read(struct probe *probe)
{
	assert_int_equal(put(probe, 3), KVS_RESULT_NO_SPACE);
}

static void read_2_while_1_is_read(struct probe *probe)
{
	probe->during = put_3_while_1_and_2_are_read;
	assert_int_equal(get(probe, 2), KVS_RESULT_DONE);
}

static void with_all_slots_read_a_put_has_no_space(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	probe->during = read_2_while_1_is_read;
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
}

static void remove_and_refill_while_1_is_read(struct probe *probe)
{
	assert_int_equal(removes(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(removes(probe, 1), KVS_RESULT_MISSING);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
}

static void a_slot_removed_under_a_reader_waits_for_it(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	probe->during = remove_and_refill_while_1_is_read;
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 4), KVS_RESULT_DONE);
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
}

static void a_failed_write_leaves_nothing(void **state)
{
	static const struct {
		int             rc;
		enum kvs_result result;
	} failures[] = { { -EIO, KVS_RESULT_FAILED },
			 { -ENOSPC, KVS_RESULT_NO_SPACE },
			 { -EDQUOT, KVS_RESULT_NO_SPACE },
			 { -EFBIG, KVS_RESULT_NO_SPACE } };
	struct probe *probe = *state;
	size_t        i;

	for (i = 0; i < ARRAY_COUNT(failures); i++) {
		probe->write_rc = failures[i].rc;
		assert_int_equal(put(probe, 1), failures[i].result);
		assert_int_equal(exists(probe, 1), KVS_RESULT_MISSING);
	}
	probe->write_rc = 0;
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
}

/* A medium that fails says nothing about the object; one that ends inside it does. */
static void a_failed_read_keeps_and_a_short_one_withdraws(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	probe->read_rc = -EIO;
	assert_int_equal(get(probe, 1), KVS_RESULT_FAILED);
	probe->read_rc = 0;
	assert_int_equal(get(probe, 1), KVS_RESULT_DONE);
	probe->read_rc = -ENODATA;
	assert_int_equal(get(probe, 1), KVS_RESULT_CORRUPT);
	assert_int_equal(probe->erased[0], 1);
	assert_int_equal(get(probe, 1), KVS_RESULT_MISSING);
}

static void a_remove_that_stays_on_the_medium_failed(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	probe->erase_rc = -EIO;
	assert_int_equal(removes(probe, 1), KVS_RESULT_FAILED);
	assert_int_equal(get(probe, 1), KVS_RESULT_MISSING);
}

static void an_evicted_header_is_erased_first(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(probe->erased[0], 0);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(probe->erased[0], 1);
	assert_int_equal(probe->erased[1], 0);
}

static enum kvs_result locks(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	assert_int_equal(slotted_lock(probe->store, &key, 1, &result), 0);
	return result;
}

static void unlock(struct probe *probe, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	slotted_unlock(probe->store, &key, 1);
}

static void with_all_slots_locked_a_put_has_no_space(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 3), KVS_RESULT_MISSING);
	assert_int_equal(put(probe, 3), KVS_RESULT_NO_SPACE);
	unlock(probe, 1);
	unlock(probe, 3);
	assert_int_equal(put(probe, 3), KVS_RESULT_NO_SPACE);
	unlock(probe, 1);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 1), KVS_RESULT_MISSING);
}

static void unlocking_is_no_use(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	unlock(probe, 1);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 1), KVS_RESULT_MISSING);
}

static void a_lock_goes_with_its_object(void **state)
{
	struct probe *probe = *state;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(removes(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 3), KVS_RESULT_DONE);
	assert_int_equal(exists(probe, 1), KVS_RESULT_MISSING);
	unlock(probe, 1);
}

static void lock_while_1_is_written(struct probe *probe)
{
	assert_int_equal(locks(probe, 1), KVS_RESULT_MISSING);
	unlock(probe, 1);
}

static void what_is_being_written_is_not_locked(void **state)
{
	struct probe *probe = *state;

	probe->during = lock_while_1_is_written;
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(locks(probe, 1), KVS_RESULT_DONE);
}

static void a_purge_erases_and_tells_what_stayed(void **state)
{
	struct probe              *probe = *state;
	const struct kvs_namespace space = key_of(1).space;
	uint64_t                   count = 77;

	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(put(probe, 2), KVS_RESULT_DONE);
	probe->erase_rc = -EIO;
	assert_int_equal(slotted_purge(probe->store, &space, &count), -EIO);
	assert_int_equal(count, 77);
	probe->erase_rc = 0;
	assert_int_equal(put(probe, 1), KVS_RESULT_DONE);
	assert_int_equal(slotted_purge(probe->store, &space, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(probe->erased[0] + probe->erased[1], 3);
}

#define PROBE_TEST(test) cmocka_unit_test_setup_teardown(test, probe_setup, probe_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROBE_TEST(a_key_being_written_is_not_claimed),
		PROBE_TEST(a_slot_being_read_is_not_evicted),
		PROBE_TEST(with_all_slots_read_a_put_has_no_space),
		PROBE_TEST(a_slot_removed_under_a_reader_waits_for_it),
		PROBE_TEST(a_failed_write_leaves_nothing),
		PROBE_TEST(a_failed_read_keeps_and_a_short_one_withdraws),
		PROBE_TEST(a_remove_that_stays_on_the_medium_failed),
		PROBE_TEST(an_evicted_header_is_erased_first),
		PROBE_TEST(with_all_slots_locked_a_put_has_no_space),
		PROBE_TEST(unlocking_is_no_use),
		PROBE_TEST(a_lock_goes_with_its_object),
		PROBE_TEST(what_is_being_written_is_not_locked),
		PROBE_TEST(a_purge_erases_and_tells_what_stayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
