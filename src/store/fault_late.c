/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_late.h. */
#include "store/fault_late.h"

#include <string.h>

/* Land what is due and return how long nothing will be. */
static uint64_t land_due_locked(struct fault_late *late)
{
	const uint64_t now = os_now_ns();
	uint64_t       wait = UINT64_MAX;
	uint32_t       i = 0;

	while (i < late->count) {
		const uint64_t at = late->pending[i].at_ns;

		if (late->closing || at <= now) {
			const struct kvs_span *span = &late->pending[i].span;

			memset(span->ptr, FAULT_LATE_BYTE, span->bytes);
			late->pending[i] = late->pending[--late->count];
			continue;
		}
		wait = at - now < wait ? at - now : wait;
		i++;
	}
	return wait;
}

static void *land(void *arg)
{
	struct fault_late *late = arg;

	os_mutex_lock(&late->mutex);
	while (!late->closing)
		os_cond_wait(&late->changed, &late->mutex, land_due_locked(late));
	(void)land_due_locked(late);
	os_mutex_unlock(&late->mutex);
	return NULL;
}

int fault_late_open(struct fault_late *late)
{
	int rc;

	os_mutex_init(&late->mutex);
	os_cond_init(&late->changed);
	rc = os_thread_start(&late->thread, "kvs-fault", land, late);
	if (rc < 0) {
		os_cond_fini(&late->changed);
		os_mutex_fini(&late->mutex);
	}
	return rc;
}

void fault_late_close(struct fault_late *late)
{
	os_mutex_lock(&late->mutex);
	late->closing = true;
	os_cond_signal(&late->changed);
	os_mutex_unlock(&late->mutex);
	os_thread_join(late->thread);
	os_cond_fini(&late->changed);
	os_mutex_fini(&late->mutex);
}

void fault_late_write(struct fault_late *late, const struct kvs_span *span, uint64_t at_ns)
{
	os_mutex_lock(&late->mutex);
	if (late->count < FAULT_LATE_MAX) {
		late->pending[late->count].span = *span;
		late->pending[late->count++].at_ns = at_ns;
		os_cond_signal(&late->changed);
	}
	os_mutex_unlock(&late->mutex);
}

void fault_late_land(struct fault_late *late)
{
	uint32_t i;

	os_mutex_lock(&late->mutex);
	for (i = 0; i < late->count; i++)
		late->pending[i].at_ns = 0;
	(void)land_due_locked(late);
	os_mutex_unlock(&late->mutex);
}

uint32_t fault_late_count(struct fault_late *late)
{
	uint32_t count;

	os_mutex_lock(&late->mutex);
	count = late->count;
	os_mutex_unlock(&late->mutex);
	return count;
}
