/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a code of the SDK means: for the object, and for the memory of the call.
 *
 * Pure.  The rules: exact bytes prove a get, a shorter or longer object is a failure that has
 * retired; -704, -703 and -702 are answers from metadata, before anything was submitted; a put's 0 and
 * -705 are successes; -200 is the master's refusal, before any access; -707 and -801 come after the
 * transfer: over, and to be discarded.  Every other negative code proves nothing.
 *
 * Source   mooncake-store/include/types.h of Mooncake 0.3.13, and which of them come when.
 */
#ifndef MOONCAKE_CODES_H
#define MOONCAKE_CODES_H

#include "mooncake/way.h"

struct mooncake_verdict {
	enum kvs_result result;
	bool            retired; /* the row's memory; of a verb without spans always */
};

/* bytes: of the whole object, for GET; what a get may move is no less. */
struct mooncake_verdict mooncake_judge(enum mooncake_verb verb, int64_t code, uint64_t bytes);

/* Every row of an answered call has retired by its code. */
bool mooncake_call_retired(const struct mooncake_call *call);

/* "OBJECT_NOT_FOUND" for -704; "unknown code" for what is none. */
const char *mooncake_code_name(int64_t code);

/* Two that only the master gives.  Of a put: the pool is full, or has no provider at all. */
#define MOONCAKE_NO_HANDLE (-200)
#define MOONCAKE_NOT_FOUND (-704)

#endif
