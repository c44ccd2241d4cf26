/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of one plan: every row once, every ticket there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quay.h"
#include "tier/copies.h"

static void add(struct copies *copies, uint32_t group, uint32_t source, uint32_t target)
{
	assert_true(copies_add(copies, &(struct copy){ .path = COPY_DEVICE_TO_HOST, .group = group,
						       .source = source, .target = target }));
}

static void expect(const struct copies *copies, uint32_t row, uint32_t ticket, uint32_t source,
		   uint32_t target)
{
	assert_int_equal(copies->rows[row].ticket, ticket);
	assert_int_equal(copies->rows[row].source, source);
	assert_int_equal(copies->rows[row].target, target);
}

static void equal_rows_of_a_plan_are_moved_once_and_the_first_ticket_has_them(void **state)
{
	struct copies copies;

	(void)state;
	assert_int_equal(copies_open(&copies, 4, 8, NULL), 0);
	assert_true(copies_begin(&copies, 7));
	add(&copies, 0, 1, 11);
	add(&copies, 0, 2, 22);
	add(&copies, 0, 1, 11);
	assert_true(copies_begin(&copies, 8));
	add(&copies, 0, 2, 22);
	add(&copies, 0, 3, 33);
	assert_int_equal(copies.row_count, 3);
	expect(&copies, 0, 0, 1, 11);
	expect(&copies, 1, 0, 2, 22);
	expect(&copies, 2, 1, 3, 33);
	assert_int_equal(copies_rows_of(&copies, 0), 2);
	assert_int_equal(copies_rows_of(&copies, 1), 1);
	assert_int_equal(copies.repeated, 2);
	/* One that lost all its rows is there to be acknowledged. */
	assert_true(copies_begin(&copies, 9));
	add(&copies, 0, 3, 33);
	assert_int_equal(copies.ticket_count, 3);
	assert_int_equal(copies.tickets[2], 9);
	assert_int_equal(copies_rows_of(&copies, 2), 0);
	/* The next plan knows nothing of it. */
	copies_clear(&copies);
	assert_true(copies_begin(&copies, 10));
	add(&copies, 0, 1, 11);
	assert_int_equal(copies_rows_of(&copies, 0), 1);
	copies_close(&copies);
}

static void the_same_numbers_in_another_group_or_path_are_another_row(void **state)
{
	struct copies copies;

	(void)state;
	assert_int_equal(copies_open(&copies, 4, 8, NULL), 0);
	assert_true(copies_begin(&copies, 7));
	add(&copies, 0, 1, 11);
	add(&copies, 1, 1, 11);
	assert_true(copies_add(&copies, &(struct copy){ .path = COPY_HOST_TO_DEVICE, .group = 0,
							.source = 1, .target = 11 }));
	assert_int_equal(copies.row_count, 3);
	assert_int_equal(copies.repeated, 0);
	copies_close(&copies);
}

static void what_does_not_fit_changes_nothing(void **state)
{
	struct copies copies;

	(void)state;
	assert_int_equal(copies_open(&copies, 1, 2, NULL), 0);
	assert_true(copies_begin(&copies, 7));
	add(&copies, 0, 1, 11);
	add(&copies, 0, 2, 22);
	assert_false(copies_add(&copies, &(struct copy){ .source = 3, .target = 33 }));
	add(&copies, 0, 1, 11);
	assert_false(copies_begin(&copies, 8));
	assert_int_equal(copies.row_count, 2);
	assert_int_equal(copies.ticket_count, 1);
	copies_close(&copies);
}

static void expect_refused(uint32_t ticket_max, uint32_t row_max, const char *sentence)
{
	struct copies    copies;
	struct kvs_error err;

	assert_int_equal(copies_open(&copies, ticket_max, row_max, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	copies_close(&copies);
}

static void limits_of_a_plan_are_checked_at_open(void **state)
{
	(void)state;
	expect_refused(0, 2, "ticket_max: 0, must be 1 to 2097152");
	expect_refused(1, 0, "row_max: 0, must be 1 to 67108864");
	expect_refused(2 * MOVER_TICKETS_MAX + 1, 2, "ticket_max: 2097153, must be 1 to 2097152");
	expect_refused(1, MOVER_ROWS_MAX + 1, "row_max: 67108865, must be 1 to 67108864");
	expect_refused(UINT32_MAX, 2, "ticket_max: 4294967295, must be 1 to 2097152");
	expect_refused(1, UINT32_MAX, "row_max: 4294967295, must be 1 to 67108864");
}

static void a_ticket_comes_whole_or_not_at_all(void **state)
{
	static const struct group_spec full = { .name = "full", .kind = GROUP_FULL, .block_tokens = 2,
						.packing = 1 };
	const struct quay_spec         spec = { .groups = &full, .group_count = 1, .page_tokens = 2,
					       .device_parents = 16, .host_parents = 16 };
	struct quay *const             quay = quay_new(&spec);
	const struct mover_ticket     *ticket;
	struct quay_request            request;
	struct copies                  copies;
	uint64_t                       id;
	uint32_t                       i;

	(void)state;
	assert_int_equal(copies_open(&copies, 4, 7, NULL), 0);
	quay_prompt(quay, &request, 1, 1, 8);
	quay_run(quay, &request, 0, 8);
	quay_finish(quay, &request);
	id = mover_drain(&quay->mover);
	ticket = mover_find(&quay->mover, id);
	assert_true(copies_add_ticket(&copies, &quay->mover, ticket));
	assert_int_equal(copies.tickets[0], id);
	assert_int_equal(copies.row_count, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(copies.rows[i].source, quay_row(quay, id, i)->source);
		assert_int_equal(copies.rows[i].target, quay_row(quay, id, i)->target);
		assert_int_equal(copies.rows[i].tokens, 2);
	}
	assert_false(copies_add_ticket(&copies, &quay->mover, ticket));
	assert_int_equal(copies.ticket_count, 1);
	assert_int_equal(copies.row_count, 4);
	copies_close(&copies);
	assert_true(quay_done(quay, id));
	quay_free(quay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_rows_of_a_plan_are_moved_once_and_the_first_ticket_has_them),
		cmocka_unit_test(the_same_numbers_in_another_group_or_path_are_another_row),
		cmocka_unit_test(what_does_not_fit_changes_nothing),
		cmocka_unit_test(limits_of_a_plan_are_checked_at_open),
		cmocka_unit_test(a_ticket_comes_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
