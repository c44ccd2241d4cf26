/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of its own: what is due expires, and Host falls below its watermark. */
#include "manager/parts.h"

#include <errno.h>

#define PERIOD_NS UINT64_C(1000000000)

/* Objects of one call; between two of them this thread can be stopped. */
#define RELIEVE_OBJECTS 4096u

static void turn(struct manager *manager)
{
	const uint64_t now_ns = os_now_ns();

	/* It drops first what has expired, whether there is need of room or not. */
	while (!atomic_load(&manager->stopping) &&
	       host_relieve(manager->host, now_ns, RELIEVE_OBJECTS) == RELIEVE_OBJECTS)
		;
}

static void *run(void *arg)
{
	struct manager *const manager = arg;

	while (!atomic_load(&manager->stopping)) {
		turn(manager);
		if (os_wait_readable(&manager->wake_fd, 1, PERIOD_NS))
			(void)os_eventfd_drain(manager->wake_fd);
	}
	return NULL;
}

void manager_upkeep_press(void *arg)
{
	const struct manager *const manager = arg;

	os_eventfd_signal(manager->wake_fd);
}

int manager_upkeep_start(struct manager *manager, struct kvs_error *err)
{
	const int rc = os_thread_start(&manager->upkeep, "kvs-upkeep", run, manager);

	if (rc < 0)
		return err_set(err, rc, "upkeep: no thread: %s", kvs_strerror(rc));
	manager->has_upkeep = true;
	return 0;
}

void manager_upkeep_stop(struct manager *manager)
{
	if (!manager->has_upkeep)
		return;
	atomic_store(&manager->stopping, true);
	os_eventfd_signal(manager->wake_fd);
	os_thread_join(manager->upkeep);
	manager->has_upkeep = false;
}
