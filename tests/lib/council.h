/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A council: all owners of a cache in one process, each with an agreement of its own.
 *
 * Reports are drawn up owner by owner, then a round gives all of them to every owner.  Whatever
 * comes of it must be the same on each: every byte of the tick, or the sentence of the refusal.
 */
#ifndef LIB_COUNCIL_H
#define LIB_COUNCIL_H

#include "agree/agree.h"

#define COUNCIL_OWNERS_MAX 4u
#define COUNCIL_FACTS_MAX 16u

struct council_draft {
	struct fact              facts[COUNCIL_FACTS_MAX];
	struct retirement_notice notices[COUNCIL_FACTS_MAX];
	uint64_t                 copies[COUNCIL_FACTS_MAX];
};

struct council {
	uint32_t             owners;
	struct agree        *agree[COUNCIL_OWNERS_MAX];
	struct agree_report  report[COUNCIL_OWNERS_MAX];
	struct council_draft draft[COUNCIL_OWNERS_MAX];
	struct agree_permits permits;
	struct tick          tick; /* of the last round */
	struct kvs_error     err;  /* of the last refusal */
};

void council_open(struct council *council, uint32_t owners, uint32_t ops_max, uint32_t copies_max);
void council_close(struct council *council);

void council_expect(struct council *council, uint64_t op_id, enum op_kind kind, uint32_t keys);
void council_expect_copies(struct council *council, uint64_t ticket);

/*
 * A fact for an owner's report: every row ok and, of a GET, read; retired.  The caller changes it.
 */
struct fact *council_fact(struct council *council, uint32_t rank, uint64_t op_id, enum op_kind kind,
			  uint32_t keys);
void         council_notice(struct council *council, uint32_t rank, uint64_t op_id);
void         council_copy(struct council *council, uint32_t rank, uint64_t ticket);

/* All owners get all reports; the next ones begin empty, but for clocks and pressure. */
const struct tick *council_round(struct council *council);

/*
 * The same where it must be refused: KVS_E_PROTO, one sentence on every owner, no tick.  NULL: any.
 */
void council_refuses(struct council *council, const char *sentence);

#endif
