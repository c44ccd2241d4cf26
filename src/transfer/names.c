/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people: outcomes and drops, from the lists in transfer.h. */
#include "transfer/transfer.h"

const char *transfer_outcome_name(enum transfer_outcome outcome)
{
	static const char *const names[] = {
#define NAME(name, text) [name] = (text),
		TRANSFER_OUTCOMES(NAME)
#undef NAME
	};

	return names[outcome];
}

const char *transfer_drop_name(enum transfer_drop drop)
{
	static const char *const names[] = {
#define NAME(name, text) [name] = (text),
		TRANSFER_DROPS(NAME)
#undef NAME
	};

	return names[drop];
}

/* Why an op failed, as the request's outcome. */
enum transfer_outcome transfer_outcome_of(const struct fact *fact)
{
	switch (fact->reason) {
	case OP_REASON_NONE:
	case OP_REASON_MISS:
		return TRANSFER_MISS;
	case OP_REASON_CORRUPT:
		return TRANSFER_CORRUPT;
	case OP_REASON_QUARANTINE:
		return TRANSFER_QUARANTINE;
	case OP_REASON_HEALTH:
		return TRANSFER_COOLDOWN;
	case OP_REASON_QUEUE:
	case OP_REASON_CLOSED:
		return TRANSFER_REFUSED;
	case OP_REASON_CANCELLED:
	case OP_REASON_NO_SPACE:
	case OP_REASON_BACKEND:
	case OP_REASON_COUNT:
		break;
	}
	return TRANSFER_BACKEND;
}
