/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of keys on their way to the stores: all that they will ever need, at their open. */
#include <errno.h>
#include <stdlib.h>

#include "ctrl/store_queue.h"

static int open_line(struct store_line *line, const struct ctrl_limits *limits)
{
	const size_t rows = (size_t)limits->in_flight_max * STORE_TASK_KEYS;
	uint32_t     i;

	line->waiting = calloc(limits->queue_max, sizeof(*line->waiting));
	line->tasks = calloc(limits->in_flight_max, sizeof(*line->tasks));
	line->task_keys = calloc(rows, sizeof(*line->task_keys));
	line->task_pins = calloc(rows, sizeof(*line->task_pins));
	if (!line->waiting || !line->tasks || !line->task_keys || !line->task_pins ||
	    slots_open(&line->busy, limits->in_flight_max) < 0)
		return -ENOMEM;
	for (i = 0; i < limits->in_flight_max; i++) {
		line->tasks[i].keys = line->task_keys + (size_t)i * STORE_TASK_KEYS;
		line->tasks[i].pins = line->task_pins + (size_t)i * STORE_TASK_KEYS;
	}
	return 0;
}

int store_queue_open(struct store_queue *queue, const struct ctrl_limits *limits)
{
	/* So many that a slow adapter's keys never take the room of another's. */
	const uint64_t keys = KVS_ADAPTERS_MAX * (limits->queue_max +
						  (uint64_t)limits->in_flight_max * STORE_TASK_KEYS);
	uint32_t       n;
	int            rc = 0;

	KVS_ASSERT_CMP(keys, <, SLOT_NONE);
	*queue = (struct store_queue){ .limits = *limits,
				       .ended_head = SLOT_NONE,
				       .ended_tail = SLOT_NONE };
	queue->keys = calloc(keys, sizeof(*queue->keys));
	if (!queue->keys || slots_open(&queue->slots, (uint32_t)keys) < 0)
		rc = -ENOMEM;
	for (n = 0; rc == 0 && n < KVS_ADAPTERS_MAX; n++)
		rc = open_line(&queue->lines[n], limits);
	if (rc < 0)
		store_queue_close(queue);
	return rc;
}

void store_queue_close(struct store_queue *queue)
{
	uint32_t n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		struct store_line *const line = &queue->lines[n];

		slots_close(&line->busy);
		free(line->task_pins);
		free(line->task_keys);
		free(line->tasks);
		free(line->waiting);
	}
	slots_close(&queue->slots);
	free(queue->keys);
	*queue = (struct store_queue){ 0 };
}
