/* SPDX-License-Identifier: Apache-2.0 */
/* See strata.h.  Opening, closing and what the store says of itself. */
#include "strata/strata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "strata/core.h"

/* Objects are counted in 32 bits, two of them kept for marks. */
#define OBJECTS_MAX (UINT64_C(1) << 30)

/* Some blocks may be smaller than the largest: a window's, a state's. */
#define OBJECTS_A_BLOCK 4u

/* Entry, map and order, roughly. */
#define OBJECT_MEMORY_BYTES 64u

/* --- opening ---------------------------------------------------------------------------------- */

static void *pages_alloc(size_t bytes)
{
	return aligned_alloc(STRATA_PAGE, bytes);
}

static uint64_t objects_max(const struct strata *s)
{
	const uint64_t records = (uint64_t)s->geometry.segment_count * s->geometry.records_max;
	const uint64_t blocks = s->geometry.capacity_bytes / (s->set.block_bytes + STRATA_PAGE);
	uint64_t       wanted = s->set.objects_max ? s->set.objects_max : OBJECTS_A_BLOCK * blocks;

	if (wanted > records)
		wanted = records;
	if (wanted > OBJECTS_MAX)
		wanted = OBJECTS_MAX;
	/* Who reads only may ask for blocks larger than the file. */
	return wanted ? wanted : 1;
}

static int tables_open(struct strata *s, struct kvs_error *err)
{
	const uint32_t objects = (uint32_t)objects_max(s);
	const uint64_t summary = page_offset(summary_pages(s->geometry.records_max));
	char           size[32];
	int            rc;

	/* An empty file may have the capacity of a building full of disks. */
	if ((uint64_t)objects * OBJECT_MEMORY_BYTES > os_memory_bytes()) {
		return err_set(err, -ENOMEM,
			       "store.objects: %u would take more memory than there is, about %s; give a smaller number or use larger blocks",
			       objects,
			       units_format_size((uint64_t)objects * OBJECT_MEMORY_BYTES, size));
	}
	rc = catalog_open(&s->catalog, objects, s->set.evict_policy, err);
	if (rc < 0)
		return rc;
	s->scratch = pages_alloc(STRATA_PAGE + moves_bytes(s));
	s->summary = pages_alloc(summary);
	s->head = pages_alloc(sizeof(*s->head));
	s->page = pages_alloc(sizeof(*s->page));
	if (!s->scratch || !s->summary || !s->head || !s->page ||
	    space_open(&s->space, &s->geometry) < 0 ||
	    (s->set.admit_second && ghost_open(&s->seen, objects) < 0)) {
		return err_set(err, -ENOMEM, "no memory for the tables of %u segments",
			       s->geometry.segment_count);
	}
	return 0;
}

static void discard(struct strata *s)
{
	uint32_t i;

	for (i = 0; i < STRATA_LANES_MAX; i++)
		lane_close(s->lanes[i]);
	if (s->catalog.entries || s->catalog.order)
		catalog_close(&s->catalog);
	space_close(&s->space);
	ghost_close(&s->seen);
	free(s->scratch);
	free(s->summary);
	free(s->head);
	free(s->page);
	free(s->superblock);
	/* All I/O is over, and the next open, perhaps at once, must not find this one's lock. */
	if (s->fd >= 0 && !s->set.read_only)
		os_file_unlock(s->fd);
	os_close(s->fd);
	os_mutex_fini(&s->roll);
	os_mutex_fini(&s->tallies);
	os_mutex_fini(&s->lock);
	os_cond_fini(&s->written);
	free(s);
}

static int begin(const struct strata_settings *settings, const struct kvs_store_ops *ops,
		 struct strata **ret_strata, struct kvs_error *err)
{
	struct geometry geometry;
	struct strata  *s;

	/* First what can fail without the file, so that a refused spec leaves none behind. */
	if (settings->capacity_bytes && !settings->read_only &&
	    geometry_make(settings->capacity_bytes, settings->segment_bytes, settings->block_bytes,
			  &geometry, err) < 0)
		return KVS_E_INVALID;
	if (evict_gives(settings->evict_policy, err) < 0)
		return KVS_E_INVALID;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "store: no memory");
	s->store.ops = ops;
	s->set = *settings;
	s->fd = -1;
	s->note = "";
	os_mutex_init(&s->roll);
	os_mutex_init(&s->tallies);
	os_mutex_init(&s->lock);
	os_cond_init(&s->written);
	s->superblock = pages_alloc(sizeof(*s->superblock));
	if (!s->superblock) {
		discard(s);
		return err_set(err, -ENOMEM, "store: no memory");
	}
	*ret_strata = s;
	return 0;
}

