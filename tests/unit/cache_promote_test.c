/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promotion boundary: history that reaches further than windows and states do is worth one
 * prefill that is cut there, so that they are published there too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

/* P = q = 4, and prompts of 8 pages. */
#define MODEL(...) { 4, 48, 48, { __VA_ARGS__ } }
#define F LAB_FULL(4, 1)
#define S LAB_WINDOW(4, 10, 1)
#define M LAB_STATE(4, 1)

struct promotion {
	const char      *name;
	struct lab_model model;
	const char      *device[3]; /* by group */
	const char      *host[3];
	uint64_t         device_tokens, device_closed;
	uint64_t         host_tokens, host_closed;
	uint64_t         promotion;
};

static const struct promotion promotions[] = {
	{ "history reaches further than the state", MODEL(F, M), { "xxxxxxxx", "...x" }, { "", "" },
	  16, 32, 16, 32, 32 },
	{ "the shorter history counts", MODEL(F, F, M), { "xxxxxxxx", "xxxxxx", "...x" },
	  { "", "", "" }, 16, 24, 16, 24, 24 },
	{ "a window that reaches further is no reason", MODEL(F, S), { "xxxx", "xxxxxxxx" },
	  { "", "" }, 16, 16, 16, 16, 0 },
	{ "windows alone close nothing", MODEL(S), { "xxxx" }, { "" }, 16, 0, 16, 0, 0 },
	{ "Host's history counts", MODEL(F, M), { "xxxx", "...x" }, { "....xxxx", "" },
	  16, 16, 16, 32, 32 },
	{ "Host alone", MODEL(F, M), { "", "" }, { "xxxxxxxx", "...x" }, 0, 0, 16, 32, 32 },
	{ "Host's state at the end of history ends it", MODEL(F, M), { "xxxxxxxx", "...x" },
	  { "", ".......x" }, 16, 32, 32, 32, 0 },
	{ "Host's shorter extension keeps it", MODEL(F, M), { "xxxxxxxx", "...x" }, { "", ".....x" },
	  16, 32, 24, 32, 32 },
	{ "nothing is there", MODEL(F, M), { "", "" }, { "", "" }, 0, 0, 0, 0, 0 },
};

static void run_promotion(const struct promotion *row)
{
	struct lab lab;
	uint32_t   g;

	lab_open(&lab, &row->model);
	for (g = 0; g < lab.group_count; g++) {
		lab_fill(&lab, DEVICE, g, row->device[g]);
		lab_fill(&lab, HOST, g, row->host[g]);
	}
	lab_probe(&lab, 8);
	assert_int_equal(lab.probe.device_tokens, row->device_tokens);
	assert_int_equal(lab.probe.device_closed, row->device_closed);
	assert_int_equal(lab.probe.host_tokens, row->host_tokens);
	assert_int_equal(lab.probe.host_closed, row->host_closed);
	assert_int_equal(lab.probe.promotion_tokens, row->promotion);
	lab_close(&lab);
}

static void history_beyond_the_joint_boundary_is_a_promotion(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(promotions); i++) {
		print_message("# %s\n", promotions[i].name);
		run_promotion(&promotions[i]);
	}
}

/* The second request cuts its prefill at the promotion; the third restores there. */
static void a_promoted_boundary_is_restored_by_the_next_request(void **state)
{
	static const struct lab_model model = MODEL(F, M);
	struct lab_step               step = lab_tokens(0);
	struct lab_request            request;
	struct lab_rows               rows;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xxxxxxxx");
	lab_fill(&lab, DEVICE, 1, "...x");
	rows = lab_claim(&lab, &request, 8, 16);
	assert_int_equal(lab.probe.promotion_tokens, 32);
	assert_int_equal(rows.count, 0);
	lab_expect_table(&lab, &request, 0, "xxxxxxxx");
	lab_complete(&lab, &step, 8, 4, CELL_PROMOTED, 32);
	lab_advance(&lab, &request, &step);
	assert_int_equal(lab_view(&lab, DEVICE, 1, 7).kind, CELL_PROMOTED);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 7).kind, CELL_PROMOTED); /* a kind only rises */
	lab_free(&lab, &request);
	lab_probe(&lab, 8);
	assert_int_equal(lab.probe.device_tokens, 32);
	assert_int_equal(lab.probe.promotion_tokens, 0);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(history_beyond_the_joint_boundary_is_a_promotion),
		cmocka_unit_test(a_promoted_boundary_is_restored_by_the_next_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
