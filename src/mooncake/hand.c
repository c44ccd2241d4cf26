/* SPDX-License-Identifier: Apache-2.0 */
/* See hand.h. */
#include "mooncake/hand.h"

#include "base/err.h"

static bool has_work(const struct hand *hand)
{
	return hand->state == HAND_OUT || hand->state == HAND_LOST;
}

static void *live(void *arg)
{
	struct hand *const hand = arg;

	os_mutex_lock(hand->lock);
	while (has_work(hand) || !hand->ending) {
		if (!has_work(hand)) {
			os_cond_wait(&hand->moved, hand->lock, UINT64_MAX);
			continue;
		}
		os_mutex_unlock(hand->lock);
		hand->work(hand);
		os_mutex_lock(hand->lock);
		if (hand->home(hand))
			continue;
		hand->state = hand->state == HAND_OUT ? HAND_HELD : HAND_HOME;
		os_cond_broadcast(&hand->moved);
	}
	os_mutex_unlock(hand->lock);
	/* Nobody else has a pointer to a hand that was left. */
	if (hand->left) {
		os_cond_fini(&hand->moved);
		hand->gone(hand);
	}
	return NULL;
}

int hand_start(struct hand *hand, const char *name)
{
	int rc;

	hand->state = HAND_HOME;
	hand->ending = hand->left = false;
	os_cond_init(&hand->moved);
	rc = os_thread_start(&hand->thread, name, live, hand);
	if (rc < 0)
		os_cond_fini(&hand->moved);
	return rc;
}

static void end(struct hand *hand)
{
	hand->ending = true;
	os_cond_broadcast(&hand->moved);
}

void hand_stop(struct hand *hand)
{
	os_mutex_lock(hand->lock);
	KVS_ASSERT(!hand->left);
	end(hand);
	os_mutex_unlock(hand->lock);
	os_thread_join(hand->thread);
	os_cond_fini(&hand->moved);
}

bool hand_take(struct hand *hand)
{
	KVS_ASSERT(hand->state == HAND_HOME || hand->state == HAND_LOST);
	if (hand->state == HAND_LOST)
		return false;
	hand->state = HAND_HELD;
	return true;
}

void hand_give(struct hand *hand)
{
	KVS_ASSERT(hand->state == HAND_HELD);
	hand->state = HAND_OUT;
	os_cond_broadcast(&hand->moved);
}

/* Whether it has left `state` before the end of timeout_ns. */
static bool leaves(struct hand *hand, enum hand_state state, uint64_t timeout_ns)
{
	const uint64_t until_ns = os_until_ns(timeout_ns);
	uint64_t       now_ns = os_now_ns();

	while (hand->state == state && now_ns < until_ns) {
		(void)os_cond_wait(&hand->moved, hand->lock, until_ns - now_ns);
		now_ns = os_now_ns();
	}
	return hand->state != state;
}

bool hand_wait(struct hand *hand, uint64_t timeout_ns)
{
	if (leaves(hand, HAND_OUT, timeout_ns))
		return true;
	hand->state = HAND_LOST;
	return false;
}

void hand_back(struct hand *hand)
{
	KVS_ASSERT(hand->state == HAND_HELD);
	hand->state = HAND_HOME;
}

void hand_send(struct hand *hand)
{
	KVS_ASSERT(hand->state == HAND_HOME);
	hand->state = HAND_LOST;
	os_cond_broadcast(&hand->moved);
}

bool hand_is_home_by(struct hand *hand, uint64_t timeout_ns)
{
	return leaves(hand, HAND_LOST, timeout_ns);
}

void hand_leave(struct hand *hand)
{
	os_thread_detach(hand->thread);
	hand->left = true;
	end(hand);
}
