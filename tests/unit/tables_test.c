/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of base at their edges; what they do in between is the models' matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ring.h"
#include "base/slots.h"
#include "death.h"

static void an_empty_bitmap_touches_nothing(void **state)
{
	uint64_t word = UINT64_C(0xdeadbeef);

	(void)state;
	bits_fill(&word, 0);
	assert_true(word == UINT64_C(0xdeadbeef));
	assert_int_equal(bits_count(&word, 0), 0);
	assert_int_equal(bits_prefix(&word, 0), 0);
	assert_int_equal(bits_next_set(&word, 5, 0), 0);
	assert_int_equal(bits_words(0), 0);
}

static void a_bitmap_ends_where_it_says(void **state)
{
	uint64_t words[2] = { 0, 0 };

	(void)state;
	assert_int_equal(bits_words(64), 1);
	assert_int_equal(bits_words(65), 2);
	bits_fill(words, 64);
	assert_true(words[0] == UINT64_MAX && words[1] == 0);
	bits_fill(words, 65);
	assert_true(words[1] == 1);
	assert_int_equal(bits_prefix(words, 128), 65);
	assert_int_equal(bits_prefix(words, 64), 64);
	assert_int_equal(bits_prefix(words, 3), 3);
	bits_clear(words, 0);
	assert_int_equal(bits_prefix(words, 128), 0);
	assert_int_equal(bits_next_set(words, 65, 128), 128);
	assert_int_equal(bits_next_clear(words, 1, 65), 65);
	assert_int_equal(bits_next_set(words, 200, 128), 128);
}

static void a_ring_of_one(void **state)
{
	struct ring ring;
	uint16_t    item = 7;

	(void)state;
	assert_int_equal(ring_open(&ring, 1, sizeof(item)), 0);
	assert_false(ring_full(&ring));
	assert_true(ring_push(&ring, &item));
	assert_true(ring_full(&ring));
	item = 8;
	assert_false(ring_push(&ring, &item));
	assert_int_equal(*(uint16_t *)ring_at(&ring, 0), 7);
	assert_true(ring_pop(&ring, &item));
	assert_int_equal(item, 7);
	assert_false(ring_pop(&ring, &item));
	ring_close(&ring);
	ring_close(&ring);
}

static void read_past_the_ring(void *arg)
{
	ring_at(arg, 0);
}

static void an_empty_ring_has_no_first(void **state)
{
	struct ring ring;

	(void)state;
	assert_int_equal(ring_open(&ring, 4, 1), 0);
	assert_true(death_panics(read_past_the_ring, &ring, NULL, 0));
	ring_close(&ring);
}

static void release_twice(void *arg)
{
	slots_release(arg, 1);
	slots_release(arg, 1);
}

static void release_outside(void *arg)
{
	slots_release(arg, 3);
}

static void miscount(void *arg)
{
	((struct slots *)arg)->busy_count++;
	slots_audit(arg);
}

