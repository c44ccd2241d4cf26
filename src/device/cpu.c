/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cpu.h.  A stream is a *lane*: two rings, tickets and rows, and three counters that only grow.
 *
 *   polled <= fenced <= submitted       tickets; ticket n is tickets[n % ticket_max]
 *
 * The fence is the counter: it moves when the batch's last byte is written, and whoever reads it moved
 * under the lock sees those bytes.  Rows leave with their fence, tickets when they are polled.
 */
#include "device/cpu.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "device/cpu_copy.h"
#include "os/os.h"

/* 100 ms: every sleep is bounded, so that a lost signal costs latency only. */
#define IDLE_NS UINT64_C(100000000)

struct ticket {
	uint64_t number;
	uint32_t row_count;
};

struct lane {
	struct cpu         *cpu;
	enum copier_stream  stream;
	struct os_mutex     lock;
	struct os_cond      work;      /* more was submitted, or the lane shall stop */
	struct os_cond      progress;  /* a fence was passed */
	struct ticket      *tickets;
	struct cpu_row     *rows;
	uint64_t            submitted; /* tickets */
	uint64_t            fenced;
	uint64_t            polled;
	uint64_t            rows_in;
	uint64_t            rows_out;
	struct copier_stats stats;
	pthread_t           thread;
	bool                started;
	bool                stop;
};

struct cpu {
	struct copier copier;
	enum cpu_mode mode;
	uint32_t      ticket_max;
	uint32_t      row_max;
	struct lane   lanes[COPIER_STREAMS];
	void         *memory; /* of the lanes' rings */
	size_t        memory_bytes;
};

static_assert(offsetof(struct cpu, copier) == 0, "a copier is the front of its engine");

static struct lane *lane_of(struct copier *copier, enum copier_stream stream)
{
	return &((struct cpu *)copier)->lanes[stream];
}

/* --- running ---------------------------------------------------------------------------------- */

/* The oldest batch, without the lock: it stays where it is until its fence.  Held before and after. */
static void run_oldest(struct lane *lane)
{
	struct cpu *const     cpu = lane->cpu;
	const struct ticket  *ticket = &lane->tickets[lane->fenced % cpu->ticket_max];
	const struct cpu_rows rows = { lane->rows, cpu->row_max, lane->rows_out,
				       ticket->row_count };
	struct copier_stats   moved = lane->stats;
	uint64_t              begin_ns;

	os_mutex_unlock(&lane->lock);
	begin_ns = os_now_ns();
	cpu_copy(&cpu->copier, lane->stream, &rows, &moved);
	moved.busy_ns += os_now_ns() - begin_ns;
	os_mutex_lock(&lane->lock);
	moved.submitted = lane->stats.submitted;
	lane->stats = moved;
	lane->rows_out += rows.count;
	lane->fenced++;
	os_cond_broadcast(&lane->progress);
}

/* A stopped lane still runs all it was given. */
static void *run_lane(void *arg)
{
	struct lane *const lane = arg;

	os_mutex_lock(&lane->lock);
	while (!lane->stop || lane->fenced < lane->submitted) {
		if (lane->fenced < lane->submitted)
			run_oldest(lane);
		else
			(void)os_cond_wait(&lane->work, &lane->lock, IDLE_NS);
	}
	os_mutex_unlock(&lane->lock);
	return NULL;
}

/* --- the engine ------------------------------------------------------------------------------- */

static void push_row(struct lane *lane, struct cpu_row row)
{
	lane->rows[lane->rows_in++ % lane->cpu->row_max] = row;
}

static void push_batch(struct lane *lane, const struct copier_batch *batch)
{
	const uint64_t first = lane->rows_in;
	uint32_t       i;

	for (i = 0; i < batch->zero_count; i++)
		push_row(lane, (struct cpu_row){ CPU_ZERO, batch->zeros[i].group, batch->zeros[i].block, 0 });
	for (i = 0; i < batch->pair_count; i++) {
		push_row(lane, (struct cpu_row){ CPU_PAIR, batch->pairs[i].group,
						 batch->pairs[i].device_block,
						 batch->pairs[i].host_block });
	}
	for (i = 0; i < batch->clone_count; i++) {
		push_row(lane, (struct cpu_row){ CPU_CLONE, batch->clones[i].group,
						 batch->clones[i].target, batch->clones[i].source });
	}
	lane->tickets[lane->submitted % lane->cpu->ticket_max] =
		(struct ticket){ batch->ticket, (uint32_t)(lane->rows_in - first) };
	lane->submitted++;
	lane->stats.submitted++;
}

