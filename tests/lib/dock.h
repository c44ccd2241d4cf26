/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Device and a Host for copy engines: three groups in two Device buffers, every byte known.
 *
 *   0  K = 2, fields of 128 and 128 bytes, one a buffer       gathered
 *   1  K = 1, fields of 200 and 100 bytes, odd and unaligned  gathered
 *   2  K = 2, one field of 256 bytes without gaps             direct, and neighbours touch on the Host
 *
 * Four parents on either side, S = 512.  Beside the memory stands an image of what it must be, padding
 * included; both begin with different bytes everywhere.
 */
#ifndef LIB_DOCK_H
#define LIB_DOCK_H

#include "device/cpu.h"

#define DOCK_PARENTS 4u
#define DOCK_GROUPS 3u
#define DOCK_TICKETS 4u
#define DOCK_ROWS 16u
#define DOCK_BUFFER_BYTES 8192u
#define DOCK_HOST_BYTES (DOCK_PARENTS * 512u)

struct dock_memory {
	uint8_t device[2][DOCK_BUFFER_BYTES];
	uint8_t host[DOCK_HOST_BYTES];
};

struct dock {
	/* A line's alignment, as accelerators and arenas have it. */
	_Alignas(64) struct dock_memory memory;
	struct dock_memory image;
	struct layout      layout;
	struct arena_part  host;
	enum cpu_mode      mode;
	struct copier     *copier;
};

struct dock *dock_open(enum cpu_mode mode);
void         dock_close(struct dock *dock);

struct layout_spec dock_spec(void);
struct copier_options dock_options(struct dock *dock, void **buffers);

/* What a batch of one pair, clone or zero does, to the image. */
void dock_expect_pair(struct dock *dock, enum copier_stream stream, struct copier_pair pair);
void dock_expect_zero(struct dock *dock, struct copier_block block);
void dock_expect_clone(struct dock *dock, struct copier_clone clone);

/* Submit a batch of pairs, and expect them. */
void dock_submit(struct dock *dock, enum copier_stream stream, uint64_t ticket,
		 const struct copier_pair *pairs, uint32_t count);

/* Let all that was submitted happen. */
void dock_settle(struct dock *dock);

/* The next ticket of a stream, asserting that poll() says it. */
void dock_polls(struct dock *dock, enum copier_stream stream, uint64_t ticket);

/* Memory and image are equal, byte for byte. */
bool dock_is_as_expected(const struct dock *dock);

#endif
