/* SPDX-License-Identifier: Apache-2.0 */
/* Guests of a yard in a few words: what a scenario does to them and sees of them (asserted by cmocka). */
#ifndef LIB_STAY_H
#define LIB_STAY_H

#include "base/err.h"
#include "guest.h"

/* Of two layers each. */
#define FULL_2           { "full", GROUP_FULL, 2, 0, 1 }
#define WINDOW_2(window) { "window", GROUP_WINDOW, 2, (window), 1 }

/* One yard at a time: what is counted lies in one place. */
struct yard *stay_open(const struct group_spec *groups, uint32_t group_count, uint32_t page,
		       uint32_t parents, uint32_t host_parents);
/* All blocks are back. */
void         stay_close(struct yard *yard);

/* Tokens first, first + 1, ... */
void stay_prompt(struct yard *yard, struct guest *guest, uint64_t id, int32_t first, uint32_t count);
/* The next chunk or step, which must fit; the tokens that it computes. */
uint32_t stay_step(struct yard *yard, struct guest *guest, uint32_t budget);
/* Steps until it decodes. */
void stay_prefill(struct yard *yard, struct guest *guest, uint32_t budget);

/* Parents that are to be had. */
uint32_t stay_available(const struct yard *yard);
/* A row of a table, drawn: '0' for a hole, 'x' for a block. */
void stay_expect_row(const struct guest *guest, uint32_t group, const char *drawn);
uint32_t stay_holes(const struct guest *guest, uint32_t group);

#endif
