/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rolls of names.  *Negatives* are objects that a GET found missing or invalid, confirmed: they
 * are asked for no more until they are put, or forgotten.  *History* is what was put from here and
 * acknowledged, and tells a loss from a never; no decision depends on it.
 */
#include "base/bits.h"
#include "transfer/parts.h"

static uint32_t column_of(const struct transfer *transfer, const struct kvs_key *key)
{
	return transfer->groups->group[key->group].first_column + key->offset;
}

static const struct prefix_hash *hash_of(const struct kvs_key *key)
{
	return (const struct prefix_hash *)(const void *)key->hash;
}

void negatives_take(struct transfer *transfer, const struct ticket *ticket, const struct fact *fact)
{
	uint32_t i;

	for (i = 0; i < fact->key_count; i++) {
		const struct kvs_key *const key = &ticket->keys[i];

		if (bits_test(fact->object_fault.words, i) &&
		    !roll_add(&transfer->negatives, &key->space, hash_of(key),
			      column_of(transfer, key)))
			transfer->counts.counters[TRANSFER_NEGATIVE_FULL]++;
	}
}

void history_take(struct transfer *transfer, const struct kvs_key *key)
{
	roll_add(&transfer->history, &key->space, hash_of(key), column_of(transfer, key));
	roll_erase(&transfer->negatives, &key->space, hash_of(key), column_of(transfer, key));
}

bool history_has(const struct transfer *transfer, const struct kvs_namespace *space,
		 const struct prefix_hash *hash, uint32_t column)
{
	return (roll_columns(&transfer->history, space, hash) >> column) & 1;
}

/* --- as bits of a prompt ---------------------------------------------------------------------- */

static void set_page(struct transfer *transfer, uint32_t page, uint64_t columns)
{
	const size_t bit = (size_t)page * transfer->groups->columns;

	for (; columns; columns &= columns - 1)
		bits_set(transfer->page_bits, bit + (uint32_t)__builtin_ctzll(columns));
}

bool negatives_mark(struct transfer *transfer, const struct transfer_ask *ask,
		    const struct tail *tails, uint32_t tail_count)
{
	const struct roll *const roll = &transfer->negatives;
	uint64_t                 any = 0;
	uint32_t                 i;

	if (roll->age.count == 0)
		return false;
	for (i = 0; i < ask->page_count; i++) {
		const uint64_t columns = roll_columns(roll, ask->space, &ask->hashes[i]);

		set_page(transfer, i, columns);
		any |= columns;
	}
	for (i = 0; i < tail_count; i++) {
		transfer->tail_bits[i] = roll_columns(roll, ask->space, &tails[i].hash);
		any |= transfer->tail_bits[i];
	}
	return any != 0;
}

void negatives_unmark(struct transfer *transfer, const struct transfer_ask *ask,
		      uint32_t tail_count)
{
	const size_t words = bits_words((size_t)ask->page_count * transfer->groups->columns);
	size_t       i;

	for (i = 0; i < words; i++)
		transfer->page_bits[i] = 0;
	for (i = 0; i < tail_count; i++)
		transfer->tail_bits[i] = 0;
}
