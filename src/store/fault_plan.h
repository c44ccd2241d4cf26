/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong and when: the plan of a store that fails on purpose, read from JSON.
 *
 *   { "inner": "mem:64MiB", "seed": 1,
 *     "faults": [ { "kind": "fail", "op": "get", "every": 3, "after": 10, "count": 5 },
 *                 { "kind": "delay", "op": "put", "chance": 0.01, "ms": [1, 20] } ] }
 *
 *   delay       the call waits for "ms" or "us", a number or a range [least, most]
 *   error       the whole call fails with -EIO and does nothing
 *   lost        the call comes back only after store_fault_release(), or fails at close
 *   fail        a row is FAILED
 *   miss        a row is MISSING (get, exists)
 *   no_space    a row is NO_SPACE (put)
 *   short       a row is DONE, and the second half of its span was not written (get)
 *   corrupt     a row is DONE with one byte flipped, after all verification (get)
 *   late_write  a row is FAILED and not retired, and its span is written "ms" or "us" later (get);
 *               "claims_retired": true lies about it.  The store has settled when all have landed
 *
 * A fault looks at calls (delay, error, lost) or at rows of one "op": get, put or exists, locks
 * included.  It passes over the first "after" of them, then falls on each "every"th, 1 by default,
 * or with "chance", at most "count" times.  Of the faults that would fall on a row the first in the
 * list does.  Everything else about it is mixed from "seed", so one thread gets the same faults in
 * every run.
 */
#ifndef STORE_FAULT_PLAN_H
#define STORE_FAULT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/spec.h"

#define FAULT_RULES_MAX 32u

enum fault_kind {
	FAULT_DELAY,
	FAULT_ERROR,
	FAULT_LOST,
	FAULT_FAIL,
	FAULT_MISS,
	FAULT_NO_SPACE,
	FAULT_SHORT,
	FAULT_CORRUPT,
	FAULT_LATE_WRITE,
	FAULT_KIND_COUNT
};

enum fault_op { FAULT_GET, FAULT_PUT, FAULT_EXISTS, FAULT_OP_COUNT };

struct fault_rule {
	enum fault_kind kind;
	enum fault_op   op;
	uint64_t        every;       /* 0: by chance */
	double          chance;
	uint64_t        after;
	uint64_t        count_max;
	uint64_t        wait_min_ns;
	uint64_t        wait_max_ns;
	bool            claims_retired;
};

struct fault_plan {
	char              inner[SPEC_BYTES_MAX];
	uint64_t          seed;
	uint32_t          rule_count;
	struct fault_rule rules[FAULT_RULES_MAX];
};

/* Errors: KVS_E_INVALID or -errno, with a sentence to stand behind the name of the file. */
int fault_plan_read(const char *path, struct fault_plan *ret_plan, struct kvs_error *err);

static inline bool fault_falls_on_calls(enum fault_kind kind)
{
	return kind <= FAULT_LOST;
}

#endif
