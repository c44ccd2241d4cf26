/* SPDX-License-Identifier: Apache-2.0 */
/* A lane that comes back goes to whoever waits longest, before anybody new sees it. */
#include "store/mooncake_lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mooncake_waiter {
	struct mooncake_waiter *next;
	struct mooncake_lane   *lane; /* that was handed over; NULL: waits */
	struct os_cond          handed;
};

static const size_t scratch_bytes =
	MOONCAKE_NAMES_MAX * (LABEL_TEXT_MAX + sizeof(const char *) + sizeof(struct kvs_span) +
			      sizeof(int64_t) + sizeof(uint32_t));

static int lane_init(struct mooncake_lane *lane, uint32_t number)
{
	uint32_t i;

	*lane = (struct mooncake_lane){ .number = number };
	lane->memory = calloc(1, scratch_bytes);
	if (!lane->memory)
		return -ENOMEM;
	/* By falling alignment. */
	lane->spans = lane->memory;
	lane->codes = (int64_t *)(lane->spans + MOONCAKE_NAMES_MAX);
	lane->names = (const char **)(lane->codes + MOONCAKE_NAMES_MAX);
	lane->rows = (uint32_t *)(lane->names + MOONCAKE_NAMES_MAX);
	lane->text = (char (*)[LABEL_TEXT_MAX])(lane->rows + MOONCAKE_NAMES_MAX);
	for (i = 0; i < MOONCAKE_NAMES_MAX; i++)
		lane->names[i] = lane->text[i];
	return 0;
}

int mooncake_lanes_init(struct mooncake_lanes *lanes, struct mooncake_way *way, uint32_t move_count)
{
	uint32_t i;

	KVS_ASSERT(move_count > 0 && move_count <= MOONCAKE_LANES_MAX);
	*lanes = (struct mooncake_lanes){ .way = way };
	os_mutex_init(&lanes->mutex);
	for (i = 0; i <= move_count; i++) {
		struct mooncake_lane *const lane = &lanes->lane[lanes->count++];
		struct mooncake_lane_set *const set =
			i == MOONCAKE_LOOKUPS ? &lanes->lookups : &lanes->moves;

		if (lane_init(lane, i) < 0)
			return -ENOMEM;
		set->idle[set->idle_count++] = lane;
	}
	return 0;
}

void mooncake_lanes_fini(struct mooncake_lanes *lanes)
{
	uint32_t i;

	if (lanes->count == 0)
		return;
	KVS_ASSERT(!lanes->lookups.first && !lanes->moves.first);
	KVS_ASSERT_CMP(lanes->lookups.idle_count + lanes->moves.idle_count, <=, lanes->count);
	for (i = 0; i < lanes->count; i++)
		free(lanes->lane[i].memory);
	os_mutex_fini(&lanes->mutex);
	lanes->count = 0;
}

static void queue(struct mooncake_lane_set *set, struct mooncake_waiter *waiter)
{
	if (set->last)
		set->last->next = waiter;
	else
		set->first = waiter;
	set->last = waiter;
}

static void leave(struct mooncake_lane_set *set, struct mooncake_waiter *waiter)
{
	struct mooncake_waiter *before = NULL, *at = set->first;

	for (; at != waiter; at = at->next)
		before = at;
	if (before)
		before->next = waiter->next;
	else
		set->first = waiter->next;
	if (set->last == waiter)
		set->last = before;
}

/* Until a lane was handed over, or the time is up. */
static struct mooncake_lane *wait_for(struct mooncake_lanes *lanes, struct mooncake_lane_set *set,
				      uint64_t timeout_ns)
{
	const uint64_t         begin_ns = os_now_ns();
	struct mooncake_waiter waiter = { .lane = NULL };
	uint64_t               gone_ns = 0;

	os_cond_init(&waiter.handed);
	queue(set, &waiter);
	while (!waiter.lane && gone_ns < timeout_ns) {
		os_cond_wait(&waiter.handed, &lanes->mutex, timeout_ns - gone_ns);
		gone_ns = os_now_ns() - begin_ns;
	}
	if (!waiter.lane)
		leave(set, &waiter);
	os_cond_fini(&waiter.handed);
	return waiter.lane;
}

static bool is_up(const struct mooncake_lanes *lanes, const struct mooncake_lane *lane)
{
	return lanes->way->ops->is_up(lanes->way, lane->number);
}

/* The idle lane that came back last, of those that are up or of all; NULL: none. */
static struct mooncake_lane *take(const struct mooncake_lanes *lanes, struct mooncake_lane_set *set,
				  bool up)
{
	struct mooncake_lane *lane;
	uint32_t              i = set->idle_count;

	while (i > 0 && up && !is_up(lanes, set->idle[i - 1]))
		i--;
	if (i == 0)
		return NULL;
	lane = set->idle[i - 1];
	memmove(&set->idle[i - 1], &set->idle[i], (set->idle_count - i) * sizeof(set->idle[0]));
	set->idle_count--;
	set->leased_count++;
	return lane;
}

struct mooncake_lane *mooncake_lanes_lease(struct mooncake_lanes *lanes, bool moves,
					   uint64_t timeout_ns)
{
	struct mooncake_lane_set *const set = moves ? &lanes->moves : &lanes->lookups;
	struct mooncake_lane           *lane;

	os_mutex_lock(&lanes->mutex);
	lane = take(lanes, set, true);
	if (!lane && set->leased_count > 0)
		lane = wait_for(lanes, set, timeout_ns);
	else if (!lane)
		lane = take(lanes, set, false);
	os_mutex_unlock(&lanes->mutex);
	return lane;
}

/* The lane of the next waiter; NULL: none may be had yet. */
static struct mooncake_lane *next_lane(const struct mooncake_lanes *lanes,
				       struct mooncake_lane_set *set)
{
	struct mooncake_lane *const lane = take(lanes, set, true);

	/* With nobody left to wait for, one that is down says so to who waits. */
	return lane || set->leased_count > 0 ? lane : take(lanes, set, false);
}

void mooncake_lanes_return(struct mooncake_lanes *lanes, struct mooncake_lane *lane)
{
	struct mooncake_lane_set *const set =
		lane->number == MOONCAKE_LOOKUPS ? &lanes->lookups : &lanes->moves;

	os_mutex_lock(&lanes->mutex);
	KVS_ASSERT_CMP(set->idle_count, <, ARRAY_COUNT(set->idle));
	set->idle[set->idle_count++] = lane;
	set->leased_count--;
	while (set->first && (lane = next_lane(lanes, set)) != NULL) {
		struct mooncake_waiter *const waiter = set->first;

		leave(set, waiter);
		waiter->lane = lane;
		os_cond_signal(&waiter->handed);
	}
	os_mutex_unlock(&lanes->mutex);
}

uint32_t mooncake_lanes_waiting(struct mooncake_lanes *lanes)
{
	const struct mooncake_waiter *waiter;
	uint32_t                      count = 0;

	os_mutex_lock(&lanes->mutex);
	for (waiter = lanes->moves.first; waiter; waiter = waiter->next)
		count++;
	os_mutex_unlock(&lanes->mutex);
	return count;
}

uint64_t mooncake_lanes_bytes(const struct mooncake_lanes *lanes)
{
	return lanes->count * (uint64_t)scratch_bytes;
}
