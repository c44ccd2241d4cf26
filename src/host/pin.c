/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of operations. */
#include "base/err.h"
#include "host/life.h"
#include "host/rows.h"

struct pinning {
	struct host_pin *pins;
	struct kvs_span *spans;
	int             *rc;
};

static void pin_one(struct visit *visit, uint32_t slot)
{
	life_hold(visit, slot);
	KVS_ASSERT_CMP(visit->shard->records[slot].pins, <, UINT32_MAX);
	visit->shard->records[slot].pins++;
	visit->shard->pins++;
}

static void serve_pin(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct pinning *const call = arg;
	struct shard *const         shard = visit->shard;
	uint32_t                    i;

	for (i = 0; i < bunch->count; i++) {
		const uint32_t row = bunch_row(bunch, i);
		const uint32_t slot = life_resident(shard, bunch_hash(bunch, i),
						    bunch_key(bunch, i));

		call->rc[row] = slot == SLOT_NONE ? KVS_E_MISSING : 0;
		call->spans[row] = (struct kvs_span){ 0 };
		if (slot == SLOT_NONE)
			continue;
		pin_one(visit, slot);
		call->pins[row] = (struct host_pin){ (uint32_t)(shard - visit->host->shards),
						     slot };
		call->spans[row] = span_of(visit->host, &shard->records[slot]);
	}
}

int host_pin(struct host *host, const struct kvs_key *keys, uint32_t count,
	     struct host_pin *ret_pins, struct kvs_span *ret_spans, int *ret_rc)
{
	struct pinning call = { ret_pins, ret_spans, ret_rc };

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	rows_run(host, keys, count, 0, serve_pin, &call);
	return 0;
}

/* --- unpin ------------------------------------------------------------------------------------ */

static void unpin_one(struct visit *visit, uint32_t slot)
{
	struct record *const record = &visit->shard->records[slot];

	KVS_ASSERT_CMP(slot, <, visit->shard->known);
	KVS_ASSERT_CMP(record->pins, >, 0);
	record->pins--;
	visit->shard->pins--;
	life_settle(visit, slot);
}

static void unpin_load(struct host *host, const struct host_pin *pins, uint32_t count,
		       struct notices *notices)
{
	uint8_t      shards[ROWS_MAX];
	uint16_t     rows[ROWS_MAX], ends[HOST_SHARDS_MAX];
	struct visit visit;
	uint32_t     shard, i;

	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(pins[i].shard, <, host->shard_count);
		shards[i] = (uint8_t)pins[i].shard;
	}
	rows_sort(shards, count, host->shard_count, rows, ends);
	for (shard = 0, i = 0; shard < host->shard_count; shard++) {
		if (i == ends[shard])
			continue;
		visit_begin(&visit, host, shard, 0, notices);
		for (; i < ends[shard]; i++)
			unpin_one(&visit, pins[rows[i]].record);
		visit_end(&visit);
	}
}

void host_unpin(struct host *host, const struct host_pin *pins, uint32_t count)
{
	struct notices notices;
	uint32_t       first, load_count;

	notices_init(&notices);
	for (first = 0; first < count; first += load_count) {
		load_count = count - first < ROWS_MAX ? count - first : ROWS_MAX;
		unpin_load(host, pins + first, load_count, &notices);
		notices_tell(&notices, host->listeners, host->listener_count);
	}
}
