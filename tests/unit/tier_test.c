/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets of copies: who holds which block until the fence, and when the Host may be asked for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "death.h"
#include "named_block.h"
#include "tier/tier.h"

#define PAGES 4u

struct rig {
	struct coord   coord;
	struct tier    tier;
	struct kvs_key keys[PAGES];
	uint32_t       table[PAGES]; /* a Device block of each page, one reference each */
};

static void open_rig(struct rig *rig, uint32_t host_blocks, uint32_t ticket_max)
{
	const struct coord_options options = { .device_blocks = PAGES, .host_blocks = host_blocks,
					       .device_policy = "lru", .host_policy = "lru" };
	uint32_t i;

	assert_int_equal(coord_open(&rig->coord, &options, NULL), 0);
	assert_int_equal(tier_open(&rig->tier, &rig->coord, ticket_max, PAGES, NULL), 0);
	for (i = 0; i < PAGES; i++) {
		rig->keys[i] = key_of(i);
		rig->table[i] = stratum_acquire(&rig->coord.device);
	}
}

static void close_rig(struct rig *rig)
{
	coord_audit(&rig->coord);
	tier_close(&rig->tier);
	coord_close(&rig->coord);
}

/* Put a page into the Host; the caller has a reference to the block. */
static uint32_t publish(struct rig *rig, uint32_t page)
{
	struct stratum *const host = &rig->coord.host;

	return stratum_publish(host, &rig->keys[page], stratum_acquire(host));
}

static void fence(struct rig *rig, uint32_t ticket)
{
	tier_done(&rig->tier, ticket);
	tier_end(&rig->tier, ticket);
	coord_audit(&rig->coord);
	tier_audit(&rig->tier);
}

static void a_load_holds_its_sources_until_the_fence(void **state)
{
	struct rig                rig;
	uint32_t                  sources[2];
	const struct tier_ticket *ticket;
	uint32_t                  slot, i;

	(void)state;
	open_rig(&rig, 2, 1);
	for (i = 0; i < 2; i++)
		sources[i] = publish(&rig, i);
	slot = tier_load(&rig.tier, 5, rig.table, sources, 2);
	assert_int_equal(tier_in_flight(&rig.tier), 1);
	assert_int_equal(stratum_acquire(&rig.coord.host), SLOT_NONE);
	ticket = tier_done(&rig.tier, slot);
	assert_int_equal(ticket->kind, TIER_LOAD);
	assert_int_equal(ticket->request, 5);
	assert_int_equal(ticket->pair_count, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(ticket->pairs[i].device_block, rig.table[i]);
		assert_int_equal(ticket->pairs[i].host_block, sources[i]);
	}
	tier_end(&rig.tier, slot);
	assert_int_equal(tier_in_flight(&rig.tier), 0);
	assert_int_equal(stratum_room(&rig.coord.host), 2);
	close_rig(&rig);
}

static void a_load_without_a_ticket_takes_nothing(void **state)
{
	struct rig rig;
	uint32_t   source;

	(void)state;
	open_rig(&rig, 2, 1);
	source = stratum_acquire(&rig.coord.host);
	assert_int_equal(tier_load(&rig.tier, 0, rig.table, &source, 1), 0);
	assert_int_equal(tier_load(&rig.tier, 1, rig.table, &source, 1), SLOT_NONE);
	assert_int_equal(tier_in_flight(&rig.tier), 1);
	assert_int_equal(stratum_refs(&rig.coord.host, source), 1);
	close_rig(&rig);
}

/* never-early, of the way down: nobody may read a Host block that is still being written. */
static void a_save_publishes_at_the_fence_and_not_before(void **state)
{
	struct rig rig;
	uint32_t   slot, i;

	(void)state;
	open_rig(&rig, PAGES, 1);
	slot = tier_save(&rig.tier, rig.keys, rig.table, PAGES);
	assert_int_equal(rig.tier.tickets[slot].pair_count, PAGES);
	for (i = 0; i < PAGES; i++) {
		assert_int_equal(stratum_find(&rig.coord.host, &rig.keys[i]), SLOT_NONE);
		assert_int_equal(stratum_refs(&rig.coord.device, rig.table[i]), 2);
	}
	assert_int_equal(stratum_room(&rig.coord.host), 0);
	fence(&rig, slot);
	for (i = 0; i < PAGES; i++) {
		assert_int_not_equal(stratum_find(&rig.coord.host, &rig.keys[i]), SLOT_NONE);
		assert_int_equal(stratum_refs(&rig.coord.device, rig.table[i]), 1);
	}
	assert_int_equal(stratum_room(&rig.coord.host), PAGES);
	close_rig(&rig);
}

static void a_save_leaves_out_what_the_host_holds(void **state)
{
	struct rig rig;
	uint32_t   slot;

	(void)state;
	open_rig(&rig, PAGES, 1);
	stratum_unpin(&rig.coord.host, publish(&rig, 1));
	slot = tier_save(&rig.tier, rig.keys, rig.table, 3);
	assert_int_equal(rig.tier.tickets[slot].pair_count, 2);
	assert_int_equal(rig.tier.tickets[slot].pairs[0].device_block, rig.table[0]);
	assert_int_equal(rig.tier.tickets[slot].pairs[1].device_block, rig.table[2]);
	fence(&rig, slot);
	assert_int_equal(coord_probe(&rig.coord, rig.keys, PAGES).host_end, 3);
	assert_int_equal(rig.tier.unsaved, 0);
	close_rig(&rig);
}

