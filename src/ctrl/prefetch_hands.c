/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run reaches Host and adapters, in as many calls as the Host's batches need.
 *
 * A reader that was closed meanwhile has no locks to give and gets none: its rows fail, and the run
 * gives up what it has for them.
 */
#include "ctrl/prefetch_desk.h"

#define BATCH HOST_KEYS_MAX

static uint32_t batch_of(uint32_t from, uint32_t count)
{
	return count - from < BATCH ? count - from : BATCH;
}

static struct host_writer writer_of(const struct prefetch_ctrl *ctrl, const struct prefetch_ask *ask)
{
	return (struct host_writer){ .client = ctrl->client, .tag = ask->request_id };
}

/* A refusal of the call is one of each row. */
static void spread(int call_rc, uint32_t count, int *ret_rc)
{
	uint32_t i;

	for (i = 0; call_rc < 0 && i < count; i++)
		ret_rc[i] = call_rc;
}

static void look(void *arg, const struct kvs_key *keys, uint32_t count, uint64_t *ret_words)
{
	struct prefetch_ctrl *const ctrl = arg;
	uint32_t                    from;

	for (from = 0; from < count; from += BATCH) {
		KVS_ASSERT(host_lookup(ctrl->host, keys + from, batch_of(from, count),
				       ret_words + from / 64) == 0);
	}
}

static void lock(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		 uint32_t count, int *ret_rc)
{
	struct prefetch_ctrl *const ctrl = arg;
	uint32_t                    from;

	for (from = 0; from < count; from += BATCH) {
		const uint32_t batch = batch_of(from, count);

		spread(host_lock(ctrl->host, ask->reader, ask->lock_count, keys + from, batch,
				 os_now_ns(), ctrl->spans, ret_rc + from),
		       batch, ret_rc + from);
	}
}

static void unlock(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		   uint32_t count)
{
	struct prefetch_ctrl *const ctrl = arg;
	uint32_t                    from;

	/* What the reader does not hold any more has expired, or went with the reader. */
	for (from = 0; from < count; from += BATCH) {
		(void)host_unlock(ctrl->host, ask->reader, ask->lock_count, keys + from,
				  batch_of(from, count), os_now_ns(), ctrl->rc);
	}
}

static void reserve(void *arg, const struct prefetch_ask *ask, bool temporary,
		    const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
		    struct kvs_span *ret_spans, int *ret_rc)
{
	struct prefetch_ctrl *const ctrl = arg;
	const unsigned              flags = HOST_WHOLE | (temporary ? HOST_TEMPORARY : 0);

	KVS_ASSERT_CMP(count, <=, BATCH);
	spread(host_reserve(ctrl->host, writer_of(ctrl, ask), keys, bytes, count, flags, os_now_ns(),
			    ret_spans, ret_rc),
	       count, ret_rc);
}

static void publish(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		    uint32_t count, int *ret_rc)
{
	struct prefetch_ctrl *const ctrl = arg;
	uint32_t                    from;

	for (from = 0; from < count; from += BATCH) {
		const uint32_t batch = batch_of(from, count);

		spread(host_finish_locked(ctrl->host, writer_of(ctrl, ask), ask->reader,
					  ask->lock_count, keys + from, batch, os_now_ns(),
					  ctrl->spans, ret_rc + from),
		       batch, ret_rc + from);
	}
}

static void discard(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		    uint32_t count)
{
	struct prefetch_ctrl *const ctrl = arg;
	uint32_t                    from;

	for (from = 0; from < count; from += BATCH) {
		KVS_ASSERT(host_discard(ctrl->host, writer_of(ctrl, ask), keys + from,
					batch_of(from, count), ctrl->rc) == 0);
	}
}

static struct adapter *adapter_at(const struct prefetch_ctrl *ctrl, uint32_t number)
{
	KVS_ASSERT(ctrl->seats.at[number].adapter);
	return ctrl->seats.at[number].adapter;
}

static int lookup(void *arg, uint32_t adapter, const struct kvs_key *keys, uint32_t count,
		  uint64_t *ret_task_id)
{
	return adapter_submit_lookup(adapter_at(arg, adapter), keys, count, ret_task_id);
}

static int load(void *arg, uint32_t adapter, const struct kvs_key *keys,
		const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id)
{
	return adapter_submit_load(adapter_at(arg, adapter), keys, spans, count, ret_task_id);
}

static void unlock_store(void *arg, uint32_t adapter, const struct kvs_key *keys, uint32_t count)
{
	adapter_unlock(adapter_at(arg, adapter), keys, count);
}

const struct prefetch_hands prefetch_hands = { .look = look,
					       .lock = lock,
					       .unlock = unlock,
					       .reserve = reserve,
					       .publish = publish,
					       .discard = discard,
					       .lookup = lookup,
					       .load = load,
					       .unlock_store = unlock_store };
