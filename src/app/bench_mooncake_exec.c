/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor over the store whose master answers, stands still, and is gone: what a caller of submit
 * and poll notices of it.
 *
 * A get is submitted as soon as there is memory for one; when all memory is in use a lookup is, so that
 * refusals are timed, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "app/bench_mooncake.h"
#include "base/bits.h"
#include "exec/exec.h"

#define OBJECT_BYTES 65536u
#define BATCH 16u
#define SLOTS 32u

#define STATE_NS UINT64_C(3000000000)
#define PAUSE_NS UINT64_C(100000)
/* For what was under way to come back, and for the store to be asked again. */
#define RECOVERY_NS UINT64_C(30000000000)
#define CLOSE_NS UINT64_C(60000000000)

#define FACTS 8u

struct slot {
	struct kvs_key  keys[BATCH];
	struct kvs_span spans[BATCH];
	uint64_t        op_id; /* under way; 0: idle */
};

struct rig {
	struct bench_ours   ours;
	struct exec        *exec;
	struct slot         slots[SLOTS];
	uint64_t            op_id;
	struct histogram    submit_ns, poll_ns;
	struct bench_calls *calls, ignored;
};

static struct slot *find_slot(struct rig *rig, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < SLOTS; i++) {
		if (rig->slots[i].op_id == op_id)
			return &rig->slots[i];
	}
	return NULL;
}

static void submit(struct rig *rig)
{
	struct slot *const idle = find_slot(rig, 0);
	struct op op = { .op_id = ++rig->op_id, .kind = idle ? OP_GET : OP_QUERY, .key_count = BATCH };
	uint64_t           begin_ns;
	int                rc;

	op.keys = idle ? idle->keys : rig->slots[0].keys;
	op.spans = idle ? idle->spans : NULL;
	op_own_all(&op);
	begin_ns = os_now_ns();
	rc = exec_submit(rig->exec, &op);
	histogram_add(&rig->submit_ns, os_now_ns() - begin_ns);
	if (rc == 0) {
		rig->calls->taken++;
		if (idle)
			idle->op_id = op.op_id;
	} else {
		rig->calls->refused++;
	}
}

static bool all_ok(const struct fact *fact)
{
	return bits_count(fact->ok.words, fact->key_count) == fact->key_count;
}

/* How many gets came back whole. */
static uint32_t fetch(struct rig *rig)
{
	struct pressure pressure;
	struct fact     facts[FACTS];
	const uint64_t  begin_ns = os_now_ns();
	const uint32_t  count = exec_poll(rig->exec, facts, FACTS, &pressure);
	uint32_t        i, good = 0;

	histogram_add(&rig->poll_ns, os_now_ns() - begin_ns);
	for (i = 0; i < count; i++) {
		struct slot *const slot = find_slot(rig, facts[i].op_id);

		good += slot && all_ok(&facts[i]);
		if (all_ok(&facts[i]))
			rig->calls->done++;
		else
			rig->calls->failed++;
		/* Bytes in doubt are never read into again. */
		if (slot && facts[i].retired)
			slot->op_id = 0;
	}
	return good;
}

static void step(struct rig *rig)
{
	submit(rig);
	(void)exec_wait(rig->exec, PAUSE_NS);
}

static void watch(struct rig *rig, struct bench_calls *ret_calls)
{
	const uint64_t until_ns = os_until_ns(STATE_NS);

	*ret_calls = (struct bench_calls){ 0 };
	rig->calls = ret_calls;
	rig->submit_ns = (struct histogram){ 0 };
	rig->poll_ns = (struct histogram){ 0 };
	while (os_now_ns() < until_ns) {
		step(rig);
		(void)fetch(rig);
	}
	ret_calls->submit_median_ns = histogram_percentile(&rig->submit_ns, 50);
	ret_calls->submit_p99_ns = histogram_percentile(&rig->submit_ns, 99);
	ret_calls->poll_median_ns = histogram_percentile(&rig->poll_ns, 50);
	ret_calls->poll_p99_ns = histogram_percentile(&rig->poll_ns, 99);
}

/* Until a get has come back whole; what is not well again after a while is measured as it is. */
static void recover(struct rig *rig)
{
	const uint64_t until_ns = os_until_ns(RECOVERY_NS);
	uint32_t       good = 0;

	rig->calls = &rig->ignored;
	while (good == 0 && os_now_ns() < until_ns) {
		step(rig);
		good = fetch(rig);
	}
}

static void watch_all(struct rig *rig, struct bench_cluster *cluster, struct bench_calls *ret_calls)
{
	watch(rig, &ret_calls[BENCH_MASTER_UP]);
	os_process_pause(&cluster->master.process);
	watch(rig, &ret_calls[BENCH_MASTER_PAUSED]);
	os_process_resume(&cluster->master.process);
	recover(rig);
	bench_talk_end(&cluster->master);
	watch(rig, &ret_calls[BENCH_MASTER_DOWN]);
}

static int open_rig(struct rig *rig, const char *spec, uint32_t threads, struct kvs_error *err)
{
	const struct exec_options options = { .limits = { .outstanding_max = SLOTS,
							  .queue_max = SLOTS },
					      .workers = { 1, threads, threads } };
	const struct bench_moves  moves = { true, OBJECT_BYTES, BATCH, 1, (uint64_t)SLOTS * BATCH, 1 };
	struct bench_speed        ignored;
	uint32_t                  i, k;
	int rc = bench_ours_open(&rig->ours, spec, OBJECT_BYTES, SLOTS * BATCH, err);

	for (i = 0; rc == 0 && i < SLOTS; i++) {
		for (k = 0; k < BATCH; k++) {
			rig->slots[i].keys[k] = bench_ours_key(i * BATCH + k);
			rig->slots[i].spans[k] = arena_block(&rig->ours.window.blocks, i * BATCH + k);
		}
	}
	if (rc == 0)
		rc = bench_ours_move(&rig->ours, &moves, &ignored, err);
	return rc == 0 ? exec_open(rig->ours.store, &options, &rig->exec, err) : rc;
}

static void close_rig(struct rig *rig)
{
	if (rig->exec) {
		/* The store is the executor's. */
		rig->ours.store = NULL;
		if (exec_close(rig->exec, CLOSE_NS) < 0) {
			arena_retain(rig->ours.window.arena);
			rig->ours.window.retained = true;
		}
	}
	bench_ours_close(&rig->ours);
}

int bench_mooncake_exec(struct bench_cluster *cluster, const char *spec, uint32_t threads,
			struct bench_calls ret_calls[BENCH_MASTER_COUNT], struct kvs_error *err)
{
	struct rig *const rig = calloc(1, sizeof(*rig));
	int               rc;

	if (!rig)
		return err_set(err, -ENOMEM, "no memory for the bench");
	rc = open_rig(rig, spec, threads, err);
	if (rc == 0)
		watch_all(rig, cluster, ret_calls);
	close_rig(rig);
	/* Keys and spans of what did not come back are in use. */
	if (!rig->ours.window.retained)
		free(rig);
	return rc;
}
