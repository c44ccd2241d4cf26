/* SPDX-License-Identifier: Apache-2.0 */
#include "app/source.h"

#include "app/source_kind.h"

int source_next(struct source *source, struct source_request *ret_request, struct kvs_error *err)
{
	return source->kind->next(source, ret_request, err);
}

double source_progress(const struct source *source)
{
	return source->kind->progress(source);
}

void source_close(struct source *source)
{
	if (source)
		source->kind->close(source);
}
