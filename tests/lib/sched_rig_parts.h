/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scheduler's rig share. */
#ifndef LIB_SCHED_RIG_PARTS_H
#define LIB_SCHED_RIG_PARTS_H

#include "sched_rig.h"

/* Bytes of a block that are rows, and bytes from one block to the next. */
uint64_t srig_block_bytes(const struct group_spec *group);
uint64_t srig_stride(const struct srig *rig, uint32_t group);
uint8_t *srig_device_block(const struct srig *rig, uint32_t group, uint32_t block);
uint8_t *srig_host_block(const struct srig *rig, uint32_t group, uint32_t block);

/* The copies of the last plan are under way; those up to an id run. */
void srig_take_copies(struct srig *rig);
void srig_run_copies(struct srig *rig, uint64_t up_to);
/* So are its ops. */
void srig_take_ops(struct srig *rig);
/* A forward gave so many tokens. */
void srig_grow(struct srig_request *request, uint32_t count);
/* A peer writes the rows of a prompt. */
void srig_land(struct srig *rig, const struct srig_request *request);

#endif
