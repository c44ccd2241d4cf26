/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Device of a replay: parents in ordinary memory, laid out for the groups of a shape, and the
 * CPU copy engine that runs the scheduler's tickets.
 *
 * A copy is over when it was submitted, on the caller's thread, so that a replay depends on its
 * seed alone; its ticket is reported to the next round, as of any engine.  A block of a group is
 * one field, its layers one behind the other.
 *
 * Threads  One.
 */
#ifndef APP_REPLAY_DEVICE_H
#define APP_REPLAY_DEVICE_H

#include "app/replay_shape.h"
#include "device/copier.h"
#include "engine/groups.h"
#include "sched/sched.h"

/* Where it lies must not change while it is open: the copy engine keeps the layout. */
struct replay_device {
	uint8_t             *base; /* the null parent's */
	size_t               bytes;
	char                 ids[GROUPS_MAX][24];
	struct layout        layout;
	struct engine_plane *planes;  /* group by group, of each layer */
	struct copier       *copier;
	uint32_t             row_max; /* of each list below */
	struct copier_block *zeros;
	struct copier_pair  *pairs;
	struct copier_clone *clones;
};

/**
 * Blocks for so many parents; host_bytes is how large a parent of Host is, that copies go to and
 * from.
 *
 * ticket_max  tickets of a kind in flight.
 * Errors      -ENOMEM, or what copier_check() and layout_open() refuse.
 */
int  replay_device_open(struct replay_device *device, const struct replay_shape *shape,
			uint32_t parents, const struct arena_part *host, uint32_t ticket_max,
			struct kvs_error *err);
void replay_device_close(struct replay_device *device);

/* The reference engine over these groups; planes are the device's. */
void replay_device_engine(const struct replay_device *device, const struct replay_shape *shape,
			  struct group_engine *ret_engine);

/* Blanks the fresh blocks of the plan and runs its copies.  Whether there was anything to do. */
bool replay_device_run(struct replay_device *device, const struct mover *mover,
		       const struct sched_plan *plan);

/* The tickets that have passed their fence, at most max; how many. */
uint32_t replay_device_done(struct replay_device *device, uint64_t *ret_tickets, uint32_t max);

#endif
