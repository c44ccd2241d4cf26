/* SPDX-License-Identifier: Apache-2.0 */
/* Codes in words: the public kvs_strerror(), on the lowest floor because every floor reports with it. */
#include <stddef.h>
#include <string.h>

#include "base/err.h"

static const struct {
	int         code;
	const char *sentence;
} own_codes[] = {
#define KVS_SENTENCE(name, value, text) { name, text },
	KVS_ERRORS(KVS_SENTENCE)
#undef KVS_SENTENCE
};

const char *kvs_strerror(int code)
{
	const char *sentence = NULL;
	size_t      i;

	for (i = 0; i < ARRAY_COUNT(own_codes); i++) {
		if (own_codes[i].code == code)
			return own_codes[i].sentence;
	}
	/* Unlike strerror(), its sentences are constants, so any thread may keep them. */
	if (code <= 0 && code > -4096)
		sentence = strerrordesc_np(-code);
	return sentence ? sentence : "unknown error code";
}
