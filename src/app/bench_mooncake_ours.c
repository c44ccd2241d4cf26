/* SPDX-License-Identifier: Apache-2.0 */
/* Our side: the store's own calls, from as many threads as the SDK's client is called from. */
#include <errno.h>
#include <stdlib.h>

#include "app/bench_mooncake.h"
#include "os/os.h"

struct gate {
	struct os_mutex mutex;
	struct os_cond  opened;
	bool            open;
};

/* One thread's part of a pass. */
struct hand {
	struct bench_ours        *ours;
	const struct bench_moves *moves;
	struct gate              *gate;
	pthread_t                 thread;
	uint32_t                  number;
	uint64_t                  began_ns, ended_ns;
	double                   *calls_us; /* room for all of its calls */
	uint64_t                  call_count;
	struct kvs_key            keys[BENCH_BATCH_MAX];
	struct kvs_span           spans[BENCH_BATCH_MAX];
	enum kvs_result           results[BENCH_BATCH_MAX];
	int                       rc;
	struct kvs_error          err;
};

int bench_ours_open(struct bench_ours *ours, const char *spec, uint64_t bytes, uint32_t blocks,
		    struct kvs_error *err)
{
	int rc;

	*ours = (struct bench_ours){ 0 };
	/* A window has two blocks a row under way. */
	rc = bench_window_open(&ours->window, bytes, (blocks + 1) / 2, err);
	return rc == 0 ? bench_store_open(spec, &ours->window, &ours->store, err) : rc;
}

void bench_ours_close(struct bench_ours *ours)
{
	bench_store_close(ours->store, &ours->window);
	bench_window_close(&ours->window);
	ours->store = NULL;
}

struct kvs_key bench_ours_key(uint64_t number)
{
	return (struct kvs_key){ .offset = (uint32_t)number };
}

int bench_ours_drop(struct bench_ours *ours, struct kvs_error *err)
{
	uint64_t  count;
	const int rc = ours->store->ops->purge(ours->store, NULL, &count);

	return rc < 0 ? err_set(err, rc, "purge: %s", kvs_strerror(rc)) : 0;
}

static int move_batch(struct hand *hand, uint64_t first)
{
	const struct bench_moves   *moves = hand->moves;
	struct kvs_store           *store = hand->ours->store;
	const struct kvs_store_ops *ops = store->ops;
	const uint32_t              count = moves->batch;
	uint64_t                    begin_ns;
	bool                        retired;
	uint32_t                    i;
	int                         rc;

	for (i = 0; i < count; i++)
		hand->keys[i] = bench_ours_key(first + i);
	begin_ns = os_now_ns();
	rc = moves->is_put ? ops->put(store, hand->keys, hand->spans, count, hand->results, &retired)
			   : ops->get(store, hand->keys, hand->spans, count, hand->results, &retired);
	hand->calls_us[hand->call_count++] = (double)(os_now_ns() - begin_ns) / 1e3;
	if (rc < 0)
		return err_set(&hand->err, rc, "a batch: %s", kvs_strerror(rc));
	for (i = 0; i < count; i++) {
		if (hand->results[i] != KVS_RESULT_DONE) {
			return err_set(&hand->err, -EIO, "a %s of ours came out as result %d",
				       moves->is_put ? "put" : "get", hand->results[i]);
		}
	}
	return 0;
}

static void *run_hand(void *arg)
{
	struct hand *const        hand = arg;
	const struct bench_moves *moves = hand->moves;
	const uint64_t            turn = (uint64_t)moves->threads * moves->batch;
	uint64_t                  round, first;

	os_mutex_lock(&hand->gate->mutex);
	while (!hand->gate->open)
		os_cond_wait(&hand->gate->opened, &hand->gate->mutex, UINT64_MAX);
	os_mutex_unlock(&hand->gate->mutex);
	hand->began_ns = os_now_ns();
	for (round = 0; hand->rc == 0 && round < moves->rounds; round++) {
		first = (uint64_t)hand->number * moves->batch;
		for (; hand->rc == 0 && first < moves->objects; first += turn)
			hand->rc = move_batch(hand, first);
	}
	hand->ended_ns = os_now_ns();
	return NULL;
}

static void ready(struct hand *hand, struct bench_ours *ours, const struct bench_moves *moves,
		  struct gate *gate, uint32_t number, double *calls_us)
{
	uint32_t i;

