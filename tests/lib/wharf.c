/* SPDX-License-Identifier: Apache-2.0 */
/* See wharf.h. */
#include "wharf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "named_block.h"

#define PLACE_BYTES (WHARF_BLOCK + WHARF_TRAILER)

static bool fetch(void *context, const char *url, uint64_t timeout_ns, char *body, size_t room,
		  size_t *ret_bytes, char *ret_why, size_t why_bytes)
{
	struct wharf *const wharf = context;

	KVS_ASSERT_CMP(timeout_ns, <=, PROVIDER_FETCH_NS);
	wharf->fetches++;
	snprintf(wharf->url, sizeof(wharf->url), "%s", url);
	if (!wharf->segments) {
		snprintf(ret_why, why_bytes, "nobody listens");
		return false;
	}
	*ret_bytes = strlen(wharf->segments);
	KVS_ASSERT_CMP(*ret_bytes, <=, room);
	memcpy(body, wharf->segments, *ret_bytes);
	return true;
}

void wharf_open(struct wharf *wharf)
{
	struct kvs_error err;

	KVS_ASSERT(mooncake_open_on(&wharf->byway.way, &wharf->settings, WHARF_BLOCK,
				    &wharf->store, &err) == 0);
	((struct mooncake *)wharf->store)->provider.fetch = fetch;
	((struct mooncake *)wharf->store)->provider.context = wharf;
}

void wharf_close(struct wharf *wharf)
{
	if (!wharf->store)
		return;
	KVS_ASSERT(wharf->store->ops->close(wharf->store) == 0);
	KVS_ASSERT(wharf->byway.closed);
	wharf->store = NULL;
}

int wharf_setup(void **state)
{
	struct wharf *const wharf = calloc(1, sizeof(*wharf));

	wharf->memory = calloc(WHARF_SPANS, PLACE_BYTES);
	wharf->segments = "127.0.0.1:50052\n";
	byway_cluster_init(&wharf->cluster);
	byway_init(&wharf->byway, &wharf->cluster);
	byway_settings(&wharf->settings);
	wharf_open(wharf);
	*state = wharf;
	return 0;
}

int wharf_teardown(void **state)
{
	struct wharf *const wharf = *state;

	wharf_close(wharf);
	byway_cluster_fini(&wharf->cluster);
	free(wharf->memory);
	free(wharf);
	return 0;
}

struct kvs_span wharf_span(struct wharf *wharf, uint32_t number, uint32_t bytes)
{
	uint8_t *const place = wharf->memory + (size_t)(number % WHARF_SPANS) * PLACE_BYTES;

	return (struct kvs_span){ place, bytes, bytes + WHARF_TRAILER };
}

enum kvs_result wharf_put(struct wharf *wharf, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = wharf_span(wharf, number, bytes);
	enum kvs_result       result = KVS_RESULT_UNKNOWN;

	fill(span.ptr, number, bytes);
	KVS_ASSERT(wharf->store->ops->put(wharf->store, &key, &span, 1, &result,
					  &wharf->retired) == 0);
	KVS_ASSERT(is_filled(span.ptr, number, bytes));
	return result;
}

enum kvs_result wharf_get(struct wharf *wharf, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = wharf_span(wharf, number, bytes);
	enum kvs_result       result = KVS_RESULT_UNKNOWN;

	memset(span.ptr, 0xa5, PLACE_BYTES);
	KVS_ASSERT(wharf->store->ops->get(wharf->store, &key, &span, 1, &result,
					  &wharf->retired) == 0);
	KVS_ASSERT(result != KVS_RESULT_DONE || is_filled(span.ptr, number, bytes));
	return result;
}

enum kvs_result wharf_exists(struct wharf *wharf, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;

	KVS_ASSERT(wharf->store->ops->exists(wharf->store, &key, 1, &result) == 0);
	return result;
}

enum kvs_result wharf_remove(struct wharf *wharf, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;

	KVS_ASSERT(wharf->store->ops->remove(wharf->store, &key, 1, &result) == 0);
	return result;
}

struct kvs_store_info wharf_info(struct wharf *wharf)
{
	struct kvs_store_info info;

	wharf->store->ops->describe(wharf->store, &info);
	return info;
}
