/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See query.h.  Boundaries come longest first, and what a group needs of the full pages begins and
 * ends no later than for the boundary before.  So what lies at or behind asked_from, the first
 * position that the last boundary taken needs, and before the end of a new one is asked for
 * already; the new one adds what it misses before that.
 */
#include "plan/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "match/joint.h"
#include "plan/parts.h"

static uint64_t cells_of(const struct query *query)
{
	const struct query_limits *const limits = &query->limits;

	return ((uint64_t)limits->page_max + limits->tail_max) * query->groups.columns;
}

static int check_limits(const struct query *query, struct kvs_error *err)
{
	const struct query_limits *const limits = &query->limits;

	if (limits->page_max == 0)
		return err_set(err, KVS_E_INVALID, "page_max: 0 is too small; use at least 1");
	if (limits->key_max == 0)
		return err_set(err, KVS_E_INVALID, "key_max: 0 is too small; use at least 1");
	if (cells_of(query) > INT32_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "page_max, tail_max: %u and %u of %u blocks each are too many; "
			       "use at most %d blocks",
			       limits->page_max, limits->tail_max, query->groups.columns,
			       INT32_MAX);
	}
	return 0;
}

int query_open(struct query *query, const struct groups *groups, const struct query_limits *limits,
	       struct kvs_error *err)
{
	const size_t boundaries = (size_t)limits->page_max + limits->tail_max;
	int          rc;

	*query = (struct query){ .groups = *groups, .limits = *limits };
	rc = check_limits(query, err);
	if (rc < 0)
		return rc;
	query->keys = calloc(limits->key_max, sizeof(*query->keys));
	query->boundaries = calloc(boundaries, sizeof(*query->boundaries));
	query->seen = calloc(bits_words(cells_of(query)), sizeof(*query->seen));
	if (query->keys && query->boundaries && query->seen &&
	    origins_open(&query->origins, groups->count, limits->page_max, limits->tail_max) == 0)
		return 0;
	query_close(query);
	return err_set(err, -ENOMEM, "no memory to plan prompts of %u pages", limits->page_max);
}

void query_close(struct query *query)
{
	origins_close(&query->origins);
	free(query->seen);
	free(query->boundaries);
	free(query->keys);
	*query = (struct query){ 0 };
}

size_t query_bytes(const struct query *query)
{
	if (!query->keys)
		return 0;
	return query->limits.key_max * sizeof(*query->keys) +
	       ((size_t)query->limits.page_max + query->limits.tail_max) *
		       sizeof(*query->boundaries) +
	       bits_words(cells_of(query)) * sizeof(*query->seen) + origins_bytes(&query->origins);
}

uint32_t query_key_group(const struct query *query, const struct query_key *key)
{
	return query->groups.column_group[key->column];
}

uint32_t query_key_position(const struct query *query, const struct query_key *key)
{
	const struct group *const group = &query->groups.group[query_key_group(query, key)];

	return key->page * group->page_blocks + key->column - group->first_column;
}

/* --- boundaries ------------------------------------------------------------------------------- */

static struct need need_of(const struct query *query, const struct boundary *boundary, uint32_t g)
{
	const struct group *const group = &query->groups.group[g];
	const uint32_t            full = boundary->pages * group->page_blocks;
	struct need               need = { .end = full };
	uint32_t                  first, end;

	match_needed(group, boundary->tokens, &first, &end);
	need.first = first < full ? first : full;
	need.before_first = origins_before(&query->origins, g, need.first).nowhere;
	need.before_end = origins_before(&query->origins, g, full).nowhere;
	if (end > full) {
		need.tail_missing = origins_tail(&query->origins, boundary->tail).nowhere &
				    group_columns(group, boundary->pages, first, end);
	}
	return need;
}

/* What of a need in full pages is missing, and not asked for yet. */
static uint32_t added_count(const struct query *query, const struct need *need, uint32_t g)
{
	const uint32_t asked = query->asked_before[g];
	const uint32_t before_end = asked < need->before_end ? asked : need->before_end;

	return before_end > need->before_first ? before_end - need->before_first : 0;
}

struct price {
	uint32_t whole; /* all keys that a boundary misses */
	uint32_t added; /* those that nobody asked for yet */
};

static struct price price_of(const struct query *query, const struct need *needs)
{
	struct price price = { 0 };
	uint32_t     g;

	for (g = 0; g < query->groups.count; g++) {
		const struct need *const need = &needs[g];
		const uint32_t           of_tail =
			need->tail_missing ? (uint32_t)__builtin_popcountll(need->tail_missing) : 0;

		price.whole += of_tail + need->before_end - need->before_first;
		price.added += of_tail + added_count(query, need, g);
	}
	return price;
}

