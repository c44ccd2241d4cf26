/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that writes into a buffer long after it said that it had failed: with threads, end to end.
 *
 * The rig's requests go on over real rows, each of which its engine checks, while the fault store's own
 * thread waits to scribble.  Nobody looks at a clock: rounds go on until the bytes have changed.  Whether
 * the executor's notices are heard is each test's to say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "sched_rig.h"
#include "store/store.h"

/* The longer one ends two tokens behind a boundary that the shorter one published. */
#define PROMPT 12u
#define PROMPT_MAX 14u
#define PROMPTS 6u
#define KEYS 64u
#define POLL_NS UINT64_C(1000000)

static struct srig  rig;
static struct exec *executor;
static uint32_t     outstanding;
static bool         listening; /* to notices */
static uint32_t     turn; /* of the requests that go on meanwhile */

/* The GET that came back unretired: where it may still write, and what was there. */
static struct op       lost;
static struct kvs_span lost_spans[KEYS];
static uint8_t         lost_bytes[KEYS][SRIG_OBJECT_BYTES];

/* --- the executor, in the place of the rig's list of objects ---------------------------------- */

/* Before the store hears of it: what is late may still be earlier than the next look. */
static void remember(const struct op *op)
{
	uint32_t i;

	assert_true(op->key_count <= KEYS);
	lost = *op;
	for (i = 0; i < op->key_count; i++) {
		lost_spans[i] = op->spans[i];
		memcpy(lost_bytes[i], op->spans[i].ptr, op->spans[i].bytes);
	}
}

static void dispatch(void)
{
	uint32_t i;

	for (i = 0; i < rig.op_count; i++) {
		const struct op *const op = &rig.ops[i];
		int                    rc;

		if (op->kind == OP_GET)
			remember(op);
		rc = exec_submit(executor, op);
		if (rc < 0)
			fact_refused(&rig.facts[rig.fact_count++], op, exec_refusal_reason(rc));
		else
			outstanding++;
	}
	rig.op_count = 0;
}

/* The one owner agrees: the tick of the round has it, and the executor knows. */
static void listen(void)
{
	static struct retirement_notice notices[SRIG_OPS];
	uint32_t                        i;

	rig.tick.notices = notices;
	rig.tick.notice_count = exec_poll_notices(executor, notices, SRIG_OPS);
	for (i = 0; i < rig.tick.notice_count; i++)
		assert_int_equal(exec_notice(executor, &notices[i]), 0);
}

static void collect(void)
{
	struct pressure pressure;
	uint32_t        got;

	if (listening)
		listen();
	if (outstanding == 0)
		return;
	exec_wait(executor, POLL_NS);
	got = exec_poll(executor, rig.facts + rig.fact_count, SRIG_OPS - rig.fact_count, &pressure);
	rig.fact_count += got;
	outstanding -= got;
}

static void go_round(void)
{
	dispatch();
	collect();
	srig_step(&rig);
}

/* A whole request, saved to Host and offered to the store. */
static void serve(const char *id, int32_t first, uint32_t count)
{
	int32_t tokens[PROMPT_MAX];

	srig_tokens(tokens, count, first, 1);
	srig_submit(&rig, id, tokens, count, 2);
	do
		go_round();
	while (!srig_row(&rig, id) || !srig_row(&rig, id)->ends_prompt);
	srig_finish(&rig, id);
	go_round();
}

static void serve_next(void)
{
	char id[16];

	snprintf(id, sizeof(id), "meanwhile%u", turn % 1000);
	serve(id, 1000 + (int32_t)(turn % PROMPTS) * 100, PROMPT + turn / PROMPTS % 2 * 2);
	turn++;
}

/* --- the test --------------------------------------------------------------------------------- */

static void open_with_delay(uint32_t delay_ms)
{
	const struct exec_options exec = { .limits = { .outstanding_max = 8, .queue_max = 8 },
					   .workers = { 1, 1, 1 } };
	struct sched_options      options = srig_store_options();
	char                      path[] = "/tmp/kvstrata-late-XXXXXX";
	char                      spec[64];
	struct kvs_store         *store;
	struct kvs_error          err;
	const int                 fd = mkstemp(path);

	assert_true(fd >= 0);
	dprintf(fd, "{\"inner\": \"mem:4MiB\", \"faults\": [{\"kind\": \"late_write\", \"op\": \"get\", "
		    "\"count\": 1, \"ms\": %u}]}", delay_ms);
	close(fd);
	snprintf(spec, sizeof(spec), "fault:%s", path);
	assert_int_equal(store_open(spec, 4096, "lru", &store, &err), 0);
	unlink(path);
	assert_int_equal(exec_open(store, &exec, &executor, &err), 0);
	/* Device has room for a prompt or two, Host for all of them beside the lost blocks. */
	options.device_parents = 20;
	options.host_parents = 64;
	/* No request is to end its wait before the store has failed. */
	options.transfer.deadline_ns = UINT64_MAX;
	outstanding = 0;
	listening = false;
	srig_open(&rig, &options);
	rig.store_held = true;
}

