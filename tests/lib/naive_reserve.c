/* SPDX-License-Identifier: Apache-2.0 */
#include "naive_reserve.h"

#include <string.h>

#define NONE UINT32_MAX

/* --- a copy of the cache ---------------------------------------------------------------------- */

static void look_at_host(const struct box *box, struct naive_reserve *naive)
{
	const struct pool *const pool = cache_pool(box->cache, STRATUM_HOST);
	uint32_t                 parent, slot, g;
	struct cell_view         view;

	naive->parent_count = pool_parent_count(pool);
	KVS_ASSERT_CMP(naive->parent_count, <=, NAIVE_PARENTS);
	for (parent = 1; parent <= naive->parent_count; parent++) {
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			struct naive_cell *const cell = &naive->host[parent - 1][slot];
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			cell->refs = pool_refs(pool, g, block);
			cell->used = cell->refs > 0;
			cell->group = g;
			cell->published = cell->used &&
					  cache_view(box->cache, STRATUM_HOST, g, block, &view);
			if (cell->published) {
				cell->epoch = view.epoch;
				cell->acquired = view.was_acquired;
			}
		}
	}
}

void naive_look(const struct box *box, struct naive_reserve *ret_naive)
{
	struct naive_reserve *const naive = ret_naive;
	uint32_t                    page, g, offset;

	*naive = (struct naive_reserve){ .groups = cache_groups(box->cache) };
	look_at_host(box, naive);
	for (page = 0; page < NAIVE_PAGES; page++) {
		for (g = 0; g < naive->groups->count; g++) {
			const struct group *const group = &naive->groups->group[g];

			for (offset = 0; offset < group->page_blocks; offset++) {
				const struct cell_name name = { &box->space, &box->hashes[page], g, offset };
				const uint32_t         host = cache_find(box->cache, STRATUM_HOST, &name);
				struct naive_cell     *cell;

				naive->device[page][group->first_column + offset] =
					cache_find(box->cache, STRATUM_DEVICE, &name) != BLOCK_NULL;
				if (host == BLOCK_NULL)
					continue;
				cell = &naive->host[(host - 1) / group->spec.packing]
						   [(host - 1) % group->spec.packing];
				cell->page = page;
				cell->offset = offset;
			}
		}
	}
}

/* --- what a boundary needs -------------------------------------------------------------------- */

enum where { ON_DEVICE, ON_HOST, IN_STORE, NOWHERE };

static struct naive_cell *find_host(struct naive_reserve *naive, uint32_t g, uint32_t page,
				    uint32_t offset)
{
	uint32_t parent, slot;

	for (parent = 0; parent < naive->parent_count; parent++) {
		for (slot = 0; slot < NAIVE_PACKING; slot++) {
			struct naive_cell *const cell = &naive->host[parent][slot];

			if (cell->used && cell->published && cell->group == g && cell->page == page &&
			    cell->offset == offset)
				return cell;
		}
	}
	return NULL;
}

static enum where where_is(struct naive_reserve *naive, const struct naive_prompt *prompt, uint32_t g,
			   uint32_t page, uint32_t offset)
{
	const uint32_t column = naive->groups->group[g].first_column + offset;

	if (naive->device[page][column])
		return ON_DEVICE;
	if (find_host(naive, g, page, offset))
		return ON_HOST;
	return prompt->hinted[page][column] ? IN_STORE : NOWHERE;
}

/* Does the query behind `tokens` attend to a token of this block? */
static bool is_needed(const struct group *group, uint32_t tokens, uint32_t position)
{
	const int64_t q = group->spec.block_tokens;
	const int64_t first = position * q;
	const int64_t last = first + q - 1 < (int64_t)tokens - 1 ? first + q - 1 : (int64_t)tokens - 1;
	const int64_t window = group->spec.kind == GROUP_STATE ? 2 : group->spec.window_tokens;

	if (last < first)
		return false;
	return group->spec.kind == GROUP_FULL || last >= (int64_t)tokens - window + 1;
}

struct bill {
	struct naive_row   rows[NAIVE_ROWS];
	struct naive_cell *warm[NAIVE_ROWS];
	uint32_t           row_count, warm_count;
	uint32_t           needed[GROUPS_MAX];
};

static bool make_bill(struct naive_reserve *naive, const struct naive_prompt *prompt, uint32_t tokens,
		      uint32_t tail, struct bill *bill)
{
	uint32_t g, position;

	memset(bill, 0, sizeof(*bill));
	for (g = 0; g < naive->groups->count; g++) {
		const struct group *const group = &naive->groups->group[g];

		for (position = 0; position * group->spec.block_tokens < tokens; position++) {
			const uint32_t chain = position / group->page_blocks;
			const bool     of_tail = tail != NONE &&
					     chain == tokens / naive->groups->page_tokens;
			const uint32_t page = of_tail ? NAIVE_TAILS + prompt->tail_page[tail] : chain;
			const uint32_t offset = position % group->page_blocks;
			enum where     where;

			if (!is_needed(group, tokens, position))
				continue;
			where = where_is(naive, prompt, g, page, offset);
			if (where == NOWHERE)
				return false;
			if (where == ON_HOST)
				bill->warm[bill->warm_count++] = find_host(naive, g, page, offset);
			if (where != IN_STORE)
				continue;
			bill->rows[bill->row_count++] = (struct naive_row){ g, page, position };
			bill->needed[g]++;
		}
	}
	return true;
}

