/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a sealed segment, on disk: read and judged, written, in one way by all who need them. */
#include <errno.h>

#include "strata/scan.h"

static uint64_t summary_end(const struct strata *s, uint32_t segment)
{
	return segment_offset(s, segment) + s->geometry.segment_bytes;
}

int summary_read(const struct strata *s, uint32_t segment, uint64_t sequence, void *buffer,
		 uint32_t *ret_count)
{
	const uint64_t end = summary_end(s, segment);
	uint64_t       bytes;
	int            rc = read_or_zero(s, buffer, STRATA_PAGE, end - STRATA_PAGE);

	*ret_count = 0;
	if (rc < 0)
		return rc;
	/* One that could not be written has left that of an earlier sequence. */
	if (!foot_judge(buffer, s->hash, &s->geometry, segment, sequence, ret_count))
		return foot_state(buffer) == STRUCTURE_DAMAGED ? KVS_E_PROTO : -ENOENT;
	bytes = page_offset(summary_pages(*ret_count));
	if (bytes > STRATA_PAGE)
		rc = read_or_zero(s, buffer, bytes, end - bytes);
	if (rc < 0)
		return rc;
	return summary_judge(buffer, *ret_count, &s->geometry) ? 0 : KVS_E_PROTO;
}

int summary_write(const struct strata *s, uint32_t segment, uint64_t sequence, uint32_t count,
		  void *buffer)
{
	const uint64_t bytes = page_offset(summary_pages(count));

	summary_seal(s->hash, segment, sequence, count, buffer);
	return os_file_write(s->fd, buffer, bytes, summary_end(s, segment) - bytes);
}
