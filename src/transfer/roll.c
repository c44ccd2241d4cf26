/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See roll.h.  A page is there while it has a name; a name is in the lists of its page and of ages.
 */
#include "transfer/roll.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

int roll_open(struct roll *roll, uint32_t name_max)
{
	*roll = (struct roll){ .name_max = name_max };
	list_init(&roll->age);
	if (name_max == 0)
		return 0;
	roll->pages = calloc(name_max, sizeof(*roll->pages));
	roll->names = calloc(name_max, sizeof(*roll->names));
	roll->of_page = calloc(name_max, sizeof(*roll->of_page));
	roll->of_age = calloc(name_max, sizeof(*roll->of_age));
	if (!roll->pages || !roll->names || !roll->of_page || !roll->of_age ||
	    slots_open(&roll->page_slots, name_max) < 0 || slots_open(&roll->slots, name_max) < 0 ||
	    map_open(&roll->map, name_max, roll->pages, sizeof(*roll->pages),
		     sizeof(struct page_name)) < 0) {
		roll_close(roll);
		return -ENOMEM;
	}
	list_links_init(roll->of_page, name_max);
	list_links_init(roll->of_age, name_max);
	return 0;
}

void roll_close(struct roll *roll)
{
	map_close(&roll->map);
	slots_close(&roll->slots);
	slots_close(&roll->page_slots);
	free(roll->of_age);
	free(roll->of_page);
	free(roll->names);
	free(roll->pages);
	*roll = (struct roll){ 0 };
}

size_t roll_bytes(const struct roll *roll)
{
	const size_t name_bytes = sizeof(*roll->pages) + sizeof(*roll->names) +
				  sizeof(*roll->of_page) + sizeof(*roll->of_age);

	if (roll->name_max == 0)
		return 0;
	return roll->name_max * name_bytes + map_bytes(&roll->map) +
	       2 * bits_words(roll->name_max) * sizeof(uint64_t);
}

static uint32_t find_page(const struct roll *roll, const struct kvs_namespace *space,
			  const struct prefix_hash *hash)
{
	const struct page_name name = { .space = *space, .hash = *hash };

	if (roll->age.count == 0)
		return SLOT_NONE;
	return map_find(&roll->map, map_hash(&roll->map, &name), &name);
}

static uint32_t add_page(struct roll *roll, const struct kvs_namespace *space,
			 const struct prefix_hash *hash)
{
	const uint32_t          page = slots_acquire(&roll->page_slots);
	struct roll_page *const p = &roll->pages[page];

	KVS_ASSERT_CMP(page, !=, SLOT_NONE);
	*p = (struct roll_page){ .name = { .space = *space, .hash = *hash } };
	list_init(&p->names);
	map_insert(&roll->map, map_hash(&roll->map, &p->name), page);
	return page;
}

static void drop(struct roll *roll, uint32_t name)
{
	const uint32_t          page = roll->names[name].page;
	struct roll_page *const p = &roll->pages[page];

	list_remove(&p->names, roll->of_page, name);
	list_remove(&roll->age, roll->of_age, name);
	slots_release(&roll->slots, name);
	p->columns &= ~(UINT64_C(1) << roll->names[name].column);
	if (p->names.count > 0)
		return;
	map_remove(&roll->map, map_hash(&roll->map, &p->name), page);
	slots_release(&roll->page_slots, page);
}

bool roll_add(struct roll *roll, const struct kvs_namespace *space, const struct prefix_hash *hash,
	      uint32_t column)
{
	const bool full = roll->age.count == roll->name_max;
	uint32_t   page, name;

	if (roll->name_max == 0 || (roll_columns(roll, space, hash) >> column) & 1)
		return true;
	if (full)
		drop(roll, roll->age.head);
	page = find_page(roll, space, hash);
	if (page == SLOT_NONE)
		page = add_page(roll, space, hash);
	name = slots_acquire(&roll->slots);
	KVS_ASSERT_CMP(name, !=, SLOT_NONE);
	roll->names[name] = (struct roll_name){ page, column };
	roll->pages[page].columns |= UINT64_C(1) << column;
	list_push_tail(&roll->pages[page].names, roll->of_page, name);
	list_push_tail(&roll->age, roll->of_age, name);
	return !full;
}

void roll_erase(struct roll *roll, const struct kvs_namespace *space,
		const struct prefix_hash *hash, uint32_t column)
{
	const uint32_t page = find_page(roll, space, hash);
	uint32_t       name;

	if (page == SLOT_NONE)
		return;
	name = roll->pages[page].names.head;
	while (name != SLOT_NONE && roll->names[name].column != column)
		name = roll->of_page[name].next;
	if (name != SLOT_NONE)
		drop(roll, name);
}

uint64_t roll_columns(const struct roll *roll, const struct kvs_namespace *space,
		      const struct prefix_hash *hash)
{
	const uint32_t page = find_page(roll, space, hash);

	return page == SLOT_NONE ? 0 : roll->pages[page].columns;
}

void roll_clear(struct roll *roll)
{
	while (roll->age.count > 0)
		drop(roll, roll->age.head);
}

void roll_audit(const struct roll *roll)
{
	uint32_t names = 0;
	uint32_t page, name;

	if (roll->name_max == 0)
		return;
	slots_audit(&roll->slots);
	slots_audit(&roll->page_slots);
	map_audit(&roll->map);
	list_audit(&roll->age, roll->of_age, roll->name_max);
	KVS_ASSERT_CMP(roll->age.count, ==, roll->slots.busy_count);
	KVS_ASSERT_CMP(roll->map.count, ==, roll->page_slots.busy_count);
	SLOTS_EACH(&roll->page_slots, page) {
		const struct roll_page *const p = &roll->pages[page];
		uint64_t                      columns = 0;

		list_audit(&p->names, roll->of_page, roll->name_max);
		for (name = p->names.head; name != SLOT_NONE; name = roll->of_page[name].next) {
			KVS_ASSERT_CMP(roll->names[name].page, ==, page);
			columns |= UINT64_C(1) << roll->names[name].column;
			names++;
		}
		KVS_ASSERT_CMP(columns, ==, p->columns);
		KVS_ASSERT_CMP(columns, !=, 0);
	}
	KVS_ASSERT_CMP(names, ==, roll->age.count);
}
