/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving names to blocks: which blocks of a request's tables are published when pages complete.
 *
 * A name has one block.  Where another block bears it already, the request's table takes that one and
 * lets go of its own: equal names, equal bytes.
 */
#include "coord/parts.h"
#include "match/joint.h"

/* --- checks ----------------------------------------------------------------------------------- */

int epoch_check(const struct cache *cache, uint64_t epoch, struct kvs_error *err)
{
	if (epoch > 0 && epoch <= cache->clock)
		return 0;
	return err_set(err, KVS_E_INVALID, "epoch: %llu was never drawn; the clock is at %llu",
		       (unsigned long long)epoch, (unsigned long long)cache->clock);
}

/* Do the pages before page_end have slots in every table that will publish? */
static int check_slots(const struct cache *cache, const uint32_t *slot_counts, uint64_t page_end,
		       bool closed_only, struct kvs_error *err)
{
	const struct groups *const groups = &cache->pages.groups;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];

		if (closed_only && !group_is_closed(group))
			continue;
		if (page_end * group->page_blocks > slot_counts[g]) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "page_count: pages up to %llu do not fit into %u slots", g,
				       group->spec.name, (unsigned long long)page_end,
				       slot_counts[g]);
		}
	}
	return 0;
}

static int check_kind(enum cell_kind kind, bool any, struct kvs_error *err)
{
	const bool valid = kind == CELL_CHUNK || kind == CELL_ENDPOINT || kind == CELL_PROMOTED;

	if (any ? valid : kind == CELL_NONE)
		return 0;
	return err_set(err, KVS_E_INVALID, "kind: %u, must be 1 to %u with new pages, 0 without",
		       (unsigned int)kind, (unsigned int)CELL_PROMOTED);
}

uint64_t tables_end(const struct cache *cache, const struct table *tables)
{
	uint64_t end = 0;
	uint32_t g;

	for (g = 0; g < cache->pages.groups.count; g++) {
		const uint64_t of_table = table_end(&tables[g], &cache->pages.groups.group[g]);

		end = of_table > end ? of_table : end;
	}
	return end;
}

int completed_check(const struct cache *cache, const uint32_t *slot_counts, uint64_t end,
		    const struct cache_completed *completed, struct kvs_error *err)
{
	const bool     any = completed->new_begin < completed->page_count;
	const uint64_t tokens = (uint64_t)completed->page_count * cache->pages.groups.page_tokens;
	int            rc;

	if (completed->new_begin > completed->page_count) {
		return err_set(err, KVS_E_INVALID, "new_begin: %u, after all %u pages",
			       completed->new_begin, completed->page_count);
	}
	if (completed->computed != COMPUTED_NONE && completed->computed > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "computed: %llu tokens, must be at most %d",
			       (unsigned long long)completed->computed, TOKENS_MAX);
	}
	if (completed->computed != COMPUTED_NONE && completed->computed > end) {
		return err_set(err, KVS_E_INVALID, "computed: %llu tokens, the tables end at %llu",
			       (unsigned long long)completed->computed, (unsigned long long)end);
	}
	if (completed->computed < tokens) {
		return err_set(err, KVS_E_INVALID,
			       "computed: %llu tokens, must be at least those of %u pages, %llu",
			       (unsigned long long)completed->computed, completed->page_count,
			       (unsigned long long)tokens);
	}
	rc = check_kind(completed->kind, any, err);
	if (rc < 0 || !any)
		return rc;
	return check_slots(cache, slot_counts, completed->page_count,
			   completed->computed == COMPUTED_NONE, err);
}

/* --- one cell --------------------------------------------------------------------------------- */

/* What all cells of one call have in common. */
struct publication {
	struct table               *tables;
	const struct kvs_namespace *space;
	uint64_t                    epoch;
	enum cell_kind              kind;
};

static void take_canonical(struct shelf *shelf, const struct publication *what, uint32_t group,
			   uint32_t *slot, uint32_t canonical)
{
	shelf_pin(shelf, group, canonical);
	shelf_touch(shelf, group, canonical, what->epoch, (uint8_t)what->kind, false);
	shelf_unpin(shelf, group, *slot);
	*slot = canonical;
}