/* --- the boundary ----------------------------------------------------------------------------- */

static bool take_all(struct naive_reserve *naive, const struct bill *bill)
{
	bool     enough = naive_has_room(naive, bill->needed);
	uint32_t i;

	if (!enough)
		return false;
	for (i = 0; i < bill->row_count && enough; i++)
		enough = naive_take(naive, bill->rows[i].group);
	if (!enough)
		naive_let_go(naive);
	return enough;
}

static enum reserve_answer try(struct naive_reserve *naive, const struct naive_prompt *prompt,
			       const struct bill *bill)
{
	uint32_t i;
	bool     enough;

	if (bill->row_count + bill->warm_count > prompt->credits || bill->row_count > prompt->row_max)
		return RESERVE_CREDITS;
	for (i = 0; i < bill->warm_count; i++)
		bill->warm[i]->refs++;
	enough = take_all(naive, bill);
	for (i = 0; i < bill->warm_count; i++)
		bill->warm[i]->refs--;
	return enough ? RESERVE_ROWS : RESERVE_HOST_FULL;
}

/* Is this a boundary of the prompt?  *ret_tail: of which tail. */
static bool is_boundary(const struct naive_reserve *naive, const struct naive_prompt *prompt,
			uint32_t tokens, uint32_t *ret_tail)
{
	const uint32_t page_tokens = naive->groups->page_tokens;
	uint32_t       i;

	*ret_tail = NONE;
	for (i = 0; i < prompt->tail_count; i++) {
		if (prompt->tail_tokens[i] == tokens)
			*ret_tail = i;
	}
	return *ret_tail != NONE || (tokens % page_tokens == 0 && tokens / page_tokens <= prompt->page_count);
}

/* A page boundary, or a tail of which Device or Host holds something. */
static bool is_known(struct naive_reserve *naive, const struct naive_prompt *prompt, uint32_t tail)
{
	const uint32_t page = tail == NONE ? 0 : NAIVE_TAILS + prompt->tail_page[tail];
	uint32_t       g, offset;
	bool           known = tail == NONE;

	for (g = 0; g < naive->groups->count; g++) {
		for (offset = 0; offset < naive->groups->group[g].page_blocks; offset++) {
			known |= naive->device[page][naive->groups->group[g].first_column + offset] ||
				 find_host(naive, g, page, offset);
		}
	}
	return known;
}

static bool is_hit(struct naive_reserve *naive, const struct naive_prompt *prompt, uint32_t tokens)
{
	struct bill bill;
	uint32_t    tail;

	return is_boundary(naive, prompt, tokens, &tail) && is_known(naive, prompt, tail) &&
	       make_bill(naive, prompt, tokens, tail, &bill) && bill.row_count == 0;
}

static uint32_t local_hit(struct naive_reserve *naive, const struct naive_prompt *prompt)
{
	uint32_t tokens = (prompt->page_count + 1) * naive->groups->page_tokens - 1;

	while (tokens > 0 && !is_hit(naive, prompt, tokens))
		tokens--;
	return tokens;
}

void naive_reserve(struct naive_reserve *naive, const struct naive_prompt *prompt)
{
	uint32_t    tokens = (prompt->page_count + 1) * naive->groups->page_tokens;
	struct bill bill;
	uint32_t    tail;

	naive->answer = RESERVE_COVERED;
	naive->local_tokens = local_hit(naive, prompt);
	while (--tokens > naive->local_tokens) {
		if (!is_boundary(naive, prompt, tokens, &tail))
			continue;
		if (naive->answer == RESERVE_COVERED)
			naive->answer = RESERVE_NO_HINT;
		if (!make_bill(naive, prompt, tokens, tail, &bill) || bill.row_count == 0)
			continue;
		naive->answer = try(naive, prompt, &bill);
		if (naive->answer == RESERVE_ROWS)
			break;
		if (naive->shortened_by == RESERVE_ROWS)
			naive->shortened_by = naive->answer;
		naive->local_tokens = local_hit(naive, prompt);
	}
	naive->tokens = naive->local_tokens;
	if (naive->answer != RESERVE_ROWS) {
		if (naive->shortened_by != RESERVE_ROWS)
			naive->answer = naive->shortened_by;
		return;
	}
	naive->tokens = tokens;
	naive->row_count = bill.row_count;
	naive->warm_count = bill.warm_count;
	memcpy(naive->rows, bill.rows, sizeof(bill.rows));
}
