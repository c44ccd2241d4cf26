/* SPDX-License-Identifier: Apache-2.0 */
/* See candidates.h. */
#include "tier/candidates.h"

#include <errno.h>

#include "tier/parts.h"

int candidates_open(struct candidates *candidates, uint32_t capacity, struct kvs_error *err)
{
	int rc;

	*candidates = (struct candidates){ 0 };
	rc = limit_check("capacity", capacity, CANDIDATES_MAX, err);
	if (rc == 0 && ring_open(&candidates->ring, capacity, sizeof(struct candidate)) < 0) {
		candidates_close(candidates);
		return err_set(err, -ENOMEM, "capacity: %u, no memory for so many names", capacity);
	}
	return rc;
}

void candidates_close(struct candidates *candidates)
{
	ring_close(&candidates->ring);
	*candidates = (struct candidates){ 0 };
}

struct candidate candidate_of(const struct cell_name *name)
{
	return (struct candidate){ { *name->space, *name->hash }, name->group, name->offset };
}

static void append(struct candidates *candidates, const struct candidate *candidate)
{
	struct candidate oldest;

	if (ring_full(&candidates->ring)) {
		KVS_ASSERT(ring_pop(&candidates->ring, &oldest));
		candidates->overflowed++;
	}
	KVS_ASSERT(ring_push(&candidates->ring, candidate));
}

void candidates_push(struct candidates *candidates, const struct cell_name *name)
{
	const struct candidate candidate = candidate_of(name);

	candidates->pushed++;
	append(candidates, &candidate);
}

bool candidates_pop(struct candidates *candidates, struct candidate *ret_candidate)
{
	return ring_pop(&candidates->ring, ret_candidate);
}

void candidates_put_back(struct candidates *candidates, const struct candidate *candidate)
{
	KVS_ASSERT(ring_push(&candidates->ring, candidate));
}

void candidates_clear(struct candidates *candidates)
{
	struct candidate candidate;

	while (ring_pop(&candidates->ring, &candidate))
		candidates->cleared++;
}

static void inserted(void *ctx, const struct cell_name *name, uint32_t block)
{
	(void)block;
	candidates_push(ctx, name);
}

static void removed(void *ctx, const struct cell_name *name, uint32_t block)
{
	(void)ctx;
	(void)name;
	(void)block;
}

struct cache_sink candidates_sink(struct candidates *candidates)
{
	return (struct cache_sink){ inserted, removed, candidates };
}
