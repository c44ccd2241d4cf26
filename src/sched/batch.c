/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. */
#include "sched/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define SLOT_HOLE 0
#define SLOT_BEHIND (-1)

static_assert(BLOCK_NULL == SLOT_HOLE, "a table's hole is a line's");

/* --- open and close --------------------------------------------------------------------------- */

static bool open_groups(struct batcher *batcher, const uint32_t *slot_max,
			const uint32_t *fresh_max)
{
	uint32_t g;

	for (g = 0; g < batcher->group_count; g++) {
		batcher->slot_max[g] = slot_max[g];
		batcher->fresh_max[g] = fresh_max[g];
		batcher->slots[g] = calloc((size_t)batcher->row_max * slot_max[g],
					   sizeof(*batcher->slots[g]));
		batcher->fresh[g] = calloc(fresh_max[g], sizeof(*batcher->fresh[g]));
		if (!batcher->slots[g] || !batcher->fresh[g])
			return false;
	}
	return true;
}

int batcher_open(struct batcher *batcher, uint32_t group_count, uint32_t row_max,
		 const uint32_t *slot_max, const uint32_t *fresh_max)
{
	*batcher = (struct batcher){ .group_count = group_count, .row_max = row_max };
	KVS_ASSERT_CMP(group_count, <=, GROUPS_MAX);
	batcher->rows = calloc(row_max, sizeof(*batcher->rows));
	batcher->tables = calloc((size_t)row_max * group_count, sizeof(*batcher->tables));
	if (!batcher->rows || !batcher->tables || !open_groups(batcher, slot_max, fresh_max)) {
		batcher_close(batcher);
		return -ENOMEM;
	}
	return 0;
}

void batcher_close(struct batcher *batcher)
{
	uint32_t g;

	for (g = 0; g < batcher->group_count; g++) {
		free(batcher->fresh[g]);
		free(batcher->slots[g]);
	}
	free(batcher->tables);
	free(batcher->rows);
	*batcher = (struct batcher){ 0 };
}

size_t batcher_bytes(const struct batcher *batcher)
{
	const size_t row_bytes =
		sizeof(*batcher->rows) + batcher->group_count * sizeof(*batcher->tables);
	size_t       bytes = batcher->row_max * row_bytes;
	uint32_t     g;

	for (g = 0; g < batcher->group_count; g++) {
		bytes += (size_t)batcher->row_max * batcher->slot_max[g] *
				 sizeof(*batcher->slots[g]) +
			 batcher->fresh_max[g] * sizeof(*batcher->fresh[g]);
	}
	return bytes;
}

/* --- rows ------------------------------------------------------------------------------------- */

void batch_begin(struct batcher *batcher)
{
	batcher->row_count = 0;
	batcher->prefill_count = 0;
	memset(batcher->fresh_count, 0, sizeof(batcher->fresh_count));
}

static const struct table **tables_of(const struct batcher *batcher, uint32_t row)
{
	return &batcher->tables[(size_t)row * batcher->group_count];
}

/* A prefill that comes late goes before the decodes that are there. */
static uint32_t make_place(struct batcher *batcher, enum batch_kind kind)
{
	const uint32_t at = kind == BATCH_DECODE ? batcher->row_count : batcher->prefill_count;
	const uint32_t behind = batcher->row_count - at;

	memmove(&batcher->rows[at + 1], &batcher->rows[at], behind * sizeof(*batcher->rows));
	memmove(tables_of(batcher, at + 1), tables_of(batcher, at),
		(size_t)behind * batcher->group_count * sizeof(*batcher->tables));
	return at;
}

void batch_add(struct batcher *batcher, const struct batch_row *row,
	       const struct table *const *tables)
{
	uint32_t at;

	KVS_ASSERT_CMP(batcher->row_count, <, batcher->row_max);
	KVS_ASSERT(row->kind == BATCH_DECODE || batcher->prefill_count == 0 ||
		   batcher->rows[0].kind == row->kind);
	at = make_place(batcher, row->kind);
	batcher->rows[at] = *row;
	memcpy(tables_of(batcher, at), tables, batcher->group_count * sizeof(*tables));
	batcher->row_count++;
	batcher->prefill_count += row->kind != BATCH_DECODE;
}

void batch_add_fresh(struct batcher *batcher, const uint32_t *fresh, const uint32_t *fresh_count)
{
	uint32_t g;

	for (g = 0; g < batcher->group_count; g++) {
		uint32_t *const end = &batcher->fresh[g][batcher->fresh_count[g]];

		if (fresh_count[g] == 0)
			continue;
		KVS_ASSERT_CMP(fresh_count[g], <=, batcher->fresh_max[g] - batcher->fresh_count[g]);
		memcpy(end, fresh, fresh_count[g] * sizeof(*fresh));
		batcher->fresh_count[g] += fresh_count[g];
		fresh += fresh_count[g];
	}
}

/* --- tables ----------------------------------------------------------------------------------- */

static uint32_t width_of(const struct batcher *batcher, uint32_t group)
{
	uint32_t width = 0;
	uint32_t row;

	for (row = 0; row < batcher->row_count; row++) {
		const struct table *const table = tables_of(batcher, row)[group];

		if (table && table->count > width)
			width = table->count;
	}
	KVS_ASSERT_CMP(width, <=, batcher->slot_max[group]);
	return width;
}

static void write_line(int32_t *line, uint32_t width, const struct table *table)
{
	const uint32_t count = table ? table->count : 0;
	uint32_t       bits = 0;
	uint32_t       i;

	for (i = 0; i < count; i++) {
		bits |= table->slots[i];
		line[i] = (int32_t)table->slots[i];
	}
	/* Once a line: lines are long, and every step writes all of them. */
	KVS_ASSERT_CMP(bits, <=, INT32_MAX);
	for (; i < width; i++)
		line[i] = SLOT_BEHIND;
}

static struct batch_table write_table(struct batcher *batcher, uint32_t group)
{
	const uint32_t width = width_of(batcher, group);
	uint32_t       row;

	for (row = 0; row < batcher->row_count; row++) {
		write_line(&batcher->slots[group][(size_t)row * width], width,
			   tables_of(batcher, row)[group]);
	}
	return (struct batch_table){ .slots = batcher->slots[group], .width = width };
}

struct batch batch_end(struct batcher *batcher)
{
	struct batch batch = { .rows = batcher->rows, .row_count = batcher->row_count,
			       .prefill_count = batcher->prefill_count };
	uint32_t     g;

	for (g = 0; g < batcher->group_count; g++) {
		batch.tables[g] = write_table(batcher, g);
		batch.fresh[g] = batcher->fresh[g];
		batch.fresh_count[g] = batcher->fresh_count[g];
	}
	return batch;
}
