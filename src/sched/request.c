/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h: the life of a request as a table. */
#include "sched/request.h"

#include <stdio.h>

#include "sched/parts.h"

typedef void act(struct sched *sched, struct request *request);

static void nothing(struct sched *sched, struct request *request)
{
	(void)sched;
	(void)request;
}

static void wait_for_peer(struct sched *sched, struct request *request)
{
	(void)sched;
	request->admission.continuation = CONTINUE_BOOTSTRAPPING;
}

static void wait_for_nobody(struct sched *sched, struct request *request)
{
	(void)sched;
	request->admission.continuation = CONTINUE_SUBMITTED;
}

static void land(struct sched *sched, struct request *request)
{
	(void)sched;
	request->computed = request->prefill;
}

/*
 * An edge to another state gives back what that one does not own.  FREE as a target ends the
 * request: its slot is free.
 */
static const struct edge {
	enum request_state from;
	enum request_event on;
	enum request_state to;
	act               *act;
} edges[] = {
	{ REQUEST_FREE,          REQUEST_ON_SUBMIT,       REQUEST_SUBMITTED,     nothing },
	{ REQUEST_FREE,          REQUEST_ON_SUBMIT_PEER,  REQUEST_BOOTSTRAPPING, nothing },
	{ REQUEST_BOOTSTRAPPING, REQUEST_ON_BOOTSTRAPPED, REQUEST_SUBMITTED,     nothing },
	{ REQUEST_BOOTSTRAPPING, REQUEST_ON_ASK,          REQUEST_PREFETCHING,   wait_for_peer },
	{ REQUEST_SUBMITTED,     REQUEST_ON_ASK,          REQUEST_PREFETCHING,   wait_for_nobody },
	{ REQUEST_PREFETCHING,   REQUEST_ON_BOOTSTRAPPED, REQUEST_PREFETCHING,   wait_for_nobody },
	{ REQUEST_PREFETCHING,   REQUEST_ON_RESUME,       REQUEST_SUBMITTED,     nothing },
	{ REQUEST_PREFETCHING,   REQUEST_ON_RESUME_PEER,  REQUEST_BOOTSTRAPPING, nothing },
	{ REQUEST_SUBMITTED,     REQUEST_ON_CHUNK,        REQUEST_PREFILLING,    nothing },
	{ REQUEST_SUBMITTED,     REQUEST_ON_LAST_CHUNK,   REQUEST_PREFILL_DONE,  nothing },
	{ REQUEST_PREFILLING,    REQUEST_ON_CHUNK,        REQUEST_PREFILLING,    nothing },
	{ REQUEST_PREFILLING,    REQUEST_ON_LAST_CHUNK,   REQUEST_PREFILL_DONE,  nothing },
	{ REQUEST_PREFILLING,    REQUEST_ON_PREFILLED,    REQUEST_PREFILL_DONE,  land },
	{ REQUEST_RETRACTED,     REQUEST_ON_CHUNK,        REQUEST_PREFILLING,    nothing },
	{ REQUEST_RETRACTED,     REQUEST_ON_LAST_CHUNK,   REQUEST_PREFILL_DONE,  nothing },
	{ REQUEST_PREFILL_DONE,  REQUEST_ON_DECODE,       REQUEST_DECODING,      nothing },
	{ REQUEST_DECODING,      REQUEST_ON_DECODE,       REQUEST_DECODING,      nothing },
	{ REQUEST_DECODING,      REQUEST_ON_RETRACT,      REQUEST_RETRACTED,     retract_image },
	{ REQUEST_PREFILL_DONE,  REQUEST_ON_RETRACT,      REQUEST_RETRACTED,     retract_image },
	{ REQUEST_DECODING,      REQUEST_ON_RELEASE,      REQUEST_SUBMITTED,     retract_release },
	{ REQUEST_PREFILL_DONE,  REQUEST_ON_RELEASE,      REQUEST_SUBMITTED,     retract_release },
	{ REQUEST_PREFILLING,    REQUEST_ON_RESTART,      REQUEST_RETRACTED,     retract_release },
	{ REQUEST_PREFILL_DONE,  REQUEST_ON_FINISH,       REQUEST_FINISHED,      finish_publish },
	{ REQUEST_DECODING,      REQUEST_ON_FINISH,       REQUEST_FINISHED,      finish_publish },
	{ REQUEST_RETRACTED,     REQUEST_ON_FINISH,       REQUEST_FINISHED,      nothing },
	{ REQUEST_BOOTSTRAPPING, REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_SUBMITTED,     REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_PREFETCHING,   REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_PREFILLING,    REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_PREFILL_DONE,  REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_DECODING,      REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_RETRACTED,     REQUEST_ON_ABORT,        REQUEST_FINISHED,      nothing },
	{ REQUEST_FINISHED,      REQUEST_ON_ERASE,        REQUEST_FREE,          nothing },
};

