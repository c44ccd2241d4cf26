/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: starts agents, brings memory to them, sees them end, starts them again.
 *
 * One thread, since agents are killed when the thread that started them ends.  It never waits for
 * an agent but in its one sleep.
 */
#include "mooncake/agent_parts.h"

#include <errno.h>
#include <inttypes.h>

#include "base/text.h"
#include "mooncake/codes.h"

#define MS UINT64_C(1000000)
#define BACKOFF_LEAST_NS (100 * MS)
#define BACKOFF_MOST_NS (10000 * MS)
#define SLEEP_MAX_NS (1000 * MS)
/* How long an agent may take to say goodbye to the cluster. */
#define BYE_NS (5000 * MS)

void keeper_wake(struct agent_way *way)
{
	os_eventfd_signal(way->wake);
}

void keeper_note(struct agent_way *way, const struct kvs_error *err, bool lasting)
{
	way->trouble = *err;
	text_printable(way->trouble.message);
	way->trouble_lasts = lasting;
}

static void turn(struct lane *lane, enum lane_state state)
{
	lane->state = state;
	os_cond_broadcast(&lane->owner->changed);
}

void keeper_lane_ended(struct lane *lane)
{
	os_close(lane->fd);
	lane->fd = -1;
	lane->has_memory = lane->doubted = lane->killed = lane->ended = false;
	if (lane->backoff_ns < BACKOFF_LEAST_NS)
		lane->backoff_ns = BACKOFF_LEAST_NS;
	lane->at_ns = os_until_ns(lane->backoff_ns);
	lane->backoff_ns = 2 * lane->backoff_ns < BACKOFF_MOST_NS ? 2 * lane->backoff_ns :
								    BACKOFF_MOST_NS;
	turn(lane, LANE_DOWN);
	keeper_wake(lane->owner);
}

void keeper_lane_dying(struct lane *lane, bool doubted)
{
	lane->doubted = doubted;
	lane->at_ns = os_now_ns();
	turn(lane, LANE_DYING);
	keeper_wake(lane->owner);
}

static void fail(struct lane *lane, const struct kvs_error *err, bool lasting)
{
	keeper_note(lane->owner, err, lasting);
	keeper_lane_dying(lane, false);
}

/* --- starting --------------------------------------------------------------------------------- */

static int start_jail(struct agent_way *way, int end, struct os_jail *ret_jail)
{
	char *const         argv[] = { way->python, way->script, NULL };
	struct os_jail_plan plan = { .argv = argv, .fds = { end }, .fd_count = 1,
				     .output = way->log,
				     .confine = agent_copies_only(way) };
	int                 rc = os_jail_start(&plan, ret_jail);

	if (rc == -ENOTSUP && plan.confine) {
		plan.confine = false;
		rc = os_jail_start(&plan, ret_jail);
	}
	return rc;
}

/* Without the lock: the lane is STARTING, ours, and has nothing yet that others look at. */
static int launch(struct lane *lane, struct os_jail *ret_jail, int *ret_fd, struct kvs_error *err)
{
	struct agent_way *way = lane->owner;
	int               ends[2], rc = os_socket_pair(ends);

	if (rc < 0)
		return err_set(err, rc, "agent: no socket for it: %s", kvs_strerror(rc));
	rc = start_jail(way, ends[1], ret_jail);
	os_close(ends[1]);
	if (rc < 0) {
		os_close(ends[0]);
		return err_set(err, rc, "store.python: \"%.120s\" cannot be started: %s",
			       way->settings.python, kvs_strerror(rc));
	}
	*ret_fd = ends[0];
	return 0;
}

static void say_hello(struct lane *lane)
{
	const struct mooncake_settings *settings = &lane->owner->settings;
	struct kvs_error                err;
	size_t                          bytes;
	int                             rc;

	bytes = script_hello(settings, lane->index, (char *)lane->said + FRAME_HEAD_BYTES,
			     FRAME_HELLO_MAX);
	bytes = frame_seal(lane->said, FRAME_HELLO, ++lane->sequence, (uint32_t)bytes);
	lane->step = LANE_HELLO;
	lane->at_ns = os_until_ns(settings->connect_timeout_ns);
	/* It fits into the socket's buffer: no waiting. */
	rc = lane_say(lane, bytes, -1, 0);
	if (rc < 0) {
		err_set(&err, rc, "agent: cannot be greeted: %s", kvs_strerror(rc));
		fail(lane, &err, false);
	}
}

