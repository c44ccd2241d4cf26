/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of entries, the latest stamp last, and a map over their keys.
 *
 * An entry is known when it was found and its epoch is the present one.  The epoch is that of the
 * question, so that an answer which was on its way while all was forgotten makes nothing known; a get
 * asked no question here, so that its answer counts by the time when it began.
 */
#include "mooncake/probes.h"

#include <errno.h>
#include <stdlib.h>

struct entry {
	struct kvs_key key;
	uint64_t       stamp_ns; /* a lease may have begun then */
	uint32_t       epoch;
	bool           found;
};

struct probes {
	uint64_t      lease_ns;
	uint64_t      grown_ns; /* the bound has grown for the time before */
	uint64_t      skipped;
	uint32_t      probe_max, bound;
	uint32_t      epoch;    /* grows when all is forgotten */
	uint64_t      forgotten_ns; /* when it was, or one was removed, the last time */
	struct entry *entries;
	struct link  *links;
	struct list   queue, free;
	struct map    map;
};

static int allocate(struct probes *probes, uint32_t probe_max)
{
	uint32_t slot;

	probes->entries = calloc(probe_max, sizeof(*probes->entries));
	probes->links = calloc(probe_max, sizeof(*probes->links));
	if (!probes->entries || !probes->links ||
	    map_open(&probes->map, probe_max, &probes->entries->key, sizeof(*probes->entries),
		     sizeof(probes->entries->key)) < 0)
		return -ENOMEM;
	list_links_init(probes->links, probe_max);
	list_init(&probes->queue);
	list_init(&probes->free);
	for (slot = 0; slot < probe_max; slot++)
		list_push_tail(&probes->free, probes->links, slot);
	return 0;
}

int probes_open(uint64_t lease_ns, uint32_t probe_max, struct probes **ret_probes)
{
	struct probes *const probes = calloc(1, sizeof(*probes));

	KVS_ASSERT(lease_ns > 0 && probe_max > 0);
	if (!probes)
		return -ENOMEM;
	probes->lease_ns = lease_ns;
	probes->probe_max = probe_max;
	probes->bound = probe_max;
	if (allocate(probes, probe_max) < 0) {
		probes_close(probes);
		return -ENOMEM;
	}
	*ret_probes = probes;
	return 0;
}

void probes_close(struct probes *probes)
{
	if (!probes)
		return;
	if (probes->map.buckets)
		map_close(&probes->map);
	free(probes->links);
	free(probes->entries);
	free(probes);
}

static uint32_t find(const struct probes *probes, const struct kvs_key *key)
{
	return map_find(&probes->map, map_hash(&probes->map, key), key);
}

/* now_ns: a call that began before another may end after it. */
static bool is_older(const struct entry *entry, uint64_t age_ns, uint64_t now_ns)
{
	return now_ns >= entry->stamp_ns && now_ns - entry->stamp_ns >= age_ns;
}

static bool is_known(const struct probes *probes, const struct entry *entry, uint64_t now_ns)
{
	return entry->found && entry->epoch == probes->epoch &&
	       !is_older(entry, probes->lease_ns / 2, now_ns);
}

static void drop(struct probes *probes, uint32_t slot)
{
	map_remove(&probes->map, map_hash(&probes->map, &probes->entries[slot].key), slot);
	list_remove(&probes->queue, probes->links, slot);
	list_push_tail(&probes->free, probes->links, slot);
}

static void expire(struct probes *probes, uint64_t now_ns)
{
	while (probes->queue.count > 0 &&
	       is_older(&probes->entries[probes->queue.head], probes->lease_ns, now_ns))
		drop(probes, probes->queue.head);
}

/* Where there is room, which the caller knows. */
static void add(struct probes *probes, const struct kvs_key *key, uint64_t now_ns, bool found)
{
	const uint32_t slot = list_pop_head(&probes->free, probes->links);

	KVS_ASSERT(slot != SLOT_NONE);
	probes->entries[slot] = (struct entry){ *key, now_ns, probes->epoch, found };
	map_insert(&probes->map, map_hash(&probes->map, key), slot);
	list_push_tail(&probes->queue, probes->links, slot);
}

static void renew(struct probes *probes, uint32_t slot, uint64_t now_ns)
{
	probes->entries[slot].stamp_ns = now_ns;
	list_remove(&probes->queue, probes->links, slot);
	list_push_tail(&probes->queue, probes->links, slot);
}

static uint32_t least(const struct probes *probes)
{
	return probes->probe_max < PROBES_LEAST ? probes->probe_max : PROBES_LEAST;
}

