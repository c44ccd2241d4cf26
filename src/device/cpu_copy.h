/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of the CPU engine: one row after the other.  Private to the room. */
#ifndef DEVICE_CPU_COPY_H
#define DEVICE_CPU_COPY_H

#include "device/copier.h"

enum cpu_row_kind { CPU_ZERO, CPU_PAIR, CPU_CLONE };

struct cpu_row {
	enum cpu_row_kind kind;
	uint32_t          group;
	uint32_t          device_block; /* written, but for a SAVE's */
	uint32_t          other;        /* the Host block of a pair, the source of a clone */
};

/* Rows in a ring: row i of a batch is at[(first + i) % capacity]. */
struct cpu_rows {
	const struct cpu_row *at;
	uint32_t              capacity;
	uint64_t              first;
	uint32_t              count;
};

/* Adds what was moved to the figures.  When it returns, the next to lock what the caller unlocks sees all. */
void cpu_copy(const struct copier *copier, enum copier_stream stream, const struct cpu_rows *rows,
	      struct copier_stats *stats);

#endif
