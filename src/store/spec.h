/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store specs, taken apart: KIND:REST?key=value&key=value.
 *
 * A spec is a user's input: each error names the field, the value and the rule.
 */
#ifndef STORE_SPEC_H
#define STORE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "base/err.h"

/* A path of PATH_MAX and some options. */
#define SPEC_BYTES_MAX 4608u
#define SPEC_OPTIONS_MAX 24u

/* All strings lie in text, so a spec is not copied by assignment. */
struct store_spec {
	char                    text[SPEC_BYTES_MAX];
	const char             *kind;
	const char             *place; /* "" when there is none */
	struct kvs_store_option options[SPEC_OPTIONS_MAX];
	uint32_t                option_count;
};

int spec_parse(const char *text, struct store_spec *ret_spec, struct kvs_error *err);

/* Every key is one of known (NULL-terminated; NULL: any), and none comes twice. */
int spec_check(const struct store_spec *spec, const char *const *known, struct kvs_error *err);

/* What follows reads what a store was opened with.  The value of an option, or NULL. */
const char *spec_option(const struct kvs_store_config *config, const char *key);

/* Read a size that field `store.KEY` shows as text. */
int spec_size(const char *key, const char *text, uint64_t *ret_bytes, struct kvs_error *err);

/* Read an option, which leaves *ret as it is when it is not given. */
int spec_count(const struct kvs_store_config *config, const char *key, uint64_t *ret_count,
	       struct kvs_error *err);
int spec_duration(const struct kvs_store_config *config, const char *key, uint64_t *ret_ns,
		  struct kvs_error *err);
/* One of two words; the first is true. */
int spec_word(const struct kvs_store_config *config, const char *key, const char *yes,
	      const char *no, bool *ret_yes, struct kvs_error *err);
int spec_switch(const struct kvs_store_config *config, const char *key, bool *ret_on,
		struct kvs_error *err);

#endif
