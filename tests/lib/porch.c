/* SPDX-License-Identifier: Apache-2.0 */
/* See porch.h. */
#include "porch.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "api/parts.h"
#include "named_block.h"
#include "place.h"
#include "store/store.h"

#define FOREVER_NS UINT64_C(60000000000)

struct kvs_options porch_options(void)
{
	struct kvs_options options = KVS_OPTIONS_INIT;

	options.host_bytes = 8u << 20;
	options.object_bytes = 64u << 10;
	options.clients = 8;
	options.prefetches = 16;
	options.prefetch_keys = PORCH_KEYS;
	options.store_queue = 4096;
	options.close_timeout_ns = FOREVER_NS;
	return options;
}

void porch_open(struct porch *porch, const struct kvs_options *options)
{
	struct kvs_error err;
	int              rc;

	*porch = (struct porch){ .bytes = PORCH_BYTES };
	rc = kvs_open(options, &porch->kvs, &err);
	if (rc < 0)
		KVS_PANIC("%s", err.message);
	KVS_ASSERT(kvs_client_open(porch->kvs, &porch->me, NULL) == 0);
}

void porch_open_on(struct porch *porch, const char *spec)
{
	struct kvs_options options = porch_options();

	options.stores[0] = spec;
	porch_open(porch, &options);
}

void porch_close(struct porch *porch)
{
	KVS_ASSERT(kvs_client_close(porch->kvs, porch->me) == 0);
	porch_await_home(porch);
	manager_audit(porch_manager(porch));
	KVS_ASSERT(kvs_close(porch->kvs) == 0);
}

struct manager *porch_manager(struct porch *porch)
{
	int                   rc;
	struct manager *const manager = api_enter(porch->kvs, &rc, NULL);

	KVS_ASSERT(manager);
	return manager;
}

uint32_t porch_attach(struct porch *porch, struct kvs_store *store)
{
	uint32_t number;

	KVS_ASSERT(manager_store_take(porch_manager(porch), store, &number, NULL) == 0);
	return number;
}

struct kvs_store *porch_attach_faulty(struct porch *porch, const char *faults)
{
	const struct place place = place_open();
	FILE *const        file = fopen(place.path, "w");
	char               spec[64];
	struct kvs_store  *store;

	KVS_ASSERT(file);
	fprintf(file, "{\"inner\": \"mem:8MiB\", \"seed\": 1, \"faults\": [%s]}", faults);
	KVS_ASSERT(fclose(file) == 0);
	snprintf(spec, sizeof(spec), "fault:%s", place.path);
	KVS_ASSERT(store_open(spec, 64u << 10, "lru", &store, NULL) == 0);
	place_close(&place);
	porch_attach(porch, store);
	return store;
}

const struct kvs_key *porch_name(struct porch *porch, uint32_t first, uint32_t count)
{
	uint32_t i;

	KVS_ASSERT_CMP(count, <=, PORCH_KEYS);
	for (i = 0; i < count; i++)
		porch->keys[i] = key_of(first + i);
	return porch->keys;
}

/* --- writing ---------------------------------------------------------------------------------- */

void porch_write_as(struct porch *porch, kvs_client client, uint32_t first, uint32_t count)
{
	const struct kvs_key *const keys = porch_name(porch, first, count);
	const struct kvs_write      write = { .bytes = porch->bytes };
	uint32_t                    i;

	KVS_ASSERT(kvs_reserve_write(porch->kvs, client, keys, count, &write, porch->spans,
				     porch->rc, NULL) == 0);
	for (i = 0; i < count; i++) {
		KVS_ASSERT(porch->rc[i] == 0);
		fill(porch->spans[i].ptr, first + i, (uint32_t)porch->spans[i].bytes);
	}
	KVS_ASSERT(kvs_finish_write(porch->kvs, client, keys, count, porch->rc, NULL) == 0);
	for (i = 0; i < count; i++)
		KVS_ASSERT(porch->rc[i] == 0);
}

void porch_write(struct porch *porch, uint32_t first, uint32_t count)
{
	porch_write_as(porch, porch->me, first, count);
}

void porch_flush(struct porch *porch)
{
	KVS_ASSERT(kvs_flush(porch->kvs, FOREVER_NS) == 0);
}

