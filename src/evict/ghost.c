/* SPDX-License-Identifier: Apache-2.0 */
/* calloc on purpose, and zero as "none" in every field: a large ghost costs memory only as names come in. */
#include "evict/ghost.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int ghost_open(struct ghost *ghost, uint32_t capacity)
{
	uint64_t head_count = 1;

	KVS_ASSERT_CMP(capacity, >, 0);
	KVS_ASSERT_CMP(capacity, <=, UINT32_C(1) << 31);
	while (head_count < capacity)
		head_count *= 2;
	*ghost = (struct ghost){ .capacity = capacity, .mask = (uint32_t)(head_count - 1) };
	ghost->cells = calloc(capacity, sizeof(*ghost->cells));
	ghost->heads = calloc(head_count, sizeof(*ghost->heads));
	if (ghost->cells && ghost->heads)
		return 0;
	ghost_close(ghost);
	return -ENOMEM;
}

void ghost_close(struct ghost *ghost)
{
	free(ghost->cells);
	free(ghost->heads);
	*ghost = (struct ghost){ 0 };
}

/* The link (a head or a cell's next) that names the cell of hash, or the end of its chain. */
static uint32_t *link_of(const struct ghost *ghost, uint64_t hash)
{
	uint32_t *link = &ghost->heads[(uint32_t)hash & ghost->mask];

	while (*link && ghost->cells[*link - 1].hash != hash)
		link = &ghost->cells[*link - 1].next;
	return link;
}

bool ghost_take(struct ghost *ghost, uint64_t hash)
{
	uint32_t          *link = link_of(ghost, hash);
	struct ghost_cell *cell;

	if (!*link)
		return false;
	cell = &ghost->cells[*link - 1];
	*link = cell->next;
	cell->live = 0;
	return true;
}

void ghost_add(struct ghost *ghost, uint64_t hash)
{
	struct ghost_cell *cell = &ghost->cells[ghost->at];
	uint32_t          *head = &ghost->heads[(uint32_t)hash & ghost->mask];

	if (cell->live)
		ghost_take(ghost, cell->hash);
	ghost_take(ghost, hash);
	*cell = (struct ghost_cell){ .hash = hash, .next = *head, .live = 1 };
	*head = ghost->at + 1;
	ghost->at = ghost->at + 1 == ghost->capacity ? 0 : ghost->at + 1;
}

size_t ghost_bytes(const struct ghost *ghost)
{
	if (!ghost->cells)
		return 0;
	return ghost->capacity * sizeof(*ghost->cells) +
	       ((size_t)ghost->mask + 1) * sizeof(*ghost->heads);
}

void ghost_audit(const struct ghost *ghost)
{
	uint32_t live = 0, linked = 0;
	uint32_t i, link;

	for (i = 0; i < ghost->capacity; i++) {
		if (!ghost->cells[i].live)
			continue;
		live++;
		KVS_ASSERT_CMP(*link_of(ghost, ghost->cells[i].hash), ==, i + 1);
	}
	for (i = 0; ghost->heads && i <= ghost->mask; i++) {
		for (link = ghost->heads[i]; link; link = ghost->cells[link - 1].next)
			KVS_ASSERT_CMP(++linked, <=, live);
	}
	KVS_ASSERT_CMP(linked, ==, live);
}
