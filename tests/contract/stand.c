/* SPDX-License-Identifier: Apache-2.0 */
/* See stand.h. */
#include "stand.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "named_block.h"
#include "os/os.h"
#include "store/store.h"

#define MEMORY_BYTES ((1 + STAND_WORKERS) * GUARDED_BYTES)

static bool directory_make(struct stand *stand, const char *parent)
{
	snprintf(stand->directory, sizeof(stand->directory), "%s/kvstrata-XXXXXX", parent);
	return mkdtemp(stand->directory) != NULL;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static void write_plan(const struct stand *stand)
{
	char  path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/plan.json", stand->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(stand->subject->plan, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static const char *master_of(const struct stand *stand)
{
	return stand->cave ? stand->cave->settings.master : stand->troupe.settings.master;
}

static void spec_of(const struct stand *stand, char *ret_spec, size_t room)
{
	const char *const text = stand->subject->spec;
	const size_t      head = strcspn(text, "@#");
	const char *const place = text[head] == '@' ? stand->directory : master_of(stand);

	snprintf(ret_spec, room, "%.*s%s%s", (int)head, text, text[head] ? place : "",
		 text[head] ? text + head + 1 : "");
}

/* Where it fails a store works on without. */
static void tell_memory(const struct stand *stand)
{
	const struct kvs_span   slice = { stand->memory, MEMORY_BYTES, MEMORY_BYTES };
	const struct kvs_memory memory = { &slice, 1, stand->memory_fd };

	if (stand->store->ops->register_memory)
		(void)stand->store->ops->register_memory(stand->store, &memory);
}

void stand_open(struct stand *stand)
{
	struct kvs_error err;
	char             spec[512];

	spec_of(stand, spec, sizeof(spec));
	if (store_open(spec, BLOCK, "lru", &stand->store, &err) < 0)
		fail_msg("%s: %s", spec, err.message);
	tell_memory(stand);
	stand->store->ops->describe(stand->store, &stand->info);
}

void stand_guard(const struct stand *stand, uint32_t worker, struct guarded *ret_guarded)
{
	KVS_ASSERT_CMP(worker, <, STAND_WORKERS);
	guarded_open_in(ret_guarded, stand->memory + (1 + worker) * GUARDED_BYTES);
}

void stand_close(struct stand *stand)
{
	const bool was_told = *stand->guarded.violation;

	assert_int_equal(stand->store->ops->close(stand->store), 0);
	stand->store = NULL;
	if (!guarded_intact(&stand->guarded) && !was_told)
		fail_msg("%s", stand->guarded.violation);
}

static void map_memory(struct stand *stand)
{
	void *memory;

	assert_int_equal(os_pages_map_shared("stand", MEMORY_BYTES, false, &memory,
					     &stand->memory_fd),
			 0);
	stand->memory = memory;
}

int stand_setup(void **state)
{
	struct stand *stand = calloc(1, sizeof(*stand));

	stand->subject = *state;
	/* Where files usually take O_DIRECT. */
	if (!directory_make(stand, "/var/tmp"))
		assert_true(directory_make(stand, "/tmp"));
	if (stand->subject->plan)
		write_plan(stand);
	if (stand->subject->redis)
		redis_start_in(&stand->redis, stand->directory);
	if (stand->subject->cave)
		stand->cave = cave_make();
	if (stand->subject->troupe)
		troupe_init(&stand->troupe, 1);
	map_memory(stand);
	guarded_open_in(&stand->guarded, stand->memory);
	stand_open(stand);
	*state = stand;
	return 0;
}

int stand_teardown(void **state)
{
	struct stand *stand = *state;

	if (stand->store)
		stand_close(stand);
	guarded_close(&stand->guarded);
	os_pages_unmap(stand->memory, MEMORY_BYTES);
	os_close(stand->memory_fd);
	if (stand->subject->cave)
		cave_close(stand->cave);
	if (stand->subject->troupe)
		troupe_fini(&stand->troupe);
	if (stand->subject->redis)
		redis_stop(&stand->redis);
	nftw(stand->directory, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
	*state = (void *)stand->subject;
	free(stand);
	return 0;
}

bool stand_keeps(const struct stand *stand)
{
	if (!stand->subject->keeps)
		print_message("# %s keeps nothing: passed over\n", stand->subject->name);
	return stand->subject->keeps;
}

bool stand_was_there(const struct stand *stand, enum kvs_result result)
{
	return result == KVS_RESULT_EXISTS ||
	       (stand->subject->repeats && result == KVS_RESULT_DONE);
}

/* What no call leaves behind. */
#define GARBAGE ((enum kvs_result)99)

static void prepare(enum kvs_result *result, uint32_t count)
{
	uint32_t i;

	assert_in_range(count, 1, BATCH_MAX);
	for (i = 0; i < count; i++)
		result[i] = GARBAGE;
}

/* Bits of the results that a call of a kind may give. */
#define MAY(result) (1u << KVS_RESULT_##result)
#define MAY_ALWAYS (MAY(UNKNOWN) | MAY(DONE) | MAY(FAILED))

static void check_results(const enum kvs_result *result, uint32_t count, unsigned may)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if ((unsigned)result[i] > KVS_RESULT_FAILED || !(may & (1u << result[i])))
			fail_msg("row %u of %u: %d is no result of this call", i, count, result[i]);
	}
}

static void expect_intact_guards(const struct stand *stand)
{
	if (*stand->guarded.violation)
		fail_msg("%s", stand->guarded.violation);
}

/* --- through a lane --------------------------------------------------------------------------- */

/* A cookie is no row's number, so that one for the other shows. */
#define COOKIE(lane, row) (UINT64_C(0xc00c1e) << 32 | (uint64_t)(lane) << 16 | (row))

struct crossing {
	const struct stand *stand;
	uint32_t            lane;
	uint32_t            count;
	enum kvs_result    *result;
	bool                answered[BATCH_MAX];
	uint32_t            answers;
	bool                all_retired;
};

/* Each row is answered once, and only by the lane that took it. */
static void take_answers(struct crossing *crossing)
{
	struct kvs_store *const store = crossing->stand->store;
	struct kvs_io_done      done[3];
	const int               count =
		store->ops->reap(store, crossing->lane, done, ARRAY_COUNT(done), UINT64_MAX);
	int i;

	KVS_ASSERT(count >= 0);
	for (i = 0; i < count; i++) {
		const uint64_t row = done[i].cookie - COOKIE(crossing->lane, 0);

		KVS_ASSERT_CMP(row, <, crossing->count);
		KVS_ASSERT(!crossing->answered[row]);
		crossing->answered[row] = true;
		crossing->result[row] = done[i].result;
		crossing->all_retired = crossing->all_retired && done[i].retired;
		crossing->answers++;
	}
}

/* A code refuses the first row that was not taken, and with it the batch: those before it are answered. */
static int cross(struct crossing *crossing, const struct kvs_io *io)
{
	struct kvs_store *const store = crossing->stand->store;
	uint32_t                taken = 0, i;
	int                     more = 0;

	while (taken < crossing->count) {
		more = store->ops->submit(store, crossing->lane, io + taken, crossing->count - taken);
		if (more < 0)
			break;
		KVS_ASSERT_CMP(more, <=, crossing->count - taken);
		taken += (uint32_t)more;
		/* A lane with no row unanswered has room for one. */
		KVS_ASSERT(more > 0 || crossing->answers < taken);
		if (taken < crossing->count)
			take_answers(crossing);
	}
	while (crossing->answers < taken)
		take_answers(crossing);
	for (i = taken; i < crossing->count; i++)
		KVS_ASSERT(!crossing->answered[i]);
	return more < 0 ? more : 0;
}

int stand_cross(const struct stand *stand, uint32_t lane, const struct kvs_io *io, uint32_t count,
		enum kvs_result *ret_result, bool *ret_retired)
{
	struct crossing crossing = { .stand = stand, .lane = lane, .count = count,
				     .result = ret_result, .all_retired = true };
	struct kvs_io   named[BATCH_MAX] = { 0 };
	uint32_t        i;
	int             rc;

	KVS_ASSERT_CMP(count, <=, BATCH_MAX);
	for (i = 0; i < count; i++) {
		named[i] = io[i];
		named[i].cookie = COOKIE(lane, i);
	}
	rc = cross(&crossing, named);
	*ret_retired = crossing.all_retired;
	return rc;
}

int stand_move(const struct stand *stand, uint32_t lane, bool is_put, const struct kvs_key *key,
	       const struct kvs_span *span, uint32_t count, enum kvs_result *ret_result,
	       bool *ret_retired)
{
	const struct kvs_store_ops *const ops = stand->store->ops;
	struct kvs_io                     io[BATCH_MAX] = { 0 };
	uint32_t                          i;

	if (!stand->subject->lanes) {
		return is_put ? ops->put(stand->store, key, span, count, ret_result, ret_retired)
			      : ops->get(stand->store, key, span, count, ret_result, ret_retired);
	}
	KVS_ASSERT_CMP(count, <=, BATCH_MAX);
	for (i = 0; i < count; i++)
		io[i] = (struct kvs_io){ .is_put = is_put, .key = &key[i], .span = span[i] };
	return stand_cross(stand, lane, io, count, ret_result, ret_retired);
}

/* --- rows ------------------------------------------------------------------------------------- */

void stand_put_keys(struct stand *stand, const struct kvs_key *key, const uint32_t *number,
		    uint32_t count, uint32_t bytes, enum kvs_result *ret_result)
{
	struct kvs_span span[BATCH_MAX];
	bool            retired = false;
	uint32_t        i;

	prepare(ret_result, count);
	for (i = 0; i < count; i++) {
		span[i] = guarded_lend(&stand->guarded, bytes);
		fill(span[i].ptr, number[i], bytes);
	}
	assert_int_equal(stand_move(stand, 0, true, key, span, count, ret_result, &retired), 0);
	check_results(ret_result, count, MAY_ALWAYS | MAY(EXISTS) | MAY(NO_SPACE));
	for (i = 0; i < count; i++) {
		assert_true(is_filled(span[i].ptr, number[i], bytes));
		guarded_back(&stand->guarded, &span[i], retired);
	}
	expect_intact_guards(stand);
}

void stand_get_keys(struct stand *stand, const struct kvs_key *key, const uint32_t *number,
		    uint32_t count, uint32_t bytes, enum kvs_result *ret_result)
{
	struct kvs_span span[BATCH_MAX];
	bool            retired = false;
	uint32_t        i;

	prepare(ret_result, count);
	for (i = 0; i < count; i++)
		span[i] = guarded_lend(&stand->guarded, bytes);
	assert_int_equal(stand_move(stand, 0, false, key, span, count, ret_result, &retired), 0);
	check_results(ret_result, count, MAY_ALWAYS | MAY(MISSING) | MAY(CORRUPT));
	for (i = 0; i < count; i++) {
		if (stand->subject->keeps && ret_result[i] == KVS_RESULT_DONE)
			assert_true(is_filled(span[i].ptr, number[i], bytes));
		guarded_back(&stand->guarded, &span[i], retired);
	}
	expect_intact_guards(stand);
}

enum kvs_result stand_put(struct stand *stand, uint32_t number, uint32_t bytes)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	stand_put_keys(stand, &key, &number, 1, bytes, &result);
	return result;
}

enum kvs_result stand_get(struct stand *stand, uint32_t number, uint32_t bytes)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	stand_get_keys(stand, &key, &number, 1, bytes, &result);
	return result;
}

typedef int look_call(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);

static enum kvs_result look(struct stand *stand, look_call *call, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	prepare(&result, 1);
	assert_int_equal(call(stand->store, &key, 1, &result), 0);
	check_results(&result, 1, MAY_ALWAYS | MAY(MISSING));
	return result;
}

enum kvs_result stand_exists(struct stand *stand, uint32_t number)
{
	return look(stand, stand->store->ops->exists, number);
}

enum kvs_result stand_remove(struct stand *stand, uint32_t number)
{
	return look(stand, stand->store->ops->remove, number);
}

enum kvs_result stand_lock(struct stand *stand, uint32_t number)
{
	return look(stand, stand->store->ops->lock, number);
}

void stand_unlock(struct stand *stand, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	stand->store->ops->unlock(stand->store, &key, 1);
}
