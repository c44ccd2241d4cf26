/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a pass, and a store that knows it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench.h"
#include "app/bench_pass.h"
#include "base/prng.h"
#include "store/store.h"

/* Of the deepest window of the largest blocks, 15 a slice, which may begin and end within one. */
#define SLICES_MAX (2 * BENCH_DEPTH_MAX / 15 + 2)
static_assert(ARENA_SLICE_BYTES / (BENCH_BYTES_MAX + ARENA_TRAILER_BYTES) == 15, "15 a slice");

static void fill(const struct arena_part *blocks, uint64_t bytes)
{
	struct prng prng;
	uint32_t    i;

	prng_seed(&prng, 1);
	for (i = 0; i < blocks->block_count; i++) {
		uint8_t *const at = arena_block(blocks, i).ptr;
		uint64_t       done;

		for (done = 0; done < bytes; done += sizeof(uint64_t)) {
			/* No byte of it is zero. */
			const uint64_t word = prng_u64(&prng) | UINT64_C(0x0101010101010101);

			memcpy(at + done, &word, sizeof(word));
		}
	}
}

int bench_window_open(struct bench_window *window, uint64_t bytes, uint32_t depth,
		      struct kvs_error *err)
{
	const uint32_t count = 2 * depth;
	int            rc;

	*window = (struct bench_window){ .bytes = bytes, .depth = depth, .slot_count = count };
	window->slots = calloc(count, sizeof(*window->slots));
	window->rows = calloc(count, sizeof(*window->rows));
	window->idle = calloc(count, sizeof(*window->idle));
	if (!window->slots || !window->rows || !window->idle)
		return err_set(err, -ENOMEM, "no memory for %u rows", count);
	rc = arena_open(arena_part_bytes(bytes, count), 0, &window->arena, err);
	if (rc == 0)
		rc = arena_carve(window->arena, bytes, count, &window->blocks, err);
	if (rc == 0)
		fill(&window->blocks, bytes);
	return rc;
}

void bench_window_close(struct bench_window *window)
{
	/* What is in doubt stays, whoever holds the struct. */
	if (window->retained)
		return;
	if (window->arena)
		arena_close(window->arena);
	free(window->slots);
	free(window->rows);
	free(window->idle);
	*window = (struct bench_window){ 0 };
}

int bench_store_open(const char *spec, struct bench_window *window, struct kvs_store **ret_store,
		     struct kvs_error *err)
{
	const uint32_t count = arena_report(window->arena)->slice_count;
	struct kvs_span   slices[SLICES_MAX];
	struct kvs_memory memory;
	uint32_t          i;
	int               rc = store_open(spec, window->bytes, "lru", ret_store, err);

	if (rc < 0)
		return rc;
	KVS_ASSERT_CMP(count, <=, SLICES_MAX);
	for (i = 0; i < count; i++)
		slices[i] = arena_slice(window->arena, i);
	/* A store that cannot register works without. */
	memory = (struct kvs_memory){ slices, count, arena_fd(window->arena) };
	if ((*ret_store)->ops->register_memory)
		(void)(*ret_store)->ops->register_memory(*ret_store, &memory);
	return 0;
}

void bench_store_close(struct kvs_store *store, struct bench_window *window)
{
	if (store && store->ops->close(store) < 0) {
		arena_retain(window->arena);
		window->retained = true;
	}
}
