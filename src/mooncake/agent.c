/* SPDX-License-Identifier: Apache-2.0 */
/* See agent.h: opening, memory, figures, closing. */
#include "mooncake/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mooncake/agent_parts.h"

#define MS UINT64_C(1000000)
/* How often a close looks whether an agent was killed meanwhile: the signal wakes nobody. */
#define LOOK_NS (100 * MS)

static struct agent_way *way_of(struct mooncake_way *base)
{
	return (struct agent_way *)base;
}

static bool is_up(const struct lane *lane)
{
	return lane->state == LANE_UP || lane->state == LANE_BUSY;
}

/* It has come up, with all that is known of memory, or gone down. */
static bool has_tried(const struct lane *lane)
{
	if (is_up(lane)) {
		return lane->has_memory || lane->index == MOONCAKE_LOOKUPS ||
		       lane->owner->memory_bytes == 0;
	}
	return lane->starts > 0 && lane->state != LANE_STARTING;
}

/* Until every lane has, or timeout_ns; with the lock held. */
static void wait_tried(struct agent_way *way, uint64_t timeout_ns)
{
	const uint64_t until_ns = os_until_ns(timeout_ns);
	uint32_t       i;

	for (i = 0; i < way->lane_count; i++) {
		while (!has_tried(&way->lanes[i])) {
			const uint64_t now_ns = os_now_ns();

			if (now_ns >= until_ns)
				return;
			(void)os_cond_wait(&way->changed, &way->lock, until_ns - now_ns);
		}
	}
}

