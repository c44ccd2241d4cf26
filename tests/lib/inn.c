/* SPDX-License-Identifier: Apache-2.0 */
#include "inn.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "named_block.h"

struct kvs_span inn_span;

/* --- open to close ---------------------------------------------------------------------------- */

static void hear(void *arg, const struct host_notice *notice)
{
	struct inn *const inn = arg;
	uint32_t          i;

	inn->calls++;
	for (i = 0; i < notice->count && inn->heard_count < INN_HEARD_MAX; i++) {
		inn->heard[inn->heard_count++] = (struct inn_heard){ notice->event, notice->keys[i],
								     notice->sequences[i] };
	}
}

static void press(void *arg)
{
	((struct inn *)arg)->presses++;
}

void inn_init(struct inn *inn, uint32_t pages)
{
	*inn = (struct inn){ .now_ns = 1000 };
	inn->memory = aligned_alloc(INN_PAGE, (size_t)pages * INN_PAGE);
	KVS_ASSERT(inn->memory);
	inn->fields[0] = (struct kvs_span){ .ptr = inn->memory, .bytes = (size_t)pages * INN_PAGE };
	inn->options = (struct host_options){
		.fields = inn->fields,
		.field_count = 1,
		.object_max = 64,
		.lock_max = 64,
		.client_max = 8,
		.shard_count = 1,
		.policy = "lru",
		.write_ttl_ns = INN_WRITE_TTL,
		.read_ttl_ns = INN_READ_TTL,
		.high = 1,
		.low = 0.5,
		.listeners = { { .events = (1u << HOST_EVENT_COUNT) - 1,
				 .notify = hear,
				 .arg = inn } },
		.listener_count = 1,
		.pressed = press,
		.pressed_arg = inn,
	};
}

void inn_open(struct inn *inn)
{
	struct kvs_error err = { 0 };

	if (host_open(&inn->options, &inn->host, &err) < 0)
		KVS_PANIC("%s", err.message);
	KVS_ASSERT(host_client_open(inn->host, 0, &inn->client) == 0);
	KVS_ASSERT(host_client_open(inn->host, 0, &inn->other) == 0);
}

/* The invariant locks-home. */
static void assert_home(struct inn *inn)
{
	const struct host_usage usage = inn_usage(inn);

	host_audit(inn->host);
	KVS_ASSERT_CMP(usage.clients, ==, 0);
	KVS_ASSERT_CMP(usage.locks, ==, 0);
	KVS_ASSERT_CMP(usage.pins, ==, 0);
	KVS_ASSERT_CMP(usage.staged, ==, 0);
	KVS_ASSERT_CMP(usage.staged_bytes, ==, 0);
	KVS_ASSERT_CMP(usage.doomed, ==, 0);
}

void inn_close(struct inn *inn)
{
	if (inn->host) {
		(void)host_client_close(inn->host, inn->client, inn->now_ns);
		(void)host_client_close(inn->host, inn->other, inn->now_ns);
		assert_home(inn);
		host_close(inn->host);
	}
	free(inn->memory);
	inn->host = NULL;
	inn->memory = NULL;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct host_usage inn_usage(struct inn *inn)
{
	struct host_usage usage;

	host_usage(inn->host, &usage);
	return usage;
}

bool inn_has(struct inn *inn, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             word;

	KVS_ASSERT(host_lookup(inn->host, &key, 1, &word) == 0);
	return word & 1;
}

uint32_t inn_heard_of(const struct inn *inn, enum host_event event, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint32_t             count = 0, i;

	for (i = 0; i < inn->heard_count; i++) {
		count += inn->heard[i].event == event &&
			 memcmp(&inn->heard[i].key, &key, sizeof(key)) == 0;
	}
	return count;
}

void inn_deaf(struct inn *inn)
{
	inn->heard_count = 0;
	inn->calls = 0;
}

/* --- one key ---------------------------------------------------------------------------------- */

/* A call's own error is told like a row's. */
static int either(int call, int row)
{
	return call != 0 ? call : row;
}

int inn_reserve_as(struct inn *inn, struct host_writer writer, uint32_t number, uint64_t bytes,
		   unsigned flags)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int call = host_reserve(inn->host, writer, &key, &bytes, 1, flags, inn->now_ns,
				      &inn_span, &rc);

	return either(call, rc);
}

int inn_reserve(struct inn *inn, uint32_t number, uint64_t bytes, unsigned flags)
{
	return inn_reserve_as(inn, (struct host_writer){ inn->client, 0 }, number, bytes, flags);
}

int inn_finish_as(struct inn *inn, struct host_writer writer, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int            call = host_finish(inn->host, writer, &key, 1, inn->now_ns, &rc);

	return either(call, rc);
}

int inn_finish(struct inn *inn, uint32_t number)
{
	return inn_finish_as(inn, (struct host_writer){ inn->client, 0 }, number);
}

int inn_finish_locked(struct inn *inn, uint32_t number, uint32_t locks)
{
	const struct kvs_key     key = key_of(number);
	const struct host_writer writer = { inn->client, 0 };
	int                      rc = 0;
	const int call = host_finish_locked(inn->host, writer, inn->client, locks, &key, 1,
					    inn->now_ns, &inn_span, &rc);

	return either(call, rc);
}

int inn_discard(struct inn *inn, uint32_t number)
{
	const struct kvs_key     key = key_of(number);
	const struct host_writer writer = { inn->client, 0 };
	int                      rc = 0;
	const int                call = host_discard(inn->host, writer, &key, 1, &rc);

	return either(call, rc);
}

int inn_lock(struct inn *inn, host_client client, uint32_t number, uint32_t locks)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int call = host_lock(inn->host, client, locks, &key, 1, inn->now_ns, &inn_span, &rc);

	return either(call, rc);
}

int inn_unlock(struct inn *inn, host_client client, uint32_t number, uint32_t locks)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int call = host_unlock(inn->host, client, locks, &key, 1, inn->now_ns, &rc);

	return either(call, rc);
}

int inn_spans(struct inn *inn, host_client client, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int call = host_spans(inn->host, client, &key, 1, inn->now_ns, &inn_span, &rc);

	return either(call, rc);
}

int inn_remove(struct inn *inn, uint32_t number, bool force)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int            call = host_remove(inn->host, &key, 1, force, &rc);

	return either(call, rc);
}

void inn_touch(struct inn *inn, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	KVS_ASSERT(host_touch(inn->host, &key, 1) == 0);
}

int inn_pin(struct inn *inn, uint32_t number, struct host_pin *ret_pin)
{
	const struct kvs_key key = key_of(number);
	int                  rc = 0;
	const int            call = host_pin(inn->host, &key, 1, ret_pin, &inn_span, &rc);

	return either(call, rc);
}

void inn_put_bytes(struct inn *inn, uint32_t number, uint64_t bytes)
{
	KVS_ASSERT(inn_reserve(inn, number, bytes, 0) == 0);
	fill(inn_span.ptr, number, (uint32_t)bytes);
	KVS_ASSERT(inn_finish(inn, number) == 0);
}

void inn_put(struct inn *inn, uint32_t number)
{
	inn_put_bytes(inn, number, INN_PAGE);
}
