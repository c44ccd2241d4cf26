/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Nth question to the kernel fails, for each N until a run has none left to fail.
 *
 * A script opens a store, puts, gets, removes, evicts, purges, closes and opens again.  Whatever
 * fails, no key has wrong bytes, no span is touched after it was given back, an open that fails says
 * why, and after a single failure the store goes on working.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "contract/guarded.h"
#include "os/hook.h"
#include "os/os.h"
#include "store/kind.h"
#include "strata/strata.h"

#define KEYS 12u
#define BATCH 4u
#define SEGMENTS 5u
#define PAGE 4096u
#define SEGMENT_PAGES 11u
#define CAPACITY (2 * PAGE + SEGMENTS * SEGMENT_PAGES * PAGE)

/* A hang ends here; nothing else depends on it. */
#define PATIENCE_NS UINT64_C(10000000000)

enum fault { FAULT_EIO, FAULT_ENOSPC, FAULT_EINVAL, FAULT_SHORT };

struct kind {
	const char *name;
	enum fault  fault;
	bool        lasts; /* from the Nth on, not the Nth alone */
	bool        lanes; /* io_uring */
};

static uint64_t every = 1;

struct key_state {
	uint32_t now;       /* generation that the store said it has */
	uint32_t low, high; /* what may be there after an open */
	bool     unknown;   /* since an open */
};

struct run {
	const struct kind *kind;
	uint64_t           nth;
	uint64_t           left; /* calls until the fault; 0: it came */
	bool               fired;
	bool               failing; /* the device, for now */
	bool               opening;
	bool               blind; /* a read failed in an open: the newest tally may be lost */
	int                fd;
	char               path[32];
	struct kvs_store  *store;
	struct guarded    *guarded;
	struct key_state   keys[KEYS];
};

/* --- the fault -------------------------------------------------------------------------------- */

static bool is_transfer(const struct os_io *io)
{
	return io->kind == OS_IO_READ || io->kind == OS_IO_WRITE;
}

static bool answer(const struct kind *kind, struct os_io *io, int64_t *ret_result)
{
	switch (kind->fault) {
	case FAULT_EIO:
		*ret_result = -EIO;
		return true;
	case FAULT_ENOSPC:
		*ret_result = -ENOSPC;
		return true;
	case FAULT_EINVAL:
		*ret_result = -EINVAL;
		return true;
	case FAULT_SHORT:
		if (is_transfer(io) && io->bytes > 512)
			io->bytes = io->bytes / 1024 * 512;
		return false;
	}
	return false;
}

static bool fail_nth(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct run *const run = ctx;

	/* Asked again after a short transfer: that is the same question. */
	if (run->kind->fault == FAULT_SHORT && !is_transfer(io))
		return false;
	if (run->left > 1) {
		run->left--;
		return false;
	}
	if (run->fired && !run->kind->lasts)
		return false;
	run->fired = true;
	run->blind = run->blind || (run->opening && io->kind == OS_IO_READ);
	return answer(run->kind, io, ret_result);
}

/* --- objects ---------------------------------------------------------------------------------- */

static struct kvs_key key_of(uint32_t number)
{
	struct kvs_key key = { .offset = number };

	key.space.byte[0] = (uint8_t)(number % 2);
	memset(key.hash, (int)number + 1, sizeof(key.hash));
	return key;
}

static uint32_t bytes_of(uint32_t number)
{
	return (1 + number % 4) * PAGE;
}

static void fill(const struct kvs_span *span, uint32_t number, uint32_t generation)
{
	uint32_t *const words = span->ptr;
	size_t          i;

	for (i = 0; i < span->bytes / 4; i += 2) {
		words[i] = number << 16 | (uint32_t)i;
		words[i + 1] = generation;
	}
}

static uint32_t read_generation(const struct kvs_span *span, uint32_t number)
{
	const uint32_t *const words = span->ptr;
	size_t                i;

	for (i = 0; i < span->bytes / 4; i += 2) {
		assert_int_equal(words[i], number << 16 | (uint32_t)i);
		assert_int_equal(words[i + 1], words[1]);
	}
	return words[1];
}

/* --- calls ------------------------------------------------------------------------------------ */

struct batch {
	uint32_t        first, count;
	struct kvs_key  keys[BATCH];
	struct kvs_span spans[BATCH];
	enum kvs_result results[BATCH];
};

static struct batch lend(struct run *run, uint32_t first, uint32_t count)
{
	struct batch batch = { .first = first, .count = count };
	uint32_t     i;

