/* SPDX-License-Identifier: Apache-2.0 */
/* Pages whose blocks several owners hold between them, restored where others own them. */
#include "helm.h"

#include <stdlib.h>

#define ROWS HELM_ROWS

struct pair {
	struct cluster cluster;
	struct helm    owners[2];
};

static void open_owners(struct pair *pair)
{
	helm_open(&pair->owners[0], &pair->cluster, "lanes=1");
	helm_open(&pair->owners[1], &pair->cluster, "lanes=1");
}

static void close_owners(struct pair *pair)
{
	helm_close(&pair->owners[0]);
	helm_close(&pair->owners[1]);
}

static void start(struct pair *pair)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(&pair->cluster, &(struct cluster_options){ .providers = 2 });
	open_owners(pair);
}

static void stop(struct pair *pair)
{
	close_owners(pair);
	cluster_stop(&pair->cluster);
}

/* Every row is ok, by the word of the owner of each and of the other. */
static void expect_all_ok(struct helm *helm)
{
	assert_int_equal(bits_count(helm_await(helm, 0)->ok.words, ROWS), ROWS);
}

static void each_moves_its_rows(struct pair *pair, enum op_kind kind, bool turned)
{
	uint32_t owner;

	for (owner = 0; owner < 2; owner++) {
		helm_own_every_second(helm_name(&pair->owners[owner], 0, 100, ROWS),
				      turned ? 1 - owner : owner);
		assert_int_equal(helm_submit(&pair->owners[owner], 0, kind), 0);
	}
	expect_all_ok(&pair->owners[0]);
	expect_all_ok(&pair->owners[1]);
}

static void A9_4_what_one_owner_put_another_restores(void **state)
{
	struct pair *const pair = calloc(1, sizeof(*pair));

	(void)state;
	start(pair);
	each_moves_its_rows(pair, OP_PUT, false);
	assert_int_equal(cluster_gauge(&pair->cluster, "master_key_count"), ROWS);
	each_moves_its_rows(pair, OP_GET, false);
	each_moves_its_rows(pair, OP_GET, true);
	close_owners(pair);
	/* In processes of another time, too. */
	open_owners(pair);
	each_moves_its_rows(pair, OP_QUERY, true);
	each_moves_its_rows(pair, OP_GET, true);
	stop(pair);
	free(pair);
}

static void A9_4_a_row_that_nobody_put_is_missed_by_its_owner_alone(void **state)
{
	struct pair *const       pair = calloc(1, sizeof(*pair));
	const struct fact       *fact;
	const struct helm_slot  *slot;
	uint32_t                 i;

	(void)state;
	start(pair);
	slot = helm_name(&pair->owners[0], 0, 100, ROWS);
	helm_own_every_second(&pair->owners[0].slots[0], 0);
	assert_int_equal(helm_submit(&pair->owners[0], 0, OP_PUT), 0);
	expect_all_ok(&pair->owners[0]);
	helm_own_every_second(helm_name(&pair->owners[1], 0, 100, ROWS), 1);
	assert_int_equal(helm_submit(&pair->owners[1], 0, OP_GET), 0);
	fact = helm_await(&pair->owners[1], 0);
	for (i = 0; i < slot->op.key_count; i++) {
		assert_int_equal(bits_test(fact->ok.words, i), i % 2 == 0);
		assert_int_equal(bits_test(fact->object_fault.words, i), i % 2 == 1);
	}
	stop(pair);
	free(pair);
}

/* Ranks that hold different bytes of one page: each finds its own, wherever it runs. */
static void A9_4_each_rank_restores_its_own_replica(void **state)
{
	struct pair *const pair = calloc(1, sizeof(*pair));
	uint32_t           owner, round;

	(void)state;
	start(pair);
	for (round = 0; round < 2; round++) {
		for (owner = 0; owner < 2; owner++) {
			/* In the second round they have changed places. */
			helm_replicate(helm_name(&pair->owners[owner], 0, 100, ROWS),
				       (uint16_t)(owner ^ round));
			assert_int_equal(helm_submit(&pair->owners[owner], 0,
						     round == 0 ? OP_PUT : OP_GET), 0);
		}
		expect_all_ok(&pair->owners[0]);
		expect_all_ok(&pair->owners[1]);
	}
	assert_int_equal(cluster_gauge(&pair->cluster, "master_key_count"), 2 * ROWS);
	stop(pair);
	free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A9_4_what_one_owner_put_another_restores),
		cmocka_unit_test(A9_4_a_row_that_nobody_put_is_missed_by_its_owner_alone),
		cmocka_unit_test(A9_4_each_rank_restores_its_own_replica),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
