/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the room: what a boundary needs, and whether some of it is in no store. */
#ifndef PLAN_PARTS_H
#define PLAN_PARTS_H

#include "plan/query.h"

/* What a boundary needs of one group: positions of full pages, then columns of its tail. */
struct need {
	uint32_t first;
	uint32_t end;          /* of the positions in full pages; first: none */
	uint32_t before_first; /* positions missing before these two */
	uint32_t before_end;
	uint64_t tail_missing; /* columns of the tail that are needed and missing */
};

/*
 * Does a boundary miss what no store has?  Notes the first such block of the first boundary that
 * does.
 */
bool absent_keeps_away(struct query *query, const struct query_ask *ask,
		       const struct boundary *boundary, const struct need *needs);

#endif
