/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for every store: mem, and strata on a disk and on tmpfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/prng.h"
#include "named_block.h"
#include "os/os.h"
#include "store/kind.h"
#include "store/mem.h"
#include "store/store.h"
#include "strata/strata.h"

#define BLOCK 8192u
#define SLOTS 4u

/* Exactly SLOTS blocks. */
#define MEM_CAPACITY (SLOTS * BLOCK)

/*
 * Segments that hold SLOTS blocks each: head and tallies, records, a summary of one page.  One of them
 * is kept free, so that cleaning has somewhere to write.
 */
#define SEGMENT (4 * 4096 + SLOTS * (BLOCK + 4096))
#define SEGMENTS 6u
#define STRATA_CAPACITY (2 * 4096 + SEGMENTS * SEGMENT)
#define STRATA_BLOCKS ((SEGMENTS - 1) * SLOTS)

struct place {
	const char *kind;
	const char *parent; /* NULL for mem */
	char        directory[64];
	char        path[96];
};

static struct place places[] = { { .kind = "mem" },
				 { .kind = "strata", .parent = "/var/tmp" },
				 { .kind = "strata", .parent = "/dev/shm" } };

static bool directory_make(struct place *place, const char *parent)
{
	snprintf(place->directory, sizeof(place->directory), "%s/kvstrata-XXXXXX", parent);
	return mkdtemp(place->directory) != NULL;
}

static int place_setup(void **state)
{
	struct place *place = *state;

	if (!place->parent)
		return 0;
	if (!directory_make(place, place->parent)) {
		print_message("# %s takes no files; in /tmp instead\n", place->parent);
		assert_true(directory_make(place, "/tmp"));
	}
	snprintf(place->path, sizeof(place->path), "%s/store", place->directory);
	return 0;
}

static int place_teardown(void **state)
{
	struct place *place = *state;

	if (place->parent) {
		unlink(place->path);
		rmdir(place->directory);
	}
	return 0;
}

