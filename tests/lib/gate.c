/* SPDX-License-Identifier: Apache-2.0 */
/* See gate.h. */
#include "gate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "named_block.h"

static struct kvs_key keys[GATE_KEYS];

static void pass(struct gate *gate)
{
	os_mutex_lock(&gate->lock);
	gate->call_count++;
	gate->inside++;
	if (gate->inside > gate->inside_most)
		gate->inside_most = gate->inside;
	os_cond_broadcast(&gate->moved);
	while (!gate->open && gate->passes == 0)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	gate->passes -= !gate->open;
	gate->inside--;
	os_mutex_unlock(&gate->lock);
}

static int gate_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	uint32_t i;

	(void)store;
	(void)key;
	for (i = 0; i < count; i++)
		result[i] = KVS_RESULT_DONE;
	return 0;
}

static int gate_move(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	struct gate *const gate = (struct gate *)store;

	(void)span;
	pass(gate);
	*ret_retired = !gate->unretired;
	gate_exists(store, key, count, result);
	if (gate->babbles)
		result[0] = KVS_RESULT_NO_SPACE;
	return gate->rc;
}

static int gate_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		     enum kvs_result *result)
{
	struct gate *const gate = (struct gate *)store;
	uint32_t           i;

	os_mutex_lock(&gate->lock);
	for (i = 0; i < count; i++)
		gate->locked[key[i].offset]++;
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
	return gate_exists(store, key, count, result);
}

static void gate_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct gate *const gate = (struct gate *)store;
	uint32_t           i;

	os_mutex_lock(&gate->lock);
	while (gate->holds_unlocks && !gate->open)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(gate->locked[key[i].offset], >, 0);
		gate->locked[key[i].offset]--;
	}
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
}

static int gate_register(struct kvs_store *store, const struct kvs_memory *memory)
{
	((struct gate *)store)->slice_count = memory->slice_count;
	return -ENOMEM;
}

static void gate_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	const struct gate *const gate = (struct gate *)store;

	*ret_info = (struct kvs_store_info){ .one_thread = gate->one_thread, .away = gate->away };
}

/* The answer is of its end, as a store's may be: what came into doubt meanwhile is not in it. */
static bool gate_settled(struct kvs_store *store)
{
	struct gate *const gate = (struct gate *)store;
	bool               settled;

	os_mutex_lock(&gate->lock);
	KVS_ASSERT(!gate->one_thread || gate->inside == 0);
	KVS_ASSERT_CMP(gate->questions, ==, 0);
	gate->question_count++;
	gate->questions++;
	os_cond_broadcast(&gate->moved);
	while (gate->holds_questions)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	gate->questions--;
	settled = gate->settled;
	os_mutex_unlock(&gate->lock);
	return settled;
}

static int gate_close_store(struct kvs_store *store)
{
	struct gate *const gate = (struct gate *)store;

	gate->closed = gate->close_rc == 0;
	return gate->close_rc;
}

#define GATE_OPS \
	.abi = KVS_STORE_ABI, .name = "gate", .close = gate_close_store, \
	.describe = gate_describe, .exists = gate_exists, .get = gate_move, .put = gate_move, \
	.register_memory = gate_register

const struct kvs_store_ops gate_ops = { GATE_OPS, .lock = gate_lock, .unlock = gate_unlock };
const struct kvs_store_ops gate_plain_ops = { GATE_OPS };
const struct kvs_store_ops gate_settling_ops = { GATE_OPS, .settled = gate_settled };

const struct exec_options gate_options = { .limits = { .outstanding_max = GATE_OUTSTANDING,
						       .queue_max = GATE_OUTSTANDING,
						       .lock_max = GATE_KEYS },
					   .workers = { 1, 2, 1 } };

struct gate *gate_make(void)
{
	struct gate *const gate = calloc(1, sizeof(*gate));
	uint32_t           i;

	KVS_ASSERT(gate != NULL);
	for (i = 0; i < GATE_KEYS; i++)
		keys[i] = key_of(i);
	gate->store.ops = &gate_ops;
	gate->epoll_fd = -1;
	os_mutex_init(&gate->lock);
	os_cond_init(&gate->moved);
	return gate;
}

struct gate *gate_open(const struct exec_options *options)
{
	return gate_open_on(&gate_ops, options);
}

struct gate *gate_open_on(const struct kvs_store_ops *ops, const struct exec_options *options)
{
	struct gate *const gate = gate_make();

	gate->store.ops = ops;
	KVS_ASSERT(exec_open(&gate->store, options, &gate->exec, NULL) == 0);
	gate->epoll_fd = os_epoll();
	KVS_ASSERT(os_epoll_add(gate->epoll_fd, exec_fd(gate->exec), 1) == 0);
	return gate;
}

void gate_close(struct gate *gate)
{
	gate_let_through(gate);
	KVS_ASSERT(exec_close(gate->exec, GATE_FOREVER_NS) == 0);
	os_close(gate->epoll_fd);
	os_cond_fini(&gate->moved);
	os_mutex_fini(&gate->lock);
	free(gate);
}

void gate_let_through(struct gate *gate)
{
	os_mutex_lock(&gate->lock);
	gate->open = true;
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
}

void gate_let_one_through(struct gate *gate)
{
	os_mutex_lock(&gate->lock);
	gate->passes++;
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
}

void gate_wait_inside(struct gate *gate, uint32_t count)
{
	os_mutex_lock(&gate->lock);
	while (gate->inside < count)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	os_mutex_unlock(&gate->lock);
}

void gate_settle(struct gate *gate, bool settled)
{
	os_mutex_lock(&gate->lock);
	gate->settled = settled;
	os_mutex_unlock(&gate->lock);
}

void gate_hold_questions(struct gate *gate, bool hold)
{
	os_mutex_lock(&gate->lock);
	gate->holds_questions = hold;
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
}

void gate_wait_asked(struct gate *gate, uint32_t count)
{
	os_mutex_lock(&gate->lock);
	while (gate->question_count < count)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	os_mutex_unlock(&gate->lock);
}

int gate_submit_key(struct gate *gate, uint64_t op_id, enum op_kind kind, uint32_t flags,
		    uint32_t number)
{
	static uint8_t               bytes[GATE_BLOCK_BYTES];
	static const struct kvs_span span = { bytes, GATE_BLOCK_BYTES, GATE_BLOCK_BYTES };
	struct op op = { .op_id = op_id, .kind = kind, .flags = flags, .key_count = 1,
			 .keys = &keys[number] };

	if (kind == OP_GET || kind == OP_PUT)
		op.spans = &span;
	op_own_all(&op);
	return exec_submit(gate->exec, &op);
}

int gate_submit(struct gate *gate, uint64_t op_id, enum op_kind kind)
{
	return gate_submit_key(gate, op_id, kind, 0, 0);
}

uint32_t gate_poll(struct gate *gate, struct fact *ret_facts, uint32_t fact_max)
{
	struct pressure pressure;

	return exec_poll(gate->exec, ret_facts, fact_max, &pressure);
}

void gate_collect(struct gate *gate, struct fact *ret_facts, uint32_t count)
{
	uint32_t got = gate_poll(gate, ret_facts, count);

	while (got < count) {
		exec_wait(gate->exec, GATE_FOREVER_NS);
		got += gate_poll(gate, ret_facts + got, count - got);
	}
}

void gate_wait_locked(struct gate *gate, uint32_t number, uint32_t count)
{
	os_mutex_lock(&gate->lock);
	while (gate->locked[number] != count)
		os_cond_wait(&gate->moved, &gate->lock, GATE_FOREVER_NS);
	os_mutex_unlock(&gate->lock);
}