static void nothing_to_copy_takes_no_ticket(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, PAGES, 1);
	assert_int_equal(tier_save(&rig.tier, rig.keys, rig.table, 0), SLOT_NONE);
	fence(&rig, tier_save(&rig.tier, rig.keys, rig.table, 2));
	assert_int_equal(tier_save(&rig.tier, rig.keys, rig.table, 2), SLOT_NONE);
	assert_int_equal(tier_in_flight(&rig.tier), 0);
	assert_int_equal(rig.tier.unsaved, 0);
	close_rig(&rig);
}

/* The prefix has the first claim: a suffix without it could not be matched. */
static void a_full_host_takes_the_front_and_counts_the_rest(void **state)
{
	struct rig rig;
	uint32_t   slot;

	(void)state;
	open_rig(&rig, 3, 2);
	assert_int_not_equal(stratum_acquire(&rig.coord.host), SLOT_NONE);
	slot = tier_save(&rig.tier, rig.keys, rig.table, PAGES);
	assert_int_equal(rig.tier.tickets[slot].pair_count, 2);
	assert_int_equal(rig.tier.unsaved, 2);
	/* With every block held, a ticket would be empty: none is kept. */
	assert_int_equal(tier_save(&rig.tier, rig.keys + 2, rig.table + 2, 2), SLOT_NONE);
	assert_int_equal(tier_in_flight(&rig.tier), 1);
	assert_int_equal(rig.tier.unsaved, 4);
	fence(&rig, slot);
	assert_int_equal(coord_probe(&rig.coord, rig.keys, PAGES).host_end, 2);
	close_rig(&rig);
}

static void without_a_ticket_the_pages_are_counted_and_nothing_is_held(void **state)
{
	struct rig rig;
	uint32_t   slot;

	(void)state;
	open_rig(&rig, PAGES, 1);
	slot = tier_save(&rig.tier, rig.keys, rig.table, 1);
	assert_int_equal(tier_save(&rig.tier, rig.keys + 1, rig.table + 1, 3), SLOT_NONE);
	assert_int_equal(rig.tier.unsaved, 3);
	assert_int_equal(stratum_room(&rig.coord.host), 3);
	assert_int_equal(stratum_refs(&rig.coord.device, rig.table[1]), 1);
	fence(&rig, slot);
	close_rig(&rig);
}

/* Two requests computed the same page before the first copy was fenced. */
static void two_copies_of_a_page_end_as_one(void **state)
{
	struct rig rig;
	uint32_t   first, second;

	(void)state;
	open_rig(&rig, PAGES, 2);
	first = tier_save(&rig.tier, rig.keys, rig.table, 1);
	second = tier_save(&rig.tier, rig.keys, rig.table, 1);
	assert_int_equal(stratum_room(&rig.coord.host), PAGES - 2);
	fence(&rig, second);
	fence(&rig, first);
	assert_int_equal(stratum_room(&rig.coord.host), PAGES);
	assert_int_equal(rig.coord.host.idle_count, 1);
	assert_int_equal(stratum_refs(&rig.coord.device, rig.table[0]), 1);
	close_rig(&rig);
}

/* A ticket starts clean, whatever its last life was. */
static void a_ticket_changes_kind_from_life_to_life(void **state)
{
	struct rig rig;
	uint32_t   slot, source;

	(void)state;
	open_rig(&rig, PAGES, 1);
	fence(&rig, tier_save(&rig.tier, rig.keys, rig.table, PAGES));
	source = stratum_find(&rig.coord.host, &rig.keys[3]);
	stratum_pin(&rig.coord.host, source);
	slot = tier_load(&rig.tier, 2, rig.table, &source, 1);
	assert_int_equal(rig.tier.tickets[slot].pair_count, 1);
	fence(&rig, slot);
	assert_int_equal(stratum_room(&rig.coord.host), PAGES);
	close_rig(&rig);
}

static void audit(void *arg)
{
	tier_audit(arg);
}

static void the_audit_finds_a_source_that_nobody_holds(void **state)
{
	struct rig rig;
	uint32_t   slot;

	(void)state;
	open_rig(&rig, PAGES, 1);
	slot = tier_save(&rig.tier, rig.keys, rig.table, 1);
	stratum_unpin(&rig.coord.device, rig.table[0]);
	tier_audit(&rig.tier);
	stratum_unpin(&rig.coord.device, rig.table[0]);
	assert_true(death_panics(audit, &rig.tier, NULL, 0));
	tier_end(&rig.tier, slot);
	close_rig(&rig);
}

static void the_audit_finds_a_destination_that_is_published(void **state)
{
	struct rig       rig;
	struct tier_pair pair;
	uint32_t         slot;

	(void)state;
	open_rig(&rig, PAGES, 1);
	slot = tier_save(&rig.tier, rig.keys, rig.table, 1);
	pair = rig.tier.tickets[slot].pairs[0];
	tier_audit(&rig.tier);
	stratum_publish(&rig.coord.host, &rig.keys[0], pair.host_block);
	assert_true(death_panics(audit, &rig.tier, NULL, 0));
	tier_end(&rig.tier, slot);
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_holds_its_sources_until_the_fence),
		cmocka_unit_test(a_load_without_a_ticket_takes_nothing),
		cmocka_unit_test(a_save_publishes_at_the_fence_and_not_before),
		cmocka_unit_test(a_save_leaves_out_what_the_host_holds),
		cmocka_unit_test(nothing_to_copy_takes_no_ticket),
		cmocka_unit_test(a_full_host_takes_the_front_and_counts_the_rest),
		cmocka_unit_test(without_a_ticket_the_pages_are_counted_and_nothing_is_held),
		cmocka_unit_test(two_copies_of_a_page_end_as_one),
		cmocka_unit_test(a_ticket_changes_kind_from_life_to_life),
		cmocka_unit_test(the_audit_finds_a_source_that_nobody_holds),
		cmocka_unit_test(the_audit_finds_a_destination_that_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
