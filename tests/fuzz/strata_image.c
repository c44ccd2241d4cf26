/* SPDX-License-Identifier: Apache-2.0 */
#include "strata_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/digest.h"
#include "named_block.h"

#define IMAGE_EPOCH UINT64_C(3)
#define FIRST_SEQUENCE (IMAGE_EPOCH << STRATA_EPOCH_SHIFT)

enum patch { PATCH_WRITE, PATCH_FILL, PATCH_COPY, PATCH_CUT, PATCH_BAD, PATCH_NO_WRITES, PATCHES };

static uint8_t *page_at(const struct image *image, uint32_t page)
{
	return image->bytes + page_offset(page);
}

static uint32_t first_page(uint32_t segment)
{
	return STRATA_SUPERBLOCKS + segment * IMAGE_SEGMENT_PAGES;
}

/* --- making ----------------------------------------------------------------------------------- */

struct made {
	struct image        *image;
	uint64_t             store;
	uint64_t             sequence; /* the next */
	uint64_t             head;     /* sequence of the segment being made */
	uint32_t             segment, page, count;
	struct summary_entry entries[8];
	struct header       *header; /* one for all records of a segment */
};

static struct geometry image_geometry(void)
{
	struct geometry geometry;

	KVS_ASSERT(geometry_make(page_offset(IMAGE_PAGES), page_offset(IMAGE_SEGMENT_PAGES),
				 STRATA_PAGE, &geometry, NULL) == 0);
	KVS_ASSERT_CMP(geometry.segment_count, ==, IMAGE_SEGMENTS);
	return geometry;
}

static void make_superblocks(struct made *made)
{
	const struct geometry geometry = image_geometry();
	struct superblock    *superblock = (struct superblock *)page_at(made->image, 0);
	uint32_t              i;

	for (i = 0; i < STRATA_SUPERBLOCKS; i++) {
		memcpy(superblock[i].id, "a fuzzer's store", sizeof(superblock[i].id));
		superblock[i].capacity_bytes = geometry.capacity_bytes;
		superblock[i].segment_bytes = geometry.segment_bytes;
		superblock[i].segment_count = geometry.segment_count;
		superblock[i].epoch = IMAGE_EPOCH;
		superblock[i].update = 8 + i;
		superblock[i].day = 20000;
		superblock_seal(&superblock[i]);
	}
	made->store = store_hash(superblock[0].id);
}

static void begin_segment(struct made *made, uint32_t segment)
{
	made->segment = segment;
	made->page = STRATA_RECORD_PAGE + 1;
	made->count = 0;
	made->head = made->sequence++;
	made->header = (struct header *)page_at(made->image, first_page(segment) + STRATA_RECORD_PAGE);
	head_make(made->store, segment, made->head,
		  (struct segment_head *)page_at(made->image, first_page(segment)));
	header_begin(made->store, segment, made->head, STRATA_RECORD_PAGE, made->header);
}

static void add_record(struct made *made, uint32_t number, uint32_t pages)
{
	uint8_t *const payload = page_at(made->image, first_page(made->segment) + made->page);
	struct record  record = { .key = key_of(number), .sequence = made->sequence++,
				  .segment = made->segment, .page = made->page, .pages = pages,
				  .ordinal = made->count };

	fill((uint64_t *)payload, number, (uint32_t)page_offset(pages));
	record.checksum = payload_checksum(&record.key, payload, page_offset(pages));
	header_add(made->header, &record);
	header_seal(made->header);
	made->entries[made->count++] = (struct summary_entry){ .key = record.key,
							       .page = record.page,
							       .pages = pages,
							       .payload_checksum = record.checksum,
							       .sequence = record.sequence };
	made->page += pages;
}

/* Its write failed: the place stays empty. */
static void add_hole(struct made *made)
{
	made->entries[made->count++] = (struct summary_entry){ 0 };
	made->page++;
	made->sequence++;
}

static void end_segment(struct made *made)
{
	uint8_t *const summary =
		page_at(made->image, first_page(made->segment) + IMAGE_SEGMENT_PAGES - 1);

	KVS_ASSERT_CMP(made->page + summary_pages(made->count), <=, IMAGE_SEGMENT_PAGES);
	memcpy(summary, made->entries, made->count * sizeof(made->entries[0]));
	summary_seal(made->store, made->segment, made->head, made->count, summary);
}

static void add_tally(struct made *made, uint64_t update, uint64_t dead)
{
	struct tally *const tally = (struct tally *)page_at(
		made->image, first_page(made->segment) + STRATA_TALLY_PAGE +
				     (uint32_t)(update % STRATA_TALLIES));

	*tally = (struct tally){ .segment = made->segment, .store = made->store,
				 .sequence = made->head, .update = update, .dead = { dead } };
	tally_seal(tally);
}