static void emit_columns(struct query *query, uint32_t page, uint32_t tail, uint64_t columns)
{
	for (; columns; columns &= columns - 1) {
		KVS_ASSERT_CMP(query->key_count, <, query->limits.key_max);
		query->keys[query->key_count++] =
			(struct query_key){ page, tail, (uint32_t)__builtin_ctzll(columns) };
	}
}

/* The missing ones of positions [first, end) of a group, all in full pages of a boundary. */
static void emit_range(struct query *query, const struct boundary *boundary,
		       const struct group *group, uint32_t first, uint32_t end)
{
	uint32_t page;

	for (page = first / group->page_blocks; page * group->page_blocks < end; page++) {
		emit_columns(query, page, TAIL_NONE,
			     origins_page(&query->origins, boundary, page).nowhere &
				     group_columns(group, page, first, end));
	}
}

static void take(struct query *query, const struct boundary *boundary, const struct need *needs)
{
	const struct groups *const groups = &query->groups;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		const struct need *const need = &needs[g];
		const uint32_t           asked = query->asked_from[g];

		if (added_count(query, need, g) > 0) {
			emit_range(query, boundary, &groups->group[g], need->first,
				   asked < need->end ? asked : need->end);
		}
		emit_columns(query, boundary->pages, boundary->tail, need->tail_missing);
		query->asked_from[g] = need->first;
		query->asked_before[g] = need->before_first;
	}
	query->boundaries[query->boundary_count++] =
		(struct query_boundary){ *boundary, query->key_count };
}

/* --- the plan --------------------------------------------------------------------------------- */

uint32_t query_reach(const struct query_limits *limits, uint32_t local_tokens,
		     uint32_t bound_tokens)
{
	const uint64_t ahead = (uint64_t)local_tokens + limits->lookahead_tokens;

	return ahead < bound_tokens ? (uint32_t)ahead : bound_tokens;
}

/* The first boundary that is passed over before one was taken is the longest. */
static void pass_over(struct query *query, enum query_cut cut)
{
	query->counts.cut_credits += cut == QUERY_CUT_CREDITS;
	query->counts.cut_keys += cut == QUERY_CUT_KEYS;
	query->counts.cut_absent += cut == QUERY_CUT_ABSENT;
	if (query->boundary_count == 0 && query->cut == QUERY_CUT_NONE)
		query->cut = cut;
}

/*
 * Take what fits.  Stops at a boundary that misses nothing: it is there, and what is shorter is of
 * no use.
 */
static enum query_bypass take_boundaries(struct query *query, const struct query_ask *ask,
					 struct boundary_walk walk, uint32_t least)
{
	const uint32_t    key_max = query->limits.key_max;
	struct boundary   boundary = boundary_next(&walk);
	enum query_bypass otherwise = QUERY_COVERED;
	struct need       needs[GROUPS_MAX];
	uint32_t          g;

	for (; boundary.tokens >= least; boundary = boundary_next(&walk)) {
		struct price price;
		uint64_t     keys;

		for (g = 0; g < query->groups.count; g++)
			needs[g] = need_of(query, &boundary, g);
		price = price_of(query, needs);
		keys = (uint64_t)query->key_count + price.added;
		if (price.whole == 0)
			break;
		if (absent_keeps_away(query, ask, &boundary, needs)) {
			pass_over(query, QUERY_CUT_ABSENT);
			otherwise = otherwise == QUERY_COVERED ? QUERY_ABSENT : otherwise;
			continue;
		}
		if (keys <= ask->credits && keys <= key_max) {
			take(query, &boundary, needs);
			continue;
		}
		otherwise = QUERY_CREDITS;
		pass_over(query, keys > ask->credits ? QUERY_CUT_CREDITS : QUERY_CUT_KEYS);
	}
	return query->key_count > 0 ? QUERY_ASKED : otherwise;
}

static enum query_bypass plan(struct query *query, const struct query_ask *ask)
{
	const uint32_t page_tokens = query->groups.page_tokens;
	const uint32_t minimum = query->limits.extension_min > 0 ? query->limits.extension_min : 1;
	const uint64_t least = (uint64_t)ask->local_tokens + minimum;
	const uint32_t reach = query_reach(&query->limits, ask->local_tokens, ask->bound_tokens);
	struct boundary_walk walk = boundary_walk(ask->tails, ask->tail_count, page_tokens,
						  ask->view->page_count, reach);
	struct boundary_walk ahead = walk;
	const uint32_t       longest = boundary_next(&ahead).tokens;
	struct view          view = *ask->view;

