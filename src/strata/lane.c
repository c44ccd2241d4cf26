/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's side of a lane: see lane.h.
 *
 * A lane is opened by the first call that names it.  submit() takes rows and reap() hands them back;
 * what they do between is flight.c's.  Without io_uring a lane does its rows in reap(), by batch.c.
 */
#include "strata/lane.h"

#include <stdlib.h>

/* Rows that a lane without a ring does at a time. */
#define PLAIN_ROWS 16u

/* --- opening ---------------------------------------------------------------------------------- */

static void set_note(struct strata *s, const char *note)
{
	os_mutex_lock(&s->lock);
	if (!s->note[0])
		s->note = note;
	os_mutex_unlock(&s->lock);
}

static void open_ring(struct lane *lane)
{
	/* Each row may have headers of its own; one leaf more, and a sync. */
	if (lane->s->set.plain_io || os_ring_open(2 * FLIGHT_ROWS + 2, &lane->ring) < 0) {
		lane->ring = NULL;
		if (!lane->s->set.plain_io)
			set_note(lane->s, "no io_uring here: reads and writes one at a time a worker");
		return;
	}
	/* Where it cannot be registered, it works as it is. */
	(void)os_ring_register_file(lane->ring, lane->s->fd);
}

static int lane_open(struct strata *s, struct lane **ret_lane)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	uint32_t     i;

	if (!lane)
		return -ENOMEM;
	lane->headers = aligned_alloc(STRATA_PAGE, LANE_ROWS * (size_t)STRATA_PAGE);
	if (!lane->headers) {
		free(lane);
		return -ENOMEM;
	}
	lane->s = s;
	list_init(&lane->idle);
	list_init(&lane->queued);
	list_init(&lane->verifying);
	list_init(&lane->unsynced);
	list_init(&lane->syncing);
	list_init(&lane->done);
	list_links_init(lane->links, LANE_ROWS);
	lane->leaf = SLOT_NONE;
	for (i = 0; i < LANE_ROWS; i++)
		list_push_tail(&lane->idle, lane->links, i);
	open_ring(lane);
	*ret_lane = lane;
	return 0;
}

void lane_close(struct lane *lane)
{
	if (!lane)
		return;
	os_ring_close(lane->ring);
	free(lane->headers);
	free(lane);
}

bool lane_is_idle(const struct lane *lane)
{
	return !lane || lane->idle.count + lane->done.count == LANE_ROWS;
}

/* Memory is told of once, and perhaps after the lane was opened. */
static void register_memory(struct lane *lane)
{
	struct strata *const s = lane->s;
	uint32_t             count;

	if (lane->registered || !lane->ring)
		return;
	os_mutex_lock(&s->lock);
	count = s->slice_count;
	os_mutex_unlock(&s->lock);
	if (count == 0)
		return;
	lane->registered = true;
	if (os_ring_register_memory(lane->ring, s->slices, count) < 0)
		set_note(s, "Host memory is not registered with io_uring: see RLIMIT_MEMLOCK");
}

void lane_answer(struct lane *lane, uint32_t number, enum kvs_result result)
{
	lane->rows[number].result = result;
	list_push_tail(&lane->done, lane->links, number);
}

/* --- without a ring --------------------------------------------------------------------------- */

static void do_put(struct lane *lane, const uint32_t *numbers, uint32_t count)
{
	struct kvs_key  keys[PLAIN_ROWS] = { 0 };
	struct kvs_span spans[PLAIN_ROWS] = { 0 };
	enum kvs_result results[PLAIN_ROWS];
	bool            retired;
	uint32_t        i;

	for (i = 0; i < count; i++) {
		keys[i] = *lane->rows[numbers[i]].io.key;
		spans[i] = lane->rows[numbers[i]].io.span;
	}
	(void)strata_put(&lane->s->store, keys, spans, count, results, &retired);
	for (i = 0; i < count; i++)
		lane_answer(lane, numbers[i], results[i]);
}

static void do_queued(struct lane *lane)
{
	uint32_t puts[PLAIN_ROWS];
	uint32_t put_count = 0, i;

	for (i = 0; i < PLAIN_ROWS && lane->queued.count > 0; i++) {
		const uint32_t             number = list_pop_head(&lane->queued, lane->links);
		const struct kvs_io *const io = &lane->rows[number].io;

		if (io->is_put)
			puts[put_count++] = number;
		else
			lane_answer(lane, number, get_now(lane->s, io->key, &io->span));
	}
	if (put_count > 0)
		do_put(lane, puts, put_count);
}

/* --- the store's calls ------------------------------------------------------------------------ */

static int lane_of(struct strata *s, uint32_t number, struct lane **ret_lane)
{
	int rc = 0;

	if (number >= STRATA_LANES_MAX)
		return KVS_E_INVALID;
	if (!s->lanes[number])
		rc = lane_open(s, &s->lanes[number]);
	*ret_lane = s->lanes[number];
	return rc;
}

int strata_submit(struct kvs_store *store, uint32_t number, const struct kvs_io *io, uint32_t count)
{
	struct strata *const s = strata_of(store);
	struct lane         *lane = NULL;
	uint32_t             i;
	const int            rc = lane_of(s, number, &lane);

	if (rc < 0)
		return rc;
	if (lane->broken)
		return lane->broken;
	register_memory(lane);
	for (i = 0; i < count && lane->idle.count > 0 && span_fits(s, &io[i].span); i++) {
		const uint32_t row = list_pop_head(&lane->idle, lane->links);

		lane->rows[row] = (struct row){ .io = io[i] };
		list_push_tail(&lane->queued, lane->links, row);
	}
	/* What comes before a span that cannot be moved is taken; then it is told. */
	if (i == 0 && count > 0 && !span_fits(s, &io[0].span))
		return KVS_E_INVALID;
	if (lane->ring) {
		flight_start(lane);
		if (!lane->broken)
			lane->broken = os_ring_submit(lane->ring);
	}
	return (int)i;
}

int strata_reap(struct kvs_store *store, uint32_t number, struct kvs_io_done *ret_done,
		uint32_t done_max, uint64_t timeout_ns)
{
	struct strata *const s = strata_of(store);
	struct lane         *lane = NULL;
	uint32_t             count = 0;
	const int            rc = lane_of(s, number, &lane);

	if (rc < 0)
		return rc;
	if (lane->ring)
		flight_work(lane, timeout_ns);
	else
		do_queued(lane);
	while (count < done_max && lane->done.count > 0) {
		const uint32_t row = list_pop_head(&lane->done, lane->links);

		ret_done[count++] = (struct kvs_io_done){ .cookie = lane->rows[row].io.cookie,
							  .result = lane->rows[row].result,
							  .retired = true };
		list_push_head(&lane->idle, lane->links, row);
	}
	return count == 0 && lane->broken ? lane->broken : (int)count;
}
