/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of the stub, see mooncake_stub.h; with STUB_LACKS not all of it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mooncake_stub_parts.h"

#define INVALID_PARAMS (-600)
#define NOT_FOUND (-704)

struct placement {
	size_t       replicas;
	int          soft_pin, hard_pin;
	const char **segments;
	size_t       segment_count;
};

struct client {
	bool   up;
	void  *regions[64];
	size_t region_bytes[64];
	size_t region_count;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT void   *mooncake_store_create(void);
EXPORT void    mooncake_store_destroy(void *handle);
EXPORT int     mooncake_store_init_all(void *handle, const char *protocol, const char *device,
				       uint64_t bytes);
EXPORT int     mooncake_store_health_check(void *handle);
EXPORT int     mooncake_store_put(void *handle, const char *name, const void *bytes, size_t size,
				  const struct placement *placement);
EXPORT int     mooncake_store_put_from(void *handle, const char *name, void *bytes, size_t size,
				       const struct placement *placement);
EXPORT int     mooncake_store_batch_put_from(void *handle, const char **names, void **buffers,
					     const size_t *sizes, size_t count,
					     const struct placement *placement, int *answers);
EXPORT int64_t mooncake_store_get_into(void *handle, const char *name, void *bytes, size_t size);
EXPORT int     mooncake_store_batch_get_into(void *handle, const char **names, void **buffers,
					     const size_t *sizes, size_t count, int64_t *answers);
EXPORT int     mooncake_store_is_exist(void *handle, const char *name);
EXPORT int     mooncake_store_batch_is_exist(void *handle, const char **names, size_t count,
					     int *answers);
EXPORT int64_t mooncake_store_get_size(void *handle, const char *name);
EXPORT int     mooncake_store_get_hostname(void *handle, char *text, size_t size);
EXPORT int     mooncake_store_remove(void *handle, const char *name, int force);
EXPORT int64_t mooncake_store_remove_by_regex(void *handle, const char *expression, int force);
EXPORT int     mooncake_store_register_buffer(void *handle, void *ptr, size_t bytes);
EXPORT int     mooncake_store_unregister_buffer(void *handle, void *ptr);
#ifndef STUB_LACKS
EXPORT int     mooncake_store_setup(void *handle, const char *local_hostname, const char *metadata_server,
				    uint64_t segment_bytes, uint64_t local_buffer_bytes,
				    const char *protocol, const char *device, const char *master);
EXPORT int64_t mooncake_store_remove_all(void *handle, int force);
#endif

/* A caller that hands in what was destroyed, or never set up, is told by the end of the program. */
static struct client *ready(void *handle)
{
	struct client *const client = handle;

