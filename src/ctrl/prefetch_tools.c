/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is made of, and how it gives back what it holds: the ledger's bit first, then that. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "ctrl/prefetch_parts.h"

/* --- open and close --------------------------------------------------------------------------- */

int prefetch_run_open(struct prefetch_run *run, uint32_t request_keys)
{
	const size_t words = bits_words(request_keys);

	*run = (struct prefetch_run){ .state = RUN_OVER };
	run->have = calloc(words, sizeof(*run->have));
	run->loaded = calloc(words, sizeof(*run->loaded));
	run->asked = calloc(words, sizeof(*run->asked));
	run->usable = calloc(words, sizeof(*run->usable));
	run->keep = calloc(words, sizeof(*run->keep));
	run->staged = calloc(words, sizeof(*run->staged));
	run->found = calloc(request_keys, sizeof(*run->found));
	run->from = calloc(request_keys, sizeof(*run->from));
	run->spans = calloc(request_keys, sizeof(*run->spans));
	if (run->have && run->loaded && run->asked && run->usable && run->keep && run->staged &&
	    run->found && run->from && run->spans)
		return 0;
	prefetch_run_close(run);
	return -ENOMEM;
}

void prefetch_run_close(struct prefetch_run *run)
{
	free(run->spans);
	free(run->from);
	free(run->found);
	free(run->staged);
	free(run->keep);
	free(run->usable);
	free(run->asked);
	free(run->loaded);
	free(run->have);
	*run = (struct prefetch_run){ 0 };
}

int prefetch_tools_open(struct prefetch_tools *tools, uint32_t request_keys)
{
	*tools = (struct prefetch_tools){ 0 };
	tools->index = calloc(request_keys, sizeof(*tools->index));
	tools->keys = calloc(request_keys, sizeof(*tools->keys));
	tools->found = calloc(request_keys, sizeof(*tools->found));
	tools->words = calloc(bits_words(request_keys), sizeof(*tools->words));
	tools->from = calloc(request_keys, sizeof(*tools->from));
	tools->spans = calloc(request_keys, sizeof(*tools->spans));
	tools->rc = calloc(request_keys, sizeof(*tools->rc));
	if (tools->index && tools->keys && tools->found && tools->words && tools->from &&
	    tools->spans && tools->rc)
		return 0;
	prefetch_tools_close(tools);
	return -ENOMEM;
}

void prefetch_tools_close(struct prefetch_tools *tools)
{
	free(tools->rc);
	free(tools->spans);
	free(tools->from);
	free(tools->words);
	free(tools->found);
	free(tools->keys);
	free(tools->index);
	*tools = (struct prefetch_tools){ 0 };
}

/* --- giving back ------------------------------------------------------------------------------ */

uint32_t run_gather(const struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		    uint32_t adapter)
{
	uint32_t count = 0, i;

	for (i = 0; i < run->ask->key_count; i++) {
		if (!pick(run, i, adapter))
			continue;
		tools->keys[count] = run->ask->keys[i];
		tools->index[count++] = i;
	}
	return count;
}

bool run_pick_found(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	return run->found[key] >> adapter & 1;
}

bool run_pick_loading(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	return bits_test(run->staged, key) && run->from[key] == adapter;
}

void run_unstage(struct prefetch_run *run, uint32_t key)
{
	KVS_ASSERT(bits_test(run->staged, key));
	bits_clear(run->staged, key);
	run->bytes -= run->ask->bytes[key];
}

void run_unlock_store(struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		      uint32_t adapter)
{
	uint32_t count, i;

	if (run->tasks[adapter].lock_count == 0)
		return;
	count = run_gather(run, tools, pick, adapter);
	if (count == 0)
		return;
	for (i = 0; i < count; i++)
		run->found[tools->index[i]] &= ~(UINT64_C(1) << adapter);
	run->tasks[adapter].lock_count -= count;
	tools->hands->unlock_store(tools->arg, adapter, tools->keys, count);
}

void run_discard(struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		 uint32_t adapter)
{
	const uint32_t count = run_gather(run, tools, pick, adapter);
	uint32_t       i;

	if (count == 0)
		return;
	for (i = 0; i < count; i++)
		run_unstage(run, tools->index[i]);
	tools->hands->discard(tools->arg, run->ask, tools->keys, count);
}
