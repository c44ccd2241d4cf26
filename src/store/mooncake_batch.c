/* SPDX-License-Identifier: Apache-2.0 */
/* Names are made under the lease: they lie in the lane's scratch. */
#include "store/mooncake_batch.h"

#include "mooncake/codes.h"

void mooncake_batch_ask_all(const struct mooncake_batch *piece, struct mooncake_asked *ret_asked)
{
	uint32_t row;

	*ret_asked = (struct mooncake_asked){ { 0 } };
	for (row = 0; row < piece->count; row++)
		bits_set(ret_asked->words, row);
}

uint64_t mooncake_object_bytes(const struct mooncake *mooncake, const struct kvs_span *span)
{
	return span->bytes + (mooncake->settings.verified ? sizeof(struct label_seal) : 0);
}

/* What a call may move: all the room for a get, which shows a longer object by its length. */
static struct kvs_span span_of_call(const struct mooncake *mooncake,
				    const struct mooncake_batch *piece, uint32_t row)
{
	struct kvs_span span = piece->span[row];

	span.bytes = piece->verb == MOONCAKE_GET ? span.room
						 : mooncake_object_bytes(mooncake, &span);
	return span;
}

static uint32_t fill(const struct mooncake *mooncake, const struct mooncake_batch *piece,
		     const struct mooncake_asked *asked, struct mooncake_lane *lane)
{
	uint32_t count = 0, row;

	for (row = 0; row < piece->count; row++) {
		if (!bits_test(asked->words, row))
			continue;
		label_text(mooncake->settings.prefix, &piece->key[row], lane->text[count]);
		if (piece->span)
			lane->spans[count] = span_of_call(mooncake, piece, row);
		lane->rows[count++] = row;
	}
	return count;
}

static void answer(const struct mooncake *mooncake, const struct mooncake_batch *piece,
		   const struct mooncake_lane *lane, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const uint32_t row = lane->rows[i];
		const uint64_t bytes =
			piece->span ? mooncake_object_bytes(mooncake, &piece->span[row]) : 0;

		piece->result[row] = mooncake_judge(piece->verb, lane->codes[i], bytes).result;
	}
}

static void answer_all(const struct mooncake_batch *piece, const struct mooncake_asked *asked,
		       enum kvs_result result)
{
	uint32_t row;

	for (row = 0; row < piece->count; row++) {
		if (bits_test(asked->words, row))
			piece->result[row] = result;
	}
}

static int call_on(struct mooncake *mooncake, const struct mooncake_batch *piece,
		   const struct mooncake_asked *asked, struct mooncake_lane *lane,
		   bool *ret_retired)
{
	const struct mooncake_call call = { .verb = piece->verb,
					    .count = fill(mooncake, piece, asked, lane),
					    .names = lane->names,
					    .spans = piece->span ? lane->spans : NULL,
					    .codes = lane->codes };
	const int rc = mooncake->way->ops->call(mooncake->way, lane->number, &call, ret_retired);

	if (rc == KVS_E_INVALID) {
		answer_all(piece, asked, KVS_RESULT_UNKNOWN);
		return rc;
	}
	if (rc == 0)
		answer(mooncake, piece, lane, call.count);
	else
		answer_all(piece, asked, KVS_RESULT_FAILED);
	return 0;
}

int mooncake_batch_call(struct mooncake *mooncake, const struct mooncake_batch *piece,
			const struct mooncake_asked *asked, bool *ret_retired)
{
	struct mooncake_lane *lane;
	int                   rc;

	*ret_retired = true;
	if (bits_count(asked->words, MOONCAKE_NAMES_MAX) == 0)
		return 0;
	lane = mooncake_lanes_lease(&mooncake->lanes, piece->span != NULL,
				    mooncake->settings.timeout_ns);
	if (!lane) {
		answer_all(piece, asked, KVS_RESULT_FAILED);
		return 0;
	}
	*ret_retired = piece->span == NULL;
	rc = call_on(mooncake, piece, asked, lane, ret_retired);
	mooncake_lanes_return(&mooncake->lanes, lane);
	return rc;
}

int mooncake_batch_cut(struct mooncake *mooncake, const struct mooncake_batch *batch,
		       mooncake_piece *run, bool *ret_retired)
{
	uint32_t first, i;

	*ret_retired = true;
	for (i = 0; i < batch->count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	for (first = 0; first < batch->count; first += MOONCAKE_NAMES_MAX) {
		const uint32_t              left = batch->count - first;
		const struct mooncake_batch piece = {
			.verb = batch->verb,
			.key = batch->key + first,
			.span = batch->span ? batch->span + first : NULL,
			.count = left < MOONCAKE_NAMES_MAX ? left : MOONCAKE_NAMES_MAX,
			.result = batch->result + first,
		};
		bool      retired = false;
		const int rc = run(mooncake, &piece, &retired);

		*ret_retired = *ret_retired && retired;
		if (rc < 0)
			return first == 0 ? rc : 0;
	}
	return 0;
}
