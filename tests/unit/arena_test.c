/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: where blocks lie, what is refused, what the report says, and what outlives its close.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/arena.h"
#include "os/os.h"

#define MIB ((size_t)1 << 20)

static struct arena *open_lazy(size_t bytes)
{
	struct arena    *arena;
	struct kvs_error err;

	assert_int_equal(arena_open(bytes, ARENA_LAZY, &arena, &err), 0);
	return arena;
}

/* No block crosses a slice, and no payload or trailer meets the next block. */
static void slices_are_never_crossed(void **state)
{
	const size_t        block = 96 * MIB;
	struct arena *const arena = open_lazy(arena_part_bytes(block, 24));
	struct arena_part   part;
	struct kvs_error    err;
	uint8_t            *end = NULL;
	uint32_t            i, crossings = 0;

	(void)state;
	assert_int_equal(arena_carve(arena, block, 24, &part, &err), 0);
	for (i = 0; i < 24; i++) {
		const struct kvs_span span = arena_block(&part, i);
		const size_t          offset = (size_t)((uint8_t *)span.ptr - part.base);

		assert_int_equal(span.bytes, block);
		assert_true(span.room >= span.bytes + ARENA_TRAILER_BYTES);
		assert_int_equal(offset % ARENA_ALIGN, 0);
		assert_int_equal(offset / ARENA_SLICE_BYTES,
				 (offset + span.room - 1) / ARENA_SLICE_BYTES);
		assert_true(end == NULL || (uint8_t *)span.ptr >= end);
		crossings += end && (uint8_t *)span.ptr > end;
		end = (uint8_t *)span.ptr + span.room;
	}
	/* Ten blocks fit into a slice, so 24 skip the ends of two. */
	assert_int_equal(crossings, 2);
	arena_audit(arena);
	arena_close(arena);
}

/* Both ends of every block are really there; few pages are touched. */
static void blocks_hold_their_bytes(void **state)
{
	const size_t        block = 600 * MIB;
	struct arena *const arena = open_lazy(arena_part_bytes(block, 2));
	struct arena_part   part;
	struct kvs_error    err;
	uint32_t            i;

	(void)state;
	assert_int_equal(arena_carve(arena, block, 2, &part, &err), 0);
	for (i = 0; i < 2; i++) {
		uint8_t *const bytes = arena_block(&part, i).ptr;

		bytes[0] = (uint8_t)(1 + i);
		bytes[part.stride - 1] = (uint8_t)(11 + i);
	}
	for (i = 0; i < 2; i++) {
		const uint8_t *const bytes = arena_block(&part, i).ptr;

		assert_int_equal(bytes[0], 1 + i);
		assert_int_equal(bytes[part.stride - 1], 11 + i);
	}
	arena_close(arena);
}

static void slices_cover_the_mapping(void **state)
{
	struct arena *const              arena = open_lazy(ARENA_SLICE_BYTES + 3);
	const struct arena_report *const report = arena_report(arena);

	(void)state;
	assert_int_equal(report->slice_count, 2);
	assert_true(report->bytes >= ARENA_SLICE_BYTES + 3);
	assert_int_equal(arena_slice(arena, 0).bytes, ARENA_SLICE_BYTES);
	assert_int_equal(arena_slice(arena, 1).bytes, report->bytes - ARENA_SLICE_BYTES);
	assert_ptr_equal(arena_slice(arena, 1).ptr,
			 (uint8_t *)arena_slice(arena, 0).ptr + ARENA_SLICE_BYTES);
	arena_close(arena);
}

static void the_descriptor_names_the_same_bytes(void **state)
{
	struct arena    *arena;
	struct kvs_error err;
	uint8_t          there = 0;

	(void)state;
	assert_int_equal(arena_open(MIB, 0, &arena, &err), 0);
	((uint8_t *)arena_slice(arena, 0).ptr)[4097] = 77;
	assert_int_equal(pread(arena_fd(arena), &there, 1, 4097), 1);
	assert_int_equal(there, 77);
	arena_close(arena);
}

static void a_full_arena_refuses_and_stays(void **state)
{
	struct arena     *arena;
	struct arena_part part, untouched;
	struct kvs_error  err;

	(void)state;
	memset(&part, 0x5a, sizeof(part));
	untouched = part;
	assert_int_equal(arena_open(2 * MIB, 0, &arena, &err), 0);
	assert_int_equal(arena_carve(arena, 65536, 31, &part, &err), KVS_E_FULL);
	assert_string_equal(err.message,
			    "block_count: 31 of 65536 bytes need 2158592 bytes, 2097152 are free");
	assert_memory_equal(&part, &untouched, sizeof(part));
	assert_int_equal(arena_carve(arena, 65536, 30, &part, &err), 0);
	arena_audit(arena);
	arena_close(arena);
}

