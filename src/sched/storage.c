/* SPDX-License-Identifier: Apache-2.0 */
/* The transfer manager of a scheduler, and the tails that are known where there is none. */
#include <errno.h>
#include <stdlib.h>

#include "sched/parts.h"

/* Where a caller says nothing of tails, for there is no store. */
#define TAIL_HINTS 4096u
#define PROMPT_TAILS 8u

static int open_transfer(struct sched *sched, struct kvs_error *err)
{
	const struct sched_options *const options = &sched->options;
	const struct transfer_options     transfer = { .limits = options->transfer,
						       .cache = sched->cache,
						       .owner = &sched->owner,
						       .part = options->part,
						       .hostmap = options->hostmap,
						       .page_max = sched->page_max };

	sched->owner = options->owner ? *options->owner : owner_alone();
	return transfer_open(&transfer, &sched->transfer, err);
}

int storage_open(struct sched *sched, struct kvs_error *err)
{
	const struct transfer_limits *const limits = &sched->options.transfer;

	sched->tail_max = limits->tails_max > 0 ? limits->tails_max : PROMPT_TAILS;
	sched->tail_list = calloc(sched->tail_max, sizeof(*sched->tail_list));
	if (!sched->tail_list)
		return err_set(err, -ENOMEM, "tails_max: no memory for %u tails", sched->tail_max);
	if (sched->options.with_store)
		return open_transfer(sched, err);
	return tails_open(&sched->tails,
			  limits->tail_hint_max > 0 ? limits->tail_hint_max : TAIL_HINTS,
			  sched->options.page_tokens, err);
}

void storage_close(struct sched *sched)
{
	transfer_close(sched->transfer);
	sched->transfer = NULL;
	tails_close(&sched->tails);
	free(sched->tail_list);
	sched->tail_list = NULL;
}

size_t storage_bytes(const struct sched *sched)
{
	return sched->tail_max * sizeof(*sched->tail_list) +
	       (sched->transfer ? transfer_bytes(sched->transfer) : tails_bytes(&sched->tails));
}

void storage_published(struct sched *sched, const struct cell_name *name)
{
	if (sched->transfer)
		transfer_published(sched->transfer, name);
}

void storage_offer(struct sched *sched, const struct cell_name *name)
{
	if (sched->transfer)
		transfer_offer(sched->transfer, name);
}

const struct tails *storage_tails(const struct sched *sched)
{
	return sched->transfer ? transfer_tails(sched->transfer) : &sched->tails;
}

void storage_record_tail(struct sched *sched, const struct prefix_hash *prior, uint32_t token_count,
			 const struct prefix_hash *hash)
{
	if (sched->transfer)
		transfer_record_tail(sched->transfer, &sched->space, prior, token_count, hash);
	else
		tails_record(&sched->tails, &sched->space, prior, token_count, hash);
}

void storage_set_intent(struct sched *sched, bool intent)
{
	if (sched->transfer)
		transfer_set_intent(sched->transfer, intent);
}

const char *storage_in_the_way(const struct sched *sched)
{
	struct transfer_load load;

	if (!sched->transfer || transfer_is_quiet(sched->transfer))
		return NULL;
	load = transfer_load(sched->transfer);
	if (load.quarantined > 0)
		return "bytes in quarantine";
	return load.waiting > 0 ? "storage operations" : "Ready holds";
}

void storage_clear(struct sched *sched)
{
	if (sched->transfer)
		KVS_ASSERT(transfer_clear(sched->transfer));
	else
		tails_clear(&sched->tails);
}

struct transfer_load storage_load(const struct sched *sched)
{
	return sched->transfer ? transfer_load(sched->transfer) : (struct transfer_load){ 0 };
}

uint64_t storage_wake_ns(const struct sched *sched)
{
	return sched->transfer ? transfer_wake_ns(sched->transfer) : UINT64_MAX;
}

void storage_audit(const struct sched *sched)
{
	if (sched->transfer)
		transfer_audit(sched->transfer);
	else
		tails_audit(&sched->tails);
}
