/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h.  A bucket lives as long as it has items. */
#include "coord/order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/err.h"

int order_open(struct order *order, uint32_t place_count, uint32_t class_count)
{
	uint32_t i;

	KVS_ASSERT_CMP(class_count, >, 0);
	*order = (struct order){ .last = SLOT_NONE, .place_count = place_count,
				 .class_count = class_count };
	order->items = malloc(place_count * sizeof(*order->items));
	order->links = malloc(place_count * sizeof(*order->links));
	order->buckets = malloc(place_count * sizeof(*order->buckets));
	order->bucket_links = malloc(place_count * sizeof(*order->bucket_links));
	order->classes = malloc(class_count * sizeof(*order->classes));
	if (!order->items || !order->links || !order->buckets || !order->bucket_links ||
	    !order->classes || slots_open(&order->slots, place_count) < 0 ||
	    map_open(&order->map, place_count, order->buckets, sizeof(*order->buckets),
		     sizeof(struct order_key)) < 0) {
		order_close(order);
		return -ENOMEM;
	}
	for (i = 0; i < place_count; i++)
		order->items[i] = (struct order_item){ .bucket = SLOT_NONE };
	for (i = 0; i < class_count; i++)
		list_init(&order->classes[i]);
	list_links_init(order->links, place_count);
	list_links_init(order->bucket_links, place_count);
	return 0;
}

void order_close(struct order *order)
{
	map_close(&order->map);
	slots_close(&order->slots);
	free(order->classes);
	free(order->bucket_links);
	free(order->buckets);
	free(order->links);
	free(order->items);
	*order = (struct order){ 0 };
}

