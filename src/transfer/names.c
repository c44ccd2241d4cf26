/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people: outcomes, drops and counters, from the lists in the headers. */
#include "transfer/transfer.h"

#define NAME(name, text) [name] = (text),

const char *read_outcome_name(enum read_outcome outcome)
{
	static const char *const names[] = { READ_OUTCOMES(NAME) };

	return names[outcome];
}

const char *backup_drop_name(enum backup_drop drop)
{
	static const char *const names[] = { BACKUP_DROPS(NAME) };

	return names[drop];
}

const char *transfer_counter_name(enum transfer_counter counter)
{
	static const char *const names[] = { TRANSFER_COUNTERS(NAME) };

	return names[counter];
}
