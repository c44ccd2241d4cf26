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
	return verifying->s->counts.missing == 0 ||
	       tell(verifying, STRATA_NO_SEGMENT, 0,
		    "segments that were in use have no head: wiped, or cut off");
}

static bool verify_page(struct verifying *verifying, uint32_t segment, uint32_t page,
			judge *state, const char *damage)
{
	const uint64_t offset =
		page_offset(segment_page(&verifying->s->geometry, segment) + page);

	return !is_damaged(verifying, state, offset) ||
	       tell(verifying, segment, offset, damage);
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

/* Of entries whose foot is whole: that is judged apart. */
static bool verify_summary(struct verifying *verifying, uint32_t segment, uint64_t sequence)
{
	const struct strata *const s = verifying->s;
	const uint64_t end = segment_offset(s, segment) + s->geometry.segment_bytes;
	uint32_t       count = 0, i;

	for (i = 0; i < TRIES; i++) {
		const int rc = summary_read(s, segment, sequence, verifying->buffer, &count);

		if (rc == 0 || count == 0)
			return true;
	}
	return tell(verifying, segment, end - page_offset(summary_pages(count)),
		    "its summary is damaged");
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
