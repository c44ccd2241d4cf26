/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The items of a list option, "64KiB,1MiB": cut in one place, so that every list obeys one grammar.
 *
 * Commas stand between items and nowhere else: none is empty, neither first nor last.  conf_read()
 * refuses such a list; who is given one by somebody else gets its empty items, and refuses them like
 * any other that means nothing.
 */
#ifndef CONF_ITEMS_H
#define CONF_ITEMS_H

#include <stdbool.h>

#include "base/err.h"

/* With its end: a key, which is the longest that any list has. */
#define ITEMS_BYTES 128u

/* What is done with an item: 0, or the refusal, which ends the list. */
typedef int items_add(void *ctx, const char *item, struct kvs_error *err);

/* Whether no item is empty. */
bool items_whole(const char *list);

/**
 * Add item by item, in order; of "" the one that is empty.
 *
 * label   what a sentence calls the list: "--bytes".
 * Errors  KVS_E_INVALID for an item of ITEMS_BYTES or more, and whatever add() returns.
 */
int items_each(const char *label, const char *list, items_add *add, void *ctx,
	       struct kvs_error *err);

#endif