static bool has_room(const struct lane *lane, const struct copier_batch *batch)
{
	const uint64_t rows = (uint64_t)batch->zero_count + batch->pair_count + batch->clone_count;

	return lane->submitted - lane->polled < lane->cpu->ticket_max &&
	       lane->rows_in - lane->rows_out + rows <= lane->cpu->row_max;
}

static bool submit(struct copier *copier, enum copier_stream stream,
		   const struct copier_batch *batch)
{
	struct lane *const lane = lane_of(copier, stream);
	bool               room;

	os_mutex_lock(&lane->lock);
	room = has_room(lane, batch);
	if (room) {
		push_batch(lane, batch);
		if (lane->cpu->mode == CPU_AT_SUBMIT)
			run_oldest(lane);
		os_cond_signal(&lane->work);
	}
	os_mutex_unlock(&lane->lock);
	return room;
}

static bool poll(struct copier *copier, enum copier_stream stream, uint64_t *ret_ticket)
{
	struct lane *const lane = lane_of(copier, stream);
	bool               found;

	os_mutex_lock(&lane->lock);
	found = lane->polled < lane->fenced;
	if (found)
		*ret_ticket = lane->tickets[lane->polled++ % lane->cpu->ticket_max].number;
	os_mutex_unlock(&lane->lock);
	return found;
}

static bool wait_idle(struct copier *copier, enum copier_stream stream, uint64_t timeout_ns)
{
	struct lane *const lane = lane_of(copier, stream);
	const uint64_t     until_ns = os_until_ns(timeout_ns);
	uint64_t           now_ns;
	bool               idle;

	os_mutex_lock(&lane->lock);
	while (lane->fenced < lane->submitted && (now_ns = os_now_ns()) < until_ns)
		(void)os_cond_wait(&lane->progress, &lane->lock, until_ns - now_ns);
	idle = lane->fenced == lane->submitted;
	os_mutex_unlock(&lane->lock);
	return idle;
}

static void stats(struct copier *copier, enum copier_stream stream, struct copier_stats *ret_stats)
{
	struct lane *const lane = lane_of(copier, stream);

	os_mutex_lock(&lane->lock);
	*ret_stats = lane->stats;
	os_mutex_unlock(&lane->lock);
}

bool cpu_step(struct copier *copier, enum copier_stream stream)
{
	struct lane *const lane = lane_of(copier, stream);
	bool               found;

	KVS_ASSERT_CMP(lane->cpu->mode, ==, CPU_STEPPED);
	os_mutex_lock(&lane->lock);
	found = lane->fenced < lane->submitted;
	if (found)
		run_oldest(lane);
	os_mutex_unlock(&lane->lock);
	return found;
}

static void audit_lane(struct lane *lane)
{
	const struct cpu *const cpu = lane->cpu;
	uint64_t                rows = 0, i;

	os_mutex_lock(&lane->lock);
	KVS_ASSERT_CMP(lane->polled, <=, lane->fenced);
	KVS_ASSERT_CMP(lane->fenced, <=, lane->submitted);
	KVS_ASSERT_CMP(lane->submitted - lane->polled, <=, cpu->ticket_max);
	KVS_ASSERT_CMP(lane->stats.submitted, ==, lane->submitted);
	for (i = lane->fenced; i < lane->submitted; i++)
		rows += lane->tickets[i % cpu->ticket_max].row_count;
	KVS_ASSERT_CMP(lane->rows_in - lane->rows_out, ==, rows);
	KVS_ASSERT_CMP(rows, <=, cpu->row_max);
	os_mutex_unlock(&lane->lock);
}

static void audit(struct copier *copier)
{
	audit_lane(lane_of(copier, COPIER_LOAD));
	audit_lane(lane_of(copier, COPIER_SAVE));
}

/* --- open and close --------------------------------------------------------------------------- */