void porch_leave_host(struct porch *porch)
{
	uint64_t removed, left;

	porch_flush(porch);
	KVS_ASSERT(kvs_clear(porch->kvs, NULL, false, &removed, &left) == 0);
	KVS_ASSERT_CMP(left, ==, 0);
}

void porch_leave_host_of(struct porch *porch, uint32_t first, uint32_t count)
{
	uint32_t i;

	porch_flush(porch);
	porch_name(porch, first, count);
	KVS_ASSERT(kvs_remove(porch->kvs, porch->keys, count, false, porch->rc, NULL) == 0);
	for (i = 0; i < count; i++)
		KVS_ASSERT(porch->rc[i] == 0);
}

uint32_t porch_resident(struct porch *porch, uint32_t first, uint32_t count)
{
	kvs_client client;
	uint32_t   there = 0, i;

	KVS_ASSERT(kvs_client_open(porch->kvs, &client, NULL) == 0);
	porch_name(porch, first, count);
	KVS_ASSERT(kvs_lock(porch->kvs, client, porch->keys, count, porch->spans, porch->rc,
			    NULL) == 0);
	for (i = 0; i < count; i++)
		there += porch->rc[i] == 0;
	KVS_ASSERT(kvs_client_close(porch->kvs, client) == 0);
	return there;
}

/* --- reading ---------------------------------------------------------------------------------- */

kvs_prefetch porch_submit(struct porch *porch, uint32_t first, uint32_t count,
			  const struct kvs_ask *ask)
{
	struct kvs_ask   plain = ask ? *ask : (struct kvs_ask){ 0 };
	kvs_prefetch     prefetch;
	struct kvs_error err;

	plain.bytes = porch->bytes;
	porch_name(porch, first, count);
	if (kvs_prefetch_submit(porch->kvs, porch->me, porch->keys, count, &plain, &prefetch,
				&err) < 0)
		KVS_PANIC("%s", err.message);
	return prefetch;
}

uint32_t porch_wait(struct porch *porch, kvs_prefetch prefetch)
{
	uint32_t chunks;

	KVS_ASSERT(kvs_prefetch_wait(porch->kvs, prefetch, FOREVER_NS, &chunks) == 0);
	return chunks;
}

uint32_t porch_check(struct porch *porch, kvs_prefetch prefetch, uint32_t first)
{
	uint32_t count, there = 0, i;

	KVS_ASSERT(kvs_prefetch_spans(porch->kvs, prefetch, porch->spans, PORCH_KEYS, &count) == 0);
	for (i = 0; i < count; i++) {
		const struct kvs_span *const span = &porch->spans[i];

		if (!span->ptr)
			continue;
		KVS_ASSERT_CMP(span->bytes, ==, porch->bytes);
		KVS_ASSERT(is_filled(span->ptr, first + i, (uint32_t)span->bytes));
		there++;
	}
	return there;
}

void porch_release(struct porch *porch, kvs_prefetch prefetch)
{
	KVS_ASSERT(kvs_prefetch_release(porch->kvs, prefetch) == 0);
}

uint32_t porch_fetch(struct porch *porch, uint32_t first, uint32_t count)
{
	const kvs_prefetch prefetch = porch_submit(porch, first, count, NULL);
	const uint32_t     chunks = porch_wait(porch, prefetch);

	KVS_ASSERT_CMP(porch_check(porch, prefetch, first), ==, chunks);
	porch_release(porch, prefetch);
	return chunks;
}

/* --- figures ---------------------------------------------------------------------------------- */

struct kvs_status porch_status(struct porch *porch)
{
	struct kvs_status status = { .struct_size = sizeof(status) };

	KVS_ASSERT(kvs_status(porch->kvs, &status) == 0);
	return status;
}

void porch_await_loaded(struct porch *porch, uint64_t count)
{
	struct kvs_status status;

	do {
		sched_yield();
		status = porch_status(porch);
	} while (status.loaded_keys < count || status.loads_in_flight);
	KVS_ASSERT_CMP(status.loaded_keys, ==, count);
}

void porch_await_home(struct porch *porch)
{
	struct kvs_status status;

	porch_flush(porch);
	do {
		sched_yield();
		status = porch_status(porch);
	} while (status.locks || status.pins || status.staged || status.loads_in_flight ||
		 status.prefetches || status.clients);
}
