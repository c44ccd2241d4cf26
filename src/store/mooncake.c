/* SPDX-License-Identifier: Apache-2.0 */
/* See mooncake.h.  Lookups and the life of the store; mooncake_moves.c has gets and puts. */
#include "store/mooncake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mooncake/agent.h"
#include "mooncake/library.h"
#include "store/kind.h"
#include "store/mooncake_memo.h"
#include "store/mooncake_moves.h"
#include "store/mooncake_settings.h"

static struct mooncake *mooncake_of(struct kvs_store *store)
{
	return (struct mooncake *)store;
}

/* --- what it says of itself ------------------------------------------------------------------- */

/* The first of these that holds is what a user should know. */
static void note(struct mooncake *mooncake, const struct mooncake_way_info *way,
		 const struct mooncake_memo_info *memo, char *ret_note, size_t room)
{
	char                           why[MOONCAKE_WHY_BYTES];
	const enum mooncake_pool_state pool =
		mooncake_provider_state(&mooncake->provider, why);
	const uint64_t roomless = atomic_load_explicit(&mooncake->counts.roomless,
						       memory_order_relaxed);

	if (pool == MOONCAKE_POOL_EMPTY) {
		snprintf(ret_note, room,
			 "no storage provider is mounted at the master: nothing can be stored");
	} else if (*way->note) {
		snprintf(ret_note, room, "%s", way->note);
	} else if (atomic_load_explicit(&mooncake->unregistered, memory_order_relaxed)) {
		snprintf(ret_note, room, "the client did not take the Host's memory");
	} else if (roomless > 0) {
		snprintf(ret_note, room,
			 "%" PRIu64 " rows had no room for a seal behind them; use format=raw",
			 roomless);
	} else if (*why) {
		snprintf(ret_note, room,
			 "puts are refused, by a full pool or by none: not told (%s)", why);
	} else if (memo->skipped > 0) {
		snprintf(ret_note, room,
			 "%" PRIu64 " lookups were not asked, to leave what to evict",
			 memo->skipped);
	} else if (way->kills > 0) {
		snprintf(ret_note, room,
			 "agents that ended, or were killed, in the middle of a call: %" PRIu64,
			 way->kills);
	} else {
		snprintf(ret_note, room,
			 "objects lie in the memory of providers; locks are advisory");
	}
}

static void mooncake_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct mooncake *const    mooncake = mooncake_of(store);
	struct mooncake_way_info  way = { .death_retires = KVS_DEATH_NOTHING };
	struct mooncake_memo_info memo;

	mooncake->way->ops->describe(mooncake->way, &way);
	mooncake_memo_describe(mooncake, &memo);
	*ret_info = (struct kvs_store_info){
		.corrupt_objects = atomic_load_explicit(&mooncake->counts.corrupt_objects,
							memory_order_relaxed),
		.refused_full = atomic_load_explicit(&mooncake->counts.refused_full,
						     memory_order_relaxed),
		.memory_bytes = sizeof(*mooncake) + mooncake_lanes_bytes(&mooncake->lanes) +
				memo.memory_bytes + way.memory_bytes,
		.durability = KVS_DURABILITY_PROCESS,
		.death_retires = way.death_retires,
		.verified = mooncake->settings.verified,
		.away = !way.reached,
	};
	note(mooncake, &way, &memo, ret_info->note, sizeof(ret_info->note));
}

/* --- lookups ---------------------------------------------------------------------------------- */

static int look_up_piece(struct mooncake *mooncake, const struct mooncake_batch *piece,
			 bool *ret_retired)
{
	const uint64_t        begin_ns = os_now_ns();
	struct mooncake_asked asked;
	int                   rc;

	mooncake_memo_look(mooncake, piece, &asked);
	rc = mooncake_batch_call(mooncake, piece, &asked, ret_retired);
	mooncake_memo_learn(mooncake, piece, &asked, begin_ns);
	return rc;
}

static int mooncake_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			   enum kvs_result *result)
{
	const struct mooncake_batch batch = { MOONCAKE_EXISTS, key, NULL, count, result };
	bool                        retired;

	return mooncake_batch_cut(mooncake_of(store), &batch, look_up_piece, &retired);
}

static int remove_piece(struct mooncake *mooncake, const struct mooncake_batch *piece,
			bool *ret_retired)
{
	const uint64_t        begin_ns = os_now_ns();
	struct mooncake_asked asked;
	int                   rc;

	mooncake_batch_ask_all(piece, &asked);
	rc = mooncake_batch_call(mooncake, piece, &asked, ret_retired);
	mooncake_memo_learn(mooncake, piece, &asked, begin_ns);
	return rc;
}

static int mooncake_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			   enum kvs_result *result)
{
	const struct mooncake_batch batch = { MOONCAKE_REMOVE, key, NULL, count, result };
	bool                        retired;

	return mooncake_batch_cut(mooncake_of(store), &batch, remove_piece, &retired);
}

