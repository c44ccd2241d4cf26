/* SPDX-License-Identifier: Apache-2.0 */
#include "helm.h"

#include <string.h>

#define ROOM (HELM_BYTES + 4096u)
#define UNTOUCHED 0xa5
#define MS UINT64_C(1000000)
#define FOREVER_NS (UINT64_C(3600) * 1000 * MS)

void helm_open(struct helm *helm, const struct cluster *cluster, const char *options)
{
	struct exec_options exec_options = {
		.limits = { .outstanding_max = HELM_SLOTS, .queue_max = HELM_SLOTS,
			    .cooldown_min_ns = MS, .cooldown_max_ns = 20 * MS },
		.workers = { 1, 1, 1 },
	};
	struct kvs_error err = { 0 };
	char             spec[MOORING_SPEC_MAX];

	memset(helm, 0, sizeof(*helm));
	mooring_spec(cluster, options, spec);
	mooring_open_memory(&helm->mooring, (uint64_t)HELM_SLOTS * HELM_ROWS * ROOM);
	if (store_open(spec, HELM_BYTES, "lru", &helm->mooring.store, &err) != 0)
		fail_msg("%s: %s", spec, err.message);
	exec_options.memory = mooring_memory(&helm->mooring);
	if (exec_open(helm->mooring.store, &exec_options, &helm->exec, &err) != 0)
		fail_msg("%s", err.message);
}

void helm_close(struct helm *helm)
{
	assert_int_equal(exec_close(helm->exec, FOREVER_NS), 0);
	mooring_close_memory(&helm->mooring);
}

struct helm_slot *helm_name(struct helm *helm, uint32_t slot, uint32_t first, uint32_t count)
{
	struct helm_slot *const s = &helm->slots[slot];
	uint8_t *const          memory = helm->mooring.slice.ptr;
	uint32_t                i;

	assert_true(!s->busy && count <= HELM_ROWS);
	for (i = 0; i < count; i++) {
		s->keys[i] = key_of(first + i);
		s->spans[i] = (struct kvs_span){ memory + (size_t)(slot * HELM_ROWS + i) * ROOM,
						 HELM_BYTES, ROOM };
	}
	s->op = (struct op){ .key_count = count, .keys = s->keys };
	op_own_all(&s->op);
	return s;
}

void helm_own_every_second(struct helm_slot *slot, uint32_t owner)
{
	uint32_t i;

	for (i = 0; i < slot->op.key_count; i++) {
		if (i % 2 != owner)
			bits_clear(slot->op.owned.words, i);
	}
}

void helm_replicate(struct helm_slot *slot, uint16_t replica)
{
	uint32_t i;

	for (i = 0; i < slot->op.key_count; i++)
		slot->keys[i].replica = replica;
}

static uint32_t name_of(const struct kvs_key *key)
{
	return key->offset ^ (uint32_t)key->replica << 24;
}

int helm_submit(struct helm *helm, uint32_t slot, enum op_kind kind)
{
	struct helm_slot *const s = &helm->slots[slot];
	uint32_t                i;
	int                     rc;

	assert_false(s->busy);
	s->op.op_id = ++helm->last_id;
	s->op.kind = kind;
	s->op.spans = kind == OP_GET || kind == OP_PUT ? s->spans : NULL;
	for (i = 0; i < s->op.key_count; i++) {
		memset(s->spans[i].ptr, UNTOUCHED, ROOM);
		if (kind == OP_PUT)
			fill(s->spans[i].ptr, name_of(&s->keys[i]), HELM_BYTES);
	}
	rc = exec_submit(helm->exec, &s->op);
	s->busy = rc == 0;
	return rc;
}

static bool is_untouched(const uint8_t *bytes)
{
	return bytes[0] == UNTOUCHED && memcmp(bytes, bytes + 1, ROOM - 1) == 0;
}

static void check_row(const struct helm_slot *slot, uint32_t i)
{
	const bool is_ours = bits_test(slot->op.owned.words, i);
	const bool is_ok = bits_test(slot->fact.ok.words, i);

	if (slot->op.kind == OP_PUT || (slot->op.kind == OP_GET && is_ours && is_ok)) {
		if (!is_filled(slot->spans[i].ptr, name_of(&slot->keys[i]), HELM_BYTES))
			fail_msg("wrong bytes of key %u", slot->keys[i].offset);
	} else if (!is_ours) {
		assert_true(is_ok);
		assert_true(is_untouched(slot->spans[i].ptr));
	}
}

static void take(struct helm *helm, const struct fact *fact)
{
	struct kvs_error err = { 0 };
	uint32_t         slot, i;

	for (slot = 0; slot < HELM_SLOTS; slot++) {
		struct helm_slot *const s = &helm->slots[slot];

		if (!s->busy || s->op.op_id != fact->op_id)
			continue;
		s->fact = *fact;
		s->busy = false;
		assert_int_equal(fact_check(fact, &s->op, &err), 0);
		assert_true(fact->retired);
		for (i = 0; i < s->op.key_count; i++)
			check_row(s, i);
		return;
	}
	fail_msg("a fact of no op, or a second one");
}

uint32_t helm_poll(struct helm *helm)
{
	struct fact     facts[HELM_SLOTS];
	struct pressure pressure;
	const uint32_t  count = exec_poll(helm->exec, facts, HELM_SLOTS, &pressure);
	uint32_t        i;

	for (i = 0; i < count; i++)
		take(helm, &facts[i]);
	return count;
}

const struct fact *helm_await(struct helm *helm, uint32_t slot)
{
	while (helm->slots[slot].busy) {
		exec_wait(helm->exec, FOREVER_NS);
		helm_poll(helm);
	}
	return &helm->slots[slot].fact;
}

struct attempt {
	struct helm *helm;
	uint32_t     slot;
	enum op_kind kind;
};

static bool is_ok(void *arg)
{
	const struct attempt *const   attempt = arg;
	const struct helm_slot *const slot = &attempt->helm->slots[attempt->slot];

	if (helm_submit(attempt->helm, attempt->slot, attempt->kind) < 0)
		return false;
	helm_await(attempt->helm, attempt->slot);
	return bits_count(slot->fact.ok.words, slot->op.key_count) == slot->op.key_count;
}

void helm_await_ok(struct helm *helm, uint32_t slot, enum op_kind kind)
{
	struct attempt attempt = { helm, slot, kind };

	assert_true(cluster_await(is_ok, &attempt));
}
