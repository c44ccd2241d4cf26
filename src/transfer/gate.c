/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stops new work: the gate of pressure, the intent to maintain, a tick without the permit of
 * storage, and quarantine.  None of them knows of another.
 */
#include "transfer/parts.h"

/* One observation; 0 and 0 closes nothing and keeps nothing closed. */
struct mark {
	uint64_t seen, high, low;
};

static bool closes(struct mark mark)
{
	return mark.high > 0 && mark.seen >= mark.high;
}

static bool opens(struct mark mark)
{
	return mark.high == 0 || mark.seen <= mark.low;
}

/* Reads that wait for a QUERY go on without it. */
static void let_go(struct transfer *transfer, enum read_outcome outcome)
{
	uint32_t slot = transfer->waits.head;

	while (slot != SLOT_NONE) {
		struct ticket *const ticket = &transfer->tickets[slot];

		slot = transfer->timed[slot].next;
		if (ticket->state != TICKET_QUERY)
			continue;
		transfer->counts.counters[TRANSFER_PRESSURE_BYPASSES] += outcome == READ_PRESSURE;
		transfer_wake_up(transfer, ticket, outcome);
		ticket_step(transfer, ticket, TICKET_ON_DETACH, NULL);
	}
}

static void observe(struct transfer *transfer, const struct pressure *seen)
{
	const struct watermarks *const marks = &transfer->limits.marks;
	const struct mark              jobs = { seen->queued_jobs, marks->jobs_high,
						marks->jobs_low };
	const struct mark bytes = { seen->queued_bytes, marks->bytes_high, marks->bytes_low };
	const struct mark age = { seen->oldest_ns, marks->age_high_ns, marks->age_low_ns };

	if (transfer->gate_closed) {
		transfer->gate_closed = !(opens(jobs) && opens(bytes) && opens(age));
		return;
	}
	if (!closes(jobs) && !closes(bytes) && !closes(age))
		return;
	transfer->gate_closed = true;
	transfer->counts.counters[TRANSFER_GATE_CLOSURES]++;
	let_go(transfer, READ_PRESSURE);
	backups_drop(transfer, BACKUP_PRESSURE);
}

void gate_apply(struct transfer *transfer, const struct tick *tick)
{
	observe(transfer, &tick->pressure);
	if (transfer->intent_new)
		let_go(transfer, READ_MAINTENANCE);
	transfer->intent_new = false;
	if (!tick->permits.storage)
		backups_drop(transfer, BACKUP_CLEANUP);
}

void transfer_set_intent(struct transfer *transfer, bool intent)
{
	transfer->intent_new = intent && (transfer->intent_new || !transfer->intent);
	transfer->intent = intent;
	if (intent)
		backups_drop(transfer, BACKUP_CLEANUP);
}

enum read_outcome transfer_closed(const struct transfer *transfer)
{
	if (transfer->gate_closed)
		return READ_PRESSURE;
	if (transfer->intent)
		return READ_MAINTENANCE;
	if (!transfer->permits.storage)
		return READ_FROZEN;
	return transfer->quarantined > 0 ? READ_QUARANTINE : READ_ASKED;
}
