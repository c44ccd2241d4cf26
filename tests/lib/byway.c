/* SPDX-License-Identifier: Apache-2.0 */
/* See byway.h. */
#include "byway.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mooncake/codes.h"

#define MINUTE_NS UINT64_C(60000000000)

static struct byway *byway_of(struct mooncake_way *way)
{
	return (struct byway *)way;
}

static struct byway_object *find(struct byway_cluster *cluster, const char *name)
{
	struct byway_object *object = cluster->object;

	for (; object < cluster->object + BYWAY_OBJECTS; object++) {
		if (strcmp(object->name, name) == 0)
			return object;
	}
	return NULL;
}

static void drop(struct byway_cluster *cluster, struct byway_object *object)
{
	free(object->bytes);
	*object = (struct byway_object){ .name = "" };
	cluster->object_count--;
}

/* --- what a call does ------------------------------------------------------------------------- */

static int64_t get(struct byway_cluster *cluster, const char *name, const struct kvs_span *span)
{
	const struct byway_object *const object = find(cluster, name);

	if (!object)
		return -704;
	if (object->count > span->bytes)
		return -600;
	memcpy(span->ptr, object->bytes, object->count);
	return (int64_t)object->count;
}

static int64_t put(struct byway_cluster *cluster, const char *name, const struct kvs_span *span)
{
	struct byway_object *object;

	if (find(cluster, name))
		return 0;
	if (cluster->object_count >= cluster->object_max)
		return -200;
	object = find(cluster, "");
	KVS_ASSERT(object && strlen(name) < sizeof(object->name));
	memcpy(object->name, name, strlen(name) + 1);
	object->bytes = malloc(span->bytes);
	memcpy(object->bytes, span->ptr, span->bytes);
	object->count = span->bytes;
	cluster->object_count++;
	return 0;
}

static int64_t remove_one(struct byway_cluster *cluster, const char *name)
{
	struct byway_object *const object = find(cluster, name);

	if (!object)
		return -704;
	drop(cluster, object);
	return 0;
}

static int64_t purge(struct byway *byway, const char *expression)
{
	struct byway_object *object;
	int64_t              count = 0;
	regex_t              regex;

	KVS_ASSERT_CMP(strlen(expression), <, sizeof(byway->expression));
	memcpy(byway->expression, expression, strlen(expression) + 1);
	KVS_ASSERT(regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB) == 0);
	for (object = byway->cluster->object;
	     object < byway->cluster->object + BYWAY_OBJECTS; object++) {
		if (*object->name && regexec(&regex, object->name, 0, NULL, 0) == 0) {
			drop(byway->cluster, object);
			count++;
		}
	}
	regfree(&regex);
	return count;
}

static int64_t one(struct byway *byway, const struct mooncake_call *call, uint32_t i)
{
	struct byway_cluster *const cluster = byway->cluster;
	uint32_t                    odd;

	for (odd = 0; odd < byway->odd_count; odd++) {
		if (strcmp(byway->odd[odd].name, call->names[i]) == 0)
			return byway->odd[odd].code;
	}
	switch (call->verb) {
	case MOONCAKE_EXISTS:
		return find(cluster, call->names[i]) != NULL;
	case MOONCAKE_GET:
		if (call->spans[i].bytes > byway->got_bytes_max)
			byway->got_bytes_max = call->spans[i].bytes;
		return get(cluster, call->names[i], &call->spans[i]);
	case MOONCAKE_PUT:
		return put(cluster, call->names[i], &call->spans[i]);
	case MOONCAKE_REMOVE:
		return remove_one(cluster, call->names[i]);
	case MOONCAKE_PURGE:
		return purge(byway, call->names[i]);
	case MOONCAKE_VERB_COUNT:
		break;
	}
	KVS_PANIC("no verb %d", (int)call->verb);
}

static void check(const struct byway *byway, uint32_t lane, const struct mooncake_call *call)
{
	const bool moves = call->verb == MOONCAKE_GET || call->verb == MOONCAKE_PUT;
	uint32_t   i, j;

	KVS_ASSERT(!byway->closed);
	KVS_ASSERT_CMP(lane, <=, MOONCAKE_LANES_MAX);
	KVS_ASSERT(moves == (lane != MOONCAKE_LOOKUPS));
	KVS_ASSERT(!byway->busy[lane]);
	KVS_ASSERT(call->count > 0 && call->count <= MOONCAKE_NAMES_MAX);
	KVS_ASSERT(moves == (call->spans != NULL));
	for (i = 0; i < call->count; i++) {
		for (j = 0; j < i; j++)
			KVS_ASSERT(strcmp(call->names[i], call->names[j]) != 0);
	}
}

static void pass_gate(struct byway *byway, uint32_t lane)
{
	byway->inside++;
	os_cond_broadcast(&byway->cluster->moved);
	while (lane == MOONCAKE_LOOKUPS ? byway->shut_lookups : byway->shut)
		os_cond_wait(&byway->cluster->moved, &byway->cluster->mutex, UINT64_MAX);
	byway->inside--;
}

