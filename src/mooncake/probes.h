/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on what existence probes keep from eviction.
 *
 * The master grants a lease with each probe that finds an object, and evicts nothing that has one:
 * a client that looks up everything all the time leaves a full pool with nothing to evict.  So what
 * was found is answered from here for half the time of its lease, which renews none; and at most
 * probe_max keys at a time, fewer after a put was refused for room, were asked for and may have a
 * lease: when there are so many, further keys are not asked for.
 *
 * A key that is asked for counts at once, until it is forgotten or a lease's time is over: nobody
 * knows what came of a call that failed.
 *
 * Pure: time is an argument.  Thread   its caller's lock.  Allocates at open only.
 */
#ifndef MOONCAKE_PROBES_H
#define MOONCAKE_PROBES_H

#include <stdbool.h>

#include <kvstrata/base.h>

#include "base/err.h"
#include "base/map.h"

/* After refusals the bound falls to this, or to probe_max where that is less. */
#define PROBES_LEAST 64u

enum probe {
	PROBE_ASK,   /* ask the master */
	PROBE_FOUND, /* it has a lease: it is there */
	PROBE_SKIP   /* not now: nothing is known */
};

struct probes;

/* Errors: -ENOMEM. */
int  probes_open(uint64_t lease_ns, uint32_t probe_max, struct probes **ret_probes);
void probes_close(struct probes *probes); /* NULL is fine */

enum probe probes_look(struct probes *probes, const struct kvs_key *key, uint64_t now_ns);

/* Whether it has a lease; asks for nothing and counts nothing. */
bool probes_know(const struct probes *probes, const struct kvs_key *key, uint64_t now_ns);

/* A probe or a get found it: it has a lease from about now on, when the call began. */
void probes_found(struct probes *probes, const struct kvs_key *key, uint64_t now_ns);

/* A probe or a get missed it. */
void probes_forget(struct probes *probes, const struct kvs_key *key);
/* It was removed: what a call found that began before is no news of it, nor of others. */
void probes_removed(struct probes *probes, const struct kvs_key *key, uint64_t now_ns);
/* Nothing is known any more, nor will be of calls that began before; leases stay counted. */
void probes_forget_all(struct probes *probes, uint64_t now_ns);

/* A put was refused for room: the bound is halved, and grows by an eighth of probe_max a lease. */
void probes_refused(struct probes *probes, uint64_t now_ns);

uint32_t probes_bound(const struct probes *probes);
uint32_t probes_count(const struct probes *probes); /* may have a lease, at the last look or find */
uint64_t probes_skipped(const struct probes *probes); /* looks that said SKIP, since open */
uint64_t probes_bytes(const struct probes *probes);

void probes_audit(const struct probes *probes);

#endif
