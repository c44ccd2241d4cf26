/* SPDX-License-Identifier: Apache-2.0 */
/* A whole store backend: 64 objects in memory.  All its I/O is memcpy, so every call retires. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kvstrata/store.h>

#define PLACES 64

struct shelf {
	struct kvs_store store; /* first: what the executor sees */
	pthread_mutex_t  mutex; /* calls come from several workers at once */
	size_t           block_bytes;
	struct place {
		struct kvs_key key;
		size_t         bytes; /* 0: free */
		void          *payload;
	} place[PLACES];
};

enum action { EXISTS, GET, PUT, REMOVE };

/* The place of a key, or a free one (NULL). */
static struct place *find(struct shelf *s, const struct kvs_key *key)
{
	for (struct place *p = s->place; p < s->place + PLACES; p++)
		if (key ? p->bytes && memcmp(&p->key, key, sizeof(*key)) == 0 : p->bytes == 0)
			return p;
	return NULL;
}

static enum kvs_result act_one(struct shelf *s, enum action action, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct place *p = find(s, key);

	if (action == PUT) {
		if (p || !(p = find(s, NULL)))
			return p ? KVS_RESULT_EXISTS : KVS_RESULT_NO_SPACE;
		p->key = *key;
		p->bytes = span->bytes;
		memcpy(p->payload, span->ptr, span->bytes);
		return KVS_RESULT_DONE;
	}
	if (!p)
		return KVS_RESULT_MISSING;
	if (action == GET && p->bytes != span->bytes)
		return KVS_RESULT_CORRUPT; /* exactly so many bytes, or none */
	if (action == GET)
		memcpy(span->ptr, p->payload, span->bytes);
	if (action == REMOVE)
		p->bytes = 0;
	return KVS_RESULT_DONE;
}

static int act(struct kvs_store *store, enum action action, const struct kvs_key *key,
	       const struct kvs_span *span, uint32_t count, enum kvs_result *result)
{
	struct shelf *s = (struct shelf *)store;

	for (uint32_t i = 0; span && i < count; i++)
		if (span[i].bytes == 0 || span[i].bytes > s->block_bytes)
			return KVS_E_INVALID;
	pthread_mutex_lock(&s->mutex);
	for (uint32_t i = 0; i < count; i++)
		result[i] = act_one(s, action, &key[i], span ? &span[i] : NULL);
	pthread_mutex_unlock(&s->mutex);
	return 0;
}

static int shelf_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	return act(store, EXISTS, key, NULL, count, result);
}

static int shelf_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	return act(store, REMOVE, key, NULL, count, result);
}

static int shelf_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		     uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	*ret_retired = true;
	return act(store, GET, key, span, count, result);
}

static int shelf_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		     uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	*ret_retired = true;
	return act(store, PUT, key, span, count, result);
}

static void shelf_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct shelf *s = (struct shelf *)store;

	*ret_info = (struct kvs_store_info){ .capacity_bytes = PLACES * s->block_bytes,
					     .memory_bytes = sizeof(*s) + PLACES * s->block_bytes,
					     .failures_retire = true,
					     .note = "an example: keeps no checksum" };
	pthread_mutex_lock(&s->mutex);
	for (int i = 0; i < PLACES; i++)
		ret_info->object_count += s->place[i].bytes != 0;
	pthread_mutex_unlock(&s->mutex);
	ret_info->used_bytes = ret_info->object_count * s->block_bytes;
}

static int shelf_close(struct kvs_store *store)
{
	pthread_mutex_destroy(&((struct shelf *)store)->mutex);
	free(store);
	return 0;
}

static int shelf_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		      struct kvs_error *err);

static const struct kvs_store_ops shelf_ops = {
	.abi = KVS_STORE_ABI, .name = "shelf", .options = (const char *const[]){ NULL },
	.open = shelf_open, .close = shelf_close, .describe = shelf_describe,
	.exists = shelf_exists, .get = shelf_get, .put = shelf_put, .remove = shelf_remove,
};

static int shelf_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		      struct kvs_error *err)
{
	struct shelf *s = calloc(1, sizeof(*s) + PLACES * config->block_bytes);

	if (!s) {
		snprintf(err->message, sizeof(err->message), "shelf: no memory for %d blocks", PLACES);
		return -ENOMEM;
	}
	s->store.ops = &shelf_ops;
	s->block_bytes = config->block_bytes;
	pthread_mutex_init(&s->mutex, NULL);
	for (int i = 0; i < PLACES; i++)
		s->place[i].payload = (char *)(s + 1) + i * s->block_bytes;
	*ret_store = &s->store;
	return 0;
}

KVS_STORE_PLUGIN(shelf_ops)
