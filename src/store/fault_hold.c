/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_hold.h. */
#include "store/fault_hold.h"

#include <errno.h>

void fault_hold_open(struct fault_hold *hold)
{
	*hold = (struct fault_hold){ 0 };
	os_mutex_init(&hold->mutex);
	os_cond_init(&hold->changed);
}

void fault_hold_end(struct fault_hold *hold)
{
	os_mutex_lock(&hold->mutex);
	hold->closing = true;
	os_cond_broadcast(&hold->changed);
	while (hold->held > 0)
		os_cond_wait(&hold->changed, &hold->mutex, UINT64_MAX);
	os_mutex_unlock(&hold->mutex);
}

void fault_hold_close(struct fault_hold *hold)
{
	os_cond_fini(&hold->changed);
	os_mutex_fini(&hold->mutex);
}

int fault_hold_call(struct fault_hold *hold, uint64_t wait_ns)
{
	const uint64_t start = os_now_ns();
	uint64_t       release, gone = 0;
	int            rc;

	os_mutex_lock(&hold->mutex);
	release = hold->release;
	hold->held++;
	while (!hold->closing && gone < wait_ns &&
	       (wait_ns != FAULT_HOLD_LOST || release == hold->release)) {
		os_cond_wait(&hold->changed, &hold->mutex, wait_ns - gone);
		gone = os_now_ns() - start;
	}
	rc = hold->closing ? -EIO : 0;
	hold->held--;
	os_cond_broadcast(&hold->changed);
	os_mutex_unlock(&hold->mutex);
	return rc;
}

void fault_hold_release(struct fault_hold *hold)
{
	os_mutex_lock(&hold->mutex);
	hold->release++;
	os_cond_broadcast(&hold->changed);
	os_mutex_unlock(&hold->mutex);
}

uint32_t fault_hold_count(struct fault_hold *hold)
{
	uint32_t held;

	os_mutex_lock(&hold->mutex);
	held = hold->held;
	os_mutex_unlock(&hold->mutex);
	return held;
}
