/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tail.h.  A page is in the map while there is a hint behind it.  Each hint is in two lists,
 * that of its page and that of all ages, and in the same order in both.
 */
#include "match/tail.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/err.h"

static_assert(PROMPT_TOKENS_MAX == TOKENS_MAX, "a prompt that is named can be matched");
static_assert(offsetof(struct tail_page, name) == 0, "a page begins with its key");

static int check(uint32_t hint_max, uint32_t page_tokens, struct kvs_error *err)
{
	if (hint_max == 0 || hint_max > INT32_MAX) {
		return err_set(err, KVS_E_INVALID, "hint_max: %u is out of range; use 1 to %d", hint_max,
			       INT32_MAX);
	}
	if (page_tokens == 0 || page_tokens > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "page_tokens: %u is out of range; use 1 to %d",
			       page_tokens, TOKENS_MAX);
	}
	return 0;
}

int tails_open(struct tails *tails, uint32_t hint_max, uint32_t page_tokens, struct kvs_error *err)
{
	const int rc = check(hint_max, page_tokens, err);

	*tails = (struct tails){ .page_tokens = page_tokens };
	if (rc < 0)
		return rc;
	list_init(&tails->age);
	tails->pages = calloc(hint_max, sizeof(*tails->pages));
	tails->hints = calloc(hint_max, sizeof(*tails->hints));
	tails->of_page = calloc(hint_max, sizeof(*tails->of_page));
	tails->of_age = calloc(hint_max, sizeof(*tails->of_age));
	if (!tails->pages || !tails->hints || !tails->of_page || !tails->of_age ||
	    slots_open(&tails->page_slots, hint_max) < 0 ||
	    slots_open(&tails->slots, hint_max) < 0 ||
	    map_open(&tails->map, hint_max, tails->pages, sizeof(*tails->pages),
		     sizeof(struct page_name)) < 0) {
		tails_close(tails);
		return err_set(err, -ENOMEM, "no memory for %u hints of tails", hint_max);
	}
	list_links_init(tails->of_page, hint_max);
	list_links_init(tails->of_age, hint_max);
	return 0;
}

void tails_close(struct tails *tails)
{
	map_close(&tails->map);
	slots_close(&tails->slots);
	slots_close(&tails->page_slots);
	free(tails->of_age);
	free(tails->of_page);
	free(tails->hints);
	free(tails->pages);
	*tails = (struct tails){ 0 };
}

size_t tails_bytes(const struct tails *tails)
{
	const size_t hint_bytes = sizeof(*tails->pages) + sizeof(*tails->hints) +
				  sizeof(*tails->of_page) + sizeof(*tails->of_age);

	return tails->slots.count * hint_bytes + map_bytes(&tails->map) +
	       2 * bits_words(tails->slots.count) * sizeof(uint64_t);
}

/* --- hints ------------------------------------------------------------------------------------ */

/* Before the first page stands a hash of zeros, which no page has. */
static struct page_name name_of(const struct kvs_namespace *space, const struct prefix_hash *prior)
{
	struct page_name name = { .space = *space };

	if (prior)
		name.hash = *prior;
	return name;
}

static uint32_t find_page(const struct tails *tails, const struct page_name *name)
{
	return map_find(&tails->map, map_hash(&tails->map, name), name);
}

static uint32_t find_hint(const struct tails *tails, uint32_t page, uint32_t token_count,
			  const struct prefix_hash *hash)
{
	uint32_t i = tails->pages[page].hints.head;

	while (i != SLOT_NONE && (tails->hints[i].token_count != token_count ||
				  memcmp(&tails->hints[i].hash, hash, sizeof(*hash)) != 0))
		i = tails->of_page[i].next;
	return i;
}

static uint32_t add_page(struct tails *tails, const struct page_name *name)
{
	const uint32_t page = slots_acquire(&tails->page_slots);

	KVS_ASSERT_CMP(page, !=, SLOT_NONE);
	tails->pages[page].name = *name;
	list_init(&tails->pages[page].hints);
	map_insert(&tails->map, map_hash(&tails->map, name), page);
	return page;
}

static void link_newest(struct tails *tails, uint32_t hint)
{
	list_push_tail(&tails->pages[tails->hints[hint].page].hints, tails->of_page, hint);
	list_push_tail(&tails->age, tails->of_age, hint);
}

