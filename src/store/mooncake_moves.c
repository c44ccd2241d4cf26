/* SPDX-License-Identifier: Apache-2.0 */
/* Seals are made before a lane is leased and looked at after it went back: hashing needs none. */
#include "store/mooncake_moves.h"

#include <string.h>

#include "store/mooncake_batch.h"
#include "store/mooncake_memo.h"

static struct mooncake *mooncake_of(struct kvs_store *store)
{
	return (struct mooncake *)store;
}

static bool has_room(const struct mooncake *mooncake, const struct kvs_span *span)
{
	return span->room >= mooncake_object_bytes(mooncake, span);
}

/* Of blocks that touch only the last has room: others of its batch do without it, but not all. */
static bool spans_valid(struct mooncake *mooncake, const struct kvs_span *span, uint32_t count)
{
	uint32_t roomless = 0, i;

	for (i = 0; i < count; i++) {
		if (span[i].bytes == 0 || span[i].bytes > mooncake->block_bytes)
			return false;
		roomless += !has_room(mooncake, &span[i]);
	}
	atomic_fetch_add_explicit(&mooncake->counts.roomless, roomless, memory_order_relaxed);
	return roomless < count;
}

static void leave_out_roomless(const struct mooncake *mooncake, const struct mooncake_batch *piece,
			       struct mooncake_asked *asked)
{
	uint32_t row;

	for (row = 0; row < piece->count; row++) {
		if (!has_room(mooncake, &piece->span[row]))
			bits_clear(asked->words, row);
	}
}

static int move(struct mooncake *mooncake, const struct mooncake_batch *batch, mooncake_piece *run,
		bool *ret_retired)
{
	uint32_t i;

	if (spans_valid(mooncake, batch->span, batch->count))
		return mooncake_batch_cut(mooncake, batch, run, ret_retired);
	for (i = 0; i < batch->count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	*ret_retired = true;
	return KVS_E_INVALID;
}

/* The seal lies where the store may write: nothing says that it is aligned there. */
static uint8_t *seal_of(const struct kvs_span *span)
{
	return (uint8_t *)span->ptr + span->bytes;
}

/* --- get -------------------------------------------------------------------------------------- */

static bool is_whole(const struct mooncake *mooncake, const struct kvs_key *key,
		     const struct kvs_span *span)
{
	struct label_seal seal;

	if (!mooncake->settings.verified)
		return true;
	memcpy(&seal, seal_of(span), sizeof(seal));
	return label_seal_holds(&seal, key, span);
}

static void check_seals(struct mooncake *mooncake, const struct mooncake_batch *piece,
			struct mooncake_asked *ret_broken)
{
	uint32_t row;

	*ret_broken = (struct mooncake_asked){ { 0 } };
	for (row = 0; row < piece->count; row++) {
		if (piece->result[row] != KVS_RESULT_DONE ||
		    is_whole(mooncake, &piece->key[row], &piece->span[row]))
			continue;
		piece->result[row] = KVS_RESULT_CORRUPT;
		bits_set(ret_broken->words, row);
	}
}

/* As far as it can be had: the next get says the same again. */
static void drop_broken(struct mooncake *mooncake, const struct mooncake_batch *piece,
			const struct mooncake_asked *broken)
{
	enum kvs_result       ignored[MOONCAKE_NAMES_MAX];
	struct mooncake_batch remove = *piece;
	bool                  retired;

	remove.verb = MOONCAKE_REMOVE;
	remove.span = NULL;
	remove.result = ignored;
	(void)mooncake_batch_call(mooncake, &remove, broken, &retired);
	mooncake_memo_learn(mooncake, &remove, broken, os_now_ns());
}

static int get_piece(struct mooncake *mooncake, const struct mooncake_batch *piece,
		     bool *ret_retired)
{
	const uint64_t        begin_ns = os_now_ns();
	struct mooncake_asked asked, broken;
	int                   rc;

	mooncake_batch_ask_all(piece, &asked);
	leave_out_roomless(mooncake, piece, &asked);
	rc = mooncake_batch_call(mooncake, piece, &asked, ret_retired);
	if (rc < 0)
		return rc;
	check_seals(mooncake, piece, &broken);
	/* Bytes that may still change prove nothing against an object. */
	if (*ret_retired)
		drop_broken(mooncake, piece, &broken);
	mooncake_memo_learn(mooncake, piece, &asked, begin_ns);
	return 0;
}

static void count_corrupt(struct mooncake *mooncake, const enum kvs_result *result, uint32_t count)
{
	uint64_t corrupt = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		corrupt += result[i] == KVS_RESULT_CORRUPT;
	atomic_fetch_add_explicit(&mooncake->counts.corrupt_objects, corrupt, memory_order_relaxed);
}

int mooncake_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct mooncake *const      mooncake = mooncake_of(store);
	const struct mooncake_batch batch = { MOONCAKE_GET, key, span, count, result };
	const int                   rc = move(mooncake, &batch, get_piece, ret_retired);

	if (rc == 0)
		count_corrupt(mooncake, result, count);
	return rc;
}