static void close_lane(struct lane *lane)
{
	os_mutex_lock(&lane->lock);
	lane->stop = true;
	os_cond_signal(&lane->work);
	os_mutex_unlock(&lane->lock);
	if (lane->started)
		os_thread_join(lane->thread);
	else
		(void)run_lane(lane);
	os_cond_fini(&lane->progress);
	os_cond_fini(&lane->work);
	os_mutex_fini(&lane->lock);
}

static void close_cpu(struct copier *copier)
{
	struct cpu *const cpu = (struct cpu *)copier;
	int               i;

	for (i = 0; i < COPIER_STREAMS; i++)
		close_lane(&cpu->lanes[i]);
	if (cpu->memory)
		os_pages_unmap(cpu->memory, cpu->memory_bytes);
	copier_unbind(copier);
	free(cpu);
}

static const struct copier_ops cpu_ops = {
	.name = "cpu",
	.submit = submit,
	.poll = poll,
	.wait = wait_idle,
	.stats = stats,
	.close = close_cpu,
	.audit = audit,
};

static size_t ring_bytes(uint32_t ticket_max, uint32_t row_max)
{
	return ticket_max * sizeof(struct ticket) + row_max * sizeof(struct cpu_row);
}

/* Pages of their own, brought in now: the first batch finds them as the thousandth does. */
static int open_rings(struct cpu *cpu, struct kvs_error *err)
{
	const size_t bytes = ring_bytes(cpu->ticket_max, cpu->row_max);
	uint8_t     *at;
	int          rc, i;

	cpu->memory_bytes = COPIER_STREAMS * bytes;
	rc = os_pages_map(cpu->memory_bytes, &cpu->memory);
	if (rc == 0)
		rc = os_pages_populate(cpu->memory, cpu->memory_bytes);
	/* A kernel that does not know how brings them in as they are touched. */
	if (rc < 0 && rc != -EINVAL) {
		return err_set(err, rc, "no memory for %u tickets and %u rows: %s", cpu->ticket_max,
			       cpu->row_max, kvs_strerror(rc));
	}
	at = cpu->memory;
	for (i = 0; i < COPIER_STREAMS; i++, at += bytes) {
		cpu->lanes[i].tickets = (struct ticket *)(void *)at;
		cpu->lanes[i].rows = (struct cpu_row *)(void *)(at + ring_bytes(cpu->ticket_max, 0));
	}
	return 0;
}

static int start_lanes(struct cpu *cpu, struct kvs_error *err)
{
	static const char *const names[] = { [COPIER_LOAD] = "kvs-load", [COPIER_SAVE] = "kvs-save" };
	int                      i;

	for (i = 0; i < COPIER_STREAMS; i++) {
		const int rc = os_thread_start(&cpu->lanes[i].thread, names[i], run_lane,
					       &cpu->lanes[i]);

		if (rc < 0)
			return err_set(err, rc, "thread %s: %s", names[i], kvs_strerror(rc));
		cpu->lanes[i].started = true;
	}
	return 0;
}

int cpu_open(const struct copier_options *options, enum cpu_mode mode, struct copier **ret_copier,
	     struct kvs_error *err)
{
	const uint64_t table_bytes = COPIER_STREAMS *
				     (uint64_t)ring_bytes(options->ticket_max, options->row_max);
	struct cpu *cpu;
	int         i, rc = copier_check(options, table_bytes, err);

	if (rc < 0)
		return rc;
	cpu = calloc(1, sizeof(*cpu));
	if (!cpu)
		return err_set(err, -ENOMEM, "no memory for a copy engine");
	cpu->mode = mode;
	cpu->ticket_max = options->ticket_max;
	cpu->row_max = options->row_max;
	for (i = 0; i < COPIER_STREAMS; i++) {
		cpu->lanes[i].cpu = cpu;
		cpu->lanes[i].stream = (enum copier_stream)i;
		os_mutex_init(&cpu->lanes[i].lock);
		os_cond_init(&cpu->lanes[i].work);
		os_cond_init(&cpu->lanes[i].progress);
	}
	rc = copier_bind(&cpu->copier, &cpu_ops, options, err);
	if (rc == 0)
		rc = open_rings(cpu, err);
	if (rc == 0 && mode == CPU_THREADS)
		rc = start_lanes(cpu, err);
	if (rc < 0) {
		close_cpu(&cpu->copier);
		return rc;
	}
	*ret_copier = &cpu->copier;
	return 0;
}