static void parts_are_bounded(void **state)
{
	struct arena     *arena;
	struct arena_part part;
	struct kvs_error  err;
	int               i;

	(void)state;
	assert_int_equal(arena_open(2 * MIB, 0, &arena, &err), 0);
	for (i = 0; i < ARENA_PARTS_MAX; i++)
		assert_int_equal(arena_carve(arena, 4096, 1, &part, &err), 0);
	assert_int_equal(arena_carve(arena, 4096, 1, &part, &err), KVS_E_FULL);
	assert_string_equal(err.message, "arena: it has 8 parts, the most it can be cut into");
	arena_close(arena);
}

static void bad_sizes_are_refused(void **state)
{
	static const size_t bad[] = {
		0, 1, 4095, 4097, ARENA_SLICE_BYTES, SIZE_MAX, SIZE_MAX - 4095
	};
	struct arena       *arena;
	struct arena_part   part;
	struct kvs_error    err;
	size_t              i, widest;

	(void)state;
	assert_int_equal(arena_open(2 * MIB, 0, &arena, &err), 0);
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		assert_int_equal(arena_part_bytes(bad[i], 1), 0);
		assert_int_equal(arena_carve(arena, bad[i], 1, &part, &err), KVS_E_INVALID);
		assert_int_equal(strncmp(err.message, "block_bytes: ", 13), 0);
	}
	assert_int_equal(arena_carve(arena, 4096, 0, &part, &err), KVS_E_INVALID);
	widest = ARENA_SLICE_BYTES - ARENA_TRAILER_BYTES;
	assert_int_equal(arena_carve(arena, widest, UINT32_MAX, &part, &err), KVS_E_FULL);
	arena_close(arena);
}