static int mooncake_purge(struct kvs_store *store, const struct kvs_namespace *space,
			  uint64_t *ret_count)
{
	struct mooncake *const     mooncake = mooncake_of(store);
	char                       expression[LABEL_TEXT_MAX + LABEL_PREFIX_MAX];
	const char *const          names[] = { expression };
	int64_t                    removed = 0;
	const struct mooncake_call call = { .verb = MOONCAKE_PURGE, .count = 1, .names = names,
					    .codes = &removed };
	struct mooncake_lane      *lane;
	bool                       retired;
	int                        rc;

	label_expression(mooncake->settings.prefix, space, expression);
	lane = mooncake_lanes_lease(&mooncake->lanes, false, mooncake->settings.timeout_ns);
	if (!lane)
		return -ETIMEDOUT;
	rc = mooncake->way->ops->call(mooncake->way, lane->number, &call, &retired);
	mooncake_lanes_return(&mooncake->lanes, lane);
	mooncake_memo_clear(mooncake);
	if (rc < 0)
		return rc;
	if (removed < 0)
		return -EIO;
	*ret_count = (uint64_t)removed;
	return 0;
}

/* --- memory and proofs ------------------------------------------------------------------------ */

static int mooncake_register(struct kvs_store *store, const struct kvs_memory *memory)
{
	struct mooncake *const mooncake = mooncake_of(store);
	const int rc = mooncake->way->ops->register_memory(mooncake->way, memory);

	if (rc < 0)
		atomic_store_explicit(&mooncake->unregistered, true, memory_order_relaxed);
	return rc;
}

static bool mooncake_settled(struct kvs_store *store)
{
	struct mooncake *const mooncake = mooncake_of(store);

	return mooncake->way->ops->settled(mooncake->way);
}

/* --- open and close --------------------------------------------------------------------------- */

static void discard(struct mooncake *mooncake)
{
	mooncake_lanes_fini(&mooncake->lanes);
	mooncake_provider_fini(&mooncake->provider);
	probes_close(mooncake->probes);
	os_mutex_fini(&mooncake->probes_mutex);
	free(mooncake);
}

static int mooncake_close(struct kvs_store *store)
{
	struct mooncake *const mooncake = mooncake_of(store);
	const int              rc = mooncake->way->ops->close(mooncake->way);

	if (rc < 0)
		return rc;
	discard(mooncake);
	return 0;
}

int mooncake_open_on(struct mooncake_way *way, const struct mooncake_settings *settings,
		     uint64_t block_bytes, struct kvs_store **ret_store, struct kvs_error *err)
{
	struct mooncake *const mooncake = calloc(1, sizeof(*mooncake));
	int                    rc;

	if (!mooncake)
		return err_set(err, -ENOMEM, "store: no memory");
	mooncake->store.ops = &store_mooncake_ops;
	mooncake->settings = *settings;
	mooncake->block_bytes = block_bytes;
	mooncake->way = way;
	os_mutex_init(&mooncake->probes_mutex);
	mooncake_provider_init(&mooncake->provider, settings->metrics, mooncake_curl_fetch,
			       &mooncake->curl);
	rc = mooncake_lanes_init(&mooncake->lanes, way, (uint32_t)settings->lanes);
	if (rc == 0) {
		rc = probes_open(settings->lease_ns, (uint32_t)settings->probe_max,
				 &mooncake->probes);
	}
	if (rc < 0) {
		discard(mooncake);
		return err_set(err, rc, "store: no memory");
	}
	*ret_store = &mooncake->store;
	return 0;
}

static int mooncake_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
			 struct kvs_error *err)
{
	struct mooncake_settings settings;
	struct mooncake_way     *way;
	int                      rc = mooncake_settings_read(config, &settings, err);

	if (rc < 0)
		return rc;
	rc = settings.way == MOONCAKE_AGENT ? mooncake_agent_open(&settings, &way, err)
					    : mooncake_library_open(&settings, &way, err);
	if (rc < 0)
		return rc;
	rc = mooncake_open_on(way, &settings, config->block_bytes, ret_store, err);
	if (rc < 0)
		(void)way->ops->close(way);
	return rc;
}

const struct kvs_store_ops store_mooncake_ops = { .abi = KVS_STORE_ABI,
						  .name = "mooncake",
						  .options = mooncake_options,
						  .open = mooncake_open,
						  .close = mooncake_close,
						  .describe = mooncake_describe,
						  .exists = mooncake_exists,
						  .get = mooncake_get,
						  .put = mooncake_put,
						  .remove = mooncake_remove,
						  .purge = mooncake_purge,
						  .register_memory = mooncake_register,
						  .settled = mooncake_settled };
