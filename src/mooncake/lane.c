/* SPDX-License-Identifier: Apache-2.0 */
/* One agent as its callers see it: a frame there, a frame back, and what became of the memory. */
#include "mooncake/agent_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mooncake/codes.h"

int lane_init(struct lane *lane, struct agent_way *owner, uint32_t index)
{
	*lane = (struct lane){ .owner = owner, .index = index, .jail.fd = -1, .fd = -1 };
	lane->said = malloc(FRAME_SAID_MAX);
	lane->heard = malloc(FRAME_HEARD_MAX + 1);
	return lane->said && lane->heard ? 0 : -ENOMEM;
}

void lane_fini(struct lane *lane)
{
	os_close(lane->fd);
	free(lane->said);
	free(lane->heard);
}

bool lane_is_trusted(const struct lane *lane)
{
	return lane->jail.confined && agent_copies_only(lane->owner);
}

int lane_say(struct lane *lane, size_t bytes, int sent, uint64_t deadline_ns)
{
	size_t done = 0;

	lane->heard_bytes = 0;
	while (done < bytes) {
		struct os_wait     wait = { .fd = lane->fd, .to_write = true };
		const struct iovec rest = { lane->said + done, bytes - done };
		ssize_t            moved;

		if (done == 0 && sent >= 0)
			moved = os_socket_send_fd(lane->fd, rest.iov_base, rest.iov_len, sent);
		else
			moved = os_socket_writev(lane->fd, &rest, 1);

		if (moved > 0)
			done += (size_t)moved;
		else if (moved == -EPIPE)
			return 0; /* it has ended: whoever listens hears why, or that it did */
		else if (moved != -EAGAIN)
			return (int)moved;
		else if (os_wait(&wait, 1, deadline_ns) <= 0)
			return -ETIMEDOUT;
	}
	return 0;
}

int lane_hear(struct lane *lane, struct frame *ret_frame, struct kvs_error *err)
{
	for (;;) {
		const struct iovec rest = { lane->heard + lane->heard_bytes,
					    FRAME_HEARD_MAX + 1 - lane->heard_bytes };
		ssize_t            moved;
		int                rc;

		rc = frame_read(lane->heard, lane->heard_bytes, ret_frame, err);
		if (rc == 0 && ret_frame->sequence != lane->sequence)
			return err_set(err, KVS_E_PROTO, "agent: answers what was not asked last");
		if (rc != -EAGAIN)
			return rc;
		moved = os_socket_readv(lane->fd, &rest, 1);
		if (moved == -EAGAIN)
			return -EAGAIN;
		if (moved < 0)
			return err_set(err, (int)moved, "agent: ended without a word");
		lane->heard_bytes += (size_t)moved;
	}
}

/* Where a span lies in the memory; false when it does not. */
static bool place(const struct agent_way *way, const struct kvs_span *span, uint64_t *ret_offset)
{
	const uintptr_t at = (uintptr_t)span->ptr;
	uint32_t        i;

	for (i = 0; i < way->region_count; i++) {
		const struct region *region = &way->regions[i];

		if (at >= region->base && at - region->base <= region->bytes &&
		    span->bytes <= region->bytes - (at - region->base)) {
			*ret_offset = region->offset + (at - region->base);
			return span->bytes > 0;
		}
	}
	return false;
}

static bool moves(const struct mooncake_call *call)
{
	return mooncake_moves(call->verb);
}

static bool is_sound(const struct mooncake_call *call)
{
	uint32_t i;

	if (call->verb >= MOONCAKE_VERB_COUNT || call->count == 0 ||
	    call->count > (call->verb == MOONCAKE_PURGE ? 1 : MOONCAKE_NAMES_MAX))
		return false;
	for (i = 0; i < call->count; i++) {
		const size_t bytes = strnlen(call->names[i], FRAME_NAME_MAX);

		if (bytes == 0 || bytes == FRAME_NAME_MAX)
			return false;
	}
	return true;
}

/* Writes the frame into a lane that is ours; its length, or KVS_E_INVALID. */
static int encode(struct lane *lane, const struct mooncake_call *call)
{
	uint64_t offsets[MOONCAKE_NAMES_MAX];
	uint32_t i;

	for (i = 0; moves(call) && i < call->count; i++) {
		if (!lane->has_memory || !place(lane->owner, &call->spans[i], &offsets[i]))
			return KVS_E_INVALID;
	}
	return (int)frame_call(lane->said, ++lane->sequence, call, offsets);
}