/* A slice and a half behind one block: the rest of its slice, and what follows. */
static void raw_bytes_are_cut_where_slices_meet(void **state)
{
	const size_t      bytes = ARENA_SLICE_BYTES + ARENA_SLICE_BYTES / 2;
	struct arena     *arena = open_lazy(bytes + MIB);
	uint8_t *const    base = arena_slice(arena, 0).ptr;
	struct kvs_span   pieces[4];
	struct arena_part part;
	struct kvs_error  err;
	uint32_t          count = 0;

	(void)state;
	assert_int_equal(arena_carve(arena, 4096, 1, &part, &err), 0);
	assert_int_equal(arena_carve_bytes(arena, bytes, pieces, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_true(count <= arena_piece_count(bytes));
	assert_ptr_equal(pieces[0].ptr, base + 8192);
	assert_int_equal(pieces[0].bytes, ARENA_SLICE_BYTES - 8192);
	assert_ptr_equal(pieces[1].ptr, base + ARENA_SLICE_BYTES);
	assert_int_equal(pieces[1].room, bytes - pieces[0].room);
	((uint8_t *)pieces[1].ptr)[pieces[1].bytes - 1] = 1;
	/* What follows lies behind. */
	assert_int_equal(arena_carve(arena, 4096, 1, &part, &err), 0);
	assert_ptr_equal(arena_block(&part, 0).ptr, (uint8_t *)pieces[1].ptr + pieces[1].bytes);
	arena_audit(arena);
	arena_close(arena);
}

static void raw_bytes_that_are_odd_or_too_many_are_refused(void **state)
{
	static const size_t bad[] = { 0, 1, 4095, 4097, SIZE_MAX };
	struct arena       *arena = open_lazy(2 * MIB);
	const size_t        all = arena_report(arena)->bytes;
	struct kvs_span     pieces[4];
	struct kvs_error    err;
	uint32_t            count = 99;
	size_t              i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++)
		assert_int_equal(arena_carve_bytes(arena, bad[i], pieces, &count, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "bytes: 18446744073709551615 is not a multiple of 4096");
	assert_int_equal(arena_carve_bytes(arena, all + 4096, pieces, &count, &err), KVS_E_FULL);
	assert_int_equal(strncmp(err.message, "bytes: 2101248 are more than ", 29), 0);
	assert_int_equal(arena_carve_bytes(arena, SIZE_MAX - 4095, pieces, &count, &err), KVS_E_FULL);
	assert_int_equal(count, 99);
	assert_int_equal(arena_carve_bytes(arena, all, pieces, &count, &err), 0);
	assert_int_equal(arena_carve_bytes(arena, 4096, pieces, &count, &err), KVS_E_FULL);
	arena_close(arena);
}

static void absurd_arenas_are_refused(void **state)
{
	static const size_t absurd[] = { SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 60 };
	struct arena       *arena = NULL;
	struct kvs_error    err;
	size_t              i;

	(void)state;
	assert_int_equal(arena_open(0, 0, &arena, &err), KVS_E_INVALID);
	for (i = 0; i < ARRAY_COUNT(absurd); i++)
		assert_int_equal(arena_open(absurd[i], 0, &arena, &err), -ENOMEM);
	assert_null(arena);
}

static bool resident(void *ptr)
{
	unsigned char there = 0;

	assert_int_equal(mincore(ptr, 4096, &there), 0);
	return there & 1;
}

/* Bytes that the kernel counts as locked. */
static uint64_t locked_bytes(void)
{
	FILE *const   status = fopen("/proc/self/status", "r");
	char          line[128];
	unsigned long kib = 0;

	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmLck: %lu kB", &kib) == 1)
			break;
	}
	fclose(status);
	return (uint64_t)kib * 1024;
}

/* A sanitizer may make locking a no-op that succeeds. */
static bool locking_is_real(void)
{
	const uint64_t before = locked_bytes();
	void          *page;
	bool           real;

	assert_int_equal(os_pages_map(4096, &page), 0);
	real = os_pages_lock(page, 4096) == 0 && locked_bytes() > before;
	os_pages_unmap(page, 4096);
	return real;
}

/* A block is there before anyone touches it; its trailer costs nothing until a store uses it. */
static void payload_is_brought_in_and_trailers_are_not(void **state)
{
	struct arena     *arena;
	struct arena_part part;
	struct kvs_error  err;
	uint8_t          *block;

	(void)state;
	assert_int_equal(arena_open(2 * MIB, 0, &arena, &err), 0);
	if (arena_report(arena)->pages == ARENA_PAGES_BASE) {
		assert_int_equal(arena_carve(arena, 8192, 3, &part, &err), 0);
		block = arena_block(&part, 1).ptr;
		assert_true(resident(block) && resident(block + 4096));
		assert_false(resident(block + 8192));
	}
	arena_close(arena);
}

static void the_report_tells_the_truth(void **state)
{
	struct arena              *arena;
	const struct arena_report *report;
	struct kvs_error           err;
	uint64_t                   before;

	(void)state;
	before = locked_bytes();
	assert_int_equal(arena_open(2 * MIB, 0, &arena, &err), 0);
	report = arena_report(arena);
	assert_int_equal(report->registrable, os_memlock_limit() >= report->bytes);
	if (locking_is_real())
		assert_int_equal(locked_bytes() - before, report->locked ? report->bytes : 0);
	/* All was had exactly when nothing is noted. */
	assert_int_equal(report->note[0] == '\0',
			 report->locked && report->no_fork && report->pages == ARENA_PAGES_HUGETLB);
	arena_close(arena);

	arena = open_lazy(2 * MIB);
	assert_false(arena_report(arena)->locked);
	assert_non_null(strstr(arena_report(arena)->note, "not locked: opened lazily"));
	arena_close(arena);
}

/* A sanitizer's runtime may have put memory of its own at the same address of the child. */
static bool sees(const uint8_t *ptr, const char *mark)
{
	unsigned char there;

	return mincore((void *)ptr, 4096, &there) == 0 && memcmp(ptr, mark, strlen(mark)) == 0;
}

static void forked_children_do_not_see_it(void **state)
{
	struct arena *const arena = open_lazy(2 * MIB);
	uint8_t *const      bytes = arena_slice(arena, 0).ptr;
	int                 status = -1;
	pid_t               child;

	(void)state;
	assert_true(arena_report(arena)->no_fork);
	memcpy(bytes, "the parent's", 12);
	child = fork();
	if (child == 0)
		_exit(sees(bytes, "the parent's"));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(sees(bytes, "the parent's"));
	arena_close(arena);
}

static void a_retained_mapping_outlives_its_arena(void **state)
{
	struct arena *arena = open_lazy(2 * MIB);
	uint8_t      *bytes = arena_slice(arena, 0).ptr;
	unsigned char there;

	(void)state;
	arena_retain(arena);
	bytes[5] = 9;
	arena_close(arena);
	bytes[6] = 8; /* a late write of a store */
	assert_int_equal(bytes[5] + bytes[6], 17);

	arena = open_lazy(2 * MIB);
	bytes = arena_slice(arena, 0).ptr;
	arena_close(arena);
	assert_int_equal(mincore(bytes, 4096, &there), -1);
	assert_int_equal(errno, ENOMEM);
	arena_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_are_never_crossed),
		cmocka_unit_test(blocks_hold_their_bytes),
		cmocka_unit_test(slices_cover_the_mapping),
		cmocka_unit_test(the_descriptor_names_the_same_bytes),
		cmocka_unit_test(a_full_arena_refuses_and_stays),
		cmocka_unit_test(parts_are_bounded),
		cmocka_unit_test(bad_sizes_are_refused),
		cmocka_unit_test(raw_bytes_are_cut_where_slices_meet),
		cmocka_unit_test(raw_bytes_that_are_odd_or_too_many_are_refused),
		cmocka_unit_test(absurd_arenas_are_refused),
		cmocka_unit_test(payload_is_brought_in_and_trailers_are_not),
		cmocka_unit_test(the_report_tells_the_truth),
		cmocka_unit_test(forked_children_do_not_see_it),
		cmocka_unit_test(a_retained_mapping_outlives_its_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
