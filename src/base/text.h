/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: what a sentence quotes, and lists of words in it. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Control characters become '?': quoted input must not speak to the reader's terminal. */
char *text_printable(char *text);

/*
 * What follows "password=" up to the next & or the end becomes ***, in a text of a specification or
 * of a sentence that quotes one.  The text never grows.
 */
char *text_mask_secrets(char *text);

/* A NULL-terminated list of words, `between` between them, cut at the buffer's end; returns it. */
char *text_join(const char *const *words, const char *between, char *buffer, size_t bytes);

/* Whether a NULL-terminated list has this word. */
bool text_is_listed(const char *const *words, const char *word);

#endif