static int exchange(struct lane *lane, size_t bytes, const struct mooncake_call *call,
		    struct kvs_error *err)
{
	const uint64_t deadline_ns = os_until_ns(lane->owner->settings.timeout_ns);
	struct frame   frame;
	int            rc;

	/* What it says before it is asked would be taken for the answer. */
	if (!os_socket_is_quiet(lane->fd))
		return err_set(err, KVS_E_PROTO, "agent: spoke without being asked, or hung up");
	rc = lane_say(lane, bytes, -1, deadline_ns);
	if (rc < 0)
		return err_set(err, rc, "agent: cannot be reached: %s", kvs_strerror(rc));
	while ((rc = lane_hear(lane, &frame, err)) == -EAGAIN) {
		struct os_wait wait = { .fd = lane->fd, .to_read = true };

		if (os_wait(&wait, 1, deadline_ns) <= 0)
			return err_set(err, -ETIMEDOUT, "agent: a call took longer than its limit");
	}
	return rc < 0 ? rc : frame_answer(&frame, call->count, call->codes, err);
}

/* The agent is killed, since only its end proves something now: *ret_retired when that was seen. */
static void give_up(struct lane *lane, bool moved, const struct kvs_error *err, bool *ret_retired)
{
	struct agent_way *way = lane->owner;
	const bool        trusted = lane_is_trusted(lane);
	/* The keeper looks at the lane's own meanwhile. */
	struct os_jail    jail = lane->jail;
	bool              ended;

	os_jail_kill(&jail);
	ended = os_jail_wait(&jail, way->settings.reap_timeout_ns);
	*ret_retired = !moved || (ended && trusted);
	os_mutex_lock(&way->lock);
	lane->jail = jail;
	way->kills++;
	if (moved && !trusted)
		way->doubts_for_ever++;
	keeper_note(way, err, false);
	if (ended) {
		keeper_lane_ended(lane);
	} else {
		lane->killed = true;
		keeper_lane_dying(lane, moved && trusted);
	}
	os_mutex_unlock(&way->lock);
}

/* Of the codes of an answered call the one that left it open. */
static void name_unproven(const struct mooncake_call *call, struct kvs_error *err)
{
	uint32_t i;

	for (i = 0; i < call->count; i++) {
		const uint64_t bytes = moves(call) ? call->spans[i].bytes : 0;

		if (mooncake_judge(call->verb, call->codes[i], bytes).retired)
			continue;
		err_set(err, KVS_E_HEALTH, "agent: %" PRId64 " (%s) proves nothing", call->codes[i],
			mooncake_code_name(call->codes[i]));
		return;
	}
}

static void hand_back(struct lane *lane, bool healthy)
{
	struct agent_way *way = lane->owner;

	os_mutex_lock(&way->lock);
	lane->state = LANE_UP;
	if (healthy)
		lane->backoff_ns = 0;
	/* The keeper saw its end while it was ours. */
	if (lane->ended || way->closing)
		keeper_wake(way);
	os_mutex_unlock(&way->lock);
}

static int take(struct agent_way *way, struct lane *lane)
{
	int rc = 0;

	os_mutex_lock(&way->lock);
	if (way->closing)
		rc = KVS_E_CLOSED;
	else if (lane->state == LANE_BUSY)
		rc = KVS_E_BUSY;
	else if (lane->state != LANE_UP)
		rc = -ENOTCONN;
	else
		lane->state = LANE_BUSY;
	os_mutex_unlock(&way->lock);
	return rc;
}

int lane_call(struct mooncake_way *base, uint32_t index, const struct mooncake_call *call,
	      bool *ret_retired)
{
	struct agent_way *way = (struct agent_way *)base;
	struct kvs_error  err = { 0 };
	struct lane      *lane = &way->lanes[index];
	int               rc, bytes;

	*ret_retired = true;
	if (index >= way->lane_count || !is_sound(call))
		return KVS_E_INVALID;
	rc = take(way, lane);
	if (rc < 0)
		return rc;
	bytes = encode(lane, call);
	rc = bytes < 0 ? bytes : exchange(lane, (size_t)bytes, call, &err);
	/* Without spans an agent that knows nothing has done nothing either. */
	if (bytes < 0 || (rc == KVS_E_HEALTH && !moves(call)) ||
	    (rc == 0 && mooncake_call_retired(call))) {
		hand_back(lane, rc == 0);
		return rc;
	}
	if (rc == 0)
		name_unproven(call, &err);
	give_up(lane, moves(call), &err, ret_retired);
	return rc;
}
