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

uint32_t ghost_find(const struct ghost *ghost, uint64_t hash)
{
	const uint32_t link = *link_of(ghost, hash);

	return link ? link - 1 : SLOT_NONE;
}

void ghost_put(struct ghost *ghost, uint32_t cell, uint64_t hash, uint32_t mark)
{
	uint32_t *const head = &ghost->heads[(uint32_t)hash & ghost->mask];

	KVS_ASSERT_CMP(ghost->cells[cell].mark, ==, 0);
	KVS_ASSERT_CMP(mark, !=, 0);
	ghost->cells[cell] = (struct ghost_cell){ .hash = hash, .next = *head, .mark = mark };
	*head = cell + 1;
}

void ghost_drop(struct ghost *ghost, uint32_t cell)
{
	struct ghost_cell *const dropped = &ghost->cells[cell];
	uint32_t *const          link = link_of(ghost, dropped->hash);

	KVS_ASSERT_CMP(*link, ==, cell + 1);
	*link = dropped->next;
	dropped->mark = 0;
}

bool ghost_take(struct ghost *ghost, uint64_t hash)
{
	const uint32_t cell = ghost_find(ghost, hash);

	if (cell != SLOT_NONE)
		ghost_drop(ghost, cell);
	return cell != SLOT_NONE;
}

void ghost_add(struct ghost *ghost, uint64_t hash)
{
	if (ghost->cells[ghost->at].mark)
		ghost_drop(ghost, ghost->at);
	ghost_take(ghost, hash);
	ghost_put(ghost, ghost->at, hash, 1);
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
		if (!ghost->cells[i].mark)
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
