/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a pipe, one at a time. */
#include "app/bench_talk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int bench_talk_start(struct bench_talk *talk, const char *name, char *const argv[], bool fed,
		     struct kvs_error *err)
{
	int rc;

	*talk = (struct bench_talk){ .process = { .input = -1, .output = -1 }, .name = name };
	rc = fed ? os_process_start_fed(argv, &talk->process) : os_process_start(argv, &talk->process);
	if (rc == 0)
		return 0;
	return err_set(err, rc, "%s: \"%s\" cannot be run: %s", name, argv[0], kvs_strerror(rc));
}

/* What is not an answer; of several, a failure counts, else the last. */
static void remember(struct bench_talk *talk, const char *line)
{
	const bool failure = line[0] == '!';

	if (talk->failed || !line[0])
		return;
	talk->failed = failure;
	snprintf(talk->said, sizeof(talk->said), "%.*s", (int)sizeof(talk->said) - 1,
		 line + (failure ? strspn(line, "! ") : 0));
}

/* The next whole line, terminated in place; NULL when there is none yet. */
static char *next_line(struct bench_talk *talk)
{
	char *const end = memchr(talk->text, '\n', talk->used);

	if (!end)
		return NULL;
	*end = '\0';
	return talk->text;
}

static void forget_line(struct bench_talk *talk, const char *line)
{
	const size_t bytes = strlen(line) + 1;

	talk->used -= bytes;
	memmove(talk->text, talk->text + bytes, talk->used);
}

/* False at its end. */
static bool read_some(struct bench_talk *talk)
{
	ssize_t done;

	if (talk->used == sizeof(talk->text) - 1)
		talk->text[talk->used - 1] = '\n';
	else if ((done = os_process_read(&talk->process, talk->text + talk->used,
					 sizeof(talk->text) - 1 - talk->used)) > 0)
		talk->used += (size_t)done;
	else
		return false;
	return true;
}

/* True with an answer; all talk before it is done with. */
static bool take_answer(struct bench_talk *talk, char *ret_answer, size_t room)
{
	char *line;
	bool  found = false;

	while (!found && (line = next_line(talk))) {
		found = line[0] == '=' && room > 0;
		if (found)
			snprintf(ret_answer, room, "%s", line + strspn(line, "= "));
		else
			remember(talk, line);
		forget_line(talk, line);
	}
	return found;
}

static int failed(const struct bench_talk *talk, struct kvs_error *err)
{
	return err_set(err, -EIO, "%s: %s", talk->name,
		       talk->said[0] ? talk->said : "ended without a word");
}

int bench_talk_hear(struct bench_talk *talk, uint64_t timeout_ns, char *ret_answer, size_t room,
		    struct kvs_error *err)
{
	const uint64_t deadline_ns = os_until_ns(timeout_ns);

	while (!take_answer(talk, ret_answer, room)) {
		const uint64_t now_ns = os_now_ns();

		if (talk->failed)
			return failed(talk, err);
		if (now_ns >= deadline_ns) {
			return err_set(err, -ETIMEDOUT, "%s: does not answer: %s", talk->name,
				       talk->said);
		}
		if (os_wait_readable(&talk->process.output, 1, deadline_ns - now_ns) &&
		    !read_some(talk))
			return failed(talk, err);
	}
	return 0;
}

bool bench_talk_drain(struct bench_talk *talk)
{
	bool alive = true;

	while (alive && talk->process.pid > 0 && os_stream_ready(talk->process.output)) {
		alive = read_some(talk);
		(void)take_answer(talk, NULL, 0);
	}
	return alive && talk->process.pid > 0;
}

int bench_talk_say(struct bench_talk *talk, const char *line, struct kvs_error *err)
{
	const int rc = os_process_write(&talk->process, line, strlen(line));

	if (rc < 0) {
		while (read_some(talk))
			(void)take_answer(talk, NULL, 0);
		return failed(talk, err);
	}
	return 0;
}

void bench_talk_end(struct bench_talk *talk)
{
	os_process_kill(&talk->process);
}
