/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan holds, as text.  Texts rotate: the last few stay good. */
#include "loom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/err.h"

static char *next_text(struct loom *loom)
{
	char *const text = loom->text[loom->texts++ % ARRAY_COUNT(loom->text)];

	text[0] = '\0';
	return text;
}

static void __attribute__((format(printf, 2, 3))) append(char *text, const char *format, ...)
{
	const size_t length = strlen(text);
	va_list      args;

	va_start(args, format);
	(void)vsnprintf(text + length, LOOM_TEXT_BYTES - length, format, args);
	va_end(args);
}

const char *loom_rows(struct loom *loom)
{
	static const char kinds[] = { [BATCH_PREFILL] = 'p', [BATCH_REMOTE] = 'r',
				      [BATCH_DECODE] = 'd' };
	char *const       text = next_text(loom);
	uint32_t          i;

	for (i = 0; i < loom->plan->forward.row_count; i++) {
		const struct batch_row *const row = &loom->plan->forward.rows[i];

		append(text, "%s%s %c%u+%u", i == 0 ? "" : ", ", row->id, kinds[row->kind],
		       row->begin, row->token_count);
	}
	return text;
}

static uint32_t index_of(const struct loom *loom, const char *id)
{
	const struct batch *const forward = &loom->plan->forward;
	uint32_t                  i;

	for (i = 0; i < forward->row_count && strcmp(forward->rows[i].id, id) != 0; i++)
		;
	return i;
}

const struct batch_row *loom_row(const struct loom *loom, const char *id)
{
	const uint32_t i = index_of(loom, id);

	return i < loom->plan->forward.row_count ? &loom->plan->forward.rows[i] : NULL;
}

static const int32_t *line_of(const struct loom *loom, const char *id, uint32_t group)
{
	const struct batch_table *const table = &loom->plan->forward.tables[group];
	const uint32_t                  i = index_of(loom, id);

	assert_true(i < loom->plan->forward.row_count);
	return &table->slots[(size_t)i * table->width];
}

const char *loom_line(struct loom *loom, const char *id, uint32_t group)
{
	const int32_t *const line = line_of(loom, id, group);
	char *const          text = next_text(loom);
	uint32_t             i;

	for (i = 0; i < loom->plan->forward.tables[group].width; i++)
		append(text, "%c", line[i] > 0 ? 'x' : line[i] == 0 ? '.' : '-');
	return text;
}

int32_t loom_slot(const struct loom *loom, const char *id, uint32_t group, uint32_t slot)
{
	assert_true(slot < loom->plan->forward.tables[group].width);
	return line_of(loom, id, group)[slot];
}

uint32_t loom_fresh(const struct loom *loom, uint32_t group)
{
	return loom->plan->forward.fresh_count[group];
}

const char *loom_moves(struct loom *loom, uint64_t ticket)
{
	const struct mover *const        mover = sched_mover(loom->sched);
	const struct mover_ticket *const moved = mover_find(mover, ticket);
	char *const                      text = next_text(loom);
	uint32_t                         row;

	assert_non_null(moved);
	MOVER_ROWS(mover, moved, row) {
		const struct mover_row *const move = &mover->rows[row];

		append(text, "%s%u.%u", text[0] ? " " : "", move->group, move->position);
	}
	return text;
}

uint32_t loom_move_count(const struct loom *loom, uint64_t ticket)
{
	const struct mover_ticket *const moved = mover_find(sched_mover(loom->sched), ticket);

	assert_non_null(moved);
	return moved->rows.count;
}

uint32_t loom_free(const struct loom *loom)
{
	return sched_available(loom->sched);
}

uint32_t loom_host_cached(const struct loom *loom)
{
	const struct pages *const pages = cache_pages(sched_cache(loom->sched));
	uint32_t                  count = 0;
	uint32_t                  i;

	for (i = 0; i < pages->slots.count; i++)
		count += (uint32_t)__builtin_popcountll(pages->entries[i].held[STRATUM_HOST]);
	return count;
}
