/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of several parts, and what an owner with locks does with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"

static void each_part_gives_its_own(void **state)
{
	static char bd[] = "bd";
	size_t      i;

	(void)state;
	for (i = 0; evict_giving_names[i]; i++) {
		struct evict *evict = open_parts(evict_giving_names[i], 8, 3);

		insert_into(evict, 2, "a");
		insert_into(evict, 1, "b");
		insert_into(evict, 2, "c");
		insert_into(evict, 1, "de");
		assert_int_equal(evict_count(evict), 5);
		assert_int_equal(evict_part_count(evict, 0), 0);
		assert_int_equal(evict_part_count(evict, 1), 3);
		assert_int_equal(evict_part_count(evict, 2), 2);
		assert_int_equal(evict_victim_part(evict, 0, NULL, NULL), SLOT_NONE);
		assert_int_equal(evict_victim(evict, NULL, NULL), SLOT_NONE);
		leave_part(evict, 2, "a");
		assert_int_equal(evict_victim_part(evict, 1, not_in, bd), 'e' - 'a');
		evict_remove(evict, 'b' - 'a');
		leave_part(evict, 1, "d");
		assert_int_equal(evict_victim_part(evict, 1, NULL, NULL), SLOT_NONE);
		/* A slot is free for any part once it is absent. */
		insert_into(evict, 0, "b");
		leave(evict, "b");
		leave_part(evict, 2, "c");
		assert_int_equal(evict_count(evict), 0);
		evict_close(evict);
	}
}

/* A use, a chain, another round: all in the part that has the slot, also where they cross parts. */
static void what_names_a_slot_acts_in_its_part(void **state)
{
	const uint32_t chain[] = { 3, 0, 2, 1 };
	struct evict  *evict = open_parts("lru-leaf", 8, 2);

	(void)state;
	insert_into(evict, 0, "ab");
	insert_into(evict, 1, "cde");
	touch(evict, "ac");
	evict_renew(evict, 'd' - 'a');
	/* Then the orders are ba and ecd; the chain is dacb, and is used from its end. */
	evict_settle(evict, chain, 4);
	leave_part(evict, 0, "ba");
	leave_part(evict, 1, "ecd");
	evict_close(evict);
}

/* Twice as many slots in the one part are no reason for the other to give up its newcomers. */
static void s3fifo_takes_the_share_of_each_part(void **state)
{
	struct evict *evict = open_parts("s3fifo", 100, 2);
	uint32_t      slot;

	(void)state;
	for (slot = 10; slot < 50; slot++)
		evict_insert_part(evict, 0, slot, slot);
	insert_into(evict, 1, "ab");
	leave_part(evict, 1, "ab");
	insert_into(evict, 1, "abc"); /* a and b come back, to the main queue */
	leave_part(evict, 1, "cab");
	evict_close(evict);
}

static void a_part_is_small(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; evict_names[i]; i++) {
		struct evict *few = open_parts(evict_names[i], 1000, 2);
		struct evict *many = open_parts(evict_names[i], 1000, 1002);
		struct evict *one = open_order(evict_names[i], 1000);

		assert_in_range(evict_bytes(many) - evict_bytes(few), 1000, 99 * 1000);
		assert_true(evict_bytes(few) > evict_bytes(one));
		evict_audit(many);
		evict_close(few);
		evict_close(many);
		evict_close(one);
	}
}

struct met {
	const char *locked;
	char        letters[16];
	size_t      count;
};

static bool refuse_locked(void *ctx, uint32_t slot)
{
	struct met *const met = ctx;
	const char        letter = (char)('a' + slot);

	if (!strchr(met->locked, letter))
		return true;
	met->letters[met->count++] = letter;
	return false;
}

/* What an owner with locks does: each locked slot is met once, and whoever may go is found at once. */
static void the_locked_are_met_once_when_they_are_renewed(void **state)
{
	size_t i, calls, renewed;

	(void)state;
	for (i = 0; evict_giving_names[i]; i++) {
		struct evict *evict = open_parts(evict_giving_names[i], 10, 2);
		struct met    met = { .locked = "abe" };

		insert_into(evict, 0, "j");
		insert_into(evict, 1, "abcdefgh");
		touch(evict, "efg");
		for (calls = 0, renewed = 0; calls < 5; calls++) {
			assert_int_not_equal(evict_victim_part(evict, 1, refuse_locked, &met),
					     SLOT_NONE);
			for (; renewed < met.count; renewed++)
				evict_renew(evict, (uint32_t)(met.letters[renewed] - 'a'));
			evict_audit(evict);
		}
		assert_in_range(met.count, 1, 3);
		assert_int_equal(evict_part_count(evict, 1), 3);
		assert_int_equal(evict_part_count(evict, 0), 1);
		met.count = 0;
		assert_int_equal(evict_victim_part(evict, 1, refuse_locked, &met), SLOT_NONE);
		evict_close(evict);
	}
}

static void open_refuses(void **state)
{
	struct evict    *evict = NULL;
	struct kvs_error err;

	(void)state;
	assert_int_equal(evict_open_parts("lru", 4, 0, &evict, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "parts: 0; use 1 to 65536");
	assert_int_equal(evict_open_parts("lru", 4, EVICT_PARTS_MAX + 1, &evict, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "parts: 65537; use 1 to 65536");
	assert_int_equal(evict_open_parts("mru", 4, 2, &evict, NULL), KVS_E_INVALID);
	assert_null(evict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_gives_its_own),
		cmocka_unit_test(what_names_a_slot_acts_in_its_part),
		cmocka_unit_test(s3fifo_takes_the_share_of_each_part),
		cmocka_unit_test(a_part_is_small),
		cmocka_unit_test(the_locked_are_met_once_when_they_are_renewed),
		cmocka_unit_test(open_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
