/* SPDX-License-Identifier: Apache-2.0 */
/* Errors travel up as values; panics end the process here, and only here. */
#include "base/err.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(void (*)(const char *)) panic_hook;

int err_set(struct kvs_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err) {
		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
	}
	return code;
}

void err_prefix(struct kvs_error *err, const char *format, ...)
{
	char    sentence[sizeof(err->message)];
	va_list args;
	size_t  used, length;

	if (!err)
		return;
	memcpy(sentence, err->message, sizeof(sentence));
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message) - 2, format, args);
	va_end(args);

	used = strlen(err->message);
	memcpy(err->message + used, ": ", 3);
	used += 2;
	length = strnlen(sentence, sizeof(err->message) - 1 - used);
	memcpy(err->message + used, sentence, length);
	err->message[used + length] = '\0';
}

void panic_hook_set(void (*hook)(const char *message))
{
	atomic_store(&panic_hook, hook);
}

void panic_at(const char *file, int line, const char *format, ...)
{
	char    message[512];
	va_list args;
	void (*hook)(const char *);

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	fprintf(stderr, "kvstrata: %s:%d: %s\n", file, line, message);

	/* Taken out before it runs: a hook that panics must not call itself. */
	hook = atomic_exchange(&panic_hook, NULL);
	if (hook)
		hook(message);
	abort();
}
