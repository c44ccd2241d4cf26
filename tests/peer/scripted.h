/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that says what a test told it: RESP on a free loopback port, answered by a thread.
 *
 * Whatever logs in is let in.  Every other command gets the next answer of the script, and the last
 * one again and again.
 */
#ifndef PEER_SCRIPTED_H
#define PEER_SCRIPTED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

#define SCRIPTED_CLIENTS 16
#define SCRIPTED_ANSWERS 160

struct answer {
	const char *bytes; /* NULL: none, ever */
	size_t      count;
	bool        close; /* the connection, behind the bytes */
};

/* From a string literal. */
#define SAYS(text) { (text), sizeof(text) - 1, false }
#define SAYS_AND_CLOSES(text) { (text), sizeof(text) - 1, true }
#define SAYS_NOTHING { NULL, 0, false }

struct scripted {
	int             listener, port, stop; /* stop: an eventfd */
	pthread_t       thread;
	char            bytes[65536]; /* the thread's: what a client just said */
	struct os_mutex mutex; /* guards all below */
	struct answer   answers[SCRIPTED_ANSWERS];
	uint32_t        answer_count, next;
	uint32_t        accepted; /* connections so far */
	bool            lets_in;  /* PING, AUTH and SELECT are answered +OK, not by the script */
};

void scripted_start(struct scripted *scripted);
void scripted_stop(struct scripted *scripted);

/* From now on; the bytes are held until the next script. */
void     scripted_say(struct scripted *scripted, const struct answer *answers, uint32_t count,
		      bool lets_in);
uint32_t scripted_accepted(struct scripted *scripted);

#endif