static void unlink_hint(struct tails *tails, uint32_t hint)
{
	list_remove(&tails->pages[tails->hints[hint].page].hints, tails->of_page, hint);
	list_remove(&tails->age, tails->of_age, hint);
}

/* The page goes with the last hint behind it. */
static void drop_hint(struct tails *tails, uint32_t hint)
{
	const uint32_t          page = tails->hints[hint].page;
	struct tail_page *const p = &tails->pages[page];

	unlink_hint(tails, hint);
	slots_release(&tails->slots, hint);
	if (p->hints.count > 0)
		return;
	map_remove(&tails->map, map_hash(&tails->map, &p->name), page);
	slots_release(&tails->page_slots, page);
}

/* Room for a hint behind a page, SLOT_NONE when there is none yet. */
static void make_room(struct tails *tails, uint32_t page)
{
	if (page != SLOT_NONE && tails->pages[page].hints.count == TAILS_PER_PAGE) {
		tails->dropped_crowded++;
		drop_hint(tails, tails->pages[page].hints.head);
	} else if (tails->slots.busy_count == tails->slots.count) {
		tails->dropped_full++;
		drop_hint(tails, tails->age.head);
	}
}

void tails_record(struct tails *tails, const struct kvs_namespace *space,
		  const struct prefix_hash *prior, uint32_t token_count,
		  const struct prefix_hash *hash)
{
	const struct page_name name = name_of(space, prior);
	uint32_t               page = find_page(tails, &name);
	uint32_t               hint = SLOT_NONE;

	KVS_ASSERT_CMP(token_count, >, 0);
	KVS_ASSERT_CMP(token_count, <, tails->page_tokens);
	if (page != SLOT_NONE)
		hint = find_hint(tails, page, token_count, hash);
	if (hint != SLOT_NONE) {
		unlink_hint(tails, hint);
		link_newest(tails, hint);
		return;
	}
	make_room(tails, page);
	/* Its last hint may just have gone, and the page with it. */
	page = find_page(tails, &name);
	if (page == SLOT_NONE)
		page = add_page(tails, &name);
	hint = slots_acquire(&tails->slots);
	KVS_ASSERT_CMP(hint, !=, SLOT_NONE);
	tails->hints[hint] = (struct tail_hint){ *hash, token_count, page };
	link_newest(tails, hint);
}

uint32_t tails_behind(const struct tails *tails, const struct kvs_namespace *space,
		      const struct prefix_hash *prior, struct tail_hint ret_hints[TAILS_PER_PAGE])
{
	const struct page_name name = name_of(space, prior);
	const uint32_t         page = find_page(tails, &name);
	uint32_t               count = 0;
	uint32_t               i;

	if (page == SLOT_NONE)
		return 0;
	for (i = tails->pages[page].hints.tail; i != SLOT_NONE; i = tails->of_page[i].prev)
		ret_hints[count++] = tails->hints[i];
	return count;
}

void tails_clear(struct tails *tails)
{
	while (tails->age.count > 0)
		drop_hint(tails, tails->age.head);
}

/* --- candidates ------------------------------------------------------------------------------- */

static const struct prefix_hash *prior_of(const struct tail_search *search, uint32_t pages)
{
	return pages > 0 ? &search->hashes[pages - 1] : NULL;
}

static struct tail tail_of(const struct tail_search *search, uint32_t pages, uint32_t tail_tokens)
{
	struct tail tail = { .tokens = pages * search->prompt->page_tokens + tail_tokens };

	prefix_hash_tail(search->prompt, pages, tail_tokens, prior_of(search, pages), &tail.hash);
	return tail;
}

/* More tokens first; of equal counts the newest first, as they come. */
static void sort_hints(struct tail_hint *hints, uint32_t count)
{
	uint32_t i, at;

	for (i = 1; i < count; i++) {
		const struct tail_hint hint = hints[i];

		for (at = i; at > 0 && hints[at - 1].token_count < hint.token_count; at--)
			hints[at] = hints[at - 1];
		hints[at] = hint;
	}
}

/*
 * Candidates behind `pages` full pages, up to `reach` tokens; *last: tokens of the candidate
 * before them.
 */