	if (ask->bound_tokens <= ask->local_tokens)
		return QUERY_COVERED;
	query->counts.cut_lookahead += reach < ask->bound_tokens;
	if (ask->bound_tokens < least)
		return QUERY_SHORT;
	if (longest <= ask->local_tokens)
		return QUERY_NO_BOUNDARY;
	if (longest < least)
		return QUERY_SHORT;
	view.page_count = longest / page_tokens;
	origins_count(&query->origins, &view, ask->space, ask->tails, ask->tail_count, NULL);
	return take_boundaries(query, ask, walk, (uint32_t)least);
}

/* What a caller got wrong. */
static void check_ask(const struct query *query, const struct query_ask *ask)
{
	const uint32_t page_tokens = query->groups.page_tokens;
	uint32_t       i;

	KVS_ASSERT_CMP(ask->bound_tokens / page_tokens, <=, ask->view->page_count);
	KVS_ASSERT_CMP(ask->bound_tokens / page_tokens, <=, query->limits.page_max);
	KVS_ASSERT_CMP(ask->tail_count, <=, query->limits.tail_max);
	for (i = 0; i < ask->tail_count; i++) {
		KVS_ASSERT_CMP(ask->tails[i].tokens % page_tokens, !=, 0);
		KVS_ASSERT(i == 0 || ask->tails[i].tokens < ask->tails[i - 1].tokens);
	}
}

enum query_bypass query_plan(struct query *query, const struct query_ask *ask)
{
	uint32_t g;

	check_ask(query, ask);
	query->key_count = 0;
	query->boundary_count = 0;
	query->has_barrier = false;
	query->cut = QUERY_CUT_NONE;
	for (g = 0; g < query->groups.count; g++) {
		query->asked_from[g] = UINT32_MAX;
		query->asked_before[g] = UINT32_MAX;
		query->absent_from[g] = UINT32_MAX;
		query->absent_seen[g] = UINT32_MAX;
	}
	query->bypass = plan(query, ask);
	query->counts.plans[query->bypass]++;
	return query->bypass;
}

/* --- audit ------------------------------------------------------------------------------------ */

static void audit_key(const struct query *query, const struct query_ask *ask, uint32_t i)
{
	const struct query_key *const key = &query->keys[i];
	const uint32_t                page_tokens = query->groups.page_tokens;
	const bool                    of_page = key->tail == TAIL_NONE;
	const size_t row = of_page ? key->page : (size_t)query->limits.page_max + key->tail;
	const size_t cell = row * query->groups.columns + key->column;
	uint64_t     held;

	KVS_ASSERT_CMP(key->column, <, query->groups.columns);
	if (of_page)
		KVS_ASSERT_CMP(key->page, <, ask->view->page_count);
	else
		KVS_ASSERT_CMP(key->page, ==, ask->tails[key->tail].tokens / page_tokens);
	held = of_page ? view_page(ask->view, key->page)
		       : ~origins_tail(&query->origins, key->tail).nowhere;
	KVS_ASSERT(!((held >> key->column) & 1));
	KVS_ASSERT(!bits_test(query->seen, cell));
	bits_set(query->seen, cell);
}

void query_audit(const struct query *query, const struct query_ask *ask)
{
	uint32_t last = query_reach(&query->limits, ask->local_tokens, ask->bound_tokens);
	uint32_t key_end = 0;
	uint32_t i;

	KVS_ASSERT_CMP(query->bypass == QUERY_ASKED, ==, query->key_count > 0);
	KVS_ASSERT_CMP(query->key_count, <=, query->limits.key_max);
	KVS_ASSERT_CMP(query->key_count, <=, ask->credits);
	memset(query->seen, 0, bits_words(cells_of(query)) * sizeof(*query->seen));
	for (i = 0; i < query->key_count; i++)
		audit_key(query, ask, i);
	for (i = 0; i < query->boundary_count; i++) {
		const struct query_boundary *const boundary = &query->boundaries[i];

		KVS_ASSERT_CMP(boundary->at.tokens, <=, i == 0 ? last : last - 1);
		KVS_ASSERT_CMP(boundary->at.tokens, >, ask->local_tokens);
		KVS_ASSERT_CMP(boundary->key_end, >=, key_end);
		last = boundary->at.tokens;
		key_end = boundary->key_end;
	}
	KVS_ASSERT_CMP(key_end, ==, query->key_count);
}