/* The epoch is on disk before its first number is given out. */
static int begin_epoch(struct strata *s, struct kvs_error *err)
{
	int rc;

	if (s->set.read_only)
		return 0;
	if (s->superblock->epoch == STRATA_EPOCH_MAX) {
		return err_set(err, KVS_E_PROTO,
			       "was opened for writing so often that its numbers are used up; format it anew");
	}
#ifndef KVS_MUTANT_KEEP_EPOCH /* Planted bug: sequence numbers that a crash took are given out again. */
	s->superblock->epoch++;
#endif
	rc = superblock_write(s);
	if (rc == 0)
		rc = os_file_sync(s->fd);
	return rc < 0 ? err_set(err, rc, "cannot be written: %s", kvs_strerror(rc)) : 0;
}

static int open_file(struct strata *s, struct kvs_error *err)
{
	int rc = file_open(s, err);

	if (rc == 0)
		rc = tables_open(s, err);
	if (rc == 0)
		rc = begin_epoch(s, err);
	if (rc == 0)
		rc = recover(s, err);
	return rc;
}

int strata_open(const struct strata_settings *settings, const struct kvs_store_ops *ops,
		struct kvs_store **ret_store, struct kvs_error *err)
{
	struct strata *s;
	int            rc = begin(settings, ops, &s, err);

	if (rc < 0)
		return rc;
	rc = open_file(s, err);
	/* The path is the caller's text: it is not kept. */
	s->set.path = NULL;
	s->set.evict_policy = NULL;
	if (rc < 0) {
		err_prefix(err, "store.path: \"%.128s\"", settings->path);
		if (s->created)
			(void)os_file_remove(settings->path);
		discard(s);
		return rc;
	}
	*ret_store = &s->store;
	return 0;
}

int strata_format(const struct strata_settings *settings, struct kvs_error *err)
{
	struct strata *s;
	int            rc = begin(settings, NULL, &s, err);

	if (rc < 0)
		return rc;
	rc = file_format(s, err);
	if (rc < 0)
		err_prefix(err, "store.path: \"%.128s\"", settings->path);
	discard(s);
	return rc;
}

/* --- closing ---------------------------------------------------------------------------------- */

/*
 * Summaries of what is open, so that the next open need not read it whole, and the dead bits.  Nobody
 * is left to tell of a failure; what did not reach the disk is found by its checksum.
 */
static void settle(struct strata *s)
{
	int stream;

	for (stream = 0; stream < STREAM_COUNT; stream++) {
		const uint32_t segment = space_shut(&s->space, (enum stream)stream);

		if (segment != SEGMENT_NONE)
			segment_seal(s, segment);
	}
	(void)tallies_write(s);
	/* What it says of them is true once they are there. */
	if (os_file_sync(s->fd) == 0) {
		s->superblock->closed_epoch = s->superblock->epoch;
		s->superblock->heads = space_heads(&s->space);
	}
	(void)superblock_write(s);
	(void)os_file_sync(s->fd);
}

int strata_close(struct kvs_store *store)
{
	struct strata *const s = strata_of(store);
	uint32_t             i;

	/* I/O of a lane that nobody reaped may still touch its spans. */
	for (i = 0; i < STRATA_LANES_MAX; i++) {
		if (!lane_is_idle(s->lanes[i]))
			return KVS_E_QUARANTINE;
	}
	if (!s->set.read_only)
		settle(s);
	discard(s);
	return 0;
}

/* --- what it says of itself ------------------------------------------------------------------- */

static enum kvs_durability durability_of(const struct strata *s)
{
	return s->set.durability == STRATA_PUT ? KVS_DURABILITY_PUT : KVS_DURABILITY_PROCESS;
}

/* What nobody may use for records, of the segments in use and before them. */
static uint64_t overhead_bytes(const struct strata *s)
{
	const uint32_t in_use = s->geometry.segment_count - s->space.free_count;

	return page_offset(STRATA_SUPERBLOCKS + in_use * (STRATA_RECORD_PAGE + 1));
}

static uint64_t memory_bytes(const struct strata *s)
{
	return sizeof(*s) + catalog_bytes(&s->catalog) + space_bytes(&s->space) +
	       moves_bytes(s) + 4 * STRATA_PAGE +
	       page_offset(summary_pages(s->geometry.records_max)) +
	       (s->set.admit_second ? ghost_bytes(&s->seen) : 0);
}

