/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine: what a batch moves to the byte, in which order, and when its fence is passed.
 *
 * Nothing that the first batch needs may be made by it, so the linker leads whatever could make something
 * through the counter below (tests/unit/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "death.h"
#include "dock.h"
#include "os/os.h"

static const enum cpu_mode modes[] = { CPU_AT_SUBMIT, CPU_STEPPED, CPU_THREADS };

/* --- what is made ----------------------------------------------------------------------------- */

static uint64_t made;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int   __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			    void *arg);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int   __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			    void *arg);

void *__wrap_malloc(size_t bytes)
{
	made++;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	made++;
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	made++;
	return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	made++;
	return __real_aligned_alloc(alignment, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	made++;
	return __real_mmap(at, bytes, protection, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	made++;
	return __real_pthread_create(thread, attr, run, arg);
}

/* 0: what there is. */
static uint64_t available_bytes;

uint64_t __real_os_memory_available_bytes(void);
uint64_t __wrap_os_memory_available_bytes(void);

uint64_t __wrap_os_memory_available_bytes(void)
{
	return available_bytes > 0 ? available_bytes : __real_os_memory_available_bytes();
}

static void A1_11_the_first_copy_makes_and_binds_nothing(void **state)
{
	const struct copier_pair pairs[] = { { 0, 1, 2 }, { 1, 1, 2 }, { 2, 3, 5 } };
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		const uint64_t     before = made;
		struct dock *const dock = dock_open(modes[i]);
		const uint64_t     at_open = made;

		assert_true(!LINKER_WRAPS || at_open > before);
		dock_submit(dock, COPIER_LOAD, 1, pairs, 3);
		dock_submit(dock, COPIER_SAVE, 2, pairs, 0);
		dock_settle(dock);
		dock_polls(dock, COPIER_SAVE, 2);
		dock_polls(dock, COPIER_LOAD, 1);
		assert_int_equal(made, at_open);
		assert_true(dock_is_as_expected(dock));
		dock_close(dock);
	}
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Saved, wiped, and loaded into other blocks; what is not a block's payload stays as it was. */
static void blocks_of_several_groups_come_back_byte_exactly(void **state)
{
	const struct copier_pair saved[] = { { 0, 1, 3 }, { 0, 4, 8 }, { 1, 3, 1 }, { 2, 7, 5 } };
	const struct copier_pair loaded[] = { { 0, 2, 3 }, { 0, 5, 8 }, { 1, 4, 1 }, { 2, 1, 5 } };
	uint8_t                  state_3[100];
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		struct dock *const dock = dock_open(modes[i]);

		memcpy(state_3, dock->memory.device[1] + 2049 + 3 * 101, sizeof(state_3));
		dock_submit(dock, COPIER_SAVE, 1, saved, 4);
		dock_settle(dock);
		assert_true(dock_is_as_expected(dock));
		memset(dock->memory.device, 0xee, sizeof(dock->memory.device));
		memset(dock->image.device, 0xee, sizeof(dock->image.device));
		dock_submit(dock, COPIER_LOAD, 2, loaded, 4);
		dock_settle(dock);
		assert_true(dock_is_as_expected(dock));
		assert_memory_equal(dock->memory.device[1] + 2049 + 4 * 101, state_3,
				    sizeof(state_3));
		dock_close(dock);
	}
}

/* A group whose fields lie in two Device buffers, every block of it. */
static void a_group_round_trips_across_device_buffers(void **state)
{
	struct copier_pair pairs[8];
	struct dock       *dock;
	size_t             i, block;

	(void)state;
	for (block = 0; block < 8; block++)
		pairs[block] = (struct copier_pair){ 0, (uint32_t)block + 1, 8 - (uint32_t)block };
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		dock = dock_open(modes[i]);
		dock_submit(dock, COPIER_SAVE, 1, pairs, 8);
		dock_settle(dock);
		assert_true(dock_is_as_expected(dock));
		memset(dock->memory.device[1], 0, 1216);
		dock_submit(dock, COPIER_LOAD, 2, pairs, 8);
		dock_settle(dock);
		/* Padding and the null block's front are not payload. */
		memset(dock->image.device[1], 0, 64 + 128);
		assert_memory_equal(dock->memory.device[1] + 192, dock->image.device[1] + 192, 1024);
		dock_close(dock);
	}
}

