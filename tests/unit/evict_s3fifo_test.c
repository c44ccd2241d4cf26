/* SPDX-License-Identifier: Apache-2.0 */
/* What s3fifo promotes, remembers and forgets, on sequences short enough to check by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "letters.h"

/* So few slots: the small queue's share is one, so it pays whenever it holds anything. */
static void s3fifo_promotes_on_the_way_out(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "abb");
	/* a was used once only; b moves on to the main queue with a clean slate. */
	leave(evict, "acdb");
	evict_close(evict);
}

static void s3fifo_remembers_one_time_visitors(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "ab");
	leave(evict, "a");
	insert(evict, "acd");
	/* a came back while remembered, so it entered the main queue: the small one pays first. */
	leave(evict, "bcda");
	/* What leaves the main queue is not remembered: a starts small again and goes first. */
	insert(evict, "ae");
	leave(evict, "ae");
	evict_close(evict);
}

/* The ghost of capacity 10 holds nine names; the tenth pushes the first out. */
static void s3fifo_ghost_is_bounded(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);
	uint64_t      name;

	(void)state;
	for (name = 1; name <= 10; name++) {
		evict_insert(evict, 0, name);
		assert_int_equal(evict_victim(evict, NULL, NULL), 0);
	}
	evict_insert(evict, 0, 1);  /* forgotten: small */
	evict_insert(evict, 1, 2);  /* remembered: main */
	evict_insert(evict, 2, 99); /* new: small */
	leave(evict, "acb");
	evict_close(evict);
}

static void s3fifo_main_gives_a_round_a_use(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "abc");
	leave(evict, "abc");
	insert(evict, "abc"); /* all in the main queue now */
	touch(evict, "aac");
	leave(evict, "bca");
	evict_close(evict);
}

static void s3fifo_forgets_what_its_owner_removed(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "ab");
	evict_remove(evict, 0);
	insert(evict, "a");
	leave(evict, "ba");
	evict_close(evict);
}

/* A pinned slot that was used is not even promoted: its uses count when it is met unpinned. */
static void s3fifo_leaves_pinned_slots_alone(void **state)
{
	static char   a[] = "a";
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "abc");
	touch(evict, "aa");
	assert_int_equal(evict_victim(evict, not_in, a), 1);
	leave(evict, "ca");
	evict_close(evict);
}

/* An order whose owner ran out of bytes before it ran out of slots. */
static void s3fifo_takes_the_share_of_what_is_there(void **state)
{
	struct evict *evict = open_order("s3fifo", 1000);

	(void)state;
	insert(evict, "ab");
	leave(evict, "ab");
	insert(evict, "abc"); /* a and b come back, to the main queue */
	leave(evict, "cab");
	evict_close(evict);
}

/*
 * The small queue has less than its share, so that the main one pays, but that is pinned, and all that may go
 * was used: it is promoted, and goes from there.
 */
static void s3fifo_finds_the_one_that_it_promoted(void **state)
{
	static char   first[] = "abcdefghijklmnopqrst";
	struct evict *evict = open_order("s3fifo", 30);

	(void)state;
	insert(evict, first);
	leave(evict, first);
	insert(evict, first); /* they come back, to the main queue */
	insert(evict, "u");
	touch(evict, "uu");
	assert_int_equal(evict_victim(evict, not_in, first), 'u' - 'a');
	leave(evict, "ab");
	evict_close(evict);
}

/* As a victim would be: a one-time visitor comes back to the main queue, an old hand does not. */
static void s3fifo_remembers_the_expelled(void **state)
{
	struct evict *evict = open_order("s3fifo", 10);

	(void)state;
	insert(evict, "ab");
	evict_expel(evict, 0);
	assert_false(evict_present(evict, 0));
	assert_int_equal(evict_count(evict), 1);
	insert(evict, "ac");
	leave(evict, "bca");
	insert(evict, "a");
	evict_renew(evict, 0);
	evict_expel(evict, 0);
	insert(evict, "ad");
	leave(evict, "ad");
	evict_close(evict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s3fifo_promotes_on_the_way_out),
		cmocka_unit_test(s3fifo_remembers_one_time_visitors),
		cmocka_unit_test(s3fifo_ghost_is_bounded),
		cmocka_unit_test(s3fifo_main_gives_a_round_a_use),
		cmocka_unit_test(s3fifo_forgets_what_its_owner_removed),
		cmocka_unit_test(s3fifo_leaves_pinned_slots_alone),
		cmocka_unit_test(s3fifo_takes_the_share_of_what_is_there),
		cmocka_unit_test(s3fifo_finds_the_one_that_it_promoted),
		cmocka_unit_test(s3fifo_remembers_the_expelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