static void make_lived(struct made *made)
{
	uint8_t *torn;

	begin_segment(made, 0);
	add_record(made, 0, 1);
	add_record(made, 1, 2);
	add_record(made, 2, 2);
	add_tally(made, 1, 0);
	add_tally(made, 2, 1 << 1);
	end_segment(made);
	begin_segment(made, 1);
	add_record(made, 3, 1);
	add_record(made, 1, 2);
	add_hole(made);
	end_segment(made);
	/* Open when the machine stopped: no summary, one record whose payload never came. */
	begin_segment(made, 2);
	add_record(made, 4, 1);
	add_record(made, 5, 1);
	torn = page_at(made->image, first_page(2) + made->page - 1);
	memset(torn, 0, STRATA_PAGE);
	add_record(made, 0, 1);
	add_tally(made, 1, 1 << 0);
	/* And one that was sealed under another head. */
	begin_segment(made, 3);
	add_record(made, 6, 1);
	end_segment(made);
	begin_segment(made, 3);
	add_record(made, 7, 1);
}

static void make_full(struct made *made)
{
	uint32_t segment, number = 0;

	for (segment = 0; segment < IMAGE_SEGMENTS; segment++) {
		begin_segment(made, segment);
		add_record(made, number++, 1);
		add_record(made, number++, 2);
		add_record(made, number++, 2);
		end_segment(made);
	}
	KVS_ASSERT_CMP(number, <=, IMAGE_KEYS);
}

static void make(struct image *image, enum image_kind kind)
{
	struct made made = { .image = image, .sequence = FIRST_SEQUENCE };

	make_superblocks(&made);
	image->size = page_offset(IMAGE_PAGES);
	switch (kind) {
	case IMAGE_LIVED:
		make_lived(&made);
		break;
	case IMAGE_FULL:
		make_full(&made);
		break;
	case IMAGE_FRESH:
		image->size = page_offset(STRATA_SUPERBLOCKS);
		break;
	case IMAGE_KINDS:
		KVS_PANIC("no kind of image");
	}
}

static uint8_t *room_alloc(void)
{
	uint8_t *const room = aligned_alloc(STRATA_PAGE, page_offset(IMAGE_ROOM_PAGES));

	KVS_ASSERT(room);
	memset(room, 0, page_offset(IMAGE_ROOM_PAGES));
	return room;
}

/* Each is made once: a copy costs less than all the checksums. */
static const struct image *image_of(enum image_kind kind)
{
	static struct image made[IMAGE_KINDS];

	if (!made[kind].bytes) {
		made[kind].bytes = room_alloc();
		make(&made[kind], kind);
	}
	return &made[kind];
}

void image_make(struct image *image, enum image_kind kind)
{
	const struct image *const made = image_of(kind);

	if (!image->bytes)
		image->bytes = room_alloc();
	memcpy(image->bytes, made->bytes, page_offset(IMAGE_ROOM_PAGES));
	*image = (struct image){ .bytes = image->bytes, .size = made->size,
				 .writes_left = UINT32_MAX };
}

/* --- patching --------------------------------------------------------------------------------- */

static void patch(struct image *image, enum patch how, uint32_t page, uint32_t offset,
		  uint32_t bytes)
{
	uint8_t *const at = page_at(image, page) + offset;
	const uint32_t left = STRATA_PAGE - offset;

	switch (how) {
	case PATCH_FILL:
		memset(at, bytes & 1 ? 0xff : 0, bytes < left ? bytes : left);
		break;
	case PATCH_COPY:
		memmove(page_at(image, page), page_at(image, bytes % IMAGE_PAGES), STRATA_PAGE);
		break;
	case PATCH_CUT:
		image->size = page_offset(page) + offset;
		memset(at, 0, page_offset(IMAGE_ROOM_PAGES) - image->size);
		break;
	case PATCH_BAD:
		bits_set(image->bad_pages, page);
		break;
	case PATCH_NO_WRITES:
		image->writes_left = bytes;
		image->full = offset & 1;
		break;
	case PATCH_WRITE:
	case PATCHES:
		break;
	}
}

bool image_patch(struct image *image, const uint8_t **input, size_t *count)
{
	const uint8_t *const at = *input;
	enum patch           how;
	uint32_t             page, offset;
	size_t               bytes;

	if (*count < 4)
		return false;
	page = at[0] % IMAGE_PAGES;
	offset = at[1] | (at[2] & 15u) << 8;
	how = (at[2] >> 4) % PATCHES;
	bytes = at[3];
	*input += 4;
	*count -= 4;
	if (how != PATCH_WRITE) {
		patch(image, how, page, offset, (uint32_t)bytes);
		return true;
	}
	bytes = bytes < *count ? bytes : *count;
	bytes = bytes < STRATA_PAGE - offset ? bytes : STRATA_PAGE - offset;
	memcpy(page_at(image, page) + offset, *input, bytes);
	*input += bytes;
	*count -= bytes;
	return true;
}

