/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of four groups, called after their packings; every change is audited. */
#ifndef LIB_BASIN_H
#define LIB_BASIN_H

#include "base/err.h"
#include "pool/pool.h"

enum { ONE, TWO, THREE, EIGHT, GROUPS };

extern const uint32_t basin_packings[GROUPS];

struct pool *basin_open(uint32_t parent_count);

/* One block; its last reference. */
uint32_t basin_take(struct pool *pool, uint32_t group);
void     basin_drop(struct pool *pool, uint32_t group, uint32_t block);

void basin_expect_bound(const struct pool *pool, uint32_t parent, uint32_t group, uint32_t used);
void basin_expect_unbound(const struct pool *pool, uint32_t parent);

#endif
