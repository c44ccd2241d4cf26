/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's private opinion of its store: up, or in cooldown after an outage.
 *
 *   UP --evidence of an outage--> DOWN(epoch + 1) --cooldown over, one submission--> PROBING
 *   PROBING --a success of the probe's epoch--> UP     PROBING --evidence--> DOWN(epoch + 1)
 *
 * Every call carries the epoch in which it began.  A success begun in epoch e never clears an outage
 * of e + 1: it tells of a store that was, not of the one that is.  Evidence of an older epoch than
 * the present outage's changes nothing either: one outage, one cooldown.
 *
 * What is evidence is the caller's to say: a failed call, an unretired put, an unknown native
 * failure; never a miss, a corrupt object or a refusal for capacity.
 *
 * Pure: time is an argument.  There is no thread and no public control: the executor reports, it
 * does not ask.
 */
#ifndef EXEC_HEALTH_H
#define EXEC_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum health_state { HEALTH_UP, HEALTH_DOWN, HEALTH_PROBING };

struct health {
	enum health_state state;
	uint64_t          epoch;         /* grows with every outage */
	uint64_t          retry_ns;      /* DOWN: when a probe may go */
	uint64_t          cooldown_ns;   /* of the present outage; doubles with every failed probe */
	uint64_t          cooldown_min_ns;
	uint64_t          cooldown_max_ns;
	uint64_t          outages;       /* since open */
};

/* 0 < min <= max: asserted; exec_open() checks what users give. */
void health_init(struct health *health, uint64_t cooldown_min_ns, uint64_t cooldown_max_ns);

/* A store that was away at open: DOWN, and the first probe may go at once. */
void health_start_down(struct health *health, uint64_t now_ns);

/* May an op be submitted now?  Says yes once in PROBING: that op is the probe. */
bool health_admit(struct health *health, uint64_t now_ns);

/* The probe ended without having asked the store: another may go at once. */
void health_unprobe(struct health *health, uint64_t now_ns);

void health_success(struct health *health, uint64_t epoch);
void health_failure(struct health *health, uint64_t epoch, uint64_t now_ns);

const char *health_state_name(enum health_state state);

#endif
