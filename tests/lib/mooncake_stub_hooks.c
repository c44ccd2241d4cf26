/* SPDX-License-Identifier: Apache-2.0 */
/* What a test tells the stub, and what the stub tells it: see mooncake_stub.h. */
#include <stdlib.h>
#include <string.h>

#include "mooncake_stub_parts.h"

#define EXPORT __attribute__((visibility("default")))

struct stub stub = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

static void note_thread(void)
{
	uint32_t i;

	for (i = 0; i < stub.thread_count; i++) {
		if (pthread_equal(stub.threads[i], pthread_self()))
			return;
	}
	if (i == sizeof(stub.threads) / sizeof(stub.threads[0]))
		abort();
	stub.threads[stub.thread_count++] = pthread_self();
}

static void hold(void)
{
	const uint64_t before = stub.releases;

	stub.figures.held++;
	pthread_cond_broadcast(&stub.moved);
	while (stub.releases == before)
		pthread_cond_wait(&stub.moved, &stub.lock);
	stub.figures.held--;
	pthread_cond_broadcast(&stub.moved);
}

struct stub_plan stub_enter(enum stub_call call, uint32_t rows)
{
	struct stub_plan plan = { .calls = 0 };

	pthread_mutex_lock(&stub.lock);
	note_thread();
	stub.figures.calls[call]++;
	stub.figures.rows[call] += rows;
	if (stub.plans[call].calls > 0) {
		plan = stub.plans[call];
		stub.plans[call].calls--;
	}
	if (plan.holds)
		hold();
	return plan;
}

void stub_leave(void)
{
	pthread_cond_broadcast(&stub.moved);
	pthread_mutex_unlock(&stub.lock);
}

int64_t stub_code(const struct stub_plan *plan, size_t row)
{
	return row < plan->code_count ? plan->codes[row] : STUB_HONEST;
}

bool stub_cuts(const struct stub_plan *plan, size_t row)
{
	return (plan->rc != 0 && !plan->writes) || (plan->cuts && row >= plan->rows);
}

static void reset(void)
{
	pthread_mutex_lock(&stub.lock);
	stub.releases++;
	pthread_cond_broadcast(&stub.moved);
	while (stub.figures.held > 0)
		pthread_cond_wait(&stub.moved, &stub.lock);
	stub_object_clear();
	stub.figures = (struct stub_figures){ .clients = stub.figures.clients };
	memset(stub.plans, 0, sizeof(stub.plans));
	stub.thread_count = 0;
	stub.capacity_bytes = 0;
	stub.late_count = 0;
	pthread_mutex_unlock(&stub.lock);
}

static void plan(enum stub_call call, const struct stub_plan *next)
{
	pthread_mutex_lock(&stub.lock);
	stub.plans[call] = *next;
	pthread_mutex_unlock(&stub.lock);
}

static void wait_held(uint32_t count)
{
	pthread_mutex_lock(&stub.lock);
	while (stub.figures.held != count)
		pthread_cond_wait(&stub.moved, &stub.lock);
	pthread_mutex_unlock(&stub.lock);
}

static void wait_clients(uint32_t count)
{
	pthread_mutex_lock(&stub.lock);
	while (stub.figures.clients != count)
		pthread_cond_wait(&stub.moved, &stub.lock);
	pthread_mutex_unlock(&stub.lock);
}

static void release(void)
{
	pthread_mutex_lock(&stub.lock);
	stub.releases++;
	pthread_cond_broadcast(&stub.moved);
	pthread_mutex_unlock(&stub.lock);
}

static void figures(struct stub_figures *ret_figures)
{
	pthread_mutex_lock(&stub.lock);
	*ret_figures = stub.figures;
	pthread_mutex_unlock(&stub.lock);
}

static bool has_run_on(pthread_t thread)
{
	bool     found = false;
	uint32_t i;

	pthread_mutex_lock(&stub.lock);
	for (i = 0; i < stub.thread_count; i++)
		found |= pthread_equal(stub.threads[i], thread) != 0;
	pthread_mutex_unlock(&stub.lock);
	return found;
}

static void capacity(uint64_t bytes)
{
	pthread_mutex_lock(&stub.lock);
	stub.capacity_bytes = bytes;
	pthread_mutex_unlock(&stub.lock);
}

static void write_late(uint8_t byte)
{
	uint32_t i;

	pthread_mutex_lock(&stub.lock);
	for (i = 0; i < stub.late_count; i++)
		memset(stub.late_buffers[i], byte, stub.late_bytes[i]);
	pthread_mutex_unlock(&stub.lock);
}

static bool damage(const char *name, size_t offset)
{
	struct stub_object *object;

	pthread_mutex_lock(&stub.lock);
	object = stub_object_find(name);
	if (object && offset < object->size)
		object->bytes[offset] ^= 0x55;
	pthread_mutex_unlock(&stub.lock);
	return object != NULL;
}

static bool cut(const char *name, size_t bytes)
{
	struct stub_object *object;

	pthread_mutex_lock(&stub.lock);
	object = stub_object_find(name);
	if (object && bytes < object->size) {
		stub.used_bytes -= object->size - bytes;
		object->size = bytes;
	}
	pthread_mutex_unlock(&stub.lock);
	return object != NULL;
}

EXPORT stub_hooks_entry stub_hooks;

EXPORT const struct stub_hooks *stub_hooks(void)
{
	static const struct stub_hooks hooks = {
		.reset = reset,
		.plan = plan,
		.wait_held = wait_held,
		.wait_clients = wait_clients,
		.release = release,
		.figures = figures,
		.has_run_on = has_run_on,
		.capacity = capacity,
		.write_late = write_late,
		.damage = damage,
		.cut = cut,
	};

	return &hooks;
}
