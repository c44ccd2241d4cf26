/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people: outcomes and drops, from the lists in transfer.h. */
#include "mono_transfer/transfer.h"

const char *mono_transfer_outcome_name(enum mono_transfer_outcome outcome)
{
	static const char *const names[] = {
#define NAME(name, text) [name] = (text),
		MONO_TRANSFER_OUTCOMES(NAME)
#undef NAME
	};

	return names[outcome];
}

const char *mono_transfer_drop_name(enum mono_transfer_drop drop)
{
	static const char *const names[] = {
#define NAME(name, text) [name] = (text),
		MONO_TRANSFER_DROPS(NAME)
#undef NAME
	};

	return names[drop];
}