/* The store has the prompt; Device and Host have nothing. */
static void seed(void)
{
	serve("seed", 100, PROMPT);
	while (sched_in_the_way(rig.sched) || sched_load(rig.sched).transfer.backups > 0)
		go_round();
	assert_int_equal(sched_clear(rig.sched, &rig.options.space, NULL), 0);
}

static void lose(void)
{
	serve("victim", 100, PROMPT_MAX);
	assert_int_equal(sched_load(rig.sched).transfer.quarantined, 1);
	assert_true(lost.key_count > 0);
}

/* The race is the point: the store writes without a word to anybody. */
__attribute__((no_sanitize_thread)) static bool has_landed(void)
{
	uint32_t i;
	size_t   at;

	for (i = 0; i < lost.key_count; i++) {
		const volatile uint8_t *const now = lost_spans[i].ptr;

		for (at = 0; at < lost_spans[i].bytes; at++) {
			if (now[at] != lost_bytes[i][at])
				return true;
		}
	}
	return false;
}

/* The blocks are the ticket's and nobody else's: no name, one reference. */
static void expect_quarantine(void)
{
	const struct ticket *const ticket = transfer_find(sched_transfer(rig.sched), lost.op_id);
	struct ticket_view         view;
	struct cell_view           cell;
	uint32_t                   i;

	assert_non_null(ticket);
	view = ticket_view(ticket);
	assert_int_equal(view.state, TICKET_QUARANTINE);
	assert_int_equal(view.block_count, lost.key_count);
	for (i = 0; i < view.block_count; i++) {
		uint32_t group, block;

		ticket_block(ticket, i, &group, &block);
		assert_false(cache_view(sched_cache(rig.sched), STRATUM_HOST, group, block, &cell));
	}
}

static void close_all(void)
{
	/* What landed was all there was, and the store knew: now it is heard. */
	listening = true;
	while (sched_load(rig.sched).transfer.quarantined > 0)
		go_round();
	listening = false;
	rig.store_held = false;
	srig_let_store(&rig);
	assert_int_equal(exec_close(executor, UINT64_MAX), 0);
	srig_close(&rig);
}

static void write_late(uint32_t delay_ms)
{
	uint64_t gets;
	uint32_t i;

	open_with_delay(delay_ms);
	seed();
	lose();
	gets = rig.gets;
	/* At least one round of all prompts before it lands, as many as there is time for, and two after. */
	for (i = 0; i < PROMPTS; i++)
		serve_next();
	while (!has_landed())
		serve_next();
	expect_quarantine();
	for (i = 0; i < 2 * PROMPTS; i++)
		serve_next();
	expect_quarantine();
	assert_int_equal(rig.gets, gets);
	assert_true(rig.loads > 0);
	close_all();
}

static void a_write_1_to_500_ms_after_a_failure_reaches_nobody(void **state)
{
	static const uint32_t delays_ms[] = { 1, 5, 50, 500 };
	uint32_t              i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(delays_ms); i++)
		write_late(delays_ms[i]);
}

static uint64_t stored(void)
{
	struct exec_stats stats;

	exec_stats(executor, &stats);
	return stats.moved.put_new_keys;
}

/* Nobody has seen it, so the store is offered it. */
static void serve_new(void)
{
	char id[16];

	snprintf(id, sizeof(id), "new%u", turn % 1000);
	serve(id, 10000 + (int32_t)turn % 1000 * 100, PROMPT);
	turn++;
}

static void settle_down(void)
{
	while (sched_in_the_way(rig.sched) || sched_load(rig.sched).transfer.backups > 0)
		go_round();
}

static void X2_a_write_that_landed_ends_the_quarantine_and_storage_goes_on(void **state)
{
	uint64_t before, loaded;
	uint32_t refs;

	(void)state;
	open_with_delay(1);
	seed();
	refs = sched_load(rig.sched).transfer.host_refs;
	lose();
	assert_int_equal(sched_load(rig.sched).transfer.host_refs, refs + lost.key_count);
	while (!has_landed())
		serve_next();
	listening = true;
	while (sched_load(rig.sched).transfer.quarantined > 0)
		go_round();
	assert_null(transfer_find(sched_transfer(rig.sched), lost.op_id));
	settle_down();
	assert_int_equal(sched_load(rig.sched).transfer.host_refs, refs);
	/* Once its cooldown is over the store takes what it has not seen, and gives what it has. */
	before = stored();
	while (stored() == before)
		serve_new();
	settle_down();
	assert_int_equal(sched_clear(rig.sched, &rig.options.space, NULL), 0);
	loaded = rig.gets;
	serve("again", 100, PROMPT_MAX);
	assert_true(rig.gets > loaded);
	settle_down();
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_a_write_that_landed_ends_the_quarantine_and_storage_goes_on),
		cmocka_unit_test(a_write_1_to_500_ms_after_a_failure_reaches_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