	for (i = 0; i < count; i++) {
		batch.keys[i] = key_of(first + i);
		batch.spans[i] = guarded_lend(run->guarded, bytes_of(first + i));
		/* Half of them without room for a header. */
		if ((first + i) / 4 % 2)
			batch.spans[i].room = batch.spans[i].bytes;
	}
	return batch;
}

static void give_back(struct run *run, const struct batch *batch, bool retired)
{
	uint32_t i;

	/* This store claims it always. */
	assert_true(retired);
	for (i = 0; i < batch->count; i++)
		guarded_back(run->guarded, &batch->spans[i], retired);
}

static bool by_lane(struct run *run, struct batch *batch, bool is_put)
{
	struct kvs_io      io[BATCH];
	struct kvs_io_done done[BATCH];
	uint32_t           answered = 0, i;
	bool               retired = true;
	int                count;

	for (i = 0; i < batch->count; i++) {
		io[i] = (struct kvs_io){ .cookie = i, .is_put = is_put, .key = &batch->keys[i],
					 .span = batch->spans[i] };
	}
	count = strata_submit(run->store, 3, io, batch->count);
	assert_int_equal(count, batch->count);
	while (answered < batch->count) {
		count = strata_reap(run->store, 3, done, BATCH, PATIENCE_NS);
		assert_true(count >= 0);
		for (i = 0; i < (uint32_t)count; i++) {
			batch->results[done[i].cookie] = done[i].result;
			retired = retired && done[i].retired;
		}
		answered += (uint32_t)count;
	}
	return retired;
}

static void move(struct run *run, struct batch *batch, bool is_put)
{
	bool retired = false;

	if (run->kind->lanes) {
		retired = by_lane(run, batch, is_put);
	} else if (is_put) {
		assert_int_equal(strata_put(run->store, batch->keys, batch->spans, batch->count,
					    batch->results, &retired), 0);
	} else {
		assert_int_equal(strata_get(run->store, batch->keys, batch->spans, batch->count,
					    batch->results, &retired), 0);
	}
	assert_true(retired);
}

static void put(struct run *run, uint32_t first, uint32_t count)
{
	struct batch batch = lend(run, first, count);
	uint32_t     i;

	for (i = 0; i < count; i++)
		fill(&batch.spans[i], first + i, run->keys[first + i].high + 1);
	move(run, &batch, true);
	for (i = 0; i < count; i++) {
		struct key_state *const key = &run->keys[first + i];

		switch (batch.results[i]) {
		case KVS_RESULT_DONE:
			*key = (struct key_state){ .now = key->high + 1, .low = key->high + 1,
						   .high = key->high + 1 };
			break;
		case KVS_RESULT_EXISTS:
			assert_true(key->now > 0 || key->unknown);
			break;
		case KVS_RESULT_FAILED:
		case KVS_RESULT_NO_SPACE:
			assert_true(run->fired || batch.results[i] == KVS_RESULT_NO_SPACE);
			/* It may be found all the same, after an open. */
			key->high++;
			key->now = 0;
			key->unknown = false;
			break;
		case KVS_RESULT_UNKNOWN:
		case KVS_RESULT_MISSING:
		case KVS_RESULT_CORRUPT:
			fail_msg("put of key %u gave %d", first + i, batch.results[i]);
		}
	}
	give_back(run, &batch, true);
}

static void get(struct run *run, uint32_t first, uint32_t count)
{
	struct batch batch = lend(run, first, count);
	uint32_t     i;

	move(run, &batch, false);
	for (i = 0; i < count; i++) {
		struct key_state *const key = &run->keys[first + i];

		if (batch.results[i] == KVS_RESULT_DONE) {
			const uint32_t generation = read_generation(&batch.spans[i], first + i);

			if (key->unknown ? (generation < key->low && !run->blind) || generation > key->high
					 : generation != key->now) {
				fail_msg("key %u has generation %u, not %u, of %u to %u", first + i,
					 generation, key->now, key->low, key->high);
			}
			key->now = generation;
			key->unknown = false;
		} else if (batch.results[i] == KVS_RESULT_FAILED) {
			assert_true(run->fired);
		} else {
			assert_true(batch.results[i] == KVS_RESULT_MISSING ||
				    (batch.results[i] == KVS_RESULT_CORRUPT && run->fired));
			key->now = 0;
			key->unknown = false;
		}
	}
	give_back(run, &batch, true);
}

static void forget(struct key_state *key, enum kvs_result result)
{
	if (result == KVS_RESULT_DONE)
		key->low = key->high + 1;
	key->now = 0;
	key->unknown = false;
}

