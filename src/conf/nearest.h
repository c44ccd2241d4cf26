/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": the known word that is fewest edits away from a misspelt one.
 *
 * An edit inserts, deletes or replaces one character.  A word is only suggested when at most a
 * third of it would change: a wild guess helps nobody.
 */
#ifndef CONF_NEAREST_H
#define CONF_NEAREST_H

#include <stddef.h>

/* Longer words are compared by this many characters. */
#define NEAREST_CHARS_MAX 64u

struct nearest {
	const char *word;
	char        best[NEAREST_CHARS_MAX + 1]; /* empty when none is near */
	size_t      edits;                       /* from word to best */
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *known);

#define NEAREST_HINT_BYTES 96u
/* "did you mean BEST?", or `otherwise` when nothing is near; returns the buffer. */
char *nearest_hint(const struct nearest *nearest, const char *otherwise,
		   char buffer[NEAREST_HINT_BYTES]);

#endif