static uint32_t find_behind(const struct tails *tails, const struct tail_search *search,
			    uint32_t pages, uint32_t reach, uint32_t *last, struct tail *ret_tails,
			    uint32_t tail_max)
{
	struct tail_hint hints[TAILS_PER_PAGE];
	const uint32_t   hint_count = tails_behind(tails, search->space, prior_of(search, pages),
						   hints);
	const uint32_t   start = pages * tails->page_tokens;
	uint32_t         count = 0;
	uint32_t         i;

	sort_hints(hints, hint_count);
	for (i = 0; i < hint_count && count < tail_max; i++) {
		const uint32_t tokens = start + hints[i].token_count;

		if (tokens > reach || tokens <= search->above || tokens == *last)
			continue;
		ret_tails[count] = tail_of(search, pages, hints[i].token_count);
		if (memcmp(&ret_tails[count].hash, &hints[i].hash, sizeof(hints[i].hash)) != 0)
			continue;
		*last = tokens;
		count++;
	}
	return count;
}

uint32_t tails_find(const struct tails *tails, const struct tail_search *search,
		    struct tail *ret_tails, uint32_t tail_max)
{
	const uint32_t page_tokens = tails->page_tokens;
	const uint32_t reach = search->reach < search->bound ? search->reach : search->bound;
	uint32_t       pages = reach / page_tokens;
	uint32_t       last = UINT32_MAX;
	uint32_t       count = 0;
	uint32_t       i;

	KVS_ASSERT_CMP(search->prompt->page_tokens, ==, page_tokens);
	KVS_ASSERT_CMP(search->bound, <=, search->prompt->token_count);
	if (search->above >= reach)
		return 0;
	if (tail_max > 0 && reach == search->bound && reach % page_tokens != 0) {
		ret_tails[count++] = tail_of(search, pages, reach % page_tokens);
		last = reach;
	}
	for (i = 0; i < search->page_max && count < tail_max; i++, pages--) {
		count += find_behind(tails, search, pages, reach, &last, ret_tails + count,
				     tail_max - count);
		if (pages == search->above / page_tokens)
			break;
	}
	return count;
}

/* --- audit ------------------------------------------------------------------------------------ */

/* Walk the hints by age: behind each page they must come in the order of its list. */
static void audit_order(const struct tails *tails)
{
	uint32_t i;

	for (i = tails->age.head; i != SLOT_NONE; i = tails->of_age[i].next) {
		const struct tail_hint *const hint = &tails->hints[i];
		const uint32_t                before = tails->of_page[i].prev;
		uint32_t                      older = tails->of_age[i].prev;

		KVS_ASSERT(slots_busy(&tails->slots, i));
		KVS_ASSERT(slots_busy(&tails->page_slots, hint->page));
		KVS_ASSERT_CMP(hint->token_count, >, 0);
		KVS_ASSERT_CMP(hint->token_count, <, tails->page_tokens);
		KVS_ASSERT_CMP(find_hint(tails, hint->page, hint->token_count, &hint->hash), ==, i);
		while (older != SLOT_NONE && tails->hints[older].page != hint->page)
			older = tails->of_age[older].prev;
		KVS_ASSERT_CMP(before, ==, older);
	}
}

void tails_audit(const struct tails *tails)
{
	uint32_t hints = 0;
	uint32_t page;

	slots_audit(&tails->slots);
	slots_audit(&tails->page_slots);
	map_audit(&tails->map);
	list_audit(&tails->age, tails->of_age, tails->slots.count);
	KVS_ASSERT_CMP(tails->map.count, ==, tails->page_slots.busy_count);
	KVS_ASSERT_CMP(tails->age.count, ==, tails->slots.busy_count);
	SLOTS_EACH(&tails->page_slots, page) {
		const struct list *const behind = &tails->pages[page].hints;

		list_audit(behind, tails->of_page, tails->slots.count);
		KVS_ASSERT_CMP(behind->count, >, 0);
		KVS_ASSERT_CMP(behind->count, <=, TAILS_PER_PAGE);
		hints += behind->count;
	}
	KVS_ASSERT_CMP(hints, ==, tails->age.count);
	audit_order(tails);
}
