/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watermarks of the pressure gate as text: "jobs=48/32,bytes=1GiB/512MiB,age=2s/1s".
 *
 * Each is HIGH/LOW: the gate closes when the observation reaches the high mark, and opens when all
 * are at their low ones or below.  What is not named closes nothing; "none" is no mark at all.
 */
#ifndef APP_REPLAY_MARKS_H
#define APP_REPLAY_MARKS_H

#include "transfer/transfer.h"

/* Errors: KVS_E_INVALID, "watermarks: " and the item. */
int replay_marks_parse(const char *text, struct watermarks *ret_marks, struct kvs_error *err);

#endif
