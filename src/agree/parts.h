/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of agree.h: the state, and how a round goes through it. */
#ifndef AGREE_PARTS_H
#define AGREE_PARTS_H

#include "agree/agree.h"
#include "agree/records.h"

/* What the owners that have reported an op say of it together.  Meaningless before the first. */
struct partial {
	struct op_mask ok, object_fault, read_here;
	bool           retired;
	enum op_reason reason;
	uint32_t       reason_rank; /* who gave it; OWNERS_MAX: nobody has */
};

struct agree {
	struct agree_options options;
	uint64_t             owners; /* the set of all */
	uint64_t             now_ns; /* of the last tick */
	struct records       ops;
	struct records       copies;
	/* NULL where one owner is alone: its report is the tick. */
	struct partial           *partials;   /* of each op's slot */
	struct fact              *facts;      /* these three: the tick's */
	struct retirement_notice *notices;
	uint64_t                 *passed;
};

/* Only these move payload, so only these can leave bytes in doubt. */
static inline bool record_has_payload(const struct record *record)
{
	return record->kind == OP_GET || record->kind == OP_PUT;
}

/* Note in `now` what a report says, as far as it is good.  Errors: KVS_E_PROTO. */
int report_check(struct agree *agree, uint32_t rank, const struct agree_report *report,
		 struct kvs_error *err);

/* All reports were good: take them in, end what is over, and fill in the lists of a tick. */
void reports_reduce(struct agree *agree, const struct agree_report *reports, struct tick *tick);

#endif
