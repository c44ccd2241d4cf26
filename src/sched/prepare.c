/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage before an admission: what it would add to a prompt is considered once a request, and who
 * waits for it is woken.
 */
#include "sched/parts.h"

void storage_begin(struct sched *sched)
{
	if (!sched->transfer || !sched->delivered)
		return;
	transfer_begin(sched->transfer);
	sched->delivered = false;
}

void storage_tick(struct sched *sched, const struct tick *tick)
{
	if (sched->transfer)
		transfer_tick(sched->transfer, tick);
}

void storage_outputs(struct sched *sched)
{
	const struct transfer_outputs *out;

	if (!sched->transfer)
		return;
	out = transfer_out(sched->transfer);
	sched->plan.ops = out->ops;
	sched->plan.op_count = out->op_count;
	sched->delivered = true;
}

/* --- considering ------------------------------------------------------------------------------ */

static void consider(struct sched *sched, struct request *request)
{
	struct admission *const admission = &request->admission;
	const uint32_t          bound = request_bound(sched, request);
	struct transfer_ask     ask = { .request = request_slot(sched, request),
					.prompt = &admission->prompt,
					.space = &sched->space,
					.hashes = request->hashes,
					.page_count = bound / sched->options.page_tokens,
					.bound_tokens = bound };

	request_hash(sched, request);
	admission->storage_prepared = true;
	admission->prompt = request_prompt(sched, request);
	admission->asked_ns = sched->now_ns;
	admission->outcome =
		transfer_read(sched->transfer, &ask, &admission->lease, &admission->shortfall);
	if (admission->outcome == READ_ASKED)
		request_step(sched, request, REQUEST_ON_ASK);
}

/* Without the permit nobody is considered, and everybody may still be. */
void storage_prepare(struct sched *sched, const struct tick *tick)
{
	uint32_t slot;

	if (!sched->transfer || !tick->permits.storage || !sched->options.prefix_cache ||
	    sched->options.role == SCHED_DECODE)
		return;
	while ((slot = list_pop_head(&sched->unprepared, sched->unprepared_links)) != SLOT_NONE)
		consider(sched, &sched->requests[slot]);
}

/* --- the end of a wait ------------------------------------------------------------------------ */

static void wake(struct sched *sched, const struct transfer_wake *wake)
{
	struct request *const   request = &sched->requests[wake->request];
	struct admission *const admission = &request->admission;

	KVS_ASSERT_CMP(request->state, ==, REQUEST_PREFETCHING);
	KVS_ASSERT_CMP(admission->lease.id, ==, wake->lease.id);
	admission->outcome = wake->outcome;
	admission->shortfall = wake->shortfall;
	admission->wait_ns = sched->now_ns - admission->asked_ns;
	/* Only what is held moves along. */
	if (wake->outcome != READ_READY)
		admission->lease = (struct lease){ 0 };
	request_step(sched, request,
		     admission->continuation == CONTINUE_SUBMITTED ? REQUEST_ON_RESUME
								   : REQUEST_ON_RESUME_PEER);
}

void storage_wake(struct sched *sched)
{
	const struct transfer_outputs *out;
	uint32_t                       i;

	if (!sched->transfer)
		return;
	out = transfer_out(sched->transfer);
	for (i = 0; i < out->wake_count; i++)
		wake(sched, &out->wakes[i]);
}

void storage_forget(struct sched *sched, struct request *request)
{
	const uint32_t slot = request_slot(sched, request);

	if (list_is_linked(sched->unprepared_links, slot))
		list_remove(&sched->unprepared, sched->unprepared_links, slot);
}

void storage_drop_lease(struct sched *sched, struct request *request)
{
	if (request->admission.lease.id == 0)
		return;
	transfer_drop_lease(sched->transfer, request->admission.lease);
	request->admission.lease = (struct lease){ 0 };
}

bool storage_is_held(const struct sched *sched, const struct request *request)
{
	const struct admission *const admission = &request->admission;
	const uint64_t                hold_ns = sched->options.transfer.hold_ns;
	const uint64_t                since_ns = admission->asked_ns + admission->wait_ns;

	return admission->lease.id > 0 && sched->now_ns - since_ns < hold_ns;
}

bool storage_fetched(const struct sched *sched, const struct request *request, uint32_t group,
		     uint32_t block)
{
	return request->admission.lease.id > 0 &&
	       transfer_fetched(sched->transfer, request->admission.lease, group, block);
}
