/* SPDX-License-Identifier: Apache-2.0 */
/* See lab.h: probes, and what can be seen of a cache from outside. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

/* --- probes ----------------------------------------------------------------------------------- */

static void probe(struct lab *lab, const struct cache_prompt *prompt, enum probe_mode mode)
{
	const uint64_t   digest = lab_digest(lab);
	struct kvs_error err = { 0 };

	if (cache_probe(lab->cache, prompt, mode, &lab->probe, &err) < 0)
		fail_msg("refused: %s", err.message);
	lab_audit(lab);
	assert_int_equal(lab_digest(lab), digest);
}

void lab_probe_tails(struct lab *lab, uint32_t pages, const struct tail *tails,
		     uint32_t tail_count)
{
	const struct cache_prompt prompt = { &lab->space, lab->hashes, pages, tails, tail_count };

	probe(lab, &prompt, PROBE_ALL);
}

void lab_probe(struct lab *lab, uint32_t pages)
{
	lab_probe_tails(lab, pages, NULL, 0);
}

void lab_probe_decode(struct lab *lab, uint32_t pages)
{
	const struct cache_prompt prompt = { &lab->space, lab->hashes, pages, NULL, 0 };

	probe(lab, &prompt, PROBE_DECODE);
}

uint32_t lab_hits(const struct lab *lab, uint32_t group, enum stratum_id stratum)
{
	return cache_probe_hits(lab->cache, &lab->probe, group, stratum);
}

/* --- what is where ---------------------------------------------------------------------------- */

static uint32_t refs_of(const struct lab *lab, enum stratum_id stratum, uint32_t group,
			uint32_t block)
{
	return pool_refs(cache_pool(lab->cache, stratum), group, block);
}

struct cell_name lab_name(const struct lab *lab, uint32_t group, uint32_t position)
{
	const uint32_t page_blocks = lab->groups->group[group].page_blocks;

	return (struct cell_name){ &lab->space, &lab->hashes[position / page_blocks], group,
				   position % page_blocks };
}

uint32_t lab_block(const struct lab *lab, enum stratum_id stratum, uint32_t group,
		   uint32_t position)
{
	const struct cell_name name = lab_name(lab, group, position);

	return cache_find(lab->cache, stratum, &name);
}

void lab_expect_table(const struct lab *lab, const struct lab_request *request, uint32_t group,
		      const char *picture)
{
	const struct table *const table = &request->tables[group];
	char                      seen[LAB_SLOTS + 1] = "";
	uint32_t                  i;

	lab_audit(lab);
	table_audit(table, &lab->groups->group[group]);
	for (i = 0; i < table->count; i++)
		seen[i] = table->slots[i] == BLOCK_NULL ? '.' : 'x';
	assert_string_equal(seen, picture);
}

void lab_expect_held(const struct lab *lab, enum stratum_id stratum, uint32_t group,
		     const char *picture)
{
	char     seen[(LAB_PAGES + 1) * COLUMNS_MAX + 1] = "";
	uint32_t length = (uint32_t)strlen(picture);
	uint32_t i;

	for (i = 0; i < (LAB_PAGES + 1) * lab->groups->group[group].page_blocks; i++) {
		const bool held = lab_block(lab, stratum, group, i) != BLOCK_NULL;

		if (held && i >= length)
			fail_msg("position %u is held, behind \"%s\"", i, picture);
		if (i < length)
			seen[i] = held ? 'x' : '.';
	}
	assert_string_equal(seen, picture);
}

struct cell_view lab_view(const struct lab *lab, enum stratum_id stratum, uint32_t group,
			  uint32_t position)
{
	const uint32_t   block = lab_block(lab, stratum, group, position);
	struct cell_view view = { 0 };

	assert_int_not_equal(block, BLOCK_NULL);
	assert_true(cache_view(lab->cache, stratum, group, block, &view));
	assert_int_equal(view.idle, refs_of(lab, stratum, group, block) == 1);
	return view;
}

uint32_t lab_refs(const struct lab *lab, enum stratum_id stratum, uint32_t group, uint32_t position)
{
	const uint32_t block = lab_block(lab, stratum, group, position);

	return block == BLOCK_NULL ? 0 : refs_of(lab, stratum, group, block);
}

