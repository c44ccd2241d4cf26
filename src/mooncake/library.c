/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the way: see library.h and library_parts.h. */
#include "mooncake/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mooncake/library_parts.h"

static struct library *library_of(struct mooncake_way *way)
{
	return (struct library *)way;
}

/* A lane to call on, or why there is none. */
static int take(struct library *library, struct library_lane *lane)
{
	int rc = 0;

	os_mutex_lock(&library->lock);
	if (!library->up) {
		library_keeper_connect_again(library);
		rc = -ENOTCONN;
	} else if (!hand_take(&lane->hand)) {
		rc = KVS_E_BUSY;
	}
	os_mutex_unlock(&library->lock);
	return rc;
}

static void settle(struct library *library, const struct library_lane *lane, bool retired)
{
	library->doubts += !retired;
	library->reached |= library_lane_heard(lane);
}

/* Until it is answered, or for good: then the hand keeps what it was given. */
static int wait_for(struct library *library, struct library_lane *lane, uint64_t timeout_ns,
		    bool *ret_retired)
{
	int rc = 0;

	os_mutex_lock(&library->lock);
	hand_give(&lane->hand);
	if (hand_wait(&lane->hand, timeout_ns)) {
		*ret_retired = lane->retired;
		settle(library, lane, lane->retired);
	} else {
		*ret_retired = !mooncake_moves(lane->call.verb);
		library->doubts += !*ret_retired;
		rc = -ETIMEDOUT;
	}
	os_mutex_unlock(&library->lock);
	return rc;
}

int library_call(struct library *library, uint32_t number, const struct mooncake_call *call,
		 uint64_t timeout_ns, bool *ret_retired)
{
	struct library_lane *const lane = &library->lanes[number];
	uint32_t                   i;
	int                        rc;

	KVS_ASSERT_CMP(number, <, library->lane_count);
	*ret_retired = true;
	rc = take(library, lane);
	if (rc < 0)
		return rc;
	library_lane_fill(lane, call);
	rc = wait_for(library, lane, timeout_ns, ret_retired);
	if (rc < 0)
		return rc;
	rc = lane->rc;
	for (i = 0; rc == 0 && i < call->count; i++)
		call->codes[i] = lane->codes[i];
	os_mutex_lock(&library->lock);
	hand_back(&lane->hand);
	os_mutex_unlock(&library->lock);
	return rc;
}

/* A call whose caller has left without its bytes: they are at rest if its codes say so. */
bool library_lane_home(struct hand *hand)
{
	const struct library_lane *const lane = (const struct library_lane *)hand;
	struct library *const            library = lane->library;

	if (hand->state == HAND_LOST) {
		library->doubts -= mooncake_moves(lane->call.verb) && lane->retired;
		settle(library, lane, true);
	}
	return false;
}

static int call_lane(struct mooncake_way *way, uint32_t lane, const struct mooncake_call *call,
		     bool *ret_retired)
{
	struct library *const library = library_of(way);

	return library_call(library, lane, call, library->settings.timeout_ns, ret_retired);
}

/* Slices that follow each other in memory are one region: the SDK may refuse what touches. */
static uint32_t merge(const struct kvs_memory *memory, struct library_region *regions)
{
	uint32_t i, count = 0;

	for (i = 0; i < memory->slice_count; i++) {
		const struct kvs_span *const slice = &memory->slices[i];
		struct library_region *const last = count ? &regions[count - 1] : NULL;

		if (last && (char *)last->ptr + last->bytes == (char *)slice->ptr)
			last->bytes += slice->bytes;
		else
			regions[count++] = (struct library_region){ slice->ptr, slice->bytes };
	}
	return count;
}

static int register_now(struct library *library)
{
	struct hand *const keeper = &library->keeper;
	int                rc;

	if (!hand_take(keeper))
		return KVS_E_BUSY;
	library->job = KEEPER_REGISTER;
	hand_give(keeper);
	if (!hand_wait(keeper, library->settings.timeout_ns)) {
		snprintf(library->unheard, sizeof(library->unheard),
			 "memory is not registered: register_buffer() hangs");
		return -ETIMEDOUT;
	}
	rc = library->register_rc == 0 ? 0 : -EIO;
	hand_back(keeper);
	return rc;
}

static int register_memory(struct mooncake_way *way, const struct kvs_memory *memory)
{
	struct library *const  library = library_of(way);
	struct library_region *regions;
	int                    rc;

	if (memory->slice_count == 0)
		return 0;
	regions = calloc(memory->slice_count, sizeof(*regions));
	if (!regions)
		return -ENOMEM;
	os_mutex_lock(&library->lock);
	KVS_ASSERT(!library->regions);
	library->regions = regions;
	library->region_count = merge(memory, regions);
	/* A client that is set up later is told then. */
	rc = library->up ? register_now(library) : 0;
	os_mutex_unlock(&library->lock);
	return rc;
}

static bool settled(struct mooncake_way *way)
{
	struct library *const library = library_of(way);
	bool                  none;

	os_mutex_lock(&library->lock);
	none = library->doubts == 0;
	os_mutex_unlock(&library->lock);
	return none;
}

static uint32_t lanes_up(const struct library *library)
{
	uint32_t i, count = 0;

	for (i = 0; library->up && i < library->lane_count; i++)
		count += library->lanes[i].hand.state != HAND_LOST;
	return count;
}

static bool is_up(struct mooncake_way *way, uint32_t lane)
{
	struct library *const library = library_of(way);
	bool                  up;

	KVS_ASSERT_CMP(lane, <, library->lane_count);
	os_mutex_lock(&library->lock);
	/* One that was not set up yet is asked, too: that is what tries again. */
	up = library->lanes[lane].hand.state != HAND_LOST;
	os_mutex_unlock(&library->lock);
	return up;
}

static void describe(struct mooncake_way *way, struct mooncake_way_info *ret_info)
{
	struct library *const library = library_of(way);
	uint32_t              up;

	os_mutex_lock(&library->lock);
	up = lanes_up(library);
	*ret_info = (struct mooncake_way_info){
		.death_retires = KVS_DEATH_NOTHING,
		.reached = library->reached,
		.lanes_up = up,
		.memory_bytes = sizeof(*library) +
				library->lane_count * sizeof(*library->lanes) +
				library->region_count * sizeof(*library->regions),
	};
	if (!library->up) {
		snprintf(ret_info->note, sizeof(ret_info->note), "%s", library->why);
	} else if (up < library->lane_count) {
		snprintf(ret_info->note, sizeof(ret_info->note), "%u of %u lanes hang in a call",
			 library->lane_count - up, library->lane_count);
	} else {
		snprintf(ret_info->note, sizeof(ret_info->note), "%s", library->unheard);
	}
	os_mutex_unlock(&library->lock);
}

const struct mooncake_way_ops library_ops = {
	.call = call_lane,
	.is_up = is_up,
	.register_memory = register_memory,
	.settled = settled,
	.describe = describe,
	.close = library_close,
};
