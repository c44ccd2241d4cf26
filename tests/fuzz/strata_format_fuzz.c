/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anybody may have written, one page of it, to everything that judges a page of a strata file.
 *
 * An input chooses a page of a whole store, says which checksums are made right after its patches,
 * and patches the page.  What a judge calls valid must lie inside the segment that it was judged for.
 */
#include <stdlib.h>
#include <string.h>

#include "strata_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count);

static void judge_superblock(const uint8_t *page)
{
	struct geometry g;

	if (superblock_judge((const struct superblock *)page, &g) != SUPERBLOCK_VALID)
		return;
	KVS_ASSERT_CMP(g.capacity_bytes, <=, STRATA_CAPACITY_MAX);
	KVS_ASSERT_CMP(geometry_file_bytes(&g), <=, g.capacity_bytes);
	KVS_ASSERT_CMP((uint64_t)g.segment_pages * STRATA_PAGE, ==, g.segment_bytes);
	KVS_ASSERT_CMP(g.segment_count, >=, STRATA_SEGMENTS_MIN);
	KVS_ASSERT_CMP(g.records_max, >, 0);
	KVS_ASSERT_CMP(g.records_max, <=, STRATA_RECORDS_MAX);
	KVS_ASSERT_CMP(segment_page(&g, g.segment_count - 1), >=, g.segment_count - 1);
}

static void check_place(const struct geometry *geometry, uint32_t page, uint32_t pages)
{
	KVS_ASSERT_CMP(page, >=, STRATA_RECORD_PAGE);
	KVS_ASSERT_CMP(pages, >, 0);
	/* A foot comes behind it. */
	KVS_ASSERT_CMP((uint64_t)page + pages, <, geometry->segment_pages);
}

static void judge_header(const uint8_t *page, const struct geometry *geometry, uint64_t store,
			 uint32_t segment, uint32_t own_page, uint64_t sequence)
{
	const struct header *const header = (const struct header *)page;
	uint32_t                   i;

	if (header_judge(header, store, sequence, segment, own_page) != HEADER_VALID)
		return;
	KVS_ASSERT_CMP(header->count, <=, HEADER_RECORDS);
	for (i = 0; i < header->count; i++) {
		struct record record;

		if (!header_record(header, i, geometry, &record))
			continue;
		check_place(geometry, record.page, record.pages);
		KVS_ASSERT_CMP(record.page, >, own_page);
		KVS_ASSERT_CMP(record.ordinal, <, geometry->records_max);
		KVS_ASSERT_CMP(record.segment, ==, segment);
	}
}

/* The summary's memory ends where its page ends: nothing may be read beyond. */
static void judge_summary(const uint8_t *page, const struct geometry *geometry, uint64_t store,
			  uint32_t segment, uint64_t sequence)
{
	const struct summary_entry *const entries = (const struct summary_entry *)page;
	uint32_t                          entry_count, next = STRATA_RECORD_PAGE, i;

	if (!foot_judge(page, store, geometry, segment, sequence, &entry_count))
		return;
	KVS_ASSERT_CMP(entry_count, <=, geometry->records_max);
	if (!summary_judge(page, entry_count, geometry))
		return;
	for (i = 0; i < entry_count; i++) {
		if (entries[i].pages == 0)
			continue;
		check_place(geometry, entries[i].page, entries[i].pages);
		KVS_ASSERT_CMP(entries[i].page, >=, next);
		next = entries[i].page + entries[i].pages;
	}
}

static void judge(const uint8_t *page, uint32_t number, uint64_t head_sequence)
{
	struct geometry geometry;
	uint64_t        store, sequence = 0;
	const uint32_t  segment = (number - STRATA_SUPERBLOCKS) / IMAGE_SEGMENT_PAGES;
	const uint32_t  own_page = (number - STRATA_SUPERBLOCKS) % IMAGE_SEGMENT_PAGES;

	judge_superblock(page);
	if (number < STRATA_SUPERBLOCKS)
		return;
	KVS_ASSERT(geometry_make(page_offset(IMAGE_PAGES), page_offset(IMAGE_SEGMENT_PAGES),
				 STRATA_PAGE, &geometry, NULL) == 0);
	store = store_hash((const uint8_t *)"a fuzzer's store");
	(void)head_judge((const struct segment_head *)page, store, segment, &sequence);
	(void)tally_judge((const struct tally *)page, store, segment, head_sequence);
	judge_header(page, &geometry, store, segment, own_page, head_sequence);
	judge_summary(page, &geometry, store, segment, head_sequence);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count)
{
	static struct image image;
	uint8_t            *page;
	uint64_t            sequence = 0;
	uint32_t            number, repairs;

	if (count < 2)
		return 0;
	image_make(&image, IMAGE_LIVED);
	number = input[0] % IMAGE_PAGES;
	repairs = input[1];
	if (number >= STRATA_SUPERBLOCKS) {
		const uint32_t first = number - (number - STRATA_SUPERBLOCKS) % IMAGE_SEGMENT_PAGES;

		memcpy(&sequence, image.bytes + page_offset(first) +
					  offsetof(struct segment_head, sequence),
		       sizeof(sequence));
	}
	input += 2;
	count -= 2;
	while (image_patch(&image, &input, &count))
		;
	image_repair(&image, repairs);
	/* Memory of its own, so that a sanitizer sees where it ends. */
	page = malloc(STRATA_PAGE);
	KVS_ASSERT(page);
	memcpy(page, image.bytes + page_offset(number), STRATA_PAGE);
	judge(page, number, sequence);
	free(page);
	return 0;
}
