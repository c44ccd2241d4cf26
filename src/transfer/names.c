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