static void remove_key(struct run *run, uint32_t number)
{
	struct key_state *const key = &run->keys[number];
	const struct kvs_key    name = key_of(number);
	enum kvs_result         result;

	assert_int_equal(strata_remove(run->store, &name, 1, &result), 0);
	assert_true(result != KVS_RESULT_DONE || key->now > 0 || key->unknown);
	assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_MISSING ||
		    (result == KVS_RESULT_FAILED && run->fired));
	forget(key, result);
}

static void purge(struct run *run)
{
	const struct kvs_namespace space = key_of(1).space;
	uint64_t                   count;
	uint32_t                   i;
	const int                  rc = strata_purge(run->store, &space, &count);

	assert_true(rc == 0 || run->fired);
	/* What a failed one left, the store says when it is asked. */
	for (i = 1; i < KEYS; i += 2) {
		const struct kvs_key name = key_of(i);
		enum kvs_result      result;

		assert_int_equal(strata_exists(run->store, &name, 1, &result), 0);
		assert_true(result == KVS_RESULT_MISSING || rc < 0 || run->fired);
		if (result == KVS_RESULT_MISSING)
			forget(&run->keys[i], KVS_RESULT_MISSING);
	}
}

static bool see(void *ctx, const struct strata_finding *finding)
{
	assert_true(!finding->damage || ((struct run *)ctx)->fired);
	return true;
}

/* --- the script ------------------------------------------------------------------------------- */

static bool open_store(struct run *run)
{
	const struct strata_settings set = { .path = run->path, .capacity_bytes = CAPACITY,
					     .segment_bytes = SEGMENT_PAGES * PAGE, .block_bytes = 4 * PAGE,
					     .evict_policy = "lru", .durability = STRATA_PUT,
					     .verify = true, .plain_io = !run->kind->lanes };
	struct kvs_error err = { 0 };
	uint32_t         i;
	int              rc;

	run->opening = true;
	rc = strata_open(&set, &store_strata_ops, &run->store, &err);
	run->opening = false;
	if (rc < 0) {
		if (!run->fired || !run->failing)
			fail_msg("call %llu: %s", (unsigned long long)run->nth, err.message);
		assert_int_equal(err.code, rc);
		assert_non_null(strstr(err.message, "store.path: \"/proc/self/fd/"));
		assert_true(strlen(err.message) > strlen("store.path: \"/proc/self/fd/12\": "));
		return false;
	}
	for (i = 0; i < KEYS; i++)
		run->keys[i].unknown = true;
	strata_audit(run->store);
	return true;
}

static void close_store(struct run *run)
{
	strata_audit(run->store);
	assert_int_equal(strata_close(run->store), 0);
}

static void put_all(struct run *run)
{
	uint32_t i;

	for (i = 0; i < KEYS; i += BATCH) {
		put(run, i, BATCH);
		strata_audit(run->store);
	}
}

static void get_all(struct run *run)
{
	uint32_t i;

	for (i = 0; i < KEYS; i += BATCH) {
		get(run, i, BATCH);
		strata_audit(run->store);
	}
}

static void work(struct run *run)
{
	const struct kvs_key locked = key_of(3);
	enum kvs_result      result;

	put(run, 0, BATCH);
	get(run, 0, BATCH);
	remove_key(run, 1);
	assert_int_equal(strata_lock(run->store, &locked, 1, &result), 0);
	/* More than there is room for: cleaning moves what was used and what is locked. */
	put_all(run);
	get_all(run);
	remove_key(run, 8);
	remove_key(run, 10);
	put_all(run);
	strata_unlock(run->store, &locked, 1);
	assert_int_equal(strata_walk(run->store, true, see, run), 0);
	purge(run);
	strata_audit(run->store);
	put_all(run);
	get_all(run);
}

/* A put and a get of one key work; a full disk stays full until the next open. */
static bool works(struct run *run, uint32_t number)
{
	remove_key(run, number);
	put(run, number, 1);
	if (run->keys[number].now == 0)
		return false;
	get(run, number, 1);
	return run->keys[number].now > 0;
}

/* False: it did not open. */
static bool visit(struct run *run)
{
	if (!open_store(run))
		return false;
	get_all(run);
	work(run);
	if (run->fired && !run->kind->lasts && run->kind->fault != FAULT_ENOSPC)
		assert_true(works(run, 5));
	close_store(run);
	/* All spans that were ever lent, while nothing runs any more. */
	if (!guarded_intact(run->guarded))
		fail_msg("%s", run->guarded->violation);
	return true;
}

