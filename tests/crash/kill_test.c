/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that writes through io_uring is killed, and its store opened at once.
 *
 * The child's threads put, get and remove with durability put, and note in shared memory what was
 * acknowledged before they go on.  After a random number of acknowledgements it is killed; its last
 * writes may land after that, so the open, which does not wait for it to be reaped, has to.
 *
 * Usage    kill_test [CYCLES [SEED]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/prng.h"
#include "os/os.h"
#include "store/kind.h"
#include "strata/strata.h"

#define PAGE 4096u
#define KEYS 64u
#define PUTTERS 2u
#define BLOCK (16 * PAGE)
#define ROWS 8u
#define FOREVER_NS UINT64_C(60000000000)

/* So many cycles on one file; in the large one, so few that nothing is ever cleaned. */
#define CYCLES_A_FILE 8u
#define ACKS_MAX 200u

/* Of one key, by its one writer; each is a generation, and each grows. */
struct key_state {
	_Atomic uint32_t tried, acked, removing, removed;
};

struct shared {
	sem_t            acked;
	_Atomic bool     failed;
	struct key_state keys[KEYS];
};

struct mode {
	const char *name;
	uint64_t    capacity_bytes, segment_bytes;
	bool        evicts;
};

static struct shared *shared;
static char           directory[] = "/var/tmp/kvstrata-kill-XXXXXX";
static char           path[64];
static uint32_t       cycles = 13;
static uint64_t       seed = 1;

/* --- objects ---------------------------------------------------------------------------------- */

static struct kvs_key key_of(uint32_t number)
{
	struct kvs_key key = { .offset = number };

	memset(key.hash, (int)number + 1, sizeof(key.hash));
	return key;
}

static struct kvs_span span_of(void *memory, uint32_t number)
{
	const size_t bytes = (1 + mix64(number) % 16) * PAGE;

	return (struct kvs_span){ memory, bytes, bytes + (number % 2 ? PAGE : 0) };
}

static void fill(const struct kvs_span *span, uint32_t number, uint32_t generation)
{
	uint64_t *const words = span->ptr;
	size_t          i;

	words[0] = (uint64_t)number << 32 | generation;
	for (i = 1; i < span->bytes / 8; i++)
		words[i] = mix64(words[0] ^ i << 48);
}

/* 0: they are not the key's bytes. */
static uint32_t read_generation(const struct kvs_span *span, uint32_t number)
{
	const uint64_t *const words = span->ptr;
	size_t                i;

	if (words[0] >> 32 != number)
		return 0;
	for (i = 1; i < span->bytes / 8; i++) {
		if (words[i] != mix64(words[0] ^ i << 48))
			return 0;
	}
	return (uint32_t)words[0];
}

static int open_store(const struct mode *mode, struct kvs_store **ret_store, struct kvs_error *err)
{
	const struct strata_settings set = { .path = path, .capacity_bytes = mode->capacity_bytes,
					     .segment_bytes = mode->segment_bytes,
					     .block_bytes = BLOCK, .evict_policy = "s3fifo",
					     .durability = STRATA_PUT, .verify = true };

	return strata_open(&set, &store_strata_ops, ret_store, err);
}

/* --- the child -------------------------------------------------------------------------------- */

struct worker {
	struct kvs_store *store;
	uint32_t          lane;
	struct prng       prng;
	uint8_t          *memory[ROWS];
	struct kvs_key    keys[ROWS];
	uint32_t          numbers[ROWS];
	bool              busy[ROWS];
};

static void give_up(const char *why, uint32_t number, int result)
{
	fprintf(stderr, "child: %s, key %u, %d\n", why, number, result);
	atomic_store(&shared->failed, true);
	sem_post(&shared->acked);
}

static uint32_t own_key(struct worker *worker)
{
	return (uint32_t)prng_below(&worker->prng, KEYS / PUTTERS) * PUTTERS + worker->lane;
}

static bool is_busy(const struct worker *worker, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < ROWS; i++) {
		if (worker->busy[i] && worker->numbers[i] == number)
			return true;
	}
	return false;
}

static void remove_key(struct worker *worker, uint32_t number)
{
	struct key_state *const state = &shared->keys[number];
	const struct kvs_key    key = key_of(number);
	const uint32_t          acked = atomic_load(&state->acked);
	enum kvs_result         result;

	atomic_store(&state->removing, acked);
	(void)strata_remove(worker->store, &key, 1, &result);
	if (result != KVS_RESULT_DONE && result != KVS_RESULT_MISSING)
		give_up("a remove failed", number, result);
	/* What is missing was evicted: that is not promised to last. */
	if (result == KVS_RESULT_DONE)
		atomic_store(&state->removed, acked);
	sem_post(&shared->acked);
}