uint32_t lab_slot_refs(const struct lab *lab, const struct lab_request *request, uint32_t group,
		       uint32_t slot)
{
	assert_true(slot < request->tables[group].count);
	assert_int_not_equal(request->slots[group][slot], BLOCK_NULL);
	return refs_of(lab, STRATUM_DEVICE, group, request->slots[group][slot]);
}

/* The published block of a column of an entry, in a stratum; the group of the column. */
static uint32_t block_at(const struct lab *lab, enum stratum_id stratum, uint32_t entry,
			 uint32_t column, uint32_t *ret_group)
{
	const struct pages *const pages = cache_pages(lab->cache);

	*ret_group = lab->groups->column_group[column];
	return pages_block(pages, pages_cell(pages, entry, column), stratum);
}

uint32_t lab_pins(const struct lab *lab, enum stratum_id stratum)
{
	const struct slots *const slots = &cache_pages(lab->cache)->slots;
	uint32_t                  pins = 0;
	uint32_t                  entry, column, group;

	SLOTS_EACH(slots, entry) {
		for (column = 0; column < lab->groups->columns; column++) {
			const uint32_t block = block_at(lab, stratum, entry, column, &group);

			if (block != BLOCK_NULL)
				pins += refs_of(lab, stratum, group, block) - 1;
		}
	}
	return pins;
}

uint32_t lab_published(const struct lab *lab, enum stratum_id stratum, uint32_t group)
{
	const struct slots *const slots = &cache_pages(lab->cache)->slots;
	uint32_t                  count = 0;
	uint32_t                  entry, column, of;

	SLOTS_EACH(slots, entry) {
		for (column = 0; column < lab->groups->columns; column++) {
			if (block_at(lab, stratum, entry, column, &of) != BLOCK_NULL && of == group)
				count++;
		}
	}
	return count;
}

uint32_t lab_empty(const struct lab *lab, enum stratum_id stratum)
{
	return pool_unbound(cache_pool(lab->cache, stratum));
}

static uint64_t digest_of(uint64_t digest, uint64_t word)
{
	return mix64(digest ^ mix64(word));
}

static uint64_t digest_pool(const struct lab *lab, enum stratum_id stratum, uint64_t digest)
{
	const struct pool *const pool = cache_pool(lab->cache, stratum);
	uint32_t                 parent, group;

	for (parent = 1; pool && parent <= pool_parent_count(pool); parent++) {
		group = UINT32_MAX;
		pool_bound(pool, parent, &group);
		digest = digest_of(digest_of(digest, group), pool_used(pool, parent));
	}
	return digest;
}

static uint64_t digest_cell(const struct lab *lab, enum stratum_id stratum, uint32_t entry,
			    uint32_t column, uint64_t digest)
{
	struct cell_view view = { 0 };
	uint32_t         group;
	const uint32_t   block = block_at(lab, stratum, entry, column, &group);

	digest = digest_of(digest, block);
	if (block == BLOCK_NULL)
		return digest;
	assert_true(cache_view(lab->cache, stratum, group, block, &view));
	digest = digest_of(digest, refs_of(lab, stratum, group, block));
	digest = digest_of(digest, view.epoch);
	digest = digest_of(digest, (uint64_t)view.cell << 32 | view.position);
	return digest_of(digest, (uint64_t)view.kind << 2 | (uint64_t)view.was_acquired << 1 |
					 view.idle);
}

uint64_t lab_digest(const struct lab *lab)
{
	const struct pages *const pages = cache_pages(lab->cache);
	uint64_t                  digest = digest_of(cache_clock(lab->cache), lab->inserted);
	uint32_t                  entry, column, stratum;

	digest = digest_of(digest, lab->removed);
	for (stratum = 0; stratum < STRATUM_COUNT; stratum++)
		digest = digest_pool(lab, stratum, digest);
	SLOTS_EACH(&pages->slots, entry) {
		for (column = 0; column < lab->groups->columns; column++) {
			digest = digest_cell(lab, STRATUM_DEVICE, entry, column, digest);
			digest = digest_cell(lab, STRATUM_HOST, entry, column, digest);
		}
	}
	return digest;
}