static void the_same_number_of_two_groups_is_two_blocks(void **state)
{
	const struct copier_pair first = { 0, 4, 1 }, second = { 2, 4, 4 };
	struct dock *const       dock = dock_open(CPU_AT_SUBMIT);

	(void)state;
	dock_submit(dock, COPIER_SAVE, 1, &first, 1);
	assert_true(dock_is_as_expected(dock));
	dock_submit(dock, COPIER_SAVE, 2, &second, 1);
	assert_true(dock_is_as_expected(dock));
	dock_close(dock);
}

/* Fresh blocks are blank, loaded ones are not, and a copy for writing has what was loaded just now. */
static void a_batch_zeroes_then_loads_then_clones(void **state)
{
	const struct copier_block zeros[] = { { 0, 3 }, { 1, 2 }, { 2, 8 } };
	const struct copier_pair  pairs[] = { { 0, 1, 5 }, { 1, 1, 3 } };
	const struct copier_clone clones[] = { { 0, 1, 2 }, { 2, 8, 7 }, { 1, 1, 4 } };
	const struct copier_batch batch = { 9, zeros, 3, pairs, 2, clones, 3 };
	struct copier_stats       stats;
	size_t                    i, j;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		struct dock *const dock = dock_open(modes[i]);

		assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &batch), 0);
		for (j = 0; j < 3; j++)
			dock_expect_zero(dock, zeros[j]);
		for (j = 0; j < 2; j++)
			dock_expect_pair(dock, COPIER_LOAD, pairs[j]);
		for (j = 0; j < 3; j++)
			dock_expect_clone(dock, clones[j]);
		dock_settle(dock);
		assert_true(dock_is_as_expected(dock));
		copier_stats(dock->copier, COPIER_LOAD, &stats);
		assert_int_equal(stats.submitted, 1);
		assert_int_equal(stats.pairs, 2);
		assert_int_equal(stats.pair_bytes, 256 + 300);
		assert_int_equal(stats.zero_bytes, 256 + 300 + 256);
		assert_int_equal(stats.clone_bytes, 256 + 256 + 300);
		dock_close(dock);
	}
}

/* Blocks that touch on both sides are one copy; a gap on either side, or another order, ends a run. */
static void neighbours_of_a_direct_group_move_together(void **state)
{
	const struct copier_pair pairs[] = { { 2, 1, 3 }, { 2, 2, 4 }, { 2, 3, 5 }, /* one */
					     { 2, 5, 6 },                           /* Device gap */
					     { 2, 6, 8 },                           /* Host gap */
					     { 2, 4, 7 },                           /* backwards */
					     { 0, 1, 1 }, { 0, 2, 2 } };            /* gathered */
	struct copier_stats      load, save;
	struct dock *const       dock = dock_open(CPU_AT_SUBMIT);

	(void)state;
	assert_int_equal(dock->copier->way[0], COPIER_GATHER);
	assert_int_equal(dock->copier->way[1], COPIER_GATHER);
	assert_int_equal(dock->copier->way[2], COPIER_DIRECT);
	dock_submit(dock, COPIER_LOAD, 1, pairs, 8);
	assert_true(dock_is_as_expected(dock));
	dock_submit(dock, COPIER_SAVE, 1, pairs, 8);
	assert_true(dock_is_as_expected(dock));
	copier_stats(dock->copier, COPIER_LOAD, &load);
	copier_stats(dock->copier, COPIER_SAVE, &save);
	assert_int_equal(load.copies, 6);
	assert_int_equal(load.pairs, 8);
	assert_int_equal(save.copies, 6);
	assert_int_equal(save.pair_bytes, 8 * 256);
	dock_close(dock);
}

/* --- order and fences ------------------------------------------------------------------------- */

