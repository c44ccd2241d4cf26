/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvstrata: KV-cache storage for LLM inference in three strata.
 *
 * All that an engine needs, in one include.  Authors of a backend include kvstrata/store.h, authors
 * of a policy kvstrata/policy.h.
 */
#ifndef KVSTRATA_KVSTRATA_H
#define KVSTRATA_KVSTRATA_H

#include <kvstrata/base.h>
#include <kvstrata/manager.h>

#endif
