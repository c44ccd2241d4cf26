/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

char *text_printable(char *text)
{
	char *at;

	for (at = text; *at; at++) {
		const unsigned char here = (unsigned char)at[0], next = (unsigned char)at[1];

		if (iscntrl(here))
			*at = '?';
		/* U+0080 to U+009F in UTF-8: control characters to a terminal, too. */
		if (here == 0xc2 && next >= 0x80 && next <= 0x9f) {
			at[0] = '?';
			at[1] = '?';
		}
	}
	return text;
}

char *text_mask_secrets(char *text)
{
	static const char word[] = "password=";
	char             *at = text;

	while ((at = strstr(at, word))) {
		char *const  secret = at + strlen(word);
		const size_t bytes = strcspn(secret, "&\"");
		const size_t shown = bytes < 3 ? bytes : 3;

		memset(secret, '*', shown);
		memmove(secret + shown, secret + bytes, strlen(secret + bytes) + 1);
		at = secret + shown;
	}
	return text;
}

char *text_join(const char *const *words, const char *between, char *buffer, size_t bytes)
{
	size_t used = 0, i;

	buffer[0] = '\0';
	for (i = 0; words[i] && used < bytes; i++) {
		used += (size_t)snprintf(buffer + used, bytes - used, "%s%s", i ? between : "",
					 words[i]);
	}
	return buffer;
}

bool text_is_listed(const char *const *words, const char *word)
{
	for (; *words; words++) {
		if (strcmp(*words, word) == 0)
			return true;
	}
	return false;
}
