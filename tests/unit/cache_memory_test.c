/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's memory: an open that runs out of it leaves nothing behind, and after an open nothing
 * allocates.
 *
 * Allocations are counted, and made to fail, where the linker leads them (tests/unit/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "cache_box.h"

static uint64_t allocations;
static uint64_t allocated_bytes; /* by those that did not fail */
static uint64_t fail_at; /* the number of the allocation that fails; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static bool grant(size_t bytes)
{
	if (++allocations == fail_at)
		return false;
	allocated_bytes += bytes;
	return true;
}

void *__wrap_malloc(size_t bytes)
{
	return grant(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return grant(count * bytes) ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return grant(bytes) ? __real_realloc(old, bytes) : NULL;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return grant(bytes) ? __real_aligned_alloc(alignment, bytes) : NULL;
}

/* Under a sanitizer what is left behind is a failure of its own. */
static void an_open_without_memory_leaves_nothing_behind(void **state)
{
	static const struct group_spec specs[] = { BOX_FULL(4, 2), { "window", GROUP_WINDOW, 4, 9, 1 } };
	const struct cache_options options = { .groups = specs, .group_count = 2, .page_tokens = 4,
					       .device_parents = 4, .host_parents = 4,
					       .prompt_pages = 8 };
	struct cache              *cache = NULL;
	struct kvs_error           err;
	uint64_t                   nth;
	int                        rc = -ENOMEM;

	(void)state;
	for (nth = 1; rc < 0; nth++) {
		allocations = 0;
		fail_at = nth;
		rc = cache_open(&options, &cache, &err);
		fail_at = 0;
		if (rc < 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(err.code, -ENOMEM);
			assert_null(cache);
		}
	}
	assert_true(!LINKER_WRAPS || nth > 20);
	cache_close(cache);
}

/* Every path of a request's life, with a full Device and a full Host. */
static void live(struct box *box)
{
	const struct demand   one[] = { demand_dense(1, 0), demand_dense(1, 0) };
	struct box_request    request, next;
	struct cache_admitted admitted;
	uint32_t              i;

	box_request(box, &request);
	assert_int_equal(box_take(box, &request, 24), 0);
	box_advance(box, &request, 0, 6, 24, CELL_ENDPOINT);
	cache_free(box->cache, request.tables);
	box_put_host(box, 0, 0, 12);
	box_put_host(box, 1, 0, 12);
	box_put_host(box, 0, 0, 8);
	box_request(box, &next);
	box_probe(box, &next, 6);
	assert_int_equal(box_admit(box, &next, one, true, NULL, &admitted), 0);
	for (i = 0; i < admitted.load_count + admitted.copy_count; i++)
		cache_moved(box->cache, &admitted.moves[i]);
	cache_free(box->cache, next.tables);
	assert_int_equal(box_take(box, &next, 32), 0);
	cache_free(box->cache, next.tables);
	assert_true(cache_clear(box->cache));
}

/* To the byte: of an index below two MiB, which is not rounded up to whole large pages. */
static void a_cache_says_what_it_has_allocated(void **state)
{
	static const struct group_spec specs[] = { BOX_FULL(4, 2), { "window", GROUP_WINDOW, 4, 9, 1 },
						   { "state", GROUP_STATE, 4, 0, 7 } };
	struct cache_options           options = { .groups = specs, .page_tokens = 4,
						   .prompt_pages = 8 };
	struct cache                  *cache;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	for (options.group_count = 1; options.group_count <= 3; options.group_count++) {
		for (options.host_parents = 0; options.host_parents < 200; options.host_parents += 99) {
			options.device_parents = 1 + options.host_parents / 2;
			allocated_bytes = 0;
			assert_int_equal(cache_open(&options, &cache, NULL), 0);
			assert_int_equal(cache_bytes(cache), allocated_bytes);
			cache_close(cache);
		}
	}
}

static void nothing_allocates_after_open(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_WINDOW(9, 4, 1) };
	struct box                     box;
	uint64_t                       at_open;
	uint32_t                       round;

	(void)state;
	box_open(&box, 4, 13, 8, specs);
	at_open = allocations;
	assert_true(!LINKER_WRAPS || at_open > 0);
	for (round = 0; round < 3; round++)
		live(&box);
	assert_int_equal(allocations, at_open);
	assert_true(box.removed > 0);
	box_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_without_memory_leaves_nothing_behind),
		cmocka_unit_test(a_cache_says_what_it_has_allocated),
		cmocka_unit_test(nothing_allocates_after_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