static void A1_12_loaded_blocks_are_readable_only_behind_their_fence(void **state)
{
	const struct copier_pair pair = { 0, 1, 2 };
	struct dock *const       dock = dock_open(CPU_STEPPED);
	struct copier_done       done = { COPIER_SAVE, 77 };

	(void)state;
	dock_submit(dock, COPIER_LOAD, 5, &pair, 1);
	assert_false(copier_poll(dock->copier, &done));
	assert_false(copier_wait(dock->copier, COPIER_LOAD, 0));
	assert_int_equal(done.ticket, 77);
	assert_false(dock_is_as_expected(dock));
	/* Another stream's fence is none of it. */
	assert_true(copier_wait(dock->copier, COPIER_SAVE, 0));
	assert_false(cpu_step(dock->copier, COPIER_SAVE));
	assert_false(copier_poll(dock->copier, &done));
	assert_true(cpu_step(dock->copier, COPIER_LOAD));
	assert_true(copier_wait(dock->copier, COPIER_LOAD, 0));
	dock_polls(dock, COPIER_LOAD, 5);
	assert_true(dock_is_as_expected(dock));
	assert_false(copier_poll(dock->copier, &done));
	dock_close(dock);
}

static void each_stream_runs_in_order_and_tells_each_ticket_once(void **state)
{
	/* Of what a later ticket saves, an earlier one's target is the only source: order shows in bytes. */
	const struct copier_pair loads[] = { { 0, 1, 1 }, { 0, 1, 2 }, { 0, 1, 3 } };
	const struct copier_pair saves[] = { { 2, 1, 8 }, { 2, 2, 8 } };
	struct copier_done       done;
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		struct dock *const dock = dock_open(modes[i]);

		dock_submit(dock, COPIER_LOAD, 30, &loads[0], 1);
		dock_submit(dock, COPIER_LOAD, 10, &loads[1], 1);
		dock_submit(dock, COPIER_SAVE, 10, &saves[0], 1);
		dock_submit(dock, COPIER_LOAD, 20, &loads[2], 1);
		dock_submit(dock, COPIER_SAVE, 40, &saves[1], 1);
		dock_settle(dock);
		dock_polls(dock, COPIER_SAVE, 10);
		dock_polls(dock, COPIER_SAVE, 40);
		dock_polls(dock, COPIER_LOAD, 30);
		dock_polls(dock, COPIER_LOAD, 10);
		dock_polls(dock, COPIER_LOAD, 20);
		assert_false(copier_poll(dock->copier, &done));
		assert_true(dock_is_as_expected(dock));
		dock_close(dock);
	}
}

static void streams_do_not_wait_for_each_other(void **state)
{
	const struct copier_pair load = { 0, 1, 1 }, save = { 2, 1, 8 };
	struct dock *const       dock = dock_open(CPU_STEPPED);
	struct copier_done       done;

	(void)state;
	dock_submit(dock, COPIER_LOAD, 1, &load, 1);
	dock_submit(dock, COPIER_SAVE, 2, &save, 1);
	assert_true(cpu_step(dock->copier, COPIER_SAVE));
	dock_polls(dock, COPIER_SAVE, 2);
	assert_false(copier_poll(dock->copier, &done));
	assert_true(cpu_step(dock->copier, COPIER_LOAD));
	dock_polls(dock, COPIER_LOAD, 1);
	dock_close(dock);
}

/* Work without transfers is acknowledged when it is its turn. */
static void an_empty_batch_has_a_fence_too(void **state)
{
	const struct copier_batch empty = { .ticket = 3 };
	const struct copier_pair  pair = { 0, 1, 1 };
	struct dock *const        dock = dock_open(CPU_STEPPED);
	struct copier_done        done;

	(void)state;
	dock_submit(dock, COPIER_LOAD, 2, &pair, 1);
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &empty), 0);
	assert_true(cpu_step(dock->copier, COPIER_LOAD));
	dock_polls(dock, COPIER_LOAD, 2);
	assert_false(copier_poll(dock->copier, &done));
	assert_true(cpu_step(dock->copier, COPIER_LOAD));
	dock_polls(dock, COPIER_LOAD, 3);
	dock_close(dock);
}

/* The rows are the engine's own from submit() on. */
static void a_batch_is_copied_at_submission(void **state)
{
	struct copier_pair pair = { 0, 1, 1 };
	struct dock *const dock = dock_open(CPU_STEPPED);

	(void)state;
	dock_submit(dock, COPIER_LOAD, 1, &pair, 1);
	memset(&pair, 0xff, sizeof(pair));
	dock_settle(dock);
	assert_true(dock_is_as_expected(dock));
	dock_close(dock);
}