const char *request_state_name(enum request_state state)
{
	static const char *const names[REQUEST_STATE_COUNT] = {
		"FREE",         "BOOTSTRAPPING", "SUBMITTED", "PREFETCHING", "PREFILLING",
		"PREFILL_DONE", "DECODING",      "RETRACTED", "FINISHED"
	};

	return names[state];
}

const char *request_event_name(enum request_event event)
{
	static const char *const names[REQUEST_EVENT_COUNT] = {
		"SUBMIT",     "SUBMIT_PEER", "BOOTSTRAPPED", "ASK",     "RESUME",
		"RESUME_PEER", "CHUNK",      "LAST_CHUNK",   "PREFILLED", "DECODE",
		"RETRACT",    "RELEASE",     "RESTART",      "FINISH",  "ABORT",     "ERASE"
	};

	return names[event];
}

bool request_computes(enum request_state state)
{
	return state == REQUEST_PREFILLING || state == REQUEST_PREFILL_DONE ||
	       state == REQUEST_DECODING;
}

bool request_prepares(enum request_state state)
{
	return state == REQUEST_BOOTSTRAPPING || state == REQUEST_SUBMITTED ||
	       state == REQUEST_PREFETCHING;
}

static const struct edge *find(const struct request *request, enum request_event on)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(edges); i++) {
		if (edges[i].from == request->state && edges[i].on == on)
			return &edges[i];
	}
	return NULL;
}

bool request_can(const struct request *request, enum request_event on)
{
	return find(request, on);
}

/* The one place where what a request owns is given back. */
static void give_back(struct sched *sched, struct request *request, enum request_state to)
{
	if (!request_prepares(to)) {
		storage_forget(sched, request);
#ifndef KVS_MUTANT_FORGET_LEASE /* Planted bug: what a read holds stays held when its request has gone on. */
		storage_drop_lease(sched, request);
#endif
	}
	if (!request_computes(to))
		place_give_back(sched, request);
	if (to != REQUEST_RETRACTED)
		retract_drop_image(sched, request);
}

void request_step(struct sched *sched, struct request *request, enum request_event on)
{
	const struct edge *const edge = find(request, on);
	const uint32_t           slot = request_slot(sched, request);

	if (!edge) {
		KVS_PANIC("request \"%s\": no edge from %s on %s", request->id,
			  request_state_name(request->state), request_event_name(on));
	}
	edge->act(sched, request);
	/* It was served, or needs nothing any more. */
	if (sched->barrier == slot)
		sched->barrier = SLOT_NONE;
	give_back(sched, request, edge->to);
	if (edge->from != REQUEST_FREE)
		list_remove(&sched->lists[edge->from], sched->links, slot);
	request->state = edge->to; /* The only assignment to a request's state. */
	if (edge->to != REQUEST_FREE)
		list_push_tail(&sched->lists[edge->to], sched->links, slot);
}

void request_edges_print(char *buffer, size_t buffer_bytes)
{
	size_t used = 0;
	size_t i;

	buffer[0] = '\0';
	for (i = 0; i < ARRAY_COUNT(edges) && used < buffer_bytes; i++) {
		used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s -> %s on %s\n",
					 request_state_name(edges[i].from),
					 request_state_name(edges[i].to),
					 request_event_name(edges[i].on));
	}
}
