/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that a bench keeps beside it and that says lines: answers, which begin with "=", its failure,
 * which begins with "!", and talk, which is kept for the sentence about its end.
 *
 * Limits   A line longer than the buffer is cut.  Its output is a pipe: who does not listen to it now and
 *          then stops it.
 * Threads  One.
 */
#ifndef APP_BENCH_TALK_H
#define APP_BENCH_TALK_H

#include "base/err.h"
#include "os/os.h"

struct bench_talk {
	struct os_process process; /* pid 0: none */
	const char       *name;    /* for sentences */
	char              text[2048]; /* of it heard and not yet understood */
	size_t            used;
	char              said[160];  /* the last thing, or its failure */
	bool              failed;     /* it was its failure */
};

/* fed: it obeys bench_talk_say().  name is held. */
int bench_talk_start(struct bench_talk *talk, const char *name, char *const argv[], bool fed,
		     struct kvs_error *err);

/**
 * Wait for its next answer, without the "=" and its blank.
 *
 * Errors  -EIO        it failed, or ended: its last words;
 *         -ETIMEDOUT  nothing within timeout_ns.
 */
int bench_talk_hear(struct bench_talk *talk, uint64_t timeout_ns, char *ret_answer, size_t room,
		    struct kvs_error *err);

/* Read what is there; false when it has ended. */
bool bench_talk_drain(struct bench_talk *talk);

int bench_talk_say(struct bench_talk *talk, const char *line, struct kvs_error *err);

void bench_talk_end(struct bench_talk *talk);

#endif