/* Returns the page's entry, which the first block makes. */
static uint32_t publish_new(struct cache *cache, const struct publication *what, uint32_t group,
			    uint32_t position, const struct prefix_hash *hash)
{
	const struct group *const group_of = &cache->pages.groups.group[group];
	struct shelf *const       shelf = device_of(cache);
	const uint32_t            block = what->tables[group].slots[position];
	const struct shelf_mark   mark = { .position = position, .kind = (uint8_t)what->kind,
					   .group = (uint8_t)group };
	uint32_t                  cell;

	shelf_publish(shelf, what->space, hash,
		      group_column(group_of, position), block, &mark, what->epoch);
	cache->version++;
	cell = shelf->marks[shelf_place(shelf, group, block)].cell;
	cell_tell(cache, cell, block, true);
	return pages_cell_entry(&cache->pages, cell);
}

/*
 * A block has one name, a name one position, and a request does not let go of a block in one slot and
 * take it in another: what breaks that is no prefix hash.
 */
static bool may_bear(struct cache *cache, uint32_t group, uint32_t canonical, uint32_t position)
{
	const struct shelf *const shelf = device_of(cache);
	uint32_t                  place;

	if (canonical == BLOCK_NULL)
		return true;
	place = shelf_place(shelf, group, canonical);
	return shelf->marks[place].position == position && !shadow_saw(&cache->shadow, place);
}

/*
 * One position of a table under its page's hash; entry is the page's, SLOT_NONE while it has none.  A
 * hole has nothing to publish.
 */
static uint32_t publish_position(struct cache *cache, const struct publication *what, uint32_t group,
				 uint32_t position, const struct prefix_hash *hash, uint32_t entry)
{
	const struct group *const group_of = &cache->pages.groups.group[group];
	const uint32_t            column = group_column(group_of, position);
	struct shelf *const       shelf = device_of(cache);
	uint32_t *const           slot = &what->tables[group].slots[position];
	uint32_t                  canonical = BLOCK_NULL;

	if (*slot == BLOCK_NULL)
		return entry;
	if (entry != SLOT_NONE) {
		canonical = pages_block(&cache->pages, pages_cell(&cache->pages, entry, column),
					STRATUM_DEVICE);
	}
	if (canonical == *slot) {
		shelf_touch(shelf, group, *slot, what->epoch, (uint8_t)what->kind, false);
		return entry;
	}
	if (shelf_published(shelf, group, *slot) || !may_bear(cache, group, canonical, position))
		return entry;
	if (canonical == BLOCK_NULL)
		return publish_new(cache, what, group, position, hash);
	take_canonical(shelf, what, group, slot, canonical);
	return entry;
}

/* Positions [begin, end) of a group; hashes are of pages from first_page on.  A look-up a page. */
static void publish_run(struct cache *cache, const struct publication *what, uint32_t group,
			uint32_t begin, uint32_t end, const struct prefix_hash *hashes,
			uint32_t first_page)
{
	const uint32_t page_blocks = cache->pages.groups.group[group].page_blocks;
	uint32_t       entry = SLOT_NONE;
	uint32_t       position;

	for (position = begin; position < end; position++) {
		const struct prefix_hash *const hash = &hashes[position / page_blocks - first_page];

		if (position == begin || position % page_blocks == 0)
			entry = pages_find(&cache->pages, what->space, hash);
		entry = publish_position(cache, what, group, position, hash, entry);
	}
}

/* --- what a request completed ----------------------------------------------------------------- */

/* The first position of a group that is published; `end`, that of the last page, when none is. */
static uint32_t publish_begin(const struct cache *cache, const struct group *group,
			      const struct cache_completed *completed, uint32_t end)
{
	const uint64_t tokens = (uint64_t)completed->page_count * cache->pages.groups.page_tokens;

	if (group_is_closed(group))
		return completed->new_begin * group->page_blocks;
	if (completed->computed == COMPUTED_NONE)
		return end;
	/* A state that went past the boundary is not the boundary's any more. */
	if (group->spec.kind == GROUP_STATE && completed->computed != tokens)
		return end;
	return group_first_needed(group, end);
}

