/* SPDX-License-Identifier: Apache-2.0 */
#include "app/sweep.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "conf/items.h"
#include "evict/evict.h"
#include "os/os.h"

#define CAPACITY_RULE "use 1 to 2147483648 blocks, or unlimited"
static_assert(SIMULATE_CAPACITY_MAX == 2147483648u, "the rule names the limit");

struct sweep {
	size_t            row_count;
	struct sweep_row *rows;
	struct simulate **caches; /* by row */
	uint64_t         *hashes;
	uint32_t          hash_room;
};

static int add_capacity(void *ctx, const char *item, struct kvs_error *err)
{
	struct sweep_axes *const axes = ctx;
	uint64_t capacity = 0;
	size_t   i;

	if (strcmp(item, "unlimited") != 0 &&
	    (units_count(item, &capacity) < 0 || capacity == 0 ||
	     capacity > SIMULATE_CAPACITY_MAX)) {
		return err_set(err, KVS_E_INVALID,
			       "capacity: \"%s\" is not a capacity; " CAPACITY_RULE, item);
	}
	for (i = 0; i < axes->capacity_count; i++) {
		if (axes->capacities[i] == capacity)
			return err_set(err, KVS_E_INVALID, "capacity: \"%s\" is given twice", item);
	}
	if (axes->capacity_count == SWEEP_CAPACITIES_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "capacity: \"%s\" is one too many; use at most %d values", item,
			       SWEEP_CAPACITIES_MAX);
	}
	axes->capacities[axes->capacity_count++] = capacity;
	return 0;
}

static int add_policy(void *ctx, const char *item, struct kvs_error *err)
{
	struct sweep_axes *const axes = ctx;
	const int                rc = evict_gives(item, err);
	const char              *known;
	size_t                   i;

	if (rc < 0)
		return rc;
	for (i = 0; strcmp(evict_names[i], item) != 0; i++)
		continue;
	known = evict_names[i];
	for (i = 0; i < axes->policy_count; i++) {
		if (axes->policies[i] == known)
			return err_set(err, KVS_E_INVALID, "policy: \"%s\" is given twice", item);
	}
	/* No item twice, so no more than there are names. */
	KVS_ASSERT_CMP(axes->policy_count, <, SWEEP_POLICIES_MAX);
	axes->policies[axes->policy_count++] = known;
	return 0;
}

int sweep_axes_read(const char *capacities, const char *policies, struct sweep_axes *ret_axes,
		    struct kvs_error *err)
{
	struct sweep_axes axes = { 0 };
	int               rc = items_each("capacity", capacities, add_capacity, &axes, err);

	if (rc == 0)
		rc = items_each("policy", policies, add_policy, &axes, err);
	if (rc == 0)
		*ret_axes = axes;
	return rc;
}

static int open_caches(struct sweep *sweep, const struct sweep_axes *axes, struct kvs_error *err)
{
	size_t row;
	int    rc = 0;

	for (row = 0; row < sweep->row_count && rc == 0; row++) {
		sweep->rows[row].policy = axes->policies[row / axes->capacity_count];
		sweep->rows[row].capacity_blocks = axes->capacities[row % axes->capacity_count];
		rc = simulate_open(sweep->rows[row].policy, sweep->rows[row].capacity_blocks,
				     &sweep->caches[row], err);
	}
	return rc;
}

int sweep_open(const struct sweep_axes *axes, struct sweep **ret_sweep, struct kvs_error *err)
{
	struct sweep *sweep = calloc(1, sizeof(*sweep));
	int           rc = -ENOMEM;

	if (!sweep)
		return err_set(err, -ENOMEM, "capacity: no memory");
	sweep->row_count = axes->policy_count * axes->capacity_count;
	sweep->rows = calloc(sweep->row_count, sizeof(*sweep->rows));
	sweep->caches = calloc(sweep->row_count, sizeof(struct simulate *));
	if (sweep->rows && sweep->caches)
		rc = open_caches(sweep, axes, err);
	else
		err_set(err, -ENOMEM, "capacity: no memory");
	if (rc < 0) {
		sweep_close(sweep);
		return rc;
	}
	*ret_sweep = sweep;
	return 0;
}

void sweep_close(struct sweep *sweep)
{
	size_t row;

	if (!sweep)
		return;
	for (row = 0; sweep->caches && row < sweep->row_count; row++)
		simulate_close(sweep->caches[row]);
	free(sweep->hashes);
	free(sweep->caches);
	free(sweep->rows);
	free(sweep);
}

int sweep_request(struct sweep *sweep, const struct source_request *request, struct kvs_error *err)
{
	uint64_t *hashes = source_page_room(sweep->hashes, sizeof(*hashes), &sweep->hash_room,
					    request->page_count, err);
	uint64_t  now_ns, then_ns;
	size_t    row;
	int       rc = 0;

	if (!hashes)
		return -ENOMEM;
	sweep->hashes = hashes;
	simulate_hash(request, sweep->hashes);
	then_ns = os_now_ns();
	for (row = 0; row < sweep->row_count && rc == 0; row++) {
		rc = simulate_request(sweep->caches[row], request, sweep->hashes, err);
		now_ns = os_now_ns();
		sweep->rows[row].spent_ns += now_ns - then_ns;
		sweep->rows[row].counts = simulate_counts(sweep->caches[row]);
		then_ns = now_ns;
	}
	return rc;
}

const struct sweep_row *sweep_row(const struct sweep *sweep, size_t row)
{
	return row < sweep->row_count ? &sweep->rows[row] : NULL;
}