static void start(struct lane *lane)
{
	struct agent_way *way = lane->owner;
	struct kvs_error  err;
	struct os_jail    jail = { 0 };
	int               fd = -1, rc;

	turn(lane, LANE_STARTING);
	os_mutex_unlock(&way->lock);
	rc = launch(lane, &jail, &fd, &err);
	os_mutex_lock(&way->lock);
	way->restarts += lane->starts > 0;
	lane->starts++;
	if (rc < 0) {
		keeper_note(way, &err, rc == -ENOENT || rc == -EACCES || rc == -ENOEXEC);
		keeper_lane_ended(lane);
		return;
	}
	lane->jail = jail;
	lane->fd = fd;
	way->unconfined |= !jail.confined;
	say_hello(lane);
}

static void say_memory(struct lane *lane)
{
	struct agent_way *way = lane->owner;
	struct kvs_error  err;
	const size_t      bytes = frame_memory(lane->said, ++lane->sequence, way->memory_bytes);
	const int         rc = lane_say(lane, bytes, way->memory_fd, 0);

	lane->step = LANE_MEMORY;
	lane->at_ns = os_until_ns(way->settings.connect_timeout_ns);
	turn(lane, LANE_STARTING);
	if (rc < 0) {
		err_set(&err, rc, "agent: memory cannot be sent to it: %s", kvs_strerror(rc));
		fail(lane, &err, false);
	}
}

static bool lacks_memory(const struct lane *lane)
{
	return lane->index != MOONCAKE_LOOKUPS && !lane->has_memory &&
	       lane->owner->memory_bytes > 0;
}

static void rise(struct lane *lane)
{
	struct agent_way *way = lane->owner;

	if (lacks_memory(lane)) {
		say_memory(lane);
		return;
	}
	way->reached = true;
	turn(lane, LANE_UP);
}

static void refused(struct lane *lane, const struct frame *frame)
{
	struct frame_error said;
	struct kvs_error   err;

	if (frame_error(frame, &said) < 0) {
		err_set(&err, KVS_E_PROTO, "agent: answers a greeting with something else");
		fail(lane, &err, false);
		return;
	}
	err_set(&err, said.lasting ? KVS_E_INVALID : -EIO, "%s%s%s%s", said.text,
		said.code ? " (" : "", said.code ? mooncake_code_name(said.code) : "",
		said.code ? ")" : "");
	fail(lane, &err, said.lasting);
}

static void hear(struct lane *lane)
{
	const enum frame_kind wanted = lane->step == LANE_HELLO ? FRAME_READY : FRAME_OK;
	struct kvs_error      err;
	struct frame          frame;
	const int             rc = lane_hear(lane, &frame, &err);

	if (rc == -EAGAIN) {
		if (os_now_ns() < lane->at_ns)
			return;
		err_set(&err, -ETIMEDOUT, "agent: is not ready within %" PRIu64 " ms",
			lane->owner->settings.connect_timeout_ns / MS);
	}
	if (rc < 0) {
		fail(lane, &err, false);
	} else if (frame.kind != wanted) {
		refused(lane, &frame);
	} else {
		lane->has_memory |= lane->step == LANE_MEMORY;
		rise(lane);
	}
}

/* --- ending ----------------------------------------------------------------------------------- */

static void say_bye(struct lane *lane)
{
	(void)lane_say(lane, frame_seal(lane->said, FRAME_BYE, ++lane->sequence, 0), -1, 0);
	lane->doubted = false;
	lane->at_ns = os_until_ns(BYE_NS);
	turn(lane, LANE_DYING);
}