/* False: the fault never came. */
static bool run_nth(const struct kind *kind, uint64_t nth, struct guarded *guarded)
{
	struct run run = { .kind = kind, .guarded = guarded, .failing = true,
			   .nth = nth, .left = nth, .fd = memfd_create("nth", MFD_CLOEXEC) };
	bool       fired;

	assert_true(run.fd >= 0);
	snprintf(run.path, sizeof(run.path), "/proc/self/fd/%d", run.fd);
	os_io_hook_set(fail_nth, &run);
	(void)visit(&run);
	/* What a single failure left is met by a second visit; a lasting one only fails again. */
	if (!kind->lasts && !kind->lanes)
		(void)visit(&run);
	os_io_hook_set(NULL, NULL);
	run.failing = false;
	fired = run.fired;
	/* Whatever came, the device is well now. */
	assert_true(visit(&run));
	assert_true(open_store(&run));
	assert_true(works(&run, 6));
	close_store(&run);
	close(run.fd);
	return fired;
}

static void truthful_whatever_fails(void **state)
{
	const struct kind *const kind = *state;
	struct guarded           guarded;
	/* Where each kind begins differs, so that kinds alike fail at other calls. */
	uint64_t nth = 1 + (4 * kind->fault + 2 * kind->lasts + kind->lanes) % every;

	guarded_open(&guarded);
	while (run_nth(kind, nth, &guarded))
		nth += every;
	guarded_close(&guarded);
	print_message("# %s: %llu calls\n", kind->name, (unsigned long long)(nth - 1));
	/* The script is as long as it seems. */
	assert_true(nth > 100);
}

/* --- O_DIRECT refused ------------------------------------------------------------------------- */

static bool refuse_direct(void *ctx, struct os_io *io, int64_t *ret_result)
{
	(void)ctx;
	*ret_result = -EINVAL;
	return io->kind == OS_IO_OPEN && (io->flags & OS_DIRECT) != 0;
}

static void without_o_direct_it_is_buffered_and_says_so(void **state)
{
	static const struct kind kind = { .name = "direct" };
	struct guarded guarded;
	struct run run = { .kind = &kind, .guarded = &guarded,
			   .fd = memfd_create("direct", MFD_CLOEXEC) };
	struct kvs_store_info info;

	(void)state;
	snprintf(run.path, sizeof(run.path), "/proc/self/fd/%d", run.fd);
	guarded_open(&guarded);
	os_io_hook_set(refuse_direct, NULL);
	assert_true(open_store(&run));
	strata_describe(run.store, &info);
	assert_false(info.direct);
	assert_non_null(strstr(info.note, "no O_DIRECT"));
	work(&run);
	close_store(&run);
	os_io_hook_set(NULL, NULL);
	guarded_close(&guarded);
	close(run.fd);
}

#define KIND(text, what, from_there_on, ring) \
	{ .name = (text), .fault = (what), .lasts = (from_there_on), .lanes = (ring) }

static struct kind kinds[] = {
	KIND("EIO once, plain", FAULT_EIO, false, false),
	KIND("EIO on, plain", FAULT_EIO, true, false),
	KIND("ENOSPC once, plain", FAULT_ENOSPC, false, false),
	KIND("ENOSPC on, plain", FAULT_ENOSPC, true, false),
	KIND("EINVAL once, plain", FAULT_EINVAL, false, false),
	KIND("EINVAL on, plain", FAULT_EINVAL, true, false),
	KIND("short once, plain", FAULT_SHORT, false, false),
	KIND("short on, plain", FAULT_SHORT, true, false),
	KIND("EIO once, lanes", FAULT_EIO, false, true),
	KIND("EIO on, lanes", FAULT_EIO, true, true),
	KIND("ENOSPC once, lanes", FAULT_ENOSPC, false, true),
	KIND("ENOSPC on, lanes", FAULT_ENOSPC, true, true),
	KIND("EINVAL once, lanes", FAULT_EINVAL, false, true),
	KIND("EINVAL on, lanes", FAULT_EINVAL, true, true),
	KIND("short once, lanes", FAULT_SHORT, false, true),
	KIND("short on, lanes", FAULT_SHORT, true, true),
};

/* nth_test [EVERY [PATTERN]]: every which call fails, and the kinds whose names match. */
int main(int argc, char **argv)
{
	struct CMUnitTest tests[17] = { cmocka_unit_test(
		without_o_direct_it_is_buffered_and_says_so) };
	size_t            i;

	for (i = 0; i < 16; i++) {
		tests[i + 1] = (struct CMUnitTest){ .name = kinds[i].name,
						    .test_func = truthful_whatever_fails,
						    .initial_state = &kinds[i] };
	}
	/* Each open has megabytes: fresh pages for them would take most of the time. */
	mallopt(M_PERTURB, 0);
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	if (argc > 1)
		every = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
