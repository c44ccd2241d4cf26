/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page in the cache is a slot: its id in ids, found through the map, its place in the order kept
 * by evict.  Slots are taken in order until the capacity is reached; from then on a newcomer gets
 * the slot of who left.
 */
#include "app/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/map.h"
#include "evict/evict.h"

#define ROOM_FIRST 1024u

struct simulate {
	struct evict          *evict;    /* NULL when unlimited */
	struct map             map;      /* page id to slot */
	uint64_t              *ids;      /* by slot */
	uint32_t               used;     /* slots below it are taken */
	uint32_t               room;     /* slots that ids and map have memory for */
	uint32_t               capacity;
	uint32_t              *chain;    /* the current request's slots */
	uint32_t               chain_room;
	struct simulate_counts counts;
};

static uint64_t hash_of(uint64_t id)
{
	return xxh3_64(&id, sizeof(id));
}

static uint32_t next_room(const struct simulate *sim)
{
	const uint32_t room = sim->room ? sim->room : ROOM_FIRST / 2;

	return room > sim->capacity / 2 ? sim->capacity : room * 2;
}

/*
 * Room for twice the pages, at most the capacity.  A map has no iteration, so a new one is filled
 * from the slots.
 */
static int grow(struct simulate *sim, struct kvs_error *err)
{
	const uint32_t room = next_room(sim);
	uint64_t      *ids = realloc(sim->ids, room * sizeof(*ids));
	struct map     map;
	uint32_t       slot;

	if (!ids)
		return err_set(err, -ENOMEM, "capacity: no memory for %u blocks", room);
	sim->ids = ids;
	if (map_open(&map, room, ids, sizeof(*ids), sizeof(*ids)) < 0) {
		sim->map.keys = (const uint8_t *)ids;
		return err_set(err, -ENOMEM, "capacity: no memory for an index of %u blocks", room);
	}
	for (slot = 0; slot < sim->used; slot++)
		map_insert(&map, hash_of(ids[slot]), slot);
	map_close(&sim->map);
	sim->map = map;
	sim->room = room;
	return 0;
}

int simulate_open(const char *policy, uint64_t capacity_blocks, struct simulate **ret_simulate,
		  struct kvs_error *err)
{
	struct simulate *sim;
	int              rc;

	if (capacity_blocks > SIMULATE_CAPACITY_MAX) {
		return err_set(err, KVS_E_INVALID, "capacity: %" PRIu64 " blocks; use at most %u",
			       capacity_blocks, SIMULATE_CAPACITY_MAX);
	}
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return err_set(err, -ENOMEM, "capacity: no memory");
	sim->capacity = capacity_blocks ? (uint32_t)capacity_blocks : SIMULATE_CAPACITY_MAX;
	rc = grow(sim, err);
	if (rc == 0 && capacity_blocks)
		rc = evict_gives(policy, err);
	if (rc == 0 && capacity_blocks)
		rc = evict_open(policy, sim->capacity, &sim->evict, err);
	if (rc < 0) {
		simulate_close(sim);
		return rc;
	}
	*ret_simulate = sim;
	return 0;
}

void simulate_close(struct simulate *sim)
{
	if (!sim)
		return;
	evict_close(sim->evict);
	map_close(&sim->map);
	free(sim->chain);
	free(sim->ids);
	free(sim);
}

void simulate_hash(const struct source_request *request, uint64_t *ret_hashes)
{
	uint32_t i;

	for (i = 0; i < request->page_count; i++)
		ret_hashes[i] = hash_of(request->page_ids[i]);
}

static void use(struct simulate *sim, uint32_t slot)
{
	if (sim->evict)
		evict_touch(sim->evict, slot);
}