void completed_publish(struct cache *cache, struct table *tables,
		       const struct cache_completed *completed, uint64_t epoch)
{
	const struct groups *const groups = &cache->pages.groups;
	const struct publication   what = { tables, completed->space, epoch, completed->kind };
	uint32_t                   g;

	if (completed->new_begin == completed->page_count)
		return;
	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];
		const uint32_t            end = completed->page_count * group->page_blocks;

		publish_run(cache, &what, g, publish_begin(cache, group, completed, end), end,
			    completed->hashes, 0);
	}
}

int cache_advance(struct cache *cache, struct table *tables, const struct cache_completed *completed,
		  uint64_t epoch, struct kvs_error *err)
{
	uint32_t slot_counts[GROUPS_MAX];
	uint32_t g;
	int      rc;

	for (g = 0; g < cache->pages.groups.count; g++)
		slot_counts[g] = tables[g].count;
	rc = epoch_check(cache, epoch, err);
	if (rc == 0)
		rc = completed_check(cache, slot_counts, tables_end(cache, tables), completed, err);
	if (rc < 0)
		return rc;
	completed_publish(cache, tables, completed, epoch);
	if (completed->computed != COMPUTED_NONE)
		cache_reclaim(cache, tables, completed->computed);
	return 0;
}

/* --- exact ranges ----------------------------------------------------------------------------- */

int cache_publish(struct cache *cache, struct table *tables, const struct kvs_namespace *space,
		  const struct prefix_hash *hashes, uint32_t first_page, uint32_t page_count,
		  uint64_t epoch, enum cell_kind kind, struct kvs_error *err)
{
	const struct groups *const groups = &cache->pages.groups;
	const struct publication   what = { tables, space, epoch, kind };
	const uint64_t             page_end = (uint64_t)first_page + page_count;
	uint32_t                   slot_counts[GROUPS_MAX];
	uint32_t                   g;
	int                        rc;

	if (page_count == 0)
		return 0;
	for (g = 0; g < groups->count; g++)
		slot_counts[g] = tables[g].count;
	rc = epoch_check(cache, epoch, err);
	if (rc == 0)
		rc = check_kind(kind, true, err);
	if (rc == 0)
		rc = check_slots(cache, slot_counts, page_end, false, err);
	if (rc < 0)
		return rc;
	for (g = 0; g < groups->count; g++) {
		publish_run(cache, &what, g, first_page * groups->group[g].page_blocks,
			    (uint32_t)page_end * groups->group[g].page_blocks, hashes, first_page);
	}
	return 0;
}

static int check_tail(const struct cache *cache, const struct table *tables,
		      const struct tail *tail, uint64_t computed, struct kvs_error *err)
{
	const struct groups *const groups = &cache->pages.groups;
	uint32_t                   g;

	if (tail->tokens > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "tail.tokens: %u, must be at most %d", tail->tokens,
			       TOKENS_MAX);
	}
	if (tail->tokens % groups->page_tokens == 0 || tail->tokens > computed) {
		return err_set(err, KVS_E_INVALID,
			       "tail.tokens: %u, must not be a multiple of %u, nor above computed, %llu",
			       tail->tokens, groups->page_tokens, (unsigned long long)computed);
	}
	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];

		if (group_tokens_at(group, tables[g].count) < tail->tokens) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "tail.tokens: %u, the table ends before it", g,
				       group->spec.name, tail->tokens);
		}
	}
	return 0;
}

int cache_publish_tail(struct cache *cache, struct table *tables,
		       const struct kvs_namespace *space, const struct tail *tail,
		       uint64_t computed, uint64_t epoch, enum cell_kind kind, struct kvs_error *err)
{
	const struct groups *const groups = &cache->pages.groups;
	const struct publication   what = { tables, space, epoch, kind };
	const uint32_t             page = tail->tokens / groups->page_tokens;
	uint32_t                   g;
	int                        rc;

	rc = epoch_check(cache, epoch, err);
	if (rc == 0)
		rc = check_kind(kind, true, err);
	if (rc == 0)
		rc = check_tail(cache, tables, tail, computed, err);
	if (rc < 0)
		return rc;
	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];
		const uint32_t            page_begin = page * group->page_blocks;
		uint32_t                  first, end;

		if (group->spec.kind == GROUP_STATE && computed != tail->tokens)
			continue;
		match_needed(group, tail->tokens, &first, &end);
		publish_run(cache, &what, g, first > page_begin ? first : page_begin, end,
			    &tail->hash, page);
	}
	return 0;
}