/* As fast as they come, each ticket loads one block: once it is told, the block is there. */
static void what_threads_have_told_is_there(void **state)
{
	struct dock *const dock = dock_open(CPU_THREADS);
	struct prng        prng;
	uint64_t           submitted = 0, told = 0;
	struct copier_pair pairs[DOCK_TICKETS];
	struct copier_done done;

	(void)state;
	prng_seed(&prng, 11);
	while (told < 2000) {
		struct copier_pair *const pair = &pairs[submitted % DOCK_TICKETS];

		if (submitted < 2000 && submitted - told < DOCK_TICKETS) {
			/* Tickets under way have different Device blocks. */
			*pair = (struct copier_pair){ 0, 1 + submitted % DOCK_TICKETS,
						      1 + (uint32_t)prng_below(&prng, 8) };
			dock_submit(dock, COPIER_LOAD, submitted++, pair, 1);
		}
		while (copier_poll(dock->copier, &done)) {
			const uint32_t block = 1 + told % DOCK_TICKETS;

			assert_int_equal(done.ticket, told++);
			assert_memory_equal(dock->memory.device[0] + 192 * block,
					    dock->image.device[0] + 192 * block, 128);
			assert_memory_equal(dock->memory.device[1] + 64 + 128 * block,
					    dock->image.device[1] + 64 + 128 * block, 128);
		}
	}
	assert_true(dock_is_as_expected(dock));
	dock_close(dock);
}

/* --- limits and ends -------------------------------------------------------------------------- */

static void a_full_table_of_tickets_refuses_and_counts(void **state)
{
	const struct copier_pair  pair = { 0, 1, 1 };
	const struct copier_batch batch = { .ticket = 8, .pairs = &pair, .pair_count = 1 };
	struct copier_stats       stats;
	struct dock *const        dock = dock_open(CPU_STEPPED);
	uint32_t                  i;

	(void)state;
	for (i = 0; i < DOCK_TICKETS; i++)
		dock_submit(dock, COPIER_LOAD, i, &pair, 1);
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &batch), KVS_E_FULL);
	/* A ticket that was not told keeps its place. */
	dock_settle(dock);
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &batch), KVS_E_FULL);
	copier_stats(dock->copier, COPIER_LOAD, &stats);
	assert_int_equal(stats.refused, 2);
	assert_int_equal(stats.submitted, DOCK_TICKETS);
	/* The other stream has tables of its own. */
	dock_submit(dock, COPIER_SAVE, 9, &pair, 0);
	dock_settle(dock);
	dock_polls(dock, COPIER_SAVE, 9);
	for (i = 0; i < DOCK_TICKETS; i++)
		dock_polls(dock, COPIER_LOAD, i);
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &batch), 0);
	copier_stats(dock->copier, COPIER_SAVE, &stats);
	assert_int_equal(stats.refused, 0);
	dock_close(dock);
}

static void a_full_table_of_rows_refuses_whole_batches(void **state)
{
	struct copier_pair        pairs[DOCK_ROWS];
	const struct copier_block zero = { 0, 1 };
	const struct copier_batch one = { .ticket = 2, .zeros = &zero, .zero_count = 1 };
	struct copier_stats       stats;
	struct dock *const        dock = dock_open(CPU_STEPPED);
	uint32_t                  i;

	(void)state;
	for (i = 0; i < DOCK_ROWS; i++)
		pairs[i] = (struct copier_pair){ i < 8 ? 0 : 2, 1 + i % 8, 1 + i % 8 };
	dock_submit(dock, COPIER_LOAD, 1, pairs, DOCK_ROWS);
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &one), KVS_E_FULL);
	copier_audit(dock->copier);
	dock_settle(dock);
	assert_true(dock_is_as_expected(dock));
	copier_stats(dock->copier, COPIER_LOAD, &stats);
	assert_int_equal(stats.refused, 1);
	/* Behind the fence the rows are free, told or not; these run over the table's end. */
	assert_int_equal(copier_submit(dock->copier, COPIER_LOAD, &one), 0);
	dock_expect_zero(dock, zero);
	dock_submit(dock, COPIER_LOAD, 3, pairs + 1, DOCK_ROWS - 1);
	dock_settle(dock);
	assert_true(dock_is_as_expected(dock));
	dock_close(dock);
}