static int run(struct byway *byway, const struct mooncake_call *call, bool *ret_retired)
{
	uint32_t i;

	*ret_retired = !byway->clings;
	if (byway->rc < 0)
		return byway->rc;
	for (i = 0; i < call->count; i++)
		call->codes[i] = one(byway, call, i);
	*ret_retired = !byway->clings && (byway->reaps || mooncake_call_retired(call));
	return 0;
}

static int byway_call(struct mooncake_way *way, uint32_t lane, const struct mooncake_call *call,
		      bool *ret_retired)
{
	struct byway *const byway = byway_of(way);
	int                 rc;

	os_mutex_lock(&byway->cluster->mutex);
	check(byway, lane, call);
	byway->busy[lane] = true;
	byway->last_lane = lane;
	byway->calls[call->verb]++;
	byway->rows[call->verb] += call->count;
	if (call->count > byway->rows_most)
		byway->rows_most = call->count;
	pass_gate(byway, lane);
	rc = run(byway, call, ret_retired);
	byway->busy[lane] = false;
	os_mutex_unlock(&byway->cluster->mutex);
	return rc;
}

/* --- the rest of a way ------------------------------------------------------------------------ */

static int byway_register(struct mooncake_way *way, const struct kvs_memory *memory)
{
	byway_of(way)->memory = *memory;
	return byway_of(way)->register_rc;
}

static bool byway_is_up(struct mooncake_way *way, uint32_t lane)
{
	return byway_of(way)->down != lane + 1;
}

static bool byway_settled(struct mooncake_way *way)
{
	return byway_of(way)->settled;
}

static void byway_describe(struct mooncake_way *way, struct mooncake_way_info *ret_info)
{
	*ret_info = byway_of(way)->info;
}

static int byway_close(struct mooncake_way *way)
{
	byway_of(way)->closed = byway_of(way)->close_rc == 0;
	return byway_of(way)->close_rc;
}

static const struct mooncake_way_ops byway_ops = { .call = byway_call,
						   .is_up = byway_is_up,
						   .register_memory = byway_register,
						   .settled = byway_settled,
						   .describe = byway_describe,
						   .close = byway_close };

/* --- for tests -------------------------------------------------------------------------------- */

void byway_cluster_init(struct byway_cluster *cluster)
{
	*cluster = (struct byway_cluster){ .object_max = BYWAY_OBJECTS };
	os_mutex_init(&cluster->mutex);
	os_cond_init(&cluster->moved);
}

void byway_cluster_fini(struct byway_cluster *cluster)
{
	uint32_t i;

	for (i = 0; i < BYWAY_OBJECTS; i++)
		free(cluster->object[i].bytes);
	os_cond_fini(&cluster->moved);
	os_mutex_fini(&cluster->mutex);
}

void byway_init(struct byway *byway, struct byway_cluster *cluster)
{
	*byway = (struct byway){ .way = { &byway_ops }, .cluster = cluster, .settled = true };
	byway->info = (struct mooncake_way_info){ .death_retires = KVS_DEATH_COPY,
						  .reached = true, .lanes_up = 3 };
}

void byway_settings(struct mooncake_settings *ret_settings)
{
	*ret_settings = (struct mooncake_settings){ .master = "127.0.0.1:1",
						    .protocol = "tcp",
						    .replica_count = 1,
						    .lanes = 2,
						    .timeout_ns = MINUTE_NS,
						    .connect_timeout_ns = MINUTE_NS,
						    .reap_timeout_ns = MINUTE_NS,
						    .verified = true,
						    .prefix = "kvs",
						    .lease_ns = 60 * MINUTE_NS,
						    .probe_max = 1024,
						    .metrics = "127.0.0.1:2" };
}

struct byway_object *byway_find(struct byway_cluster *cluster, const struct kvs_key *key)
{
	char                 name[LABEL_TEXT_MAX];
	struct byway_object *object;

	label_text("kvs", key, name);
	os_mutex_lock(&cluster->mutex);
	object = find(cluster, name);
	os_mutex_unlock(&cluster->mutex);
	return object;
}

void byway_make_odd(struct byway *byway, const struct kvs_key *key, int64_t code)
{
	os_mutex_lock(&byway->cluster->mutex);
	KVS_ASSERT_CMP(byway->odd_count, <, BYWAY_ODD_MAX);
	label_text("kvs", key, byway->odd[byway->odd_count].name);
	byway->odd[byway->odd_count++].code = code;
	os_mutex_unlock(&byway->cluster->mutex);
}

void byway_shut(struct byway *byway, bool moves, bool lookups)
{
	os_mutex_lock(&byway->cluster->mutex);
	byway->shut = moves;
	byway->shut_lookups = lookups;
	os_cond_broadcast(&byway->cluster->moved);
	os_mutex_unlock(&byway->cluster->mutex);
}

void byway_wait_inside(struct byway *byway, uint32_t count)
{
	os_mutex_lock(&byway->cluster->mutex);
	while (byway->inside < count)
		os_cond_wait(&byway->cluster->moved, &byway->cluster->mutex, UINT64_MAX);
	os_mutex_unlock(&byway->cluster->mutex);
}