static void bury(struct lane *lane)
{
	if (!lane->killed && os_now_ns() >= lane->at_ns) {
		os_jail_kill(&lane->jail);
		lane->killed = true;
		lane->at_ns = os_now_ns();
	}
	if (os_jail_wait(&lane->jail, 0))
		keeper_lane_ended(lane);
}

static void watch(struct lane *lane)
{
	struct agent_way *way = lane->owner;
	struct kvs_error  err;

	if (os_jail_wait(&lane->jail, 0)) {
		err_set(&err, -EIO, "agent: ended while it was idle");
		keeper_note(way, &err, false);
		keeper_lane_ended(lane);
	} else if (way->closing) {
		say_bye(lane);
	} else if (lacks_memory(lane)) {
		say_memory(lane);
	}
}

/* --- the loop --------------------------------------------------------------------------------- */

/* After a fall only the lookups' agent asks for the master: the others follow when it has come. */
static bool may_start(const struct lane *lane)
{
	const enum lane_state first = lane->owner->lanes[MOONCAKE_LOOKUPS].state;

	return !lane->owner->closing && os_now_ns() >= lane->at_ns &&
	       (lane->index == MOONCAKE_LOOKUPS || lane->starts == 0 || first == LANE_UP ||
		first == LANE_BUSY);
}

static void tend(struct lane *lane)
{
	switch (lane->state) {
	case LANE_DOWN:
		if (may_start(lane))
			start(lane);
		break;
	case LANE_STARTING:
		if (lane->owner->closing)
			keeper_lane_dying(lane, false);
		else
			hear(lane);
		break;
	case LANE_UP:
		watch(lane);
		break;
	case LANE_DYING:
		bury(lane);
		break;
	case LANE_BUSY:
		break;
	}
}

static void expect(struct os_wait *waits, int *count, int fd, struct lane **lanes,
		   struct lane *lane)
{
	waits[*count] = (struct os_wait){ .fd = fd, .to_read = true };
	lanes[(*count)++] = lane;
}

/* What the next sleep waits for; its end. */
static uint64_t list_waits(struct agent_way *way, struct os_wait *waits, struct lane **lanes,
			   int *ret_count)
{
	uint64_t until_ns = os_until_ns(SLEEP_MAX_NS);
	uint32_t i;

	*ret_count = 0;
	expect(waits, ret_count, way->wake, lanes, NULL);
	for (i = 0; i < way->lane_count; i++) {
		struct lane *lane = &way->lanes[i];
		const bool   timed = lane->state == LANE_STARTING ||
				   (lane->state == LANE_DYING && !lane->killed) ||
				   (lane->state == LANE_DOWN && !way->closing &&
				    lane->at_ns > os_now_ns());

		if (timed && lane->at_ns < until_ns)
			until_ns = lane->at_ns;
		if (lane->state == LANE_STARTING)
			expect(waits, ret_count, lane->fd, lanes, lane);
		else if (lane->state != LANE_DOWN && !lane->ended)
			expect(waits, ret_count, lane->jail.fd, lanes, lane);
	}
	return until_ns;
}

static void sleep_once(struct agent_way *way)
{
	struct os_wait waits[AGENT_LANES_MAX + 1];
	struct lane   *lanes[AGENT_LANES_MAX + 1];
	uint64_t       until_ns;
	int            count, i;

	until_ns = list_waits(way, waits, lanes, &count);
	os_mutex_unlock(&way->lock);
	(void)os_wait(waits, count, until_ns);
	(void)os_eventfd_drain(way->wake);
	os_mutex_lock(&way->lock);
	for (i = 1; i < count; i++) {
		if (waits[i].ready && lanes[i]->state == LANE_BUSY)
			lanes[i]->ended = true;
	}
}

void *keeper_run(void *arg)
{
	struct agent_way *way = arg;
	uint32_t          i;

	os_mutex_lock(&way->lock);
	while (!way->stop) {
		for (i = 0; i < way->lane_count; i++)
			tend(&way->lanes[i]);
		sleep_once(way);
	}
	os_mutex_unlock(&way->lock);
	return NULL;
}
