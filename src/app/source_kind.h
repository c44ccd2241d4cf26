/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the sources: what a kind provides.  Each kind embeds struct source as its first member. */
#ifndef APP_SOURCE_KIND_H
#define APP_SOURCE_KIND_H

#include "app/source.h"

struct source_kind {
	int (*next)(struct source *source, struct source_request *ret_request,
		    struct kvs_error *err);
	bool (*ready)(struct source *source); /* NULL: always */
	double (*progress)(const struct source *source);
	int (*fd)(const struct source *source); /* NULL: none */
	void (*close)(struct source *source);
};

struct source {
	const struct source_kind *kind;
};

#endif
