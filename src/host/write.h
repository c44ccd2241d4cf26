/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of a writer have in common. */
#ifndef HOST_WRITE_H
#define HOST_WRITE_H

#include "host/rows.h"

struct write {
	struct host_writer writer;
	int               *rc;
};

/* Served with a struct write: of rows with rc 0, what the writer stages is dropped. */
void write_undo(struct visit *visit, const struct bunch *bunch, void *write);

#endif