static void close_waits_for_all_that_was_submitted(void **state)
{
	const struct copier_pair loads[] = { { 0, 1, 1 }, { 1, 1, 3 } }, saves[] = { { 2, 1, 8 } };
	struct dock_memory       memory, image;
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(modes); i++) {
		struct dock *const dock = dock_open(modes[i]);

		dock_submit(dock, COPIER_LOAD, 1, loads, 2);
		dock_submit(dock, COPIER_SAVE, 2, saves, 1);
		copier_close(dock->copier);
		dock->copier = NULL;
		memory = dock->memory;
		image = dock->image;
		assert_memory_equal(&memory, &image, sizeof(memory));
		dock_close(dock);
	}
}

/* The sentence, and that nothing was made for it. */
static void refuses(const struct copier_options *options, int code, const char *sentence)
{
	const uint64_t   before = made;
	struct copier   *copier = NULL;
	struct kvs_error err;

	assert_int_equal(cpu_open(options, CPU_THREADS, &copier, &err), code);
	assert_string_equal(err.message, sentence);
	assert_null(copier);
	assert_int_equal(made, before);
}

static void an_engine_that_cannot_be_is_refused(void **state)
{
	struct dock *const    dock = dock_open(CPU_AT_SUBMIT);
	void                 *buffers[2];
	struct copier_options options = dock_options(dock, buffers);
	struct arena_part     host = dock->host;

	(void)state;
	options.ticket_max = 0;
	refuses(&options, KVS_E_INVALID, "ticket_max: 0, must be 1 to 1048576");
	options.ticket_max = COPIER_TICKETS_MAX + 1;
	refuses(&options, KVS_E_INVALID, "ticket_max: 1048577, must be 1 to 1048576");
	options = dock_options(dock, buffers);
	options.row_max = 0;
	refuses(&options, KVS_E_INVALID, "row_max: 0, must be 1 to 268435456");
	options.row_max = UINT32_MAX;
	refuses(&options, KVS_E_INVALID, "row_max: 4294967295, must be 1 to 268435456");
	options = dock_options(dock, buffers);
	options.host = &host;
	host.block_bytes = 511;
	refuses(&options, KVS_E_INVALID, "host: blocks of 511 bytes, a parent has 512");
	host = dock->host;
	host.block_count = 0;
	refuses(&options, KVS_E_INVALID, "host: parent_count: 0, must be 1 to 2147483647");
	copier_close(NULL);
	dock_close(dock);
}

/* In two streams rows and tickets of 16 bytes, and a bit a Device block: 8 + 4 + 8, and 3 null blocks. */
static void an_engine_whose_tables_find_no_memory_is_refused(void **state)
{
	struct dock *const    dock = dock_open(CPU_AT_SUBMIT);
	void                 *buffers[2];
	struct copier_options options = dock_options(dock, buffers);
	struct copier        *copier;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	options.ticket_max = COPIER_TICKETS_MAX;
	options.row_max = 1u << 20;
	available_bytes = 2 * 2 * (16u << 20) + 7;
	refuses(&options, -ENOMEM,
		"ticket_max, row_max: 1048576 and 1048576, their tables and those of 23 Device blocks "
		"take 67108872 bytes; 67108871 are available");
	available_bytes++;
	assert_int_equal(cpu_open(&options, CPU_AT_SUBMIT, &copier, NULL), 0);
	copier_close(copier);
	available_bytes = 0;
	dock_close(dock);
}

/* --- mistakes --------------------------------------------------------------------------------- */

struct mistake {
	struct copier      *copier;
	enum copier_stream  stream;
	struct copier_batch batch;
};

static void commit_it(void *arg)
{
	const struct mistake *const mistake = arg;

	copier_submit(mistake->copier, mistake->stream, &mistake->batch);
}

static void step_without_steps(void *copier)
{
	cpu_step(copier, COPIER_LOAD);
}

