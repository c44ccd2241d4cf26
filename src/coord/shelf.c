/* SPDX-License-Identifier: Apache-2.0 */
/* See shelf.h.  The values of blocks on Device and on Host stand side by side here. */
#include "coord/shelf.h"

#include <errno.h>
#include <stdlib.h>

#include "coord/cache.h"

/* --- what a block is worth -------------------------------------------------------------------- */

/*
 * Device.  Within an epoch, boundaries that nobody has used go first, the shallower before the deeper,
 * so that the longest frontier is kept; then boundaries that proved themselves; then full history, from
 * its end, for what is right of a hole is lost.
 */
enum device_grade { GRADE_PROBATION = 1, GRADE_ESTABLISHED, GRADE_CLOSED };

static enum device_grade device_grade(const struct groups *groups, const struct shelf_mark *mark)
{
	if (group_is_closed(&groups->group[mark->group]))
		return GRADE_CLOSED;
	if (mark->kind == CELL_CHUNK && !mark->was_acquired && mark->position != POSITION_NONE)
		return GRADE_PROBATION;
	return GRADE_ESTABLISHED;
}

static uint64_t device_rank(const struct groups *groups, const struct shelf_mark *mark)
{
	const enum device_grade grade = device_grade(groups, mark);
	uint64_t                position = 0;

	if (grade == GRADE_PROBATION)
		position = mark->position;
	else if (grade == GRADE_CLOSED)
		position = TOKENS_MAX - (mark->position == POSITION_NONE ? 0 : mark->position);
	return (uint64_t)grade << 40 | position << 8 | mark->group;
}

static uint32_t device_class(const struct groups *groups, const struct shelf_mark *mark)
{
	(void)groups;
	(void)mark;
	return 0;
}

/* Host.  A class a group, so that each one's least valuable block is at hand; twice, acquired ones last. */
static uint32_t host_class(const struct groups *groups, const struct shelf_mark *mark)
{
	return (mark->was_acquired ? groups->count : 0) + mark->group;
}

static uint64_t host_rank(const struct groups *groups, const struct shelf_mark *mark)
{
	(void)groups;
	return mark->group;
}

/* --- open and close --------------------------------------------------------------------------- */

static int open_pool(struct shelf *shelf, const struct groups *groups, uint32_t parent_count,
		     struct kvs_error *err)
{
	uint32_t packing[GROUPS_MAX];
	uint64_t places;
	uint32_t g;

	shelf->place_max = groups->packing_max;
	for (g = 0; g < groups->count; g++)
		packing[g] = groups->group[g].spec.packing;
	places = (uint64_t)parent_count * shelf->place_max;
	if (places > POOL_BLOCK_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "parents: %u of up to %u blocks each, must be at most %d blocks in all",
			       parent_count, shelf->place_max, POOL_BLOCK_MAX);
	}
	shelf->place_count = (uint32_t)places;
	return pool_open(parent_count, packing, groups->count, &shelf->pool, err);
}

int shelf_open(struct shelf *shelf, enum stratum_id id, struct pages *pages,
	       uint32_t parent_count, struct kvs_error *err)
{
	const bool     host = id == STRATUM_HOST;
	const uint32_t classes = host ? 2 * pages->groups.count : 1;
	uint32_t       place;
	int            rc;

	*shelf = (struct shelf){ .id = id, .pages = pages,
				 .class_of = host ? host_class : device_class,
				 .rank_of = host ? host_rank : device_rank };
	rc = open_pool(shelf, &pages->groups, parent_count, err);
	if (rc < 0)
		return rc;
	shelf->marks = malloc(shelf->place_count * sizeof(*shelf->marks));
	if (!shelf->marks || order_open(&shelf->order, shelf->place_count, classes) < 0) {
		shelf_close(shelf);
		return err_set(err, -ENOMEM, "no memory for the marks of %u blocks",
			       shelf->place_count);
	}
	for (place = 0; place < shelf->place_count; place++)
		shelf->marks[place] = (struct shelf_mark){ .cell = SLOT_NONE };
	return 0;
}

void shelf_close(struct shelf *shelf)
{
	order_close(&shelf->order);
	free(shelf->marks);
	pool_close(shelf->pool);
	*shelf = (struct shelf){ 0 };
}

size_t shelf_bytes(const struct shelf *shelf)
{
	if (!shelf->pool)
		return 0;
	return pool_bytes(shelf->pool) + shelf->place_count * sizeof(*shelf->marks) +
	       order_bytes(&shelf->order);
}

/* --- places ----------------------------------------------------------------------------------- */

bool shelf_has(const struct shelf *shelf, uint32_t group, uint32_t block)
{
	return shelf->pool && group < shelf->pages->groups.count && block != BLOCK_NULL &&
	       (block - 1) / pool_packing(shelf->pool, group) < pool_parent_count(shelf->pool);
}

uint32_t shelf_place(const struct shelf *shelf, uint32_t group, uint32_t block)
{
	const uint32_t packing = pool_packing(shelf->pool, group);

	KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
	return (block - 1) / packing * shelf->place_max + (block - 1) % packing;
}

uint32_t shelf_parent(const struct shelf *shelf, uint32_t place)
{
	return 1 + place / shelf->place_max;
}

/* The other way round. */
static uint32_t block_at(const struct shelf *shelf, uint32_t group, uint32_t place)
{
	const uint32_t packing = pool_packing(shelf->pool, group);

	return 1 + place / shelf->place_max * packing + place % shelf->place_max;
}

