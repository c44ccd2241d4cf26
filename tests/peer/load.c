/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <stdlib.h>

#define STRIDE (LOAD_BLOCK + 4096u)

/* Each page names itself in its first bytes; a checksum watches the rest. */
#define NAMED_BYTES 256u
#define PAGES (LOAD_BLOCK / 4096u)

struct batch {
	struct kvs_key  keys[LOAD_BATCH];
	struct kvs_span spans[LOAD_BATCH];
	enum kvs_result results[LOAD_BATCH];
	uint32_t        count;
};

static void fill_block(uint8_t *block, uint32_t number)
{
	uint32_t page;

	for (page = 0; page < PAGES; page++)
		fill((uint64_t *)(block + page * 4096u), number * PAGES + page, NAMED_BYTES);
}

static bool is_block(const uint8_t *block, uint32_t number)
{
	uint32_t page = 0;

	while (page < PAGES && is_filled((const uint64_t *)(block + page * 4096u),
					 number * PAGES + page, NAMED_BYTES))
		page++;
	return page == PAGES;
}

static void batch_make(const struct load *load, uint32_t from, uint32_t to, struct batch *ret_batch)
{
	uint32_t i;

	ret_batch->count = to - from < LOAD_BATCH ? to - from : LOAD_BATCH;
	for (i = 0; i < ret_batch->count; i++) {
		/* With a trailer's room behind it, and without. */
		ret_batch->keys[i] = key_of(from + i);
		ret_batch->spans[i] = (struct kvs_span){ .ptr = load->blocks + (size_t)i * STRIDE,
							 .bytes = LOAD_BLOCK,
							 .room = i % 3 ? STRIDE : LOAD_BLOCK };
		ret_batch->results[i] = KVS_RESULT_UNKNOWN;
	}
}

/* Rows that a lane has no room for are offered again. */
static void through_lane(const struct load *load, struct batch *batch, bool is_put)
{
	const struct kvs_store_ops *const ops = load->store->ops;
	struct kvs_io                     rows[LOAD_BATCH];
	struct kvs_io_done                done[LOAD_BATCH];
	uint32_t                          sent = 0, answered = 0, i;
	int                               count, d;

	for (i = 0; i < batch->count; i++) {
		rows[i] = (struct kvs_io){ .cookie = i, .is_put = is_put, .key = &batch->keys[i],
					   .span = batch->spans[i] };
	}
	while (answered < batch->count) {
		count = ops->submit(load->store, 0, rows + sent, batch->count - sent);
		assert_true(count >= 0);
		sent += (uint32_t)count;
		count = ops->reap(load->store, 0, done, LOAD_BATCH, UINT64_C(1000000000));
		assert_true(count >= 0);
		for (d = 0; d < count; d++) {
			assert_true(done[d].retired);
			batch->results[done[d].cookie] = done[d].result;
		}
		answered += (uint32_t)count;
	}
}

static void move(const struct load *load, struct batch *batch, bool is_put)
{
	const struct kvs_store_ops *const ops = load->store->ops;
	bool                              retired = false;

	if (load->lanes) {
		through_lane(load, batch, is_put);
		return;
	}
	assert_int_equal((is_put ? ops->put : ops->get)(load->store, batch->keys, batch->spans,
							batch->count, batch->results, &retired),
			 0);
	assert_true(retired);
}

/* --- books ------------------------------------------------------------------------------------ */

struct kvs_store_info load_info(const struct load *load)
{
	struct kvs_store_info info;

	load->store->ops->describe(load->store, &info);
	return info;
}

void load_put(struct load *load, uint32_t from, uint32_t to)
{
	struct batch batch;
	uint32_t     i;

	assert_true(to <= LOAD_KEYS);
	for (; from < to; from += batch.count) {
		batch_make(load, from, to, &batch);
		for (i = 0; i < batch.count; i++)
			fill_block(batch.spans[i].ptr, from + i);
		move(load, &batch, true);
		for (i = 0; i < batch.count; i++) {
			if (batch.results[i] == KVS_RESULT_DONE) {
				load->present[from + i] = true;
				load->put++;
			} else if (batch.results[i] == KVS_RESULT_NO_SPACE) {
				load->refused++;
			} else {
				fail_msg("put of %u: %d", from + i, batch.results[i]);
			}
		}
	}
}

