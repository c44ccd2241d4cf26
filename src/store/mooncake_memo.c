/* SPDX-License-Identifier: Apache-2.0 */
/* See mooncake_memo.h. */
#include "store/mooncake_memo.h"

static void look(struct mooncake *mooncake, const struct mooncake_batch *piece, uint32_t row,
		 uint64_t now_ns, struct mooncake_asked *asked)
{
	switch (probes_look(mooncake->probes, &piece->key[row], now_ns)) {
	case PROBE_ASK:
		bits_set(asked->words, row);
		return;
	case PROBE_FOUND:
		piece->result[row] = KVS_RESULT_DONE;
		return;
	case PROBE_SKIP:
		return;
	}
}

void mooncake_memo_look(struct mooncake *mooncake, const struct mooncake_batch *piece,
			struct mooncake_asked *ret_asked)
{
	const uint64_t now_ns = os_now_ns();
	uint32_t       row;

	*ret_asked = (struct mooncake_asked){ { 0 } };
	os_mutex_lock(&mooncake->probes_mutex);
	for (row = 0; row < piece->count; row++)
		look(mooncake, piece, row, now_ns, ret_asked);
	os_mutex_unlock(&mooncake->probes_mutex);
}

void mooncake_memo_offer(struct mooncake *mooncake, const struct mooncake_batch *piece,
			 struct mooncake_asked *ret_asked)
{
	const uint64_t now_ns = os_now_ns();
	uint32_t       row;

	*ret_asked = (struct mooncake_asked){ { 0 } };
	os_mutex_lock(&mooncake->probes_mutex);
	for (row = 0; row < piece->count; row++) {
		if (probes_know(mooncake->probes, &piece->key[row], now_ns))
			piece->result[row] = KVS_RESULT_EXISTS;
		else
			bits_set(ret_asked->words, row);
	}
	os_mutex_unlock(&mooncake->probes_mutex);
}

static void learn(struct probes *probes, enum mooncake_verb verb, const struct kvs_key *key,
		  enum kvs_result result, uint64_t begin_ns)
{
	const bool looked = verb == MOONCAKE_EXISTS || verb == MOONCAKE_GET;

	if (looked && result == KVS_RESULT_DONE)
		probes_found(probes, key, begin_ns);
	else if (verb == MOONCAKE_REMOVE)
		probes_removed(probes, key, os_now_ns());
	else if (looked && result == KVS_RESULT_MISSING)
		probes_forget(probes, key);
	else if (result == KVS_RESULT_FAILED)
		probes_forget_all(probes, os_now_ns());
}

void mooncake_memo_learn(struct mooncake *mooncake, const struct mooncake_batch *piece,
			 const struct mooncake_asked *asked, uint64_t begin_ns)
{
	uint32_t row;

	os_mutex_lock(&mooncake->probes_mutex);
	for (row = 0; row < piece->count; row++) {
		if (bits_test(asked->words, row)) {
			learn(mooncake->probes, piece->verb, &piece->key[row], piece->result[row],
			      begin_ns);
		}
	}
	os_mutex_unlock(&mooncake->probes_mutex);
}

void mooncake_memo_clear(struct mooncake *mooncake)
{
	os_mutex_lock(&mooncake->probes_mutex);
	probes_forget_all(mooncake->probes, os_now_ns());
	os_mutex_unlock(&mooncake->probes_mutex);
}

void mooncake_memo_refused(struct mooncake *mooncake, uint64_t now_ns)
{
	os_mutex_lock(&mooncake->probes_mutex);
	probes_refused(mooncake->probes, now_ns);
	os_mutex_unlock(&mooncake->probes_mutex);
}

void mooncake_memo_describe(struct mooncake *mooncake, struct mooncake_memo_info *ret_info)
{
	os_mutex_lock(&mooncake->probes_mutex);
	*ret_info = (struct mooncake_memo_info){ .memory_bytes = probes_bytes(mooncake->probes),
						 .skipped = probes_skipped(mooncake->probes) };
	os_mutex_unlock(&mooncake->probes_mutex);
}