	if (!client || !client->up)
		abort();
	return client;
}

/* As the real one: whoever creates a client in a program without Python loses these. */
void *mooncake_store_create(void)
{
	const struct stub_plan plan = stub_enter(STUB_CREATE, 1);
	struct client         *client = plan.rc ? NULL : calloc(1, sizeof(*client));
	sigset_t               blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	stub.figures.clients += client != NULL;
	stub_leave();
	return client;
}

void mooncake_store_destroy(void *handle)
{
	struct client *const client = handle;

	stub_enter(STUB_DESTROY, 1);
	stub.figures.clients--;
	stub.figures.regions -= (uint32_t)client->region_count;
	stub_leave();
	free(client);
}

#ifndef STUB_LACKS
int mooncake_store_setup(void *handle, const char *local_hostname, const char *metadata_server,
			 uint64_t segment_bytes, uint64_t local_buffer_bytes, const char *protocol,
			 const char *device, const char *master)
{
	struct client *const        client = handle;
	const struct stub_plan      plan = stub_enter(STUB_SETUP, 1);
	struct stub_figures *const  figures = &stub.figures;

	client->up = plan.rc == 0;
	snprintf(figures->local_hostname, sizeof(figures->local_hostname), "%s", local_hostname);
	snprintf(figures->metadata_server, sizeof(figures->metadata_server), "%s", metadata_server);
	snprintf(figures->protocol, sizeof(figures->protocol), "%s", protocol);
	snprintf(figures->device, sizeof(figures->device), "%s", device);
	snprintf(figures->master, sizeof(figures->master), "%s", master);
	figures->segment_bytes = segment_bytes;
	figures->local_buffer_bytes = local_buffer_bytes;
	stub_leave();
	return (int)plan.rc;
}

int64_t mooncake_store_remove_all(void *handle, int force)
{
	return mooncake_store_remove_by_regex(handle, "", force);
}
#endif

int mooncake_store_init_all(void *handle, const char *protocol, const char *device, uint64_t bytes)
{
	(void)handle;
	(void)protocol;
	(void)device;
	(void)bytes;
	return INVALID_PARAMS;
}

int mooncake_store_health_check(void *handle)
{
	return ((struct client *)handle)->up ? 0 : 1;
}

static int64_t put_row(const char *name, const void *bytes, size_t size,
		       const struct placement *placement)
{
	if ((placement && placement->replicas == 0) || !*name)
		return INVALID_PARAMS;
	stub.figures.replicas = placement ? placement->replicas : 1;
	return size == 0 ? 0 : stub_object_put(name, bytes, size);
}

int mooncake_store_batch_put_from(void *handle, const char **names, void **buffers, const size_t *sizes,
				  size_t count, const struct placement *placement, int *answers)
{
	const struct stub_plan plan = stub_enter(STUB_PUT, (uint32_t)count);
	size_t                 i;

	ready(handle);
	for (i = 0; i < count && !stub_cuts(&plan, i); i++) {
		const int64_t code = stub_code(&plan, i);

		answers[i] = (int)(code != STUB_HONEST
					   ? code
					   : put_row(names[i], buffers[i], sizes[i], placement));
	}
	stub_leave();
	return (int)plan.rc;
}

int mooncake_store_put_from(void *handle, const char *name, void *bytes, size_t size,
			    const struct placement *placement)
{
	int       answer = -1;
	const int rc = mooncake_store_batch_put_from(handle, &name, &bytes, &size, 1, placement, &answer);

	return rc < 0 ? rc : answer;
}

int mooncake_store_put(void *handle, const char *name, const void *bytes, size_t size,
		       const struct placement *placement)
{
	return mooncake_store_put_from(handle, name, (void *)bytes, size, placement);
}

static int64_t get_row(const char *name, void *bytes, size_t size)
{
	const struct stub_object *const object = stub_object_find(name);

	if (!object)
		return NOT_FOUND;
	if (object->size > size)
		return INVALID_PARAMS;
	memcpy(bytes, object->bytes, object->size);
	return (int64_t)object->size;
}

static void remember(void *const *buffers, const size_t *sizes, size_t count)
{
	for (stub.late_count = 0; stub.late_count < count && stub.late_count < STUB_CODES_MAX;
	     stub.late_count++) {
		stub.late_buffers[stub.late_count] = buffers[stub.late_count];
		stub.late_bytes[stub.late_count] = sizes[stub.late_count];
	}
}

int mooncake_store_batch_get_into(void *handle, const char **names, void **buffers, const size_t *sizes,
				  size_t count, int64_t *answers)
{
	const struct stub_plan plan = stub_enter(STUB_GET, (uint32_t)count);
	size_t                 i;

	ready(handle);
	remember(buffers, sizes, count);
	for (i = 0; i < count && !stub_cuts(&plan, i); i++) {
		const int64_t code = stub_code(&plan, i);

		answers[i] = code != STUB_HONEST ? code : get_row(names[i], buffers[i], sizes[i]);
	}
	stub_leave();
	return (int)plan.rc;
}

int64_t mooncake_store_get_into(void *handle, const char *name, void *bytes, size_t size)
{
	int64_t   answer = -1;
	const int rc = mooncake_store_batch_get_into(handle, &name, &bytes, &size, 1, &answer);

	return rc < 0 ? rc : answer;
}

int mooncake_store_batch_is_exist(void *handle, const char **names, size_t count, int *answers)
{
	const struct stub_plan plan = stub_enter(STUB_EXISTS, (uint32_t)count);
	size_t                 i;

	ready(handle);
	for (i = 0; i < count && !stub_cuts(&plan, i); i++) {
		const int64_t code = stub_code(&plan, i);

		answers[i] = code != STUB_HONEST ? (int)code : stub_object_find(names[i]) != NULL;
		stub.figures.leases += answers[i] == 1;
	}
	stub_leave();
	return (int)plan.rc;
}

int mooncake_store_is_exist(void *handle, const char *name)
{
	int       answer = -1;
	const int rc = mooncake_store_batch_is_exist(handle, &name, 1, &answer);

	return rc < 0 ? rc : answer;
}

int64_t mooncake_store_get_size(void *handle, const char *name)
{
	const struct stub_object *object;
	int64_t                   size;

	ready(handle);
	pthread_mutex_lock(&stub.lock);
	object = stub_object_find(name);
	size = object ? (int64_t)object->size : NOT_FOUND;
	stub_leave();
	return size;
}

int mooncake_store_get_hostname(void *handle, char *text, size_t size)
{
	ready(handle);
	return snprintf(text, size, "%s", stub.figures.local_hostname) < (int)size ? 0 : -1;
}

int mooncake_store_remove(void *handle, const char *name, int force)
{
	const struct stub_plan plan = stub_enter(STUB_REMOVE, 1);
	int                    code = (int)plan.rc;

	ready(handle);
	stub.figures.forced = force != 0;
	if (plan.rc == 0)
		code = stub_object_remove(name) ? 0 : NOT_FOUND;
	stub_leave();
	return code;
}

int64_t mooncake_store_remove_by_regex(void *handle, const char *expression, int force)
{
	const struct stub_plan plan = stub_enter(STUB_PURGE, 1);
	int64_t                code = plan.rc;

	ready(handle);
	stub.figures.forced = force != 0;
	if (plan.rc == 0)
		code = stub_object_purge(expression);
	stub_leave();
	return code;
}

static bool overlaps(const struct client *client, const char *ptr, size_t bytes)
{
	size_t i;

	for (i = 0; i < client->region_count; i++) {
		const char *const region = client->regions[i];

		if (ptr < region + client->region_bytes[i] && region < ptr + bytes)
			return true;
	}
	return false;
}

int mooncake_store_register_buffer(void *handle, void *ptr, size_t bytes)
{
	const struct stub_plan plan = stub_enter(STUB_REGISTER, 1);
	struct client *const   client = ready(handle);
	int                    code = (int)plan.rc;

	if (code == 0 && (!ptr || bytes == 0 || overlaps(client, ptr, bytes)))
		code = INVALID_PARAMS;
	if (code == 0) {
		if (client->region_count == sizeof(client->regions) / sizeof(client->regions[0]))
			abort();
		client->regions[client->region_count] = ptr;
		client->region_bytes[client->region_count++] = bytes;
		stub.figures.regions++;
		stub.figures.region_ptr = ptr;
		stub.figures.region_bytes = bytes;
	}
	stub_leave();
	return code;
}

int mooncake_store_unregister_buffer(void *handle, void *ptr)
{
	struct client *const client = ready(handle);
	size_t               i;
	int                  code = INVALID_PARAMS;

	pthread_mutex_lock(&stub.lock);
	for (i = 0; i < client->region_count && code != 0; i++) {
		if (client->regions[i] != ptr)
			continue;
		client->regions[i] = client->regions[--client->region_count];
		client->region_bytes[i] = client->region_bytes[client->region_count];
		stub.figures.regions--;
		code = 0;
	}
	stub_leave();
	return code;
}