static void slots_are_released_once(void **state)
{
	struct slots slots = { 0 };
	uint32_t     i;

	(void)state;
	slots_close(&slots);
	assert_int_equal(slots_open(&slots, 3), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(slots_acquire(&slots), i);
	assert_int_equal(slots_acquire(&slots), SLOT_NONE);
	assert_true(death_panics(release_twice, &slots, NULL, 0));
	assert_true(death_panics(release_outside, &slots, NULL, 0));
	assert_true(death_panics(miscount, &slots, NULL, 0));
	slots_release(&slots, 1);
	assert_int_equal(slots_acquire(&slots), 1);
	slots_close(&slots);
}

struct chain {
	struct link links[4];
	struct list list;
};

static void push_again(void *arg)
{
	struct chain *const chain = arg;

	list_push_tail(&chain->list, chain->links, 2);
}

static void remove_unlinked(void *arg)
{
	struct chain *const chain = arg;

	list_remove(&chain->list, chain->links, 0);
}

static void bend_a_link(void *arg)
{
	struct chain *const chain = arg;

	chain->links[3].prev = 0;
	list_audit(&chain->list, chain->links, 4);
}

static void close_a_circle(void *arg)
{
	struct chain *const chain = arg;

	chain->links[3].next = 2;
	chain->links[2].prev = 3;
	list_audit(&chain->list, chain->links, 4);
}

static void lists_catch_misuse(void **state)
{
	struct chain chain;

	(void)state;
	list_links_init(chain.links, 4);
	list_init(&chain.list);
	assert_int_equal(list_pop_head(&chain.list, chain.links), SLOT_NONE);
	list_push_tail(&chain.list, chain.links, 2);
	assert_true(list_is_linked(chain.links, 2));
	list_push_tail(&chain.list, chain.links, 3);
	list_audit(&chain.list, chain.links, 4);
	assert_true(death_panics(push_again, &chain, NULL, 0));
	assert_true(death_panics(remove_unlinked, &chain, NULL, 0));
	assert_true(death_panics(bend_a_link, &chain, NULL, 0));
	assert_true(death_panics(close_a_circle, &chain, NULL, 0));
	assert_int_equal(list_pop_head(&chain.list, chain.links), 2);
	assert_int_equal(list_pop_head(&chain.list, chain.links), 3);
	assert_false(list_is_linked(chain.links, 3));
}

struct index {
	struct map map;
	uint64_t   keys[8];
};

static void insert(struct index *index, uint32_t slot, uint64_t key)
{
	index->keys[slot] = key;
	map_insert(&index->map, map_hash(&index->map, &key), slot);
}

static void insert_twice(void *arg)
{
	insert(arg, 5, 100);
}

static void insert_too_many(void *arg)
{
	insert(arg, 3, 103);
	insert(arg, 4, 104);
}

static void remove_absent(void *arg)
{
	struct index *const index = arg;
	const uint64_t      key = 999;

	map_remove(&index->map, map_hash(&index->map, &key), 6);
}

static void change_a_key(void *arg)
{
	struct index *const index = arg;

	index->keys[1] = 999;
	map_audit(&index->map);
}

static void open_index(struct index *index, uint32_t capacity)
{
	const size_t bytes = sizeof(index->keys[0]);

	memset(index, 0, sizeof(*index));
	assert_int_equal(map_open(&index->map, capacity, index->keys, bytes, bytes), 0);
}

static void maps_catch_misuse(void **state)
{
	struct index index;
	uint32_t     i;

	(void)state;
	open_index(&index, 4);
	for (i = 0; i < 3; i++)
		insert(&index, i, 100 + i);
	map_audit(&index.map);
	assert_true(death_panics(insert_twice, &index, NULL, 0));
	assert_true(death_panics(insert_too_many, &index, NULL, 0));
	assert_true(death_panics(remove_absent, &index, NULL, 0));
	assert_true(death_panics(change_a_key, &index, NULL, 0));
	map_close(&index.map);
	map_close(&index.map);
}

/* Only the keys tell these two apart. */
static void equal_hashes_are_not_equal_keys(void **state)
{
	struct index   index;
	const uint64_t absent = 3;
	/* The last bucket: the second one wraps. */
	const uint64_t hash = UINT64_C(0x1234567800000007);

	(void)state;
	open_index(&index, 6);
	index.keys[0] = 1;
	index.keys[1] = 2;
	map_insert(&index.map, hash, 0);
	map_insert(&index.map, hash, 1);
	assert_int_equal(map_find(&index.map, hash, &index.keys[0]), 0);
	assert_int_equal(map_find(&index.map, hash, &index.keys[1]), 1);
	assert_int_equal(map_find(&index.map, hash, &absent), SLOT_NONE);
	map_close(&index.map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_bitmap_touches_nothing),
		cmocka_unit_test(a_bitmap_ends_where_it_says),
		cmocka_unit_test(a_ring_of_one),
		cmocka_unit_test(an_empty_ring_has_no_first),
		cmocka_unit_test(slots_are_released_once),
		cmocka_unit_test(lists_catch_misuse),
		cmocka_unit_test(maps_catch_misuse),
		cmocka_unit_test(equal_hashes_are_not_equal_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