/* Open with more options, "" for none. */
static struct kvs_store *open_with(struct place *place, const char *options)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err;
	char              spec[256];

	if (place->parent) {
		snprintf(spec, sizeof(spec), "strata:%s?capacity=%u&segment=%u%s%s", place->path,
			 STRATA_CAPACITY, SEGMENT, *options ? "&" : "", options);
	} else {
		snprintf(spec, sizeof(spec), "mem:%u%s%s", MEM_CAPACITY, *options ? "?" : "",
			 options);
	}
	if (store_open(spec, BLOCK, "lru", &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static struct kvs_store *open_store(struct place *place)
{
	return open_with(place, "");
}

static void close_store(struct kvs_store *store)
{
	if (store->ops == &store_mem_ops)
		mem_audit((struct mem *)store);
	else
		strata_audit(store);
	assert_int_equal(store->ops->close(store), 0);
}

static _Alignas(4096) uint64_t buffer[BLOCK / 8];

static enum kvs_result put_bytes(struct kvs_store *store, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, bytes, BLOCK };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	fill(buffer, number, bytes);
	assert_int_equal(store->ops->put(store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	assert_true(is_filled(buffer, number, bytes));
	return result;
}

static enum kvs_result put(struct kvs_store *store, uint32_t number)
{
	return put_bytes(store, number, BLOCK);
}

/* DONE is believed only with the right bytes, unless the caller looks itself. */
static enum kvs_result get_unchecked(struct kvs_store *store, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, bytes, BLOCK };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	memset(buffer, 0xee, BLOCK);
	assert_int_equal(store->ops->get(store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	return result;
}

static enum kvs_result get(struct kvs_store *store, uint32_t number)
{
	const enum kvs_result result = get_unchecked(store, number, BLOCK);

	if (result == KVS_RESULT_DONE)
		assert_true(is_filled(buffer, number, BLOCK));
	return result;
}

static enum kvs_result exists(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;

	assert_int_equal(store->ops->exists(store, &key, 1, &result), 0);
	return result;
}

static enum kvs_result removes(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;

	assert_int_equal(store->ops->remove(store, &key, 1, &result), 0);
	return result;
}

static struct kvs_store_info limits_of(struct kvs_store *store)
{
	struct kvs_store_info limits;

	store->ops->describe(store, &limits);
	return limits;
}

static uint32_t blocks_of(const struct place *place)
{
	return place->parent ? STRATA_BLOCKS : SLOTS;
}

/* --- every store ------------------------------------------------------------------------------ */

static void what_is_put_is_got(void **state)
{
	struct place     *place = *state;
	struct kvs_store *store = open_store(place);

	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	assert_int_equal(put_bytes(store, 2, 4096), KVS_RESULT_DONE);
	assert_int_equal(exists(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get_unchecked(store, 2, 4096), KVS_RESULT_DONE);
	assert_true(is_filled(buffer, 2, 4096));
	assert_int_equal(buffer[4096 / 8], UINT64_C(0xeeeeeeeeeeeeeeee));
	close_store(store);
}

static void what_is_not_there_is_missing(void **state)
{
	struct kvs_store *store = open_store(*state);

	assert_int_equal(exists(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(removes(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get(store, 2), KVS_RESULT_MISSING);
	close_store(store);
}

static void put_never_overwrites(void **state)
{
	struct kvs_store     *store = open_store(*state);
	const struct kvs_key  key = key_of(1);
	const struct kvs_span span = { buffer, BLOCK, BLOCK };
	enum kvs_result       result;
	bool                  retired;

	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	fill(buffer, 99, BLOCK);
	assert_int_equal(store->ops->put(store, &key, &span, 1, &result, &retired), 0);
	assert_int_equal(result, KVS_RESULT_EXISTS);
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).object_count, 1);
	close_store(store);
}

/* Full keys are compared: two keys that differ in one field only are two objects. */
static void every_field_of_a_key_counts(void **state)
{
	struct kvs_store     *store = open_store(*state);
	struct kvs_key        key[4] = { key_of(1), key_of(1), key_of(1), key_of(1) };
	const struct kvs_span span = { buffer, BLOCK, BLOCK };
	const struct kvs_span spans[4] = { span, span, span, span };
	enum kvs_result       result[4];
	bool                  retired;
	int                   i;

	key[0].space.byte[15] = 1;
	key[1].hash[31] ^= 1;
	key[2].group = 1;
	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	assert_int_equal(store->ops->exists(store, key, 4, result), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(result[i], i == 3 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	assert_int_equal(store->ops->put(store, key, spans, 4, result, &retired), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(result[i], i == 3 ? KVS_RESULT_EXISTS : KVS_RESULT_DONE);
	close_store(store);
}

static void another_length_is_corrupt_and_the_object_stays(void **state)
{
	struct kvs_store *store = open_store(*state);

	assert_int_equal(put_bytes(store, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(put(store, 2), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_CORRUPT);
	assert_int_equal(get_unchecked(store, 2, 4096), KVS_RESULT_CORRUPT);
	assert_int_equal(limits_of(store).corrupt_objects, 0);
	assert_int_equal(put(store, 1), KVS_RESULT_EXISTS);
	assert_int_equal(get_unchecked(store, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(get(store, 2), KVS_RESULT_DONE);
	close_store(store);
}

static void the_least_recently_used_goes_first(void **state)
{
	struct kvs_store *store = open_store(*state);
	uint32_t          i;

	for (i = 0; i < SLOTS; i++)
		assert_int_equal(put(store, i), KVS_RESULT_DONE);
	/* Used by get, exists and a second put; 3 is the one left. */
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	assert_int_equal(exists(store, 1), KVS_RESULT_DONE);
	assert_int_equal(put(store, 2), KVS_RESULT_EXISTS);
	assert_int_equal(put(store, 10), KVS_RESULT_DONE);
	assert_int_equal(exists(store, 3), KVS_RESULT_MISSING);
	assert_int_equal(put(store, 11), KVS_RESULT_DONE);
	assert_int_equal(exists(store, 0), KVS_RESULT_MISSING);
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).object_count, SLOTS);
	assert_int_equal(limits_of(store).evicted_objects, 2);
	close_store(store);
}

static void capacity_is_hard(void **state)
{
	struct place           *place = *state;
	struct kvs_store       *store = open_store(place);
	struct kvs_store_info limits;
	struct stat             status;
	uint32_t                i;

	for (i = 0; i < 5 * blocks_of(place); i++)
		assert_int_equal(put(store, i), KVS_RESULT_DONE);
	limits = limits_of(store);
	assert_in_range(limits.object_count, SLOTS, blocks_of(place));
	assert_int_equal(limits.evicted_objects, 5 * blocks_of(place) - limits.object_count);
	assert_true(limits.used_bytes <= limits.capacity_bytes);
	assert_true(limits.memory_bytes > 0);
	assert_true(limits.failures_retire);
	assert_true(limits.verified);
	assert_int_equal(limits.durability,
			 place->parent ? KVS_DURABILITY_PROCESS : KVS_DURABILITY_NONE);
	assert_int_equal(limits.capacity_bytes, place->parent ? STRATA_CAPACITY : MEM_CAPACITY);
	if (place->parent) {
		assert_int_equal(stat(place->path, &status), 0);
		assert_true((uint64_t)status.st_size <= limits.capacity_bytes);
		/* ext4 counts a page of its own for files of more than four extents. */
		assert_true((uint64_t)status.st_blocks * 512 <= limits.capacity_bytes + 4096);
	}
	close_store(store);
}

/* In strata the room of one segment comes back together: all that was put first is removed. */
static void removed_is_gone_and_its_room_is_free(void **state)
{
	const struct place *const place = *state;
	struct kvs_store         *store = open_store(*state);
	uint32_t                  i;

	for (i = 0; i < blocks_of(place); i++)
		assert_int_equal(put(store, i), KVS_RESULT_DONE);
	for (i = 0; i < SLOTS; i++) {
		assert_int_equal(removes(store, i), KVS_RESULT_DONE);
		assert_int_equal(get(store, i), KVS_RESULT_MISSING);
	}
	for (i = 0; i < SLOTS; i++)
		assert_int_equal(put(store, 100 + i), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).evicted_objects, 0);
	for (i = SLOTS; i < blocks_of(place); i++)
		assert_int_equal(get(store, i), KVS_RESULT_DONE);
	close_store(store);
}

static void bad_spans_are_refused_whole(void **state)
{
	struct place         *place = *state;
	struct kvs_store     *store = open_store(place);
	const struct kvs_key  key[2] = { key_of(1), key_of(2) };
	const struct kvs_span bad[] = {
		{ buffer, 0, BLOCK }, { buffer, BLOCK + 4096, BLOCK + 4096 },
		{ buffer, 100, BLOCK }, { (char *)buffer + 8, 4096, 4096 }
	};
	size_t i;

	for (i = 0; i < (place->parent ? 4 : 2); i++) {
		const struct kvs_span span[2] = { { buffer, BLOCK, BLOCK }, bad[i] };
		enum kvs_result       result[2] = { KVS_RESULT_DONE, KVS_RESULT_DONE };
		bool                  retired = false;

		assert_int_equal(store->ops->put(store, key, span, 2, result, &retired),
				 KVS_E_INVALID);
		assert_true(retired);
		assert_int_equal(result[0], KVS_RESULT_UNKNOWN);
		assert_int_equal(result[1], KVS_RESULT_UNKNOWN);
		retired = false;
		assert_int_equal(store->ops->get(store, key, span, 2, result, &retired),
				 KVS_E_INVALID);
		assert_true(retired);
	}
	assert_int_equal(limits_of(store).object_count, 0);
	close_store(store);
}

static void a_flipped_byte_is_found(void **state)
{
	struct kvs_store *store = open_with(*state, "corrupt_every=2");

	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_CORRUPT);
	assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(limits_of(store).corrupt_objects, 1);
	assert_true(limits_of(store).verified);
	close_store(store);
}

/* The negative control: without verification the same byte reaches the caller. */
static void without_verification_it_is_not(void **state)
{
	struct kvs_store *store = open_with(*state, "corrupt_every=2&verify=off");

	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	assert_int_equal(get_unchecked(store, 1, BLOCK), KVS_RESULT_DONE);
	assert_false(is_filled(buffer, 1, BLOCK));
	assert_false(limits_of(store).verified);
	close_store(store);
}

#define HAMMER_THREADS 8u
#define HAMMER_STEPS 1500u
#define HAMMER_KEYS 40u

struct hammer {
	struct kvs_store *store;
	uint64_t          seed;
	uint32_t          wrong;
	uint32_t          done;
};

static void hammer_step(struct hammer *hammer, struct prng *prng, uint64_t *words)
{
	struct kvs_store     *store = hammer->store;
	const uint32_t        number = (uint32_t)prng_below(prng, HAMMER_KEYS);
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { words, BLOCK, BLOCK };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = true;

	switch (prng_below(prng, 8)) {
	case 0:
		store->ops->remove(store, &key, 1, &result);
		break;
	case 1:
		store->ops->exists(store, &key, 1, &result);
		break;
	case 2:
	case 3:
	case 4:
		fill(words, number, BLOCK);
		store->ops->put(store, &key, &span, 1, &result, &retired);
		break;
	default:
		store->ops->get(store, &key, &span, 1, &result, &retired);
		hammer->done += result == KVS_RESULT_DONE;
		hammer->wrong += result == KVS_RESULT_DONE && !is_filled(words, number, BLOCK);
		break;
	}
	hammer->wrong += !retired || result == KVS_RESULT_CORRUPT || result == KVS_RESULT_FAILED;
}

static void *hammer_run(void *arg)
{
	struct hammer *hammer = arg;
	struct prng    prng;
	void          *words;
	uint32_t       step;

	prng_seed(&prng, hammer->seed);
	if (os_pages_map(BLOCK, &words) < 0) {
		hammer->wrong++;
		return NULL;
	}
	for (step = 0; step < HAMMER_STEPS; step++)
		hammer_step(hammer, &prng, words);
	os_pages_unmap(words, BLOCK);
	return NULL;
}

static void threads_see_whole_objects_only(void **state)
{
	struct kvs_store *store = open_store(*state);
	struct hammer     hammer[HAMMER_THREADS];
	pthread_t         thread[HAMMER_THREADS];
	uint32_t          i, done = 0;

	for (i = 0; i < HAMMER_THREADS; i++) {
		hammer[i] = (struct hammer){ .store = store, .seed = i };
		assert_int_equal(os_thread_start(&thread[i], "hammer", hammer_run, &hammer[i]), 0);
	}
	for (i = 0; i < HAMMER_THREADS; i++) {
		os_thread_join(thread[i]);
		assert_int_equal(hammer[i].wrong, 0);
		done += hammer[i].done;
	}
	assert_true(done > 0);
	assert_true(limits_of(store).evicted_objects > 0);
	assert_int_equal(limits_of(store).corrupt_objects, 0);
	close_store(store);
}

#define AT(place, i, test) { #test " (" place ")", test, place_setup, place_teardown, &places[i] }
#define FOR_EACH_PLACE(test) AT("mem", 0, test), AT("strata", 1, test), AT("strata, tmpfs", 2, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOR_EACH_PLACE(what_is_put_is_got),
		FOR_EACH_PLACE(what_is_not_there_is_missing),
		FOR_EACH_PLACE(put_never_overwrites),
		FOR_EACH_PLACE(every_field_of_a_key_counts),
		FOR_EACH_PLACE(another_length_is_corrupt_and_the_object_stays),
		AT("mem", 0, the_least_recently_used_goes_first),
		FOR_EACH_PLACE(capacity_is_hard),
		FOR_EACH_PLACE(removed_is_gone_and_its_room_is_free),
		FOR_EACH_PLACE(bad_spans_are_refused_whole),
		FOR_EACH_PLACE(a_flipped_byte_is_found),
		FOR_EACH_PLACE(without_verification_it_is_not),
		FOR_EACH_PLACE(threads_see_whole_objects_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