	*hand = (struct hand){ .ours = ours, .moves = moves, .gate = gate, .number = number,
			       .calls_us = calls_us };
	for (i = 0; i < moves->batch; i++)
		hand->spans[i] = arena_block(&ours->window.blocks, number * moves->batch + i);
}

static void open_gate(struct gate *gate)
{
	os_mutex_lock(&gate->mutex);
	gate->open = true;
	os_cond_broadcast(&gate->opened);
	os_mutex_unlock(&gate->mutex);
}

/* All of its threads; how long they took, from the first that began to the last that ended. */
static int run_hands(struct hand *hands, uint32_t count, uint64_t *ret_spent_ns,
		     struct kvs_error *err)
{
	uint64_t began_ns = UINT64_MAX, ended_ns = 0;
	uint32_t i, started = 0;
	int      rc = 0;

	while (rc == 0 && started < count) {
		rc = os_thread_start(&hands[started].thread, "kvs-bench", run_hand, &hands[started]);
		if (rc == 0)
			started++;
	}
	open_gate(hands[0].gate);
	for (i = 0; i < started; i++)
		os_thread_join(hands[i].thread);
	if (rc < 0)
		return err_set(err, rc, "threads: %s", kvs_strerror(rc));
	for (i = 0; i < count; i++) {
		if (hands[i].rc < 0)
			return err_set(err, hands[i].rc, "%s", hands[i].err.message);
		began_ns = hands[i].began_ns < began_ns ? hands[i].began_ns : began_ns;
		ended_ns = hands[i].ended_ns > ended_ns ? hands[i].ended_ns : ended_ns;
	}
	*ret_spent_ns = ended_ns - began_ns;
	return 0;
}

static int pass(struct hand *hands, struct bench_ours *ours, const struct bench_moves *moves,
		double *calls_us, uint64_t *spent_ns, struct kvs_error *err)
{
	const uint64_t calls = moves->rounds * moves->objects / moves->batch / moves->threads;
	struct gate    gate = { .open = false };
	uint64_t       more_ns = 0;
	uint32_t       i;
	int            rc;

	os_mutex_init(&gate.mutex);
	os_cond_init(&gate.opened);
	for (i = 0; i < moves->threads; i++)
		ready(&hands[i], ours, moves, &gate, i, calls_us + i * calls);
	rc = run_hands(hands, moves->threads, &more_ns, err);
	*spent_ns += more_ns;
	os_cond_fini(&gate.opened);
	os_mutex_fini(&gate.mutex);
	return rc;
}

/* Each round of puts finds its objects gone; nobody times that. */
static int pass_puts(struct hand *hands, struct bench_ours *ours, const struct bench_moves *moves,
		     double *calls_us, uint64_t *spent_ns, struct kvs_error *err)
{
	const struct bench_moves once = { true, moves->bytes, moves->batch, moves->threads,
					  moves->objects, 1 };
	uint64_t                 round;
	int                      rc = 0;

	for (round = 0; rc == 0 && round < moves->rounds; round++) {
		rc = bench_ours_drop(ours, err);
		if (rc == 0) {
			rc = pass(hands, ours, &once, calls_us + round * moves->objects / moves->batch,
				  spent_ns, err);
		}
	}
	return rc;
}

int bench_ours_move(struct bench_ours *ours, const struct bench_moves *moves,
		    struct bench_speed *ret_speed, struct kvs_error *err)
{
	const uint64_t     calls = moves->rounds * moves->objects / moves->batch;
	struct hand *const hands = calloc(moves->threads, sizeof(*hands));
	double *const      calls_us = calloc(calls, sizeof(*calls_us));
	uint64_t           spent_ns = 0;
	int                rc;

	if (!hands || !calls_us)
		rc = err_set(err, -ENOMEM, "no memory for the figures");
	else if (moves->is_put)
		rc = pass_puts(hands, ours, moves, calls_us, &spent_ns, err);
	else
		rc = pass(hands, ours, moves, calls_us, &spent_ns, err);
	if (rc == 0) {
		*ret_speed = (struct bench_speed){
			.gb_s = (double)(moves->rounds * moves->objects * moves->bytes) /
				(double)spent_ns,
			.call_us = bench_median(calls_us, (uint32_t)calls),
		};
	}
	free(hands);
	free(calls_us);
	return rc;
}
