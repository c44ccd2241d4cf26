/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See reserve.h.  Boundaries are tried from the longest on; what one needs of each origin is known
 * from sums, so that only one that can be had looks at its pages again.
 */
#include "coord/reserve.h"

#include <errno.h>
#include <stdlib.h>

#include "coord/parts.h"
#include "match/joint.h"

int reserver_open(struct reserver *reserver, struct cache *cache, uint32_t tail_max,
		  struct kvs_error *err)
{
	*reserver = (struct reserver){ .cache = cache };
	reserver->entries = malloc(cache->prompt_pages * sizeof(*reserver->entries));
	if (reserver->entries && origins_open(&reserver->origins, cache->pages.groups.count,
					      cache->prompt_pages, tail_max) == 0)
		return 0;
	reserver_close(reserver);
	return err_set(err, -ENOMEM, "no memory to reserve for prompts of %u pages",
		       cache->prompt_pages);
}

void reserver_close(struct reserver *reserver)
{
	origins_close(&reserver->origins);
	free(reserver->entries);
	*reserver = (struct reserver){ 0 };
}

size_t reserver_bytes(const struct reserver *reserver)
{
	if (!reserver->entries)
		return 0;
	return reserver->cache->prompt_pages * sizeof(*reserver->entries) +
	       origins_bytes(&reserver->origins);
}

/* --- boundaries ------------------------------------------------------------------------------- */

/* One prompt on its way through the boundaries. */
struct attempt {
	struct reserver                *reserver;
	const struct cache_reserve_ask *ask;
	uint32_t                        local_tokens;
	uint32_t                        rows[GROUPS_MAX]; /* of the boundary at hand, */
	uint64_t                        row_count;        /* of all groups, */
	uint64_t                        warm_count;       /* and what Host has of it */
	/*
	 * Without a boundary's own pins: what does not fit here fits no better with them.  Evictions leave
	 * it as it is, for an idle block and a free one count alike.
	 */
	struct host_room                room;
	bool                            room_known;
};

/* Match the cache as it is now: what it restores, and the origin of what is above Device's part. */
static int match(struct attempt *attempt, struct kvs_error *err)
{
	struct reserver *const                reserver = attempt->reserver;
	const struct cache_reserve_ask *const ask = attempt->ask;
	const struct cache_prompt *const      prompt = &ask->prompt;
	const struct pages *const             pages = &reserver->cache->pages;
	struct view                           view = { .pages = pages, .entries = reserver->entries,
						       .page_count = prompt->page_count,
						       .held_in = HELD_DEVICE | HELD_HOST,
						       .hints = ask->page_hints };
	struct cache_probe                    probe;
	int                                   rc;

	rc = cache_probe(reserver->cache, prompt, PROBE_ALL, &probe, err);
	if (rc < 0)
		return rc;
	attempt->local_tokens = (uint32_t)probe.host_tokens;
	view.held_pages = (uint32_t)probe.device_tokens / pages->groups.page_tokens;
	if (view.held_pages < prompt->page_count) {
		pages_find_all(pages, prompt->space, prompt->hashes + view.held_pages,
			       prompt->page_count - view.held_pages, reserver->entries + view.held_pages);
	}
	origins_count(&reserver->origins, &view, prompt->space, prompt->tails, prompt->tail_count,
		      ask->tail_hints);
	return 0;
}

/*
 * What a boundary takes; false when nobody has something that it needs, or nothing is to be got for it: a
 * tail of which no group needs a block, where all are windows of 1, is no hit while nobody knows it.
 */