/* A slot for a newcomer: a fresh one, or that of who leaves. */
static int take_slot(struct simulate *sim, uint32_t *ret_slot, struct kvs_error *err)
{
	uint32_t slot = sim->used;

	if (slot < sim->capacity) {
		const int rc = slot < sim->room ? 0 : grow(sim, err);

		if (rc < 0)
			return rc;
		sim->used++;
	} else if (sim->evict) {
		slot = evict_victim(sim->evict, NULL, NULL);
		KVS_ASSERT(slot != SLOT_NONE);
		map_remove(&sim->map, hash_of(sim->ids[slot]), slot);
	} else {
		return err_set(err, KVS_E_FULL, "capacity: more than %u distinct blocks",
			       SIMULATE_CAPACITY_MAX);
	}
	*ret_slot = slot;
	return 0;
}

static int enter(struct simulate *sim, uint64_t id, uint64_t hash, uint32_t *ret_slot,
		 struct kvs_error *err)
{
	const int rc = take_slot(sim, ret_slot, err);

	if (rc < 0)
		return rc;
	sim->ids[*ret_slot] = id;
	map_insert(&sim->map, hash, *ret_slot);
	if (sim->evict)
		evict_insert(sim->evict, *ret_slot, hash);
	return 0;
}

/* Steps 1 and 2; fills the chain. */
static int walk(struct simulate *sim, const struct source_request *request, const uint64_t *hashes,
		uint32_t *ret_hits, struct kvs_error *err)
{
	uint32_t hits = 0;
	uint32_t i;

	for (i = 0; i < request->page_count; i++) {
		uint32_t slot = map_find(&sim->map, hashes[i], &request->page_ids[i]);
		int      rc = 0;

		if (slot == SLOT_NONE) {
			rc = enter(sim, request->page_ids[i], hashes[i], &slot, err);
		} else {
			use(sim, slot);
			hits += hits == i;
		}
		if (rc < 0)
			return rc;
		sim->chain[i] = slot;
	}
	*ret_hits = hits;
	return 0;
}

/* A request longer than the cache pushed its own first pages out: their slots hold others. */
static void settle(struct simulate *sim, const struct source_request *request,
		   const uint64_t *hashes)
{
	uint32_t i;

	if (!sim->evict)
		return;
	for (i = 0; i < request->page_count; i++) {
		if (sim->ids[sim->chain[i]] != request->page_ids[i])
			sim->chain[i] = map_find(&sim->map, hashes[i], &request->page_ids[i]);
	}
	evict_settle(sim->evict, sim->chain, request->page_count);
}

static uint64_t tokens_of(const struct source_request *request, uint32_t pages)
{
	const uint64_t tokens = (uint64_t)pages * SOURCE_PAGE_TOKENS;

	return tokens < request->input_tokens ? tokens : request->input_tokens;
}

int simulate_request(struct simulate *sim, const struct source_request *request,
		     const uint64_t *hashes, struct kvs_error *err)
{
	uint32_t *chain = source_page_room(sim->chain, sizeof(*chain), &sim->chain_room,
					   request->page_count, err);
	uint32_t  hits = 0;
	int       rc;

	if (!chain)
		return -ENOMEM;
	sim->chain = chain;
	rc = walk(sim, request, hashes, &hits, err);
	if (rc < 0)
		return rc;
	settle(sim, request, hashes);
	sim->counts.requests++;
	sim->counts.blocks += request->page_count;
	sim->counts.hit_blocks += hits;
	sim->counts.tokens += request->input_tokens;
	sim->counts.hit_tokens += tokens_of(request, hits);
	return 0;
}

struct simulate_counts simulate_counts(const struct simulate *sim)
{
	return sim->counts;
}

void simulate_audit(const struct simulate *sim)
{
	map_audit(&sim->map);
	KVS_ASSERT_CMP(sim->map.count, ==, sim->used);
	KVS_ASSERT_CMP(sim->used, <=, sim->room);
	if (!sim->evict)
		return;
	evict_audit(sim->evict);
	KVS_ASSERT_CMP(evict_count(sim->evict), ==, sim->used);
}
