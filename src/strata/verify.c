/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether all that is no payload is whole: superblocks, heads, tallies, summaries, headers.
 *
 * Whole is enough: a device that was formatted anew still holds whole structures of earlier stores.
 */
#include <errno.h>

#include "strata/core.h"

/* Another process may be writing just what is read: then it is whole a moment later. */
#define TRIES 16u

typedef enum structure_state judge(const void *page);

static bool is_damaged(const struct verifying *verifying, judge *state, uint64_t offset)
{
	uint8_t *const page = verifying->buffer;
	uint32_t       i;

	for (i = 0; i < TRIES; i++) {
		const int rc = os_file_read(verifying->s->fd, page, STRATA_PAGE, offset);

		/* What was never written is not there. */
		if (rc == -ENODATA || (rc == 0 && state(page) != STRUCTURE_DAMAGED))
			return false;
	}
	return true;
}

static bool tell(struct verifying *verifying, uint32_t segment, uint64_t offset,
		 const char *damage)
{
	const struct strata_finding finding = { .segment = segment, .offset = offset,
						.damage = damage };

	verifying->told++;
	return verifying->see(verifying->ctx, &finding);
}

/* Both were written when the store was made: what is no superblock is a damaged one. */
static enum structure_state superblock_or_damage(const void *page)
{
	return superblock_state(page) == STRUCTURE_WHOLE ? STRUCTURE_WHOLE : STRUCTURE_DAMAGED;
}

bool verify_superblocks(struct verifying *verifying)
{
	uint32_t i;

	for (i = 0; i < STRATA_SUPERBLOCKS; i++) {
		if (is_damaged(verifying, superblock_or_damage, page_offset(i)) &&
		    !tell(verifying, STRATA_NO_SEGMENT, page_offset(i),
			  "one of two superblocks is damaged"))
			return false;
	}
	return true;
}

static bool verify_page(struct verifying *verifying, uint32_t segment, uint32_t page,
			judge *state, const char *damage)
{
	const uint64_t offset =
		page_offset(segment_page(&verifying->s->geometry, segment) + page);

	return !is_damaged(verifying, state, offset) ||
	       tell(verifying, segment, offset, damage);
}

static uint64_t end_of(const struct strata *s, uint32_t segment)
{
	return page_offset(segment_page(&s->geometry, segment)) + s->geometry.segment_bytes;
}

/* What a free segment holds is read by nobody. */
static bool is_in_use(const struct verifying *verifying, uint32_t segment, uint64_t *ret_sequence)
{
	struct strata *const s = verifying->s;
	bool                 in_use;

	os_mutex_lock(&s->lock);
	in_use = s->space.segments[segment].state != SEGMENT_FREE;
	*ret_sequence = s->space.segments[segment].sequence;
	os_mutex_unlock(&s->lock);
	return in_use;
}

/* Read and judged once: false where there is no foot of the segment's sequence, which is judged apart. */
static bool summary_fails(const struct verifying *verifying, uint32_t segment, uint64_t sequence,
			  uint64_t *ret_offset)
{
	const struct strata *const s = verifying->s;
	const uint64_t             end = end_of(s, segment);
	uint32_t                   count;

	if (os_file_read(s->fd, verifying->buffer, STRATA_PAGE, end - STRATA_PAGE) < 0 ||
	    !foot_judge(verifying->buffer, s->hash, &s->geometry, segment, sequence, &count))
		return false;
	*ret_offset = end - page_offset(summary_pages(count));
	return os_file_read(s->fd, verifying->buffer, end - *ret_offset, *ret_offset) < 0 ||
	       !summary_judge(verifying->buffer, count, &s->geometry);
}

static bool verify_summary(struct verifying *verifying, uint32_t segment, uint64_t sequence)
{
	uint64_t offset = 0;
	uint32_t i;

	for (i = 0; i < TRIES; i++) {
		if (!summary_fails(verifying, segment, sequence, &offset))
			return true;
	}
	return tell(verifying, segment, offset, "its summary is damaged");
}

bool verify_segment(struct verifying *verifying, uint32_t segment)
{
	const uint32_t last = verifying->s->geometry.segment_pages - 1;
	uint64_t       sequence;
	uint32_t       i;

	if (!verify_page(verifying, segment, STRATA_HEAD_PAGE, head_state, "its head is damaged"))
		return false;
	if (!is_in_use(verifying, segment, &sequence))
		return true;
	for (i = 0; i < STRATA_TALLIES; i++) {
		if (!verify_page(verifying, segment, STRATA_TALLY_PAGE + i, tally_state,
				 "one of its two tallies is damaged"))
			return false;
	}
	return verify_page(verifying, segment, last, foot_state,
			   "the foot of its summary is damaged") &&
	       verify_summary(verifying, segment, sequence);
}

bool verify_headers(struct verifying *verifying, uint32_t segment, uint32_t page)
{
	return verify_page(verifying, segment, page, header_state,
			   "a page of headers is damaged");
}