void strata_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct strata *const s = strata_of(store);

	os_mutex_lock(&s->lock);
	*ret_info = (struct kvs_store_info){
		.capacity_bytes = s->geometry.capacity_bytes,
		.used_bytes = overhead_bytes(s) + s->space.live_pages * STRATA_PAGE,
		.object_count = s->catalog.present,
		.evicted_objects = s->counts.evicted,
		.corrupt_objects = s->counts.corrupt,
		.memory_bytes = memory_bytes(s),
		.written_bytes = s->written_bytes,
		.moved_objects = s->counts.moved,
		.refused_budget = s->counts.refused_budget,
		.refused_admission = s->counts.refused_admission,
		.refused_full = s->counts.refused_full,
		.durability = durability_of(s),
		.failures_retire = true,
		.verified = s->set.verify,
		.direct = s->direct,
		.locks = true,
	};
	snprintf(ret_info->note, sizeof(ret_info->note), "%s", s->note);
	os_mutex_unlock(&s->lock);
}

int strata_register(struct kvs_store *store, const struct kvs_memory *memory)
{
	struct strata *const s = strata_of(store);
	uint32_t             i;

	os_mutex_lock(&s->lock);
	s->slice_count = memory->slice_count < STRATA_SLICES_MAX ? memory->slice_count
								 : STRATA_SLICES_MAX;
	for (i = 0; i < s->slice_count; i++)
		s->slices[i] = (struct iovec){ memory->slices[i].ptr, memory->slices[i].bytes };
	os_mutex_unlock(&s->lock);
	return 0;
}

void strata_inspect(struct kvs_store *store, struct strata_report *ret_report)
{
	struct strata *const s = strata_of(store);
	uint32_t             i;

	os_mutex_lock(&s->lock);
	*ret_report = (struct strata_report){
		.version = STRATA_VERSION,
		.capacity_bytes = s->geometry.capacity_bytes,
		.segment_bytes = s->geometry.segment_bytes,
		.segment_count = s->geometry.segment_count,
		.segments_free = s->space.free_count,
		.segments_unsealed = (uint32_t)s->counts.unsealed,
		.live_bytes = s->space.live_pages * STRATA_PAGE,
		.object_count = s->catalog.present,
		.epoch = s->superblock->epoch,
		.put_bytes = s->put_bytes,
		.written_bytes = s->written_bytes,
		.day_bytes = s->day_bytes,
		.day = s->day,
		.torn_records = s->counts.torn,
		.stale_records = s->counts.stale,
		.foreign_records = s->counts.foreign,
		.damaged_structures = s->counts.damaged,
	};
	memcpy(ret_report->id, s->superblock->id, sizeof(ret_report->id));
	for (i = 0; i < s->geometry.segment_count; i++) {
		const struct segment *const segment = &s->space.segments[i];

		if (segment->state != SEGMENT_FREE && segment->state != SEGMENT_ABSENT) {
			ret_report->dead_bytes +=
				page_offset(segment->next_page - STRATA_RECORD_PAGE -
					    segment->live_pages);
		}
	}
	os_mutex_unlock(&s->lock);
}

bool strata_inspect_segment(struct kvs_store *store, uint32_t number,
			    struct strata_segment_report *ret_report)
{
	static const char *const names[] = {
		[SEGMENT_FREE] = "free", [SEGMENT_OPENING] = "opening", [SEGMENT_OPEN] = "open",
		[SEGMENT_CLOSED] = "closed", [SEGMENT_SEALING] = "sealing",
		[SEGMENT_SEALED] = "sealed", [SEGMENT_CLEANING] = "cleaning",
		[SEGMENT_DRAINING] = "draining", [SEGMENT_ABSENT] = "absent",
	};
	struct strata *const  s = strata_of(store);
	const struct segment *segment;

	if (number >= s->geometry.segment_count)
		return false;
	os_mutex_lock(&s->lock);
	segment = &s->space.segments[number];
	*ret_report = (struct strata_segment_report){
		.state = names[segment->state],
		.sequence = segment->sequence,
		.live_bytes = page_offset(segment->live_pages),
		.live_count = segment->live_count,
		.record_count = segment->record_count,
	};
	os_mutex_unlock(&s->lock);
	return true;
}

void strata_audit(struct kvs_store *store)
{
	struct strata *const s = strata_of(store);
	uint64_t             live_pages = 0;
	uint32_t             number;

	catalog_audit(&s->catalog);
	space_audit(&s->space);
	for (number = 0; number < s->catalog.known; number++) {
		const struct entry *const entry = &s->catalog.entries[number];

		if (entry->state == ENTRY_FREE)
			continue;
		/* While nothing runs, nothing is being written. */
		KVS_ASSERT_CMP(entry->state, ==, ENTRY_PRESENT);
		live_pages += entry->pages;
	}
	KVS_ASSERT_CMP(live_pages, ==, s->space.live_pages);
}