void load_remove(struct load *load, uint32_t from, uint32_t to)
{
	struct batch batch;
	uint32_t     i;

	for (; from < to; from += batch.count) {
		batch_make(load, from, to, &batch);
		assert_int_equal(load->store->ops->remove(load->store, batch.keys, batch.count,
							  batch.results),
				 0);
		for (i = 0; i < batch.count; i++) {
			assert_true(batch.results[i] == KVS_RESULT_DONE ||
				    batch.results[i] == KVS_RESULT_MISSING);
			assert_true(load->present[from + i] ||
				    batch.results[i] == KVS_RESULT_MISSING);
			load->removed += batch.results[i] == KVS_RESULT_DONE;
			load->present[from + i] = false;
		}
	}
}

static uint64_t check_batch(struct load *load, uint32_t from, const struct batch *batch)
{
	uint64_t found = 0;
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		const bool done = batch->results[i] == KVS_RESULT_DONE;

		if (!done && batch->results[i] != KVS_RESULT_MISSING)
			fail_msg("get of %u: %d", from + i, batch->results[i]);
		if (done && !load->present[from + i])
			fail_msg("%u is there, and should not be", from + i);
		if (done && !is_block(batch->spans[i].ptr, from + i))
			fail_msg("%u has bytes of something else", from + i);
		load->present[from + i] = done;
		found += done;
	}
	return found;
}

void load_check(struct load *load)
{
	struct kvs_store_info info;
	uint64_t              found = 0;
	uint32_t              from;
	struct batch          batch;

	for (from = 0; from < LOAD_KEYS; from += batch.count) {
		batch_make(load, from, LOAD_KEYS, &batch);
		move(load, &batch, false);
		found += check_batch(load, from, &batch);
	}
	info = load_info(load);
	assert_int_equal(info.object_count, found);
	assert_int_equal(info.corrupt_objects, 0);
	/* Nothing is lost that is not counted. */
	assert_int_equal(load->objects_then + load->put,
			 found + load->removed + info.evicted_objects);
	assert_true(info.used_bytes <= info.capacity_bytes);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void open_store(struct load *load)
{
	struct kvs_error err = { 0 };

	if (store_open(load->spec, LOAD_BLOCK, "s3fifo", &load->store, &err) != 0)
		fail_msg("%s: %s", load->spec, err.message);
	load->put = load->refused = load->removed = 0;
	load->objects_then = load_info(load).object_count;
}

void load_open(struct load *load, const char *spec, bool lanes)
{
	*load = (struct load){ .spec = spec, .lanes = lanes,
			       .blocks = aligned_alloc(4096, (size_t)LOAD_BATCH * STRIDE) };
	assert_non_null(load->blocks);
	open_store(load);
}

void load_close(struct load *load)
{
	assert_int_equal(load->store->ops->close(load->store), 0);
	free(load->blocks);
}

void load_reopen(struct load *load)
{
	uint64_t objects, number;

	load_check(load);
	objects = load_info(load).object_count;
	assert_int_equal(load->store->ops->close(load->store), 0);
	open_store(load);
	/* Each of them, by its key. */
	assert_int_equal(load->objects_then, objects);
	load_check(load);
	for (number = 0; number < LOAD_KEYS; number++)
		objects -= load->present[number];
	assert_int_equal(objects, 0);
}

void load_run(struct load *load, const char *spec, bool lanes)
{
	uint32_t blocks;

	load_open(load, spec, lanes);
	blocks = (uint32_t)(load_info(load).capacity_bytes / LOAD_BLOCK);
	assert_in_range(blocks, 16, LOAD_KEYS / 4);
	load_put(load, 0, blocks / 2);
	load_reopen(load);
	load_remove(load, blocks / 8, blocks / 4);
	load_reopen(load);
	load_put(load, blocks / 2, 2 * blocks);
	assert_true(load_info(load).evicted_objects > 0);
	load_reopen(load);
	load_put(load, 2 * blocks, 3 * blocks);
	load_check(load);
	assert_int_equal(load->refused, 0);
}
