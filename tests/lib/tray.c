/* SPDX-License-Identifier: Apache-2.0 */
/* See tray.h. */
#include "tray.h"

#include <string.h>

#include "base/err.h"

static int tray_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	struct tray *const tray = (struct tray *)store;
	uint32_t           i;

	os_mutex_lock(&tray->lock);
	for (i = 0; i < count; i++)
		result[i] = tray->kept[key[i].offset] ? KVS_RESULT_DONE : KVS_RESULT_MISSING;
	os_mutex_unlock(&tray->lock);
	return 0;
}

static enum kvs_result move(struct tray *tray, const struct kvs_io *io)
{
	const uint32_t number = io->key->offset;

	if (number == tray->failing)
		return KVS_RESULT_FAILED;
	if (io->is_put && tray->kept[number])
		return KVS_RESULT_EXISTS;
	if (!io->is_put && !tray->kept[number])
		return KVS_RESULT_MISSING;
	if (io->is_put)
		memcpy(tray->bytes[number], io->span.ptr, TRAY_BLOCK_BYTES);
	else
		memcpy(io->span.ptr, tray->bytes[number], TRAY_BLOCK_BYTES);
	tray->kept[number] = true;
	return KVS_RESULT_DONE;
}

static int tray_submit(struct kvs_store *store, uint32_t lane, const struct kvs_io *io,
		       uint32_t count)
{
	struct tray *const      tray = (struct tray *)store;
	struct tray_lane *const into = &tray->lanes[lane];
	uint32_t                taken;

	KVS_ASSERT_CMP(lane, <, TRAY_LANES);
	if (tray->submit_rc < 0)
		return tray->submit_rc;
	os_mutex_lock(&tray->lock);
	for (taken = 0; taken < count && into->count < tray->room; taken++) {
		tray->asked[io[taken].key->offset]++;
		into->rows[into->count++] = io[taken];
	}
	if (into->count > tray->most)
		tray->most = into->count;
	os_cond_broadcast(&tray->moved);
	os_mutex_unlock(&tray->lock);
	return (int)taken;
}

static struct kvs_io_done take_out(struct tray *tray, struct tray_lane *lane)
{
	const uint32_t      i = (uint32_t)prng_below(&tray->prng, lane->count);
	const struct kvs_io io = lane->rows[i];

	lane->rows[i] = lane->rows[--lane->count];
	return (struct kvs_io_done){ .cookie = io.cookie, .result = move(tray, &io),
				     .retired = io.key->offset != tray->doubtful };
}

/*
 * A second answer to the same row, answers to rows that never were, and one for an earlier job in the
 * place of one that is under way.
 */
static uint32_t stutter(const struct tray_lane *lane, struct kvs_io_done *done, uint32_t count,
			uint32_t done_max)
{
	static const uint64_t flips[] = { 0, UINT64_C(1) << 15, UINT64_C(1) << 31,
					  UINT64_C(1) << 63, ~UINT64_C(0) };
	const struct kvs_io_done last = done[count - 1];
	size_t                   i;

	for (i = 0; i < ARRAY_COUNT(flips) && count < done_max; i++) {
		done[count++] = (struct kvs_io_done){ .cookie = last.cookie ^ flips[i],
						      .result = KVS_RESULT_CORRUPT };
	}
	if (lane->count > 0 && count < done_max) {
		done[count++] = (struct kvs_io_done){
			.cookie = lane->rows[0].cookie ^ UINT64_C(1) << 32,
			.result = KVS_RESULT_CORRUPT
		};
	}
	return count;
}

static int tray_reap(struct kvs_store *store, uint32_t lane, struct kvs_io_done *ret_done,
		     uint32_t done_max, uint64_t timeout_ns)
{
	struct tray *const      tray = (struct tray *)store;
	struct tray_lane *const from = &tray->lanes[lane];
	uint32_t                count = 0, most;

	if (tray->reap_rc < 0)
		return tray->reap_rc;
	os_mutex_lock(&tray->lock);
	if (from->count == 0 || from->count < tray->answer_at)
		os_cond_wait(&tray->moved, &tray->lock, timeout_ns);
	most = from->count < tray->answer_at ? 0 : from->count;
	if (most > 0)
		most = 1 + (uint32_t)prng_below(&tray->prng, most);
	while (count < most && count < done_max)
		ret_done[count++] = take_out(tray, from);
	if (count > 0 && tray->stutters)
		count = stutter(from, ret_done, count, done_max);
	os_mutex_unlock(&tray->lock);
	return (int)count;
}

static void tray_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	*ret_info = (struct kvs_store_info){ .failures_retire = true,
					     .one_thread = ((struct tray *)store)->one_thread };
}

static int tray_close(struct kvs_store *store)
{
	((struct tray *)store)->closed = true;
	return 0;
}

/* Rows that it answered lie in no lane: nothing touches them. */
static bool tray_settled(struct kvs_store *store)
{
	(void)store;
	return true;
}

#define TRAY_OPS \
	.abi = KVS_STORE_ABI, .name = "tray", .close = tray_close, .describe = tray_describe, \
	.exists = tray_exists, .submit = tray_submit, .reap = tray_reap

static const struct kvs_store_ops tray_ops = { TRAY_OPS };
static const struct kvs_store_ops tray_settling_ops = { TRAY_OPS, .settled = tray_settled };

void tray_init(struct tray *tray, uint32_t room)
{
	*tray = (struct tray){ .store = { &tray_ops }, .room = room, .failing = UINT32_MAX,
			       .doubtful = UINT32_MAX };
	prng_seed(&tray->prng, 11);
	os_mutex_init(&tray->lock);
	os_cond_init(&tray->moved);
}

void tray_settle(struct tray *tray)
{
	tray->store.ops = &tray_settling_ops;
}

void tray_fini(struct tray *tray)
{
	os_cond_fini(&tray->moved);
	os_mutex_fini(&tray->lock);
}

static uint32_t fullest(const struct tray *tray)
{
	uint32_t most = 0;
	uint32_t i;

	for (i = 0; i < TRAY_LANES; i++)
		most = tray->lanes[i].count > most ? tray->lanes[i].count : most;
	return most;
}

void tray_wait(struct tray *tray, uint32_t count)
{
	os_mutex_lock(&tray->lock);
	while (fullest(tray) < count)
		os_cond_wait(&tray->moved, &tray->lock, UINT64_MAX);
	os_mutex_unlock(&tray->lock);
}

void tray_answer_at(struct tray *tray, uint32_t answer_at)
{
	os_mutex_lock(&tray->lock);
	tray->answer_at = answer_at;
	os_cond_broadcast(&tray->moved);
	os_mutex_unlock(&tray->lock);
}