/* A row of the lane, for a key that is not there. */
static void put_key(struct worker *worker, uint32_t row, uint32_t number)
{
	struct key_state *const state = &shared->keys[number];
	const uint32_t          generation = atomic_load(&state->tried) + 1;
	struct kvs_io           io = { .cookie = row, .is_put = true, .key = &worker->keys[row],
				       .span = span_of(worker->memory[row], number) };

	worker->keys[row] = key_of(number);
	worker->numbers[row] = number;
	worker->busy[row] = true;
	fill(&io.span, number, generation);
	atomic_store(&state->tried, generation);
	if (strata_submit(worker->store, worker->lane, &io, 1) != 1)
		give_up("a put was not taken", number, 0);
}

static void start_some(struct worker *worker)
{
	uint32_t row;

	for (row = 0; row < ROWS; row++) {
		const uint32_t          number = own_key(worker);
		struct key_state *const state = &shared->keys[number];

		if (worker->busy[row] || is_busy(worker, number))
			continue;
		if (atomic_load(&state->acked) > atomic_load(&state->removing)) {
			if (prng_chance(&worker->prng, 1, 3))
				remove_key(worker, number);
		} else {
			put_key(worker, row, number);
		}
	}
}

static void *put_for_ever(void *arg)
{
	struct worker *const worker = arg;

	for (;;) {
		struct kvs_io_done done[ROWS];
		int                count, i;

		start_some(worker);
		count = strata_reap(worker->store, worker->lane, done, ROWS, FOREVER_NS);
		for (i = 0; i < count; i++) {
			const uint32_t          row = (uint32_t)done[i].cookie;
			struct key_state *const state = &shared->keys[worker->numbers[row]];

			worker->busy[row] = false;
			if (!done[i].retired || (done[i].result != KVS_RESULT_DONE &&
						 done[i].result != KVS_RESULT_EXISTS))
				give_up("a put failed", worker->numbers[row], done[i].result);
			if (done[i].result == KVS_RESULT_DONE)
				atomic_store(&state->acked, atomic_load(&state->tried));
			sem_post(&shared->acked);
		}
	}
	return NULL;
}

static void *get_for_ever(void *arg)
{
	struct worker *const worker = arg;

	for (;;) {
		const uint32_t     number = (uint32_t)prng_below(&worker->prng, KEYS);
		const struct kvs_key key = key_of(number);
		struct kvs_io      io = { .key = &key, .span = span_of(worker->memory[0], number) };
		struct kvs_io_done done;

		if (strata_submit(worker->store, worker->lane, &io, 1) != 1)
			give_up("a get was not taken", number, 0);
		while (strata_reap(worker->store, worker->lane, &done, 1, FOREVER_NS) == 0)
			;
		if (done.result == KVS_RESULT_DONE && read_generation(&io.span, number) == 0)
			give_up("wrong bytes", number, 0);
		if (done.result != KVS_RESULT_DONE && done.result != KVS_RESULT_MISSING)
			give_up("a get failed", number, done.result);
	}
	return NULL;
}

static struct worker *worker_of(struct kvs_store *store, uint32_t lane, uint64_t from)
{
	struct worker *const worker = calloc(1, sizeof(*worker));
	uint32_t             i;

	worker->store = store;
	worker->lane = lane;
	prng_seed(&worker->prng, mix64(from + lane));
	for (i = 0; i < ROWS; i++)
		worker->memory[i] = aligned_alloc(PAGE, BLOCK + PAGE);
	return worker;
}

_Noreturn static void live(const struct mode *mode, uint64_t from)
{
	struct kvs_error  err = { 0 };
	struct kvs_store *store;
	pthread_t         threads[PUTTERS];
	uint32_t          i;

	if (open_store(mode, &store, &err) < 0) {
		give_up(err.message, 0, err.code);
		_exit(1);
	}
	for (i = 0; i < PUTTERS; i++) {
		if (os_thread_start(&threads[i], "put", put_for_ever, worker_of(store, i, from)) < 0)
			give_up("no thread", i, 0);
	}
	get_for_ever(worker_of(store, PUTTERS, from));
	_exit(1);
}

/* --- the parent ------------------------------------------------------------------------------- */