static bool price(struct attempt *attempt, const struct boundary *end)
{
	const uint32_t groups = attempt->reserver->cache->pages.groups.count;
	uint32_t       g;

	attempt->row_count = attempt->warm_count = 0;
	for (g = 0; g < groups; g++) {
		const struct origin_count needed = origins_needed(&attempt->reserver->origins, end, g);

		if (needed.nowhere > 0)
			return false;
		attempt->rows[g] = needed.store;
		attempt->row_count += needed.store;
		attempt->warm_count += needed.host;
	}
	return attempt->row_count > 0;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Pin the boundary's warm blocks, or let go of them: nothing that it needs changes in between. */
static uint64_t pin_warm(struct attempt *attempt, const struct boundary *end, bool pin)
{
	struct cache *const         cache = attempt->reserver->cache;
	const struct origins *const origins = &attempt->reserver->origins;
	uint64_t                    count = 0;
	uint32_t                    first, needed_end, page, g;

	for (g = 0; g < cache->pages.groups.count; g++) {
		const struct group *const group = &cache->pages.groups.group[g];

		match_needed(group, end->tokens, &first, &needed_end);
		for (page = first / group->page_blocks; page * group->page_blocks < needed_end; page++) {
			const uint32_t entry = page < end->pages ? attempt->reserver->entries[page]
								 : origins->tail_entries[end->tail];
			uint64_t       warm = origins_page(origins, end, page).host &
					group_columns(group, page, first, needed_end);

			for (; warm; warm &= warm - 1, count++) {
				const uint32_t cell = pages_cell(&cache->pages, entry,
								 (uint32_t)__builtin_ctzll(warm));
				const uint32_t block = pages_block(&cache->pages, cell, STRATUM_HOST);

				if (pin)
					shelf_pin(host_of(cache), g, block);
				else
					shelf_unpin(host_of(cache), g, block);
			}
		}
	}
	return count;
}

/* A row for each column of a page that only the store has; false when Host has no more blocks. */
static bool take_page(struct attempt *attempt, const struct boundary *end, uint32_t g,
		      uint32_t page, uint64_t columns, struct cache_reservation *reservation)
{
	struct cache *const              cache = attempt->reserver->cache;
	const struct group *const        group = &cache->pages.groups.group[g];
	const struct cache_prompt *const prompt = &attempt->ask->prompt;

	for (; columns; columns &= columns - 1) {
		const uint32_t offset = (uint32_t)__builtin_ctzll(columns) - group->first_column;
		const uint32_t block = cache_host_acquire(cache, g);
		const bool     of_tail = page == end->pages;

		if (block == BLOCK_NULL)
			return false;
		reservation->rows[reservation->row_count++] = (struct cache_row){
			.hash = of_tail ? prompt->tails[end->tail].hash : prompt->hashes[page],
			.group = g,
			.offset = offset,
			.position = page * group->page_blocks + offset,
			.block = block,
			.of_tail = of_tail,
		};
	}
	return true;
}

static bool take_group(struct attempt *attempt, const struct boundary *end, uint32_t g,
		       struct cache_reservation *reservation)
{
	const struct group *const   group = &attempt->reserver->cache->pages.groups.group[g];
	const struct origins *const origins = &attempt->reserver->origins;
	uint32_t                    first, needed_end, page;

	match_needed(group, end->tokens, &first, &needed_end);
	for (page = first / group->page_blocks; page * group->page_blocks < needed_end; page++) {
		const uint64_t columns = origins_page(origins, end, page).store &
					 group_columns(group, page, first, needed_end);

		if (!take_page(attempt, end, g, page, columns, reservation))
			return false;
	}
	return true;
}

enum take { TAKE_DONE, TAKE_NO_ROOM, TAKE_EVICTED };

/* All rows of a boundary, or none and no room; TAKE_EVICTED: none, but the index has changed. */
static enum take take_rows(struct attempt *attempt, const struct boundary *end,
			   struct cache_reservation *reservation)
{
	struct cache *const cache = attempt->reserver->cache;
	const uint64_t      pinned = pin_warm(attempt, end, true);
	enum take           take = TAKE_NO_ROOM;
	uint32_t            g = 0;

	KVS_ASSERT_CMP(pinned, ==, attempt->warm_count);
	if (host_has_room(cache, attempt->rows)) {
		while (g < cache->pages.groups.count && take_group(attempt, end, g, reservation))
			g++;
		take = g == cache->pages.groups.count ? TAKE_DONE : TAKE_EVICTED;
	}
	KVS_ASSERT_CMP(pin_warm(attempt, end, false), ==, pinned);
	if (take == TAKE_DONE) {
		KVS_ASSERT_CMP(reservation->row_count, ==, attempt->row_count);
		return take;
	}
	cache_reservation_release(cache, reservation);
	reservation->row_count = 0;
	return take;
}

/* --- the reservation -------------------------------------------------------------------------- */

/* A boundary that every group can have: RESERVE_ROWS when its rows are taken, or what is short. */
static enum reserve_answer try_end(struct attempt *attempt, const struct boundary *end,
				   struct cache_reservation *reservation)
{
	enum take take;

	if (attempt->row_count + attempt->warm_count > attempt->ask->credits ||
	    attempt->row_count > reservation->row_max)
		return RESERVE_CREDITS;
	if (attempt->room_known && !host_room_fits(attempt->reserver->cache, &attempt->room, attempt->rows))
		return RESERVE_HOST_FULL;
	take = take_rows(attempt, end, reservation);
	if (take == TAKE_DONE)
		return RESERVE_ROWS;
	if (take == TAKE_EVICTED) { /* The prompt was checked when it was matched first. */
		KVS_ASSERT(match(attempt, NULL) == 0);
	} else if (!attempt->room_known) {
		host_room_look(attempt->reserver->cache, &attempt->room);
		attempt->room_known = true;
	}
	return RESERVE_HOST_FULL;
}

static void describe(const struct attempt *attempt, const struct boundary *end,
		     struct cache_reservation *reservation)
{
	const struct cache_prompt *const prompt = &attempt->ask->prompt;

	reservation->tokens = end->tokens;
	reservation->warm_count = (uint32_t)attempt->warm_count;
	if (end->tail == TAIL_NONE)
		return;
	reservation->tail_tokens = end->tokens % attempt->reserver->cache->pages.groups.page_tokens;
	reservation->tail_hash = prompt->tails[end->tail].hash;
	reservation->has_prior = end->pages > 0;
	if (end->pages > 0)
		reservation->prior_hash = prompt->hashes[end->pages - 1];
}

/* From the longest boundary down to what is there. */
static enum reserve_answer choose(struct attempt *attempt, struct cache_reservation *reservation)
{
	const struct cache_prompt *const prompt = &attempt->ask->prompt;
	const struct groups *const       groups = &attempt->reserver->cache->pages.groups;
	struct boundary_walk             walk = boundary_walk(prompt->tails, prompt->tail_count,
							      groups->page_tokens, prompt->page_count,
							      UINT32_MAX);
	struct boundary                  end = boundary_next(&walk);
	enum reserve_answer              answer;

	if (end.tokens <= attempt->local_tokens)
		return RESERVE_COVERED;
	for (; end.tokens > attempt->local_tokens; end = boundary_next(&walk)) {
		if (!price(attempt, &end))
			continue;
		answer = try_end(attempt, &end, reservation);
		if (answer == RESERVE_ROWS) {
			describe(attempt, &end, reservation);
			return answer;
		}
		if (reservation->shortened_by == RESERVE_ROWS)
			reservation->shortened_by = answer;
	}
	return reservation->shortened_by == RESERVE_ROWS ? RESERVE_NO_HINT : reservation->shortened_by;
}

int cache_reserve(struct reserver *reserver, const struct cache_reserve_ask *ask,
		  struct cache_reservation *reservation, enum reserve_answer *ret_answer,
		  struct kvs_error *err)
{
	struct attempt attempt = { .reserver = reserver, .ask = ask };
	int            rc;

	if (ask->prompt.tail_count > reserver->origins.tail_max) {
		return err_set(err, KVS_E_INVALID, "tail_count: %u, at most %u", ask->prompt.tail_count,
			       reserver->origins.tail_max);
	}
	rc = match(&attempt, err);
	if (rc < 0)
		return rc;
	*reservation = (struct cache_reservation){ .rows = reservation->rows,
						   .row_max = reservation->row_max,
						   .space = *ask->prompt.space };
	*ret_answer = choose(&attempt, reservation);
	reservation->local_tokens = attempt.local_tokens;
	if (*ret_answer != RESERVE_ROWS)
		reservation->tokens = attempt.local_tokens;
	return 0;
}