uint32_t shelf_block(const struct shelf *shelf, uint32_t place)
{
	KVS_ASSERT_CMP(shelf->marks[place].cell, !=, SLOT_NONE);
	return block_at(shelf, shelf->marks[place].group, place);
}

bool shelf_held(const struct shelf *shelf, uint32_t group, uint32_t place)
{
	uint32_t bound;

	return pool_bound(shelf->pool, shelf_parent(shelf, place), &bound) && bound == group &&
	       pool_refs(shelf->pool, group, block_at(shelf, group, place)) > 0;
}

bool shelf_published(const struct shelf *shelf, uint32_t group, uint32_t block)
{
	return shelf->marks[shelf_place(shelf, group, block)].cell != SLOT_NONE;
}

/* --- references ------------------------------------------------------------------------------- */

uint32_t shelf_pin(struct shelf *shelf, uint32_t group, uint32_t block)
{
	const uint32_t refs = pool_pin(shelf->pool, group, block);

	if (refs == 2 && shelf_published(shelf, group, block))
		order_set_idle(&shelf->order, shelf_place(shelf, group, block), false);
	return refs;
}

uint32_t shelf_unpin(struct shelf *shelf, uint32_t group, uint32_t block)
{
	const bool     published = shelf_published(shelf, group, block);
	const uint32_t refs = pool_unpin(shelf->pool, group, block);

	if (published) {
		/* The last reference of a published block is the index's, and goes with its name. */
		KVS_ASSERT_CMP(refs, >, 0);
		if (refs == 1)
			order_set_idle(&shelf->order, shelf_place(shelf, group, block), true);
	}
	return refs;
}

/* --- names ------------------------------------------------------------------------------------ */

void shelf_publish(struct shelf *shelf, const struct kvs_namespace *space,
		   const struct prefix_hash *hash, uint32_t column, uint32_t block,
		   const struct shelf_mark *mark, uint64_t epoch)
{
	const struct groups *const groups = &shelf->pages->groups;
	const uint32_t             place = shelf_place(shelf, mark->group, block);

	KVS_ASSERT_CMP(shelf->marks[place].cell, ==, SLOT_NONE);
	shelf->marks[place] = *mark;
	shelf->marks[place].cell = pages_add(shelf->pages, space, hash, column, shelf->id, block);
	pool_pin(shelf->pool, mark->group, block);
	order_insert(&shelf->order, place, shelf->class_of(groups, mark), epoch,
		     shelf->rank_of(groups, mark));
	shelf->published++;
}

void shelf_touch(struct shelf *shelf, uint32_t group, uint32_t block, uint64_t epoch, uint8_t kind,
		 bool acquired)
{
	const struct groups *const groups = &shelf->pages->groups;
	const uint32_t             place = shelf_place(shelf, group, block);
	struct shelf_mark *const   mark = &shelf->marks[place];

	KVS_ASSERT_CMP(mark->cell, !=, SLOT_NONE);
	/* A request touches its own blocks with every page that it completes: nothing is news. */
	if (kind <= mark->kind && (!acquired || mark->was_acquired) &&
	    order_epoch(&shelf->order, place) == epoch)
		return;
	if (kind > mark->kind)
		mark->kind = kind;
	mark->was_acquired |= acquired;
	order_move(&shelf->order, place, shelf->class_of(groups, mark), epoch,
		   shelf->rank_of(groups, mark));
}

void shelf_evict(struct shelf *shelf, uint32_t place)
{
	struct shelf_mark *const mark = &shelf->marks[place];
	const uint32_t           block = shelf_block(shelf, place);

	KVS_ASSERT(order_is_idle(&shelf->order, place));
	order_remove(&shelf->order, place);
	pages_drop(shelf->pages, mark->cell, shelf->id);
	mark->cell = SLOT_NONE;
	shelf->published--;
	KVS_ASSERT_CMP(pool_unpin(shelf->pool, mark->group, block), ==, 0);
}

/* --- audit ------------------------------------------------------------------------------------ */

static void audit_place(const struct shelf *shelf, uint32_t place)
{
	const struct shelf_mark *const mark = &shelf->marks[place];
	const struct groups *const     groups = &shelf->pages->groups;
	const uint32_t                 block = shelf_block(shelf, place);
	const uint32_t                 column = mark->cell % groups->columns;
	const struct group *const      group = &groups->group[mark->group];
	uint32_t                       bound;

	KVS_ASSERT_CMP(pages_block(shelf->pages, mark->cell, shelf->id), ==, block);
	KVS_ASSERT_CMP(column - group->first_column, <, group->page_blocks);
	KVS_ASSERT(pool_bound(shelf->pool, shelf_parent(shelf, place), &bound));
	KVS_ASSERT_CMP(bound, ==, mark->group);
	KVS_ASSERT(order_has(&shelf->order, place));
	KVS_ASSERT_CMP(order_rank(&shelf->order, place), ==, shelf->rank_of(groups, mark));
	KVS_ASSERT_CMP(order_is_idle(&shelf->order, place), ==,
		       pool_refs(shelf->pool, mark->group, block) == 1);
}

void shelf_audit(const struct shelf *shelf)
{
	uint32_t published = 0;
	uint32_t place;

	pool_audit(shelf->pool);
	order_audit(&shelf->order);
	for (place = 0; place < shelf->place_count; place++) {
		if (shelf->marks[place].cell == SLOT_NONE) {
			KVS_ASSERT(!order_has(&shelf->order, place));
			continue;
		}
		published++;
		audit_place(shelf, place);
	}
	KVS_ASSERT_CMP(published, ==, shelf->published);
}