static void wait_for_acks(uint64_t count)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (count-- > 0 && !atomic_load(&shared->failed)) {
		if (sem_timedwait(&shared->acked, &until) != 0 && errno != EINTR)
			fail_msg("the child acknowledges nothing");
	}
	assert_false(atomic_load(&shared->failed));
}

static void check_key(const struct mode *mode, uint32_t cycle, struct kvs_store *store,
		      uint32_t number, void *memory)
{
	struct key_state *const state = &shared->keys[number];
	const uint32_t          tried = state->tried, acked = state->acked;
	const uint32_t          removing = state->removing, removed = state->removed;
	const struct kvs_key    key = key_of(number);
	const struct kvs_span   span = span_of(memory, number);
	uint32_t                found = 0;
	enum kvs_result         result;
	bool                    retired;

	assert_int_equal(strata_get(store, &key, &span, 1, &result, &retired), 0);
	if (result == KVS_RESULT_DONE) {
		found = read_generation(&span, number);
		if (found <= removed || found > tried || found < acked) {
			fail_msg("cycle %u: key %u has %u; tried %u, acknowledged %u, removed %u",
				 cycle, number, found, tried, acked, removed);
		}
	} else if (result != KVS_RESULT_MISSING) {
		fail_msg("cycle %u: key %u gave %d", cycle, number, result);
	} else if (acked > removing && !mode->evicts) {
		fail_msg("cycle %u: key %u is missing; tried %u, acknowledged %u, removed %u", cycle,
			 number, tried, acked, removed);
	}
	/* From here on what was found counts. */
	state->acked = found > 0 ? found : tried;
	state->removing = found > 0 ? found - 1 : tried;
	state->removed = state->removing > removed && found == 0 ? removed : state->removing;
}

static void check(const struct mode *mode, uint32_t cycle, struct kvs_store *store)
{
	void *const           memory = aligned_alloc(PAGE, BLOCK + PAGE);
	struct kvs_store_info info;
	struct stat           file;
	uint32_t              i;

	strata_audit(store);
	strata_describe(store, &info);
	assert_int_equal(info.evicted_objects, 0);
	for (i = 0; i < KEYS; i++)
		check_key(mode, cycle, store, i, memory);
	assert_int_equal(stat(path, &file), 0);
	assert_true((uint64_t)file.st_size <= mode->capacity_bytes);
	assert_true((uint64_t)file.st_blocks * 512 <= mode->capacity_bytes);
	free(memory);
}

static void run_cycle(const struct mode *mode, uint32_t cycle, struct prng *prng)
{
	const uint64_t    from = prng_u64(prng);
	struct kvs_error  err = { 0 };
	struct kvs_store *store;
	int               status;
	pid_t             child;

	if (cycle % CYCLES_A_FILE == 0) {
		unlink(path);
		memset(shared->keys, 0, sizeof(shared->keys));
	}
	assert_int_equal(sem_init(&shared->acked, 1, 0), 0);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		live(mode, from);
	wait_for_acks(1 + prng_below(prng, ACKS_MAX));
	assert_int_equal(kill(child, SIGKILL), 0);
	if (open_store(mode, &store, &err) < 0)
		fail_msg("cycle %u: %s", cycle, err.message);
	check(mode, cycle, store);
	assert_int_equal(strata_close(store), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void B2_5_what_was_acknowledged_survives_a_kill(void **state)
{
	const struct mode *const mode = *state;
	struct prng              prng;
	uint32_t                 cycle;

	print_message("# %s: %u cycles, seed 0x%llx\n", mode->name, cycles,
		      (unsigned long long)seed);
	prng_seed(&prng, seed);
	for (cycle = 0; cycle < cycles; cycle++)
		run_cycle(mode, cycle, &prng);
	unlink(path);
	print_message("# %s: seed 0x%llx\n", mode->name, (unsigned long long)seed);
}

int main(int argc, char **argv)
{
	static struct mode modes[] = {
		{ "large", UINT64_C(256) << 20, UINT64_C(4) << 20, false },
		{ "small", UINT64_C(2) << 20, UINT64_C(256) << 10, true },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(B2_5_what_was_acknowledged_survives_a_kill, &modes[0]),
		cmocka_unit_test_prestate(B2_5_what_was_acknowledged_survives_a_kill, &modes[1]),
	};
	int failed;

	if (argc > 1)
		cycles = (uint32_t)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || !mkdtemp(directory))
		return 1;
	snprintf(path, sizeof(path), "%s/store", directory);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(directory);
	return failed;
}
