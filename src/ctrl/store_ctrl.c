/* SPDX-License-Identifier: Apache-2.0 */
/* See store_ctrl.h.  Opening, closing, and what other threads see; store_turn.c does the work. */
#include "ctrl/store_ctrl.h"

#include <errno.h>
#include <stdlib.h>

#include "ctrl/store_parts.h"

#define KINDS (1U << TASK_STORE)

static void discard(struct store_ctrl *ctrl)
{
	loop_close(&ctrl->loop);
	store_queue_close(&ctrl->queue);
	ring_close(&ctrl->inbox);
	free(ctrl);
}

int store_ctrl_open(const struct kvs_store_policy *policy, const struct ctrl_limits *limits,
		    struct store_ctrl **ret_ctrl, struct kvs_error *err)
{
	struct store_ctrl *ctrl;
	int                rc = ctrl_limits_check(limits, "store", err);

	if (rc < 0)
		return rc;
	ctrl = calloc(1, sizeof(*ctrl));
	if (!ctrl)
		return err_set(err, -ENOMEM, "store controller: no memory");
	ctrl->policy = policy;
	rc = loop_open(&ctrl->loop);
	if (rc < 0) {
		free(ctrl);
		return err_set(err, rc, "store controller: no descriptor: %s", kvs_strerror(rc));
	}
	if (store_queue_open(&ctrl->queue, limits) < 0 ||
	    ring_open(&ctrl->inbox, limits->queue_max, sizeof(struct kvs_key)) < 0) {
		discard(ctrl);
		return err_set(err, -ENOMEM, "store controller: no memory for %u keys an adapter",
			       limits->queue_max);
	}
	*ret_ctrl = ctrl;
	return 0;
}

/* What there is room for, where anybody is there to get it.  True: the thread has to be told. */
static bool push_locked(struct store_ctrl *ctrl, const struct host_notice *notice)
{
	const bool was_empty = ctrl->inbox.count == 0;
	uint32_t   i = 0;

	if (seats_staying(&ctrl->loop.seats) == 0) {
		ctrl->unwanted += notice->count;
		return false;
	}
	while (i < notice->count && !ctrl->loop.stopping && ring_push(&ctrl->inbox, &notice->keys[i]))
		i++;
	ctrl->heard += i;
	ctrl->unheard += notice->count - i;
	/* A turn that leaves something in the inbox is followed by another without a sleep. */
	return was_empty && i > 0;
}

/* By the writer's thread, which has things to do. */
static void take_down(void *arg, const struct host_notice *notice)
{
	struct store_ctrl *const ctrl = arg;
	bool                     tell;

	os_mutex_lock(&ctrl->loop.lock);
	tell = push_locked(ctrl, notice);
	os_mutex_unlock(&ctrl->loop.lock);
	if (tell)
		loop_signal(&ctrl->loop);
}

struct host_listener store_ctrl_listener(struct store_ctrl *ctrl)
{
	return (struct host_listener){ .events = 1U << HOST_WRITTEN,
				       .notify = take_down,
				       .arg = ctrl };
}

static void *run(void *arg)
{
	struct store_ctrl *const ctrl = arg;

	while (!loop_stopping(&ctrl->loop)) {
		if (!store_turn(ctrl))
			loop_sleep(&ctrl->loop, UINT64_MAX);
	}
	return NULL;
}

int store_ctrl_start(struct store_ctrl *ctrl, struct host *host)
{
	ctrl->host = host;
	return loop_start(&ctrl->loop, "kvs-store", run, ctrl);
}

int store_ctrl_attach(struct store_ctrl *ctrl, uint32_t number, struct adapter *adapter,
		      const char *name)
{
	return loop_attach(&ctrl->loop, number, adapter, name, KINDS);
}

void store_ctrl_detach(struct store_ctrl *ctrl, uint32_t number)
{
	loop_detach(&ctrl->loop, number, KINDS);
}

bool store_ctrl_detached(struct store_ctrl *ctrl, uint32_t number, uint64_t deadline_ns)
{
	return loop_detached(&ctrl->loop, number, deadline_ns);
}

bool store_ctrl_flush(struct store_ctrl *ctrl, uint64_t deadline_ns)
{
	uint64_t until;
	bool     done;

	os_mutex_lock(&ctrl->loop.lock);
	until = ctrl->heard;
	ctrl->flushing++;
	loop_signal(&ctrl->loop);
	while (ctrl->settled < until && loop_wait_locked(&ctrl->loop, deadline_ns))
		;
	done = ctrl->settled >= until;
	ctrl->flushing--;
	os_mutex_unlock(&ctrl->loop.lock);
	return done;
}

/* Tasks under way come to their end, or time does. */
static bool wind_up(struct store_ctrl *ctrl, uint64_t deadline_ns)
{
	uint64_t now_ns;

	store_turn_drop_all(ctrl);
	for (;;) {
		store_turn(ctrl);
		if (ctrl->now.in_flight == 0)
			return true;
		now_ns = os_now_ns();
		if (now_ns >= deadline_ns)
			return false;
		loop_sleep(&ctrl->loop, deadline_ns - now_ns);
	}
}

int store_ctrl_close(struct store_ctrl *ctrl, uint64_t deadline_ns)
{
	if (!ctrl)
		return 0;
	loop_stop(&ctrl->loop);
	if (ctrl->host && !wind_up(ctrl, deadline_ns))
		return KVS_E_QUARANTINE;
	discard(ctrl);
	return 0;
}

void store_ctrl_stats(struct store_ctrl *ctrl, struct store_ctrl_stats *ret_stats)
{
	os_mutex_lock(&ctrl->loop.lock);
	*ret_stats = ctrl->stats;
	ret_stats->counters[STORE_CTRL_HEARD] =
		ctrl->heard + ctrl->unheard + ctrl->unwanted;
	ret_stats->counters[STORE_CTRL_UNWANTED] += ctrl->unwanted;
	ret_stats->counters[STORE_CTRL_UNQUEUED] += ctrl->unheard;
	os_mutex_unlock(&ctrl->loop.lock);
}