static uint32_t count_up(const struct agent_way *way)
{
	uint32_t i, up = 0;

	for (i = 0; i < way->lane_count; i++)
		up += is_up(&way->lanes[i]);
	return up;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Slices that follow one another are one region. */
static int list_regions(struct agent_way *way, const struct kvs_memory *memory)
{
	uint64_t offset = 0;
	uint32_t i, count = 0;

	for (i = 0; i < memory->slice_count; i++) {
		const struct kvs_span *slice = &memory->slices[i];
		struct region         *last = count ? &way->regions[count - 1] : NULL;

		if (last && last->base + last->bytes == (uintptr_t)slice->ptr) {
			last->bytes += slice->bytes;
		} else if (count == AGENT_REGIONS_MAX) {
			return KVS_E_FULL;
		} else {
			way->regions[count++] =
				(struct region){ (uintptr_t)slice->ptr, slice->bytes, offset };
		}
		offset += slice->bytes;
	}
	if (offset == 0)
		return KVS_E_INVALID;
	way->region_count = count;
	way->memory_bytes = offset;
	way->memory_fd = memory->fd;
	return 0;
}

static int register_memory(struct mooncake_way *base, const struct kvs_memory *memory)
{
	struct agent_way *way = way_of(base);
	uint32_t          i, have = 0;
	int               rc;

	if (memory->fd < 0 || memory->slice_count == 0)
		return KVS_E_INVALID;
	os_mutex_lock(&way->lock);
	rc = way->memory_bytes ? KVS_E_BUSY : list_regions(way, memory);
	if (rc == 0) {
		keeper_wake(way);
		wait_tried(way, way->settings.connect_timeout_ns);
		for (i = 0; i < way->lane_count; i++)
			have += way->lanes[i].has_memory;
		/* Where the master is away, agents get it when they come. */
		if (have == 0 && way->reached)
			rc = -EIO;
	}
	os_mutex_unlock(&way->lock);
	return rc;
}

/* --- facts ------------------------------------------------------------------------------------ */

static bool settled(struct mooncake_way *base)
{
	struct agent_way *way = way_of(base);
	uint64_t          doubts;
	uint32_t          i;

	os_mutex_lock(&way->lock);
	doubts = way->doubts_for_ever;
	for (i = 0; i < way->lane_count; i++)
		doubts += way->lanes[i].doubted;
	os_mutex_unlock(&way->lock);
	return doubts == 0;
}

static void write_note(const struct agent_way *way, uint32_t up, char *note, size_t room)
{
	if (way->doubts_for_ever) {
		snprintf(note, room, "%" PRIu64 " calls stay in doubt: agents were not confined",
			 way->doubts_for_ever);
	} else if (up < way->lane_count && way->trouble.code) {
		snprintf(note, room, "%.*s", (int)room - 1, way->trouble.message);
	} else if (up < way->lane_count) {
		snprintf(note, room, "%" PRIu32 " of %" PRIu32 " agents are up", up,
			 way->lane_count);
	} else if (way->unconfined) {
		snprintf(note, room, "agents are not confined: their end proves nothing");
	}
}

static bool lane_is_up(struct mooncake_way *base, uint32_t index)
{
	struct agent_way *const way = way_of(base);
	bool                    up;

	KVS_ASSERT_CMP(index, <, way->lane_count);
	os_mutex_lock(&way->lock);
	up = is_up(&way->lanes[index]);
	os_mutex_unlock(&way->lock);
	return up;
}

static void describe(struct mooncake_way *base, struct mooncake_way_info *ret_info)
{
	struct agent_way        *way = way_of(base);
	struct mooncake_way_info info = { .death_retires = KVS_DEATH_NOTHING };

	os_mutex_lock(&way->lock);
	if (!way->unconfined && agent_copies_only(way))
		info.death_retires = KVS_DEATH_COPY;
	info.reached = way->reached;
	info.lanes_up = count_up(way);
	info.restarts = way->restarts;
	info.kills = way->kills;
	info.memory_bytes = sizeof(*way) +
			    way->lane_count * (FRAME_SAID_MAX + FRAME_HEARD_MAX + UINT64_C(1));
	write_note(way, info.lanes_up, info.note, sizeof(info.note));
	os_mutex_unlock(&way->lock);
	*ret_info = info;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void free_way(struct agent_way *way)
{
	uint32_t i;

	for (i = 0; i < way->lane_count; i++)
		lane_fini(&way->lanes[i]);
	os_close(way->wake);
	os_close(way->log);
	os_cond_fini(&way->changed);
	os_mutex_fini(&way->lock);
	free(way);
}

/* When waiting for a lane's end is over: 0 when it has ended. */
static uint64_t patience_ns(const struct lane *lane)
{
	if (lane->state == LANE_DOWN)
		return 0;
	if (lane->state == LANE_DYING && lane->killed)
		return lane->at_ns + lane->owner->settings.reap_timeout_ns;
	return UINT64_MAX; /* it says goodbye, or is killed next */
}

/* Whether all ended; with the lock held. */
static bool wait_ended(struct agent_way *way)
{
	for (;;) {
		const uint64_t now_ns = os_now_ns();
		uint64_t       until_ns = 0;
		uint32_t       i;

		for (i = 0; i < way->lane_count; i++) {
			if (patience_ns(&way->lanes[i]) > until_ns)
				until_ns = patience_ns(&way->lanes[i]);
		}
		if (until_ns <= now_ns)
			return until_ns == 0;
		until_ns -= now_ns;
		(void)os_cond_wait(&way->changed, &way->lock,
				   until_ns < LOOK_NS ? until_ns : LOOK_NS);
	}
}

/* The agents say goodbye, and are killed when that takes long. */
static int close_way(struct mooncake_way *base)
{
	struct agent_way *way = way_of(base);
	bool              over;

	os_mutex_lock(&way->lock);
	way->closing = true;
	keeper_wake(way);
	over = wait_ended(way) && way->doubts_for_ever == 0;
	way->stop = over;
	keeper_wake(way);
	os_mutex_unlock(&way->lock);
	if (!over)
		return KVS_E_QUARANTINE;
	os_thread_join(way->keeper);
	free_way(way);
	return 0;
}

/* --- the beginning ---------------------------------------------------------------------------- */

static const struct mooncake_way_ops ops = {
	.call = lane_call,
	.is_up = lane_is_up,
	.register_memory = register_memory,
	.settled = settled,
	.describe = describe,
	.close = close_way,
};

static int open_log(struct agent_way *way, struct kvs_error *err)
{
	if (!way->settings.log[0])
		return 0;
	way->log = os_file_open(way->settings.log, OS_CREATE | OS_WRITE | OS_APPEND);
	if (way->log >= 0)
		return 0;
	return err_set(err, way->log, "store.log: \"%.120s\" cannot be opened: %s",
		       way->settings.log, kvs_strerror(way->log));
}

static int prepare(struct agent_way *way, struct kvs_error *err)
{
	uint32_t i;
	int      rc = script_find(&way->settings, way->script, err);

	if (rc < 0)
		return rc;
	rc = interpreter_find(&way->settings, way->python, err);
	if (rc < 0)
		return rc;
	rc = open_log(way, err);
	if (rc < 0)
		return rc;
	for (i = 0; i <= way->settings.lanes; i++) {
		way->lane_count = i + 1;
		if (lane_init(&way->lanes[i], way, i) < 0)
			return err_set(err, -ENOMEM, "store.lanes: no memory for so many");
	}
	way->wake = os_eventfd();
	if (way->wake < 0)
		return err_set(err, way->wake, "agent: no eventfd: %s", kvs_strerror(way->wake));
	rc = os_thread_start(&way->keeper, "kvs-keeper", keeper_run, way);
	return rc < 0 ? err_set(err, rc, "agent: no thread: %s", kvs_strerror(rc)) : 0;
}

/* Whether what came of the first start is an error of open(). */
static int first_outcome(struct agent_way *way, struct kvs_error *err)
{
	bool fails;
	int  rc = 0;

	os_mutex_lock(&way->lock);
	wait_tried(way, way->settings.connect_timeout_ns);
	fails = way->settings.required && !is_up(&way->lanes[MOONCAKE_LOOKUPS]);
	if (way->trouble.code && (way->trouble_lasts || fails)) {
		rc = err_set(err, way->trouble.code, "%s", way->trouble.message);
	} else if (fails) {
		rc = err_set(err, -ETIMEDOUT, "store.connect_timeout: no agent was ready within "
			     "%" PRIu64 " ms", way->settings.connect_timeout_ns / MS);
	}
	os_mutex_unlock(&way->lock);
	return rc;
}

int mooncake_agent_open(const struct mooncake_settings *settings, struct mooncake_way **ret_way,
			struct kvs_error *err)
{
	struct agent_way *way;
	int               rc;

	KVS_ASSERT(settings->lanes >= 1 && settings->lanes <= MOONCAKE_LANES_MAX);
	way = calloc(1, sizeof(*way));
	if (!way)
		return err_set(err, -ENOMEM, "agent: no memory");
	way->way.ops = &ops;
	way->settings = *settings;
	way->log = way->wake = way->memory_fd = -1;
	os_mutex_init(&way->lock);
	os_cond_init(&way->changed);
	rc = prepare(way, err);
	if (rc < 0) {
		free_way(way);
		return rc;
	}
	rc = first_outcome(way, err);
	if (rc < 0) {
		/* No call was made: whatever does not end now holds nothing of ours. */
		(void)close_way(&way->way);
		return rc;
	}
	*ret_way = &way->way;
	return 0;
}