/* --- repairing -------------------------------------------------------------------------------- */

#define CHECKSUM(object) xxh3_64(object, offsetof(__typeof__(*(object)), checksum))

static void repair_payload(const struct image *image, uint32_t segment, const struct kvs_key *key,
			   uint64_t page, uint64_t pages, uint64_t *checksum)
{
	if (pages > IMAGE_SEGMENT_PAGES || page > IMAGE_SEGMENT_PAGES - pages)
		return;
	*checksum = payload_checksum(key, page_at(image, first_page(segment) + (uint32_t)page),
				     pages * STRATA_PAGE);
}

static void repair_header(const struct image *image, uint32_t segment, uint32_t page,
			  uint32_t repairs)
{
	struct header *const header = (struct header *)page_at(image, first_page(segment) + page);
	uint32_t             i;

	if (memcmp(header->magic, "kvs-data", 8) != 0)
		return;
	for (i = 0; repairs & REPAIR_PAYLOADS && i < header->count && i < HEADER_RECORDS; i++) {
		struct summary_entry *const entry = &header->entries[i].record;

		repair_payload(image, segment, &entry->key, entry->page, entry->pages,
			       &entry->payload_checksum);
	}
	if (repairs & REPAIR_HEADERS)
		header->checksum = CHECKSUM(header);
}

/* Of the most entries that a summary of one page or two can have. */
static void repair_summary(const struct image *image, uint32_t segment, uint32_t repairs)
{
	uint8_t *const       end = page_at(image, first_page(segment + 1));
	struct summary_foot *foot = (struct summary_foot *)end - 1;
	struct summary_entry *entries;
	uint32_t              i;

	if (memcmp(foot->magic, "kvs-foot", 8) != 0 || foot->count > 100)
		return;
	entries = (struct summary_entry *)(end - page_offset(summary_pages(foot->count)));
	for (i = 0; repairs & REPAIR_PAYLOADS && i < foot->count; i++) {
		repair_payload(image, segment, &entries[i].key, entries[i].page, entries[i].pages,
			       &entries[i].payload_checksum);
	}
	if (repairs & REPAIR_SUMMARIES) {
		foot->entries_checksum = xxh3_64(entries, foot->count * sizeof(*entries));
		foot->checksum = CHECKSUM(foot);
	}
}

static void repair_segment(const struct image *image, uint32_t segment, uint32_t repairs)
{
	uint8_t *const             first = page_at(image, first_page(segment));
	struct segment_head *const head = (struct segment_head *)first;
	struct tally *const        tallies = (struct tally *)(head + 1);
	uint32_t                   page;

	if (repairs & REPAIR_HEADS)
		head->checksum = CHECKSUM(head);
	if (repairs & REPAIR_TALLIES) {
		tallies[0].checksum = CHECKSUM(&tallies[0]);
		tallies[1].checksum = CHECKSUM(&tallies[1]);
	}
	for (page = STRATA_RECORD_PAGE; page < IMAGE_SEGMENT_PAGES; page++)
		repair_header(image, segment, page, repairs);
	repair_summary(image, segment, repairs);
}

void image_repair(struct image *image, uint32_t repairs)
{
	struct superblock *const superblock = (struct superblock *)image->bytes;
	uint32_t                 segment;

	if (repairs & REPAIR_SUPERBLOCKS) {
		superblock[0].checksum = CHECKSUM(&superblock[0]);
		superblock[1].checksum = CHECKSUM(&superblock[1]);
	}
	for (segment = 0; segment < IMAGE_SEGMENTS; segment++)
		repair_segment(image, segment, repairs);
}

/* --- what is made up -------------------------------------------------------------------------- */

static bool is_header(const uint8_t *page)
{
	const struct header *const header = (const struct header *)page;

	return memcmp(header->magic, "kvs-data", 8) == 0 && header->checksum == CHECKSUM(header);
}

static bool is_foot(const uint8_t *page)
{
	const struct summary_foot *const foot =
		(const struct summary_foot *)(page + STRATA_PAGE) - 1;

	return memcmp(foot->magic, "kvs-foot", 8) == 0 && foot->checksum == CHECKSUM(foot);
}

/* Superblocks, heads and tallies name no payload. */
bool image_is_forged(const struct image *image, enum image_kind kind)
{
	const struct image *const made = image_of(kind);
	uint32_t                  page;

	for (page = 0; page < IMAGE_PAGES; page++) {
		const uint8_t *const now = page_at(image, page);

		if ((is_header(now) || is_foot(now)) &&
		    memcmp(now, page_at(made, page), STRATA_PAGE) != 0)
			return true;
	}
	return false;
}

bool image_is_sound(const struct image *image)
{
	return image->writes_left == UINT32_MAX &&
	       bits_next_set(image->bad_pages, 0, IMAGE_ROOM_PAGES) == IMAGE_ROOM_PAGES;
}
