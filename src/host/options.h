/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand in host_options. */
#ifndef HOST_OPTIONS_H
#define HOST_OPTIONS_H

#include "host/host.h"

/* 0, or KVS_E_INVALID with field, value and rule. */
int options_check(const struct host_options *options, struct kvs_error *err);

#endif