size_t order_bytes(const struct order *order)
{
	return order->place_count * (sizeof(*order->items) + sizeof(*order->links) +
				     sizeof(*order->buckets) + sizeof(*order->bucket_links)) +
	       order->class_count * sizeof(*order->classes) +
	       bits_words(order->slots.count) * sizeof(uint64_t) + map_bytes(&order->map);
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void insert_behind(struct list *list, struct link *links, uint32_t prev, uint32_t slot)
{
	const uint32_t next = links[prev].next;

	if (next == SLOT_NONE) {
		list_push_tail(list, links, slot);
		return;
	}
	links[slot] = (struct link){ .prev = prev, .next = next };
	links[prev].next = slot;
	links[next].prev = slot;
	list->count++;
}

/* Behind the newest bucket of its class that is older. */
static void link_bucket(struct order *order, uint32_t slot)
{
	const struct order_bucket *const bucket = &order->buckets[slot];
	struct list *const               list = &order->classes[bucket->key.class];
	struct link *const               links = order->bucket_links;
	uint32_t                         prev = list->tail;

	while (prev != SLOT_NONE && order->buckets[prev].key.epoch > bucket->key.epoch)
		prev = links[prev].prev;
	if (prev == SLOT_NONE)
		list_push_head(list, links, slot);
	else
		insert_behind(list, links, prev, slot);
}

static uint32_t bucket_of(struct order *order, uint32_t class, uint64_t epoch)
{
	const struct order_key key = { epoch, class };
	uint32_t               slot = order->last;
	uint64_t               hash;

	if (slot != SLOT_NONE && order->buckets[slot].key.epoch == epoch &&
	    order->buckets[slot].key.class == class)
		return slot;
	hash = map_hash(&order->map, &key);
	slot = map_find(&order->map, hash, &key);
	if (slot != SLOT_NONE) {
		order->last = slot;
		return slot;
	}
	slot = slots_acquire(&order->slots);
	KVS_ASSERT_CMP(slot, !=, SLOT_NONE);
	order->buckets[slot] = (struct order_bucket){ .key = key, .sorted = true };
	list_init(&order->buckets[slot].idle);
	map_insert(&order->map, hash, slot);
	link_bucket(order, slot);
	order->last = slot;
	return slot;
}

static void drop_bucket(struct order *order, uint32_t slot)
{
	struct order_bucket *const bucket = &order->buckets[slot];

	KVS_ASSERT_CMP(bucket->idle.count, ==, 0);
	list_remove(&order->classes[bucket->key.class], order->bucket_links, slot);
	map_remove(&order->map, map_hash(&order->map, &bucket->key), slot);
	slots_release(&order->slots, slot);
	if (order->last == slot)
		order->last = SLOT_NONE;
}

/* --- items ------------------------------------------------------------------------------------ */

void order_insert(struct order *order, uint32_t place, uint32_t class, uint64_t epoch,
		  uint64_t rank)
{
	KVS_ASSERT_CMP(place, <, order->place_count);
	KVS_ASSERT_CMP(class, <, order->class_count);
	KVS_ASSERT(!order_has(order, place));
	order->items[place].rank = rank;
	order->items[place].bucket = bucket_of(order, class, epoch);
	order->buckets[order->items[place].bucket].item_count++;
}

void order_remove(struct order *order, uint32_t place)
{
	const uint32_t slot = order->items[place].bucket;

	KVS_ASSERT(order_has(order, place));
	if (order_is_idle(order, place))
		order_set_idle(order, place, false);
	order->items[place].bucket = SLOT_NONE;
	if (--order->buckets[slot].item_count == 0)
		drop_bucket(order, slot);
}

void order_move(struct order *order, uint32_t place, uint32_t class, uint64_t epoch,
		uint64_t rank)
{
	const bool idle = order_is_idle(order, place);

	order_remove(order, place);
	order_insert(order, place, class, epoch, rank);
	if (idle)
		order_set_idle(order, place, true);
}

void order_set_idle(struct order *order, uint32_t place, bool idle)
{
	struct order_bucket *const bucket = &order->buckets[order->items[place].bucket];

	KVS_ASSERT(order_has(order, place));
	KVS_ASSERT_CMP(order_is_idle(order, place), !=, idle);
	if (!idle) {
		list_remove(&bucket->idle, order->links, place);
		order->idle_count--;
		return;
	}
	order->idle_count++;
	bucket->sorted = bucket->idle.count == 0 ||
			 (bucket->sorted && order_goes_first(order, bucket->idle.tail, place));
	list_push_tail(&bucket->idle, order->links, place);
}

bool order_has(const struct order *order, uint32_t place)
{
	return order->items[place].bucket != SLOT_NONE;
}

bool order_is_idle(const struct order *order, uint32_t place)
{
	return list_is_linked(order->links, place);
}

uint64_t order_epoch(const struct order *order, uint32_t place)
{
	KVS_ASSERT(order_has(order, place));
	return order->buckets[order->items[place].bucket].key.epoch;
}

uint64_t order_rank(const struct order *order, uint32_t place)
{
	return order->items[place].rank;
}

uint64_t order_newest(const struct order *order)
{
	uint64_t newest = 0;
	uint32_t class;

	for (class = 0; class < order->class_count; class++) {
		const uint32_t slot = order->classes[class].tail;

		if (slot != SLOT_NONE && order->buckets[slot].key.epoch > newest)
			newest = order->buckets[slot].key.epoch;
	}
	return newest;
}

/* --- audit ------------------------------------------------------------------------------------ */

static void audit_idle(const struct order *order, uint32_t slot)
{
	const struct order_bucket *const bucket = &order->buckets[slot];
	uint32_t                         prev = SLOT_NONE;
	uint32_t                         place;

	list_audit(&bucket->idle, order->links, order->place_count);
	for (place = bucket->idle.head; place != SLOT_NONE; place = order->links[place].next) {
		KVS_ASSERT_CMP(order->items[place].bucket, ==, slot);
		if (prev != SLOT_NONE && bucket->sorted)
			KVS_ASSERT(order_goes_first(order, prev, place));
		prev = place;
	}
}

static uint32_t audit_class(const struct order *order, uint32_t class)
{
	const struct list *const list = &order->classes[class];
	uint64_t                 epoch = 0;
	uint32_t                 items = 0;
	uint32_t                 slot;

	list_audit(list, order->bucket_links, order->place_count);
	for (slot = list->head; slot != SLOT_NONE; slot = order->bucket_links[slot].next) {
		const struct order_bucket *const bucket = &order->buckets[slot];

		KVS_ASSERT(slots_busy(&order->slots, slot));
		KVS_ASSERT_CMP(bucket->key.class, ==, class);
		if (slot != list->head)
			KVS_ASSERT_CMP(bucket->key.epoch, >, epoch);
		KVS_ASSERT_CMP(bucket->item_count, >, 0);
		KVS_ASSERT_CMP(bucket->item_count, >=, bucket->idle.count);
		audit_idle(order, slot);
		epoch = bucket->key.epoch;
		items += bucket->item_count;
	}
	return items;
}

void order_audit(const struct order *order)
{
	uint32_t items = 0, idle = 0, buckets = 0;
	uint32_t i;

	slots_audit(&order->slots);
	map_audit(&order->map);
	for (i = 0; i < order->class_count; i++) {
		items += audit_class(order, i);
		buckets += order->classes[i].count;
	}
	KVS_ASSERT_CMP(buckets, ==, order->slots.busy_count);
	KVS_ASSERT_CMP(buckets, ==, order->map.count);
	for (i = 0; i < order->place_count; i++) {
		items -= order_has(order, i);
		idle += order_is_idle(order, i);
		KVS_ASSERT(order_has(order, i) || !order_is_idle(order, i));
	}
	KVS_ASSERT_CMP(items, ==, 0);
	KVS_ASSERT_CMP(idle, ==, order->idle_count);
}
