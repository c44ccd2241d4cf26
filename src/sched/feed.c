/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine did: events, applied at once and in order. */
#include <string.h>

#include "sched/parts.h"

static const char *kind_name(enum sched_event_kind kind)
{
	static const char *const names[SCHED_EVENT_KINDS] = {
		"EXTEND",       "FINISH",    "ABORT",       "RESERVE",
		"BOOTSTRAPPED", "PREFILLED", "HANDED_OVER", "PEER_FAILED"
	};

	return names[kind];
}

static int unfit(const struct request *request, const struct sched_event *event,
		 struct kvs_error *err)
{
	return err_set(err, KVS_E_INVALID, "event: %s of \"%s\"; does not fit %s",
		       kind_name(event->kind), request->id, request_state_name(request->state));
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* How many a forward may have given at most: behind a prompt one, else what a step computes. */
static uint32_t extend_max(const struct sched *sched, const struct request *request)
{
	return request->token_count == request->prefill ? 1 : sched->options.decode_tokens;
}

static int check_tokens(const struct sched *sched, const struct request *request,
			const struct sched_event *event, uint32_t most, struct kvs_error *err)
{
	uint32_t i;

	if (event->token_count == 0 || event->token_count > most || !event->tokens) {
		return err_set(err, KVS_E_INVALID,
			       "token_count: %u in %s of \"%s\"; must be 1 to %u",
			       event->token_count, kind_name(event->kind), request->id, most);
	}
	if (event->token_count > sched->options.request_tokens_max - request->token_count) {
		return err_set(err, KVS_E_INVALID,
			       "token_count: %u more in %s of \"%s\"; it has %u, request_tokens_max is %u",
			       event->token_count, kind_name(event->kind), request->id,
			       request->token_count, sched->options.request_tokens_max);
	}
	for (i = 0; i < event->token_count; i++) {
		if (event->tokens[i] < 0) {
			return err_set(err, KVS_E_INVALID,
				       "tokens: %d in %s of \"%s\"; must not be negative",
				       event->tokens[i], kind_name(event->kind), request->id);
		}
	}
	return 0;
}

static void append(struct request *request, const struct sched_event *event)
{
	memcpy(request->tokens + request->token_count, event->tokens,
	       event->token_count * sizeof(*event->tokens));
	request->token_count += event->token_count;
}

static int extend(struct sched *sched, struct request *request, const struct sched_event *event,
		  struct kvs_error *err)
{
	int rc;

	if ((request->state != REQUEST_PREFILL_DONE && request->state != REQUEST_DECODING) ||
	    request->pending == 0)
		return unfit(request, event, err);
	rc = check_tokens(sched, request, event, extend_max(sched, request), err);
	if (rc < 0)
		return rc;
	append(request, event);
	request->pending--;
	return 0;
}

/* --- the others ------------------------------------------------------------------------------- */

static int end_with(struct sched *sched, struct request *request, const struct sched_event *event,
		    enum request_event on, enum sched_end end, struct kvs_error *err)
{
	if (!request_can(request, on))
		return unfit(request, event, err);
	request->end = end;
	request_step(sched, request, on);
	return 0;
}

static int reserve(const struct sched *sched, struct request *request,
		   const struct sched_event *event, struct kvs_error *err)
{
	if (request->state != REQUEST_DECODING)
		return unfit(request, event, err);
	if (event->reserve > sched->options.request_tokens_max) {
		return err_set(err, KVS_E_INVALID, "reserve: %u for \"%s\"; must be at most %u",
			       event->reserve, request->id, sched->options.request_tokens_max);
	}
	request->reserve = event->reserve;
	return 0;
}

/* Comes once, but may come late; in other states it says nothing new. */
static int bootstrapped(struct sched *sched, struct request *request)
{
	if (request_can(request, REQUEST_ON_BOOTSTRAPPED))
		request_step(sched, request, REQUEST_ON_BOOTSTRAPPED);
	return 0;
}

static int prefilled(struct sched *sched, struct request *request, const struct sched_event *event,
		     struct kvs_error *err)
{
	int rc;

	if (request->state == REQUEST_PREFILL_DONE || request->state == REQUEST_DECODING)
		return 0;
	if (request->state != REQUEST_PREFILLING || !request->remote)
		return unfit(request, event, err);
	rc = check_tokens(sched, request, event, 1, err);
	if (rc < 0)
		return rc;
	append(request, event);
	request_step(sched, request, REQUEST_ON_PREFILLED);
	return 0;
}

static int hand_over(struct sched *sched, struct request *request, const struct sched_event *event,
		     struct kvs_error *err)
{
	if (sched->options.role != SCHED_PREFILL)
		return unfit(request, event, err);
	return end_with(sched, request, event, REQUEST_ON_FINISH, SCHED_FINISHED, err);
}

static int apply(struct sched *sched, struct request *request, const struct sched_event *event,
		 struct kvs_error *err)
{
	switch (event->kind) {
	case SCHED_EXTEND:
		return extend(sched, request, event, err);
	case SCHED_FINISH:
		return end_with(sched, request, event, REQUEST_ON_FINISH, SCHED_FINISHED, err);
	case SCHED_ABORT:
		return end_with(sched, request, event, REQUEST_ON_ABORT, SCHED_ABORTED, err);
	case SCHED_RESERVE:
		return reserve(sched, request, event, err);
	case SCHED_BOOTSTRAPPED:
		return bootstrapped(sched, request);
	case SCHED_PREFILLED:
		return prefilled(sched, request, event, err);
	case SCHED_HANDED_OVER:
		return hand_over(sched, request, event, err);
	case SCHED_PEER_FAILED:
		return end_with(sched, request, event, REQUEST_ON_ABORT, SCHED_FAILED, err);
	case SCHED_EVENT_KINDS:
		break;
	}
	return err_set(err, KVS_E_INVALID, "kind: %d of \"%s\" is no event", (int)event->kind,
		       request->id);
}

int sched_feed(struct sched *sched, const struct sched_event *events, uint32_t count,
	       uint32_t *ret_applied, struct kvs_error *err)
{
	uint32_t i;
	int      rc = 0;

	storage_begin(sched);
	for (i = 0; i < count; i++) {
		struct request *const request =
			events[i].id ? request_find(sched, events[i].id) : NULL;

		/* It may have ended by itself, in this round or in an earlier one. */
		if (request && request->state != REQUEST_FINISHED)
			rc = apply(sched, request, &events[i], err);
		if (rc < 0)
			break;
	}
	if (ret_applied)
		*ret_applied = i;
	return rc;
}