/* A zero over a loaded block would wipe it; it, and the like, never reach an engine. */
static void mistakes_are_panics(void **state)
{
	const struct copier_block zero = { 0, 1 }, zeros[] = { { 1, 1 }, { 1, 1 } };
	const struct copier_pair  pair = { 0, 1, 1 }, pairs[] = { { 0, 2, 1 }, { 0, 2, 2 } };
	const struct copier_pair  odd[] = { { 0, 0, 1 }, { 0, 9, 1 }, { 0, 1, 0 }, { 0, 1, 9 },
					    { 1, 5, 1 }, { 3, 1, 1 } };
	const struct copier_pair  many[DOCK_ROWS + 1] = { [0 ... DOCK_ROWS] = { 0, 1, 1 } };
	const struct copier_clone clone = { 0, 2, 1 }, itself = { 0, 3, 3 }, null = { 0, 0, 1 };
	const struct copier_batch batches[] = {
		{ 0, &zero, 1, &pair, 1, NULL, 0 },  /* zero and load */
		{ 0, &zero, 1, NULL, 0, &clone, 1 }, /* zero and clone */
		{ 0, NULL, 0, &pair, 1, &clone, 1 }, /* load and clone */
		{ 0, NULL, 0, pairs, 2, NULL, 0 },   { 0, zeros, 2, NULL, 0, NULL, 0 },
		{ 0, NULL, 0, NULL, 0, &itself, 1 }, { 0, NULL, 0, NULL, 0, &null, 1 },
		{ 0, NULL, 0, &odd[0], 1, NULL, 0 }, { 0, NULL, 0, &odd[1], 1, NULL, 0 },
		{ 0, NULL, 0, &odd[2], 1, NULL, 0 }, { 0, NULL, 0, &odd[3], 1, NULL, 0 },
		{ 0, NULL, 0, &odd[4], 1, NULL, 0 }, { 0, NULL, 0, &odd[5], 1, NULL, 0 },
	};
	const struct copier_batch saves[] = { { 0, &zero, 1, NULL, 0, NULL, 0 },
					      { 0, NULL, 0, NULL, 0, &clone, 1 },
					      { 0, NULL, 0, &odd[1], 1, NULL, 0 },
					      { 0, NULL, 0, &odd[3], 1, NULL, 0 },
					      { 0, NULL, 0, many, DOCK_ROWS + 1, NULL, 0 } };
	/* Nothing is copied: submit() itself must see it. */
	struct dock *const        dock = dock_open(CPU_STEPPED), *const other = dock_open(CPU_AT_SUBMIT);
	struct mistake            mistake = { .copier = dock->copier, .stream = COPIER_LOAD };
	size_t                    i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(batches); i++) {
		mistake.batch = batches[i];
		assert_true(death_panics(commit_it, &mistake, NULL, 0));
	}
	mistake.stream = COPIER_SAVE;
	for (i = 0; i < ARRAY_COUNT(saves); i++) {
		mistake.batch = saves[i];
		assert_true(death_panics(commit_it, &mistake, NULL, 0));
	}
	/* And what is none: the same Device block saved twice. */
	mistake.batch = (struct copier_batch){ .pairs = pairs, .pair_count = 2 };
	assert_false(death_panics(commit_it, &mistake, NULL, 0));
	assert_true(death_panics(step_without_steps, other->copier, NULL, 0));
	dock_close(other);
	dock_close(dock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A1_11_the_first_copy_makes_and_binds_nothing),
		cmocka_unit_test(blocks_of_several_groups_come_back_byte_exactly),
		cmocka_unit_test(a_group_round_trips_across_device_buffers),
		cmocka_unit_test(the_same_number_of_two_groups_is_two_blocks),
		cmocka_unit_test(a_batch_zeroes_then_loads_then_clones),
		cmocka_unit_test(neighbours_of_a_direct_group_move_together),
		cmocka_unit_test(A1_12_loaded_blocks_are_readable_only_behind_their_fence),
		cmocka_unit_test(each_stream_runs_in_order_and_tells_each_ticket_once),
		cmocka_unit_test(streams_do_not_wait_for_each_other),
		cmocka_unit_test(an_empty_batch_has_a_fence_too),
		cmocka_unit_test(a_batch_is_copied_at_submission),
		cmocka_unit_test(what_threads_have_told_is_there),
		cmocka_unit_test(a_full_table_of_tickets_refuses_and_counts),
		cmocka_unit_test(a_full_table_of_rows_refuses_whole_batches),
		cmocka_unit_test(close_waits_for_all_that_was_submitted),
		cmocka_unit_test(an_engine_that_cannot_be_is_refused),
		cmocka_unit_test(an_engine_whose_tables_find_no_memory_is_refused),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
