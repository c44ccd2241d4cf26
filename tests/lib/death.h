/* SPDX-License-Identifier: Apache-2.0 */
/* Actions that must end in a panic, watched from outside. */
#ifndef DEATH_H
#define DEATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Run act in a child; true when it aborted.  ret_said gets what it wrote to stderr, cut to
 * said_bytes and terminated; NULL when that does not matter.
 */
bool death_panics(void (*act)(void *arg), void *arg, char *ret_said, size_t said_bytes);

#endif