/* --- put -------------------------------------------------------------------------------------- */

static void seal(const struct mooncake *mooncake, const struct mooncake_batch *piece,
		 const struct mooncake_asked *asked)
{
	struct label_seal made;
	uint32_t          row;

	for (row = 0; mooncake->settings.verified && row < piece->count; row++) {
		if (!bits_test(asked->words, row))
			continue;
		label_seal(&piece->key[row], &piece->span[row], &made);
		memcpy(seal_of(&piece->span[row]), &made, sizeof(made));
	}
}

/* Refused rows may be those of a full pool, or of none. */
static void settle_refused(struct mooncake *mooncake, const struct mooncake_batch *piece,
			   uint32_t refused)
{
	const uint64_t now_ns = os_now_ns();
	const bool     is_empty =
		mooncake_provider_ask(&mooncake->provider, now_ns) == MOONCAKE_POOL_EMPTY;
	uint32_t row;

	for (row = 0; is_empty && row < piece->count; row++) {
		if (piece->result[row] == KVS_RESULT_NO_SPACE)
			piece->result[row] = KVS_RESULT_FAILED;
	}
	if (is_empty)
		return;
	atomic_fetch_add_explicit(&mooncake->counts.refused_full, refused, memory_order_relaxed);
	mooncake_memo_refused(mooncake, now_ns);
}

static uint32_t count_of(const struct mooncake_batch *piece, enum kvs_result result)
{
	uint32_t count = 0, row;

	for (row = 0; row < piece->count; row++)
		count += piece->result[row] == result;
	return count;
}

static int put_piece(struct mooncake *mooncake, const struct mooncake_batch *piece,
		     bool *ret_retired)
{
	const uint64_t        begin_ns = os_now_ns();
	struct mooncake_asked asked;
	uint32_t              refused;
	int                   rc;

	mooncake_memo_offer(mooncake, piece, &asked);
	leave_out_roomless(mooncake, piece, &asked);
	seal(mooncake, piece, &asked);
	rc = mooncake_batch_call(mooncake, piece, &asked, ret_retired);
	if (rc < 0)
		return rc;
	if (count_of(piece, KVS_RESULT_DONE) > 0)
		mooncake_provider_seen(&mooncake->provider);
	refused = count_of(piece, KVS_RESULT_NO_SPACE);
	if (refused > 0)
		settle_refused(mooncake, piece, refused);
	mooncake_memo_learn(mooncake, piece, &asked, begin_ns);
	return 0;
}

int mooncake_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	const struct mooncake_batch batch = { MOONCAKE_PUT, key, span, count, result };

	return move(mooncake_of(store), &batch, put_piece, ret_retired);
}
