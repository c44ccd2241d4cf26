/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance in one row of the usual table. */
#include "conf/nearest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static size_t edits_between(const char *from, size_t from_chars, const char *to, size_t to_chars)
{
	size_t row[NEAREST_CHARS_MAX + 1];
	size_t i, j;

	for (j = 0; j <= to_chars; j++)
		row[j] = j;
	for (i = 1; i <= from_chars; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (j = 1; j <= to_chars; j++) {
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
				       diagonal + (from[i - 1] != to[j - 1]));
			diagonal = above;
		}
	}
	return row[to_chars];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	*nearest = (struct nearest){ .word = word };
}

void nearest_offer(struct nearest *nearest, const char *known)
{
	size_t word_chars = strnlen(nearest->word, NEAREST_CHARS_MAX);
	size_t known_chars = strnlen(known, NEAREST_CHARS_MAX);
	size_t edits = edits_between(nearest->word, word_chars, known, known_chars);
	size_t longer = word_chars > known_chars ? word_chars : known_chars;

	if (edits * 3 > longer || (nearest->best[0] && edits >= nearest->edits))
		return;
	snprintf(nearest->best, sizeof(nearest->best), "%s", known);
	nearest->edits = edits;
}

char *nearest_hint(const struct nearest *nearest, const char *otherwise,
		   char buffer[NEAREST_HINT_BYTES])
{
	if (nearest->best[0])
		snprintf(buffer, NEAREST_HINT_BYTES, "did you mean %s?", nearest->best);
	else
		snprintf(buffer, NEAREST_HINT_BYTES, "%s", otherwise);
	return buffer;
}
