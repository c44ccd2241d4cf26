/* SPDX-License-Identifier: Apache-2.0 */
/* See library_lane.h. */
#include "mooncake/library_lane.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "mooncake/codes.h"

/* What rows hold before the call: no code of the SDK, so that one that was not written shows. */
#define UNWRITTEN INT_MIN

void library_lane_fill(struct library_lane *lane, const struct mooncake_call *call)
{
	char    *at = lane->text;
	uint32_t i;

	KVS_ASSERT(call->verb < MOONCAKE_VERB_COUNT);
	KVS_ASSERT(call->count > 0 && call->count <= MOONCAKE_NAMES_MAX);
	KVS_ASSERT(call->verb != MOONCAKE_PURGE || call->count == 1);
	lane->call = (struct mooncake_call){ .verb = call->verb, .count = call->count,
					     .names = lane->names, .spans = lane->spans,
					     .codes = lane->codes };
	for (i = 0; i < call->count; i++) {
		const size_t bytes = strlen(call->names[i]) + 1;

		KVS_ASSERT_CMP(bytes, <=, 2 * LABEL_TEXT_MAX);
		lane->names[i] = memcpy(at, call->names[i], bytes);
		at += bytes;
		lane->answers[i] = UNWRITTEN;
		lane->codes[i] = UNWRITTEN;
		if (!mooncake_moves(call->verb))
			continue;
		lane->spans[i] = call->spans[i];
		lane->buffers[i] = call->spans[i].ptr;
		lane->sizes[i] = call->spans[i].bytes;
	}
}

static void widen(struct library_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->call.count; i++)
		lane->codes[i] = lane->answers[i];
}

static int look(struct library_lane *lane)
{
	const int rc = lane->sdk->batch_is_exist(lane->client, lane->names, lane->call.count,
						 lane->answers);

	widen(lane);
	return rc;
}

static int get(struct library_lane *lane)
{
	return lane->sdk->batch_get_into(lane->client, lane->names, lane->buffers, lane->sizes,
					 lane->call.count, lane->codes);
}

static int put(struct library_lane *lane)
{
	const struct sdk_placement placement = { .replicas = lane->replicas };
	const int rc = lane->sdk->batch_put_from(lane->client, lane->names, lane->buffers,
						 lane->sizes, lane->call.count, &placement,
						 lane->answers);

	widen(lane);
	return rc;
}

/* The interface has no batch of these. */
static int take_away(struct library_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->call.count; i++)
		lane->codes[i] = lane->sdk->remove(lane->client, lane->names[i], 1);
	return 0;
}

static int purge(struct library_lane *lane)
{
	lane->codes[0] = lane->sdk->remove_by_regex(lane->client, lane->names[0], 1);
	return 0;
}

static bool is_complete(const struct library_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->call.count; i++) {
		if (lane->codes[i] == UNWRITTEN)
			return false;
	}
	return true;
}

void library_lane_work(struct hand *hand)
{
	struct library_lane *const lane = (struct library_lane *)hand;
	static int (*const calls[MOONCAKE_VERB_COUNT])(struct library_lane *) = {
		[MOONCAKE_EXISTS] = look,      [MOONCAKE_GET] = get, [MOONCAKE_PUT] = put,
		[MOONCAKE_REMOVE] = take_away, [MOONCAKE_PURGE] = purge,
	};
	const int rc = calls[lane->call.verb](lane);

	lane->rc = rc < 0 ? -EIO : rc > 0 || !is_complete(lane) ? KVS_E_PROTO : 0;
	lane->retired = !mooncake_moves(lane->call.verb) ||
			(lane->rc == 0 && mooncake_call_retired(&lane->call));
}

bool library_lane_heard(const struct library_lane *lane)
{
	uint32_t i;

	for (i = 0; lane->rc == 0 && i < lane->call.count; i++) {
		if (lane->codes[i] >= 0 || lane->codes[i] == MOONCAKE_NOT_FOUND ||
		    lane->codes[i] == MOONCAKE_NO_HANDLE)
			return true;
	}
	return false;
}