static void grow(struct probes *probes, uint64_t now_ns)
{
	const uint64_t step = probes->probe_max / 8 > 0 ? probes->probe_max / 8 : 1;
	const uint64_t room = probes->probe_max - probes->bound;
	uint64_t       leases;

	if (now_ns <= probes->grown_ns)
		return;
	leases = (now_ns - probes->grown_ns) / probes->lease_ns;
	probes->grown_ns += leases * probes->lease_ns;
	probes->bound += (uint32_t)(leases > room / step ? room : leases * step);
}

enum probe probes_look(struct probes *probes, const struct kvs_key *key, uint64_t now_ns)
{
	uint32_t slot;

	expire(probes, now_ns);
	grow(probes, now_ns);
	slot = find(probes, key);
	if (slot != SLOT_NONE && is_known(probes, &probes->entries[slot], now_ns))
		return PROBE_FOUND;
	if (slot == SLOT_NONE && probes->queue.count < probes->bound) {
		add(probes, key, now_ns, false);
		return PROBE_ASK;
	}
	/* To ask again keeps no further object, but one for longer: not when there are too many. */
	if (slot != SLOT_NONE && probes->queue.count <= probes->bound) {
		probes->entries[slot].epoch = probes->epoch;
		probes->entries[slot].found = false;
		renew(probes, slot, now_ns);
		return PROBE_ASK;
	}
	probes->skipped++;
	return PROBE_SKIP;
}

bool probes_know(const struct probes *probes, const struct kvs_key *key, uint64_t now_ns)
{
	const uint32_t slot = find(probes, key);

	return slot != SLOT_NONE && is_known(probes, &probes->entries[slot], now_ns);
}

void probes_found(struct probes *probes, const struct kvs_key *key, uint64_t now_ns)
{
	const bool is_news = now_ns > probes->forgotten_ns;
	uint32_t   slot;

	expire(probes, now_ns);
	slot = find(probes, key);
	if (slot == SLOT_NONE) {
		/* A get's: it has its lease, whatever the bound says. */
		if (probes->queue.count < probes->probe_max)
			add(probes, key, now_ns, is_news);
		return;
	}
	if (is_news)
		probes->entries[slot].found = true;
	if (now_ns > probes->entries[slot].stamp_ns) {
		if (is_news)
			probes->entries[slot].epoch = probes->epoch;
		renew(probes, slot, now_ns);
	}
}

void probes_forget(struct probes *probes, const struct kvs_key *key)
{
	const uint32_t slot = find(probes, key);

	if (slot != SLOT_NONE)
		drop(probes, slot);
}

/* Of the calls that are under way nobody knows which have seen what was there before. */
static void turn_page(struct probes *probes, uint64_t now_ns)
{
	probes->forgotten_ns = now_ns > probes->forgotten_ns ? now_ns : probes->forgotten_ns;
}

void probes_removed(struct probes *probes, const struct kvs_key *key, uint64_t now_ns)
{
	probes_forget(probes, key);
	turn_page(probes, now_ns);
}

void probes_forget_all(struct probes *probes, uint64_t now_ns)
{
	probes->epoch++;
	turn_page(probes, now_ns);
}

void probes_refused(struct probes *probes, uint64_t now_ns)
{
	grow(probes, now_ns);
	probes->bound = probes->bound / 2 > least(probes) ? probes->bound / 2 : least(probes);
	probes->grown_ns = now_ns > probes->grown_ns ? now_ns : probes->grown_ns;
}

uint32_t probes_bound(const struct probes *probes)
{
	return probes->bound;
}

uint32_t probes_count(const struct probes *probes)
{
	return probes->queue.count;
}

uint64_t probes_skipped(const struct probes *probes)
{
	return probes->skipped;
}

uint64_t probes_bytes(const struct probes *probes)
{
	return sizeof(*probes) + map_bytes(&probes->map) +
	       probes->probe_max * (sizeof(*probes->entries) + sizeof(*probes->links));
}

void probes_audit(const struct probes *probes)
{
	uint32_t slot;

	list_audit(&probes->queue, probes->links, probes->probe_max);
	list_audit(&probes->free, probes->links, probes->probe_max);
	map_audit(&probes->map);
	KVS_ASSERT_CMP(probes->queue.count + probes->free.count, ==, probes->probe_max);
	KVS_ASSERT_CMP(probes->queue.count, ==, probes->map.count);
	KVS_ASSERT_CMP(probes->bound, >=, least(probes));
	KVS_ASSERT_CMP(probes->bound, <=, probes->probe_max);
	for (slot = probes->queue.head; slot != SLOT_NONE; slot = probes->links[slot].next)
		KVS_ASSERT_CMP(find(probes, &probes->entries[slot].key), ==, slot);
}
