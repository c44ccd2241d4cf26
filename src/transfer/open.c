/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and memory: everything that rounds use is taken here. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "transfer/parts.h"

/* --- limits ----------------------------------------------------------------------------------- */

static int check_least(const char *field, uint64_t value, struct kvs_error *err)
{
	if (value > 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: 0 admits nothing; use at least 1", field);
}

static int check_marks(const char *field, uint64_t high, uint64_t low, struct kvs_error *err)
{
	if (low < high || (high == 0 && low == 0))
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "marks of %s: low %llu is not below high %llu; both 0 turn them off", field,
		       (unsigned long long)low, (unsigned long long)high);
}

static int check_keys(const struct transfer_limits *limits, struct kvs_error *err)
{
	if (limits->keys_max == 0 || limits->keys_max > OP_KEYS_MAX) {
		return err_set(err, KVS_E_INVALID, "keys_max: %u is out of range; use 1 to %u",
			       limits->keys_max, OP_KEYS_MAX);
	}
	if (limits->put_keys_max == 0 || limits->put_keys_max > limits->keys_max) {
		return err_set(err, KVS_E_INVALID, "put_keys_max: %u is out of range; use 1 to %u",
			       limits->put_keys_max, limits->keys_max);
	}
	return 0;
}

static int check_names(const char *field, uint32_t value, struct kvs_error *err)
{
	if (value <= TRANSFER_NAMES_MAX)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %u is out of range; use at most %u", field, value,
		       TRANSFER_NAMES_MAX);
}

/* Where others have a limit too: agreement of ops, the cache of prompts. */
static int check_most(const struct transfer_options *options, struct kvs_error *err)
{
	const uint32_t pages = cache_prompt_pages(options->cache);

	if (options->limits.op_credits > AGREE_OPS_MAX) {
		return err_set(err, KVS_E_INVALID, "op_credits: %u is out of range; use 1 to %u",
			       options->limits.op_credits, AGREE_OPS_MAX);
	}
	if (options->page_max > pages) {
		return err_set(err, KVS_E_INVALID,
			       "page_max: %u is out of range; the cache takes prompts of up to %u pages",
			       options->page_max, pages);
	}
	return 0;
}

static int check_limits(const struct transfer_options *options, struct kvs_error *err)
{
	const struct transfer_limits *const limits = &options->limits;
	const struct watermarks *const      marks = &limits->marks;
	const struct {
		const char *field;
		uint64_t    value;
	} least[] = { { "op_credits", limits->op_credits },
		      { "host_credits", limits->host_credits },
		      { "backup_max", limits->backup_max },
		      { "tail_hint_max", limits->tail_hint_max },
		      { "tails_max", limits->tails_max },
		      { "page_max", options->page_max } };
	const struct {
		const char *field;
		uint32_t    value;
	} names[] = { { "backup_max", limits->backup_max },
		      { "negative_max", limits->negative_max },
		      { "history_max", limits->history_max },
		      { "tail_hint_max", limits->tail_hint_max } };
	int    rc = 0;
	size_t i;

	for (i = 0; i < ARRAY_COUNT(least) && rc == 0; i++)
		rc = check_least(least[i].field, least[i].value, err);
	for (i = 0; i < ARRAY_COUNT(names) && rc == 0; i++)
		rc = check_names(names[i].field, names[i].value, err);
	if (rc == 0)
		rc = check_most(options, err);
	if (rc == 0)
		rc = check_keys(limits, err);
	if (rc == 0)
		rc = check_marks("jobs", marks->jobs_high, marks->jobs_low, err);
	if (rc == 0)
		rc = check_marks("bytes", marks->bytes_high, marks->bytes_low, err);
	if (rc == 0)
		rc = check_marks("age", marks->age_high_ns, marks->age_low_ns, err);
	return rc;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Counted, and cleared; NULL when there is none. */
static void *take(struct transfer *transfer, size_t count, size_t bytes)
{
	transfer->bytes += count * bytes;
	return calloc(count, bytes);
}

static int open_ticket(struct transfer *transfer, struct ticket *ticket)
{
	const struct transfer_limits *const limits = &transfer->limits;

	ticket->watch = SLOT_NONE;
	ticket->tails = take(transfer, limits->tails_max, sizeof(*ticket->tails));
	ticket->asked = take(transfer, limits->keys_max, sizeof(*ticket->asked));
	ticket->sources = take(transfer, limits->put_keys_max, sizeof(*ticket->sources));
	ticket->keys = take(transfer, limits->keys_max, sizeof(*ticket->keys));
	ticket->spans = take(transfer, limits->keys_max, sizeof(*ticket->spans));
	ticket->reservation.rows =
		take(transfer, limits->keys_max, sizeof(*ticket->reservation.rows));
	ticket->reservation.row_max = limits->keys_max;
	if (!ticket->tails || !ticket->asked || !ticket->sources || !ticket->keys ||
	    !ticket->spans || !ticket->reservation.rows)
		return -ENOMEM;
	return 0;
}

static int open_tickets(struct transfer *transfer)
{
	const uint32_t count = transfer->limits.op_credits;
	uint32_t       i;

	transfer->tickets = take(transfer, count, sizeof(*transfer->tickets));
	transfer->timed = take(transfer, count, sizeof(*transfer->timed));
	transfer->out.ops =
		take(transfer, (size_t)OPS_A_TICKET * count, sizeof(*transfer->out.ops));
	transfer->out.wakes = take(transfer, count, sizeof(*transfer->out.wakes));
	if (!transfer->tickets || !transfer->timed || !transfer->out.ops || !transfer->out.wakes)
		return -ENOMEM;
	list_links_init(transfer->timed, count);
	list_init(&transfer->waits);
	list_init(&transfer->holds);
	for (i = 0; i < count; i++) {
		if (open_ticket(transfer, &transfer->tickets[i]) < 0)
			return -ENOMEM;
	}
	if (slots_open(&transfer->slots, count) < 0)
		return -ENOMEM;
	return map_open(&transfer->ids, count, &transfer->tickets[0].op.op_id,
			sizeof(*transfer->tickets), sizeof(transfer->tickets[0].op.op_id));
}

static int open_watches(struct transfer *transfer)
{
	const uint32_t count = transfer->limits.op_credits;

	transfer->watches = take(transfer, count, sizeof(*transfer->watches));
	transfer->watching = take(transfer, count, sizeof(*transfer->watching));
	transfer->stirring = take(transfer, count, sizeof(*transfer->stirring));
	if (!transfer->watches || !transfer->watching || !transfer->stirring ||
	    slots_open(&transfer->watch_slots, count) < 0)
		return -ENOMEM;
	list_links_init(transfer->watching, count);
	list_links_init(transfer->stirring, count);
	list_init(&transfer->stirred);
	return map_open(&transfer->watch_map, count, transfer->watches, sizeof(*transfer->watches),
			sizeof(struct kvs_key));
}

static int open_scratch(struct transfer *transfer)
{
	const struct transfer_limits *const limits = &transfer->limits;
	const size_t places = (size_t)cache_total(transfer->cache, STRATUM_HOST) *
			      transfer->groups->packing_max;
	/* The readers of bits look at the word behind a page. */
	const size_t words = bits_words((size_t)transfer->page_max * transfer->groups->columns) + 1;

	transfer->fetched_by = take(transfer, places, sizeof(*transfer->fetched_by));
	transfer->putting = take(transfer, bits_words(places), sizeof(*transfer->putting));
	transfer->entries = take(transfer, transfer->page_max, sizeof(*transfer->entries));
	transfer->page_bits = take(transfer, words, sizeof(*transfer->page_bits));
	transfer->tail_bits = take(transfer, limits->tails_max, sizeof(*transfer->tail_bits));
	transfer->found = take(transfer, limits->tails_max, sizeof(*transfer->found));
	transfer->filled = take(transfer, limits->keys_max, sizeof(*transfer->filled));
	if (!transfer->fetched_by || !transfer->putting || !transfer->entries ||
	    !transfer->page_bits || !transfer->tail_bits || !transfer->found || !transfer->filled)
		return -ENOMEM;
	return 0;
}

static int open_rooms(struct transfer *transfer, struct kvs_error *err)
{
	const struct transfer_limits *const limits = &transfer->limits;
	const struct query_limits           query = { .page_max = transfer->page_max,
						      .tail_max = limits->tails_max,
						      .key_max = limits->keys_max,
						      .extension_min = limits->extension_min,
						      .lookahead_tokens =
							      limits->lookahead_tokens };
	int                                 rc;

	rc = query_open(&transfer->query, transfer->groups, &query, err);
	if (rc == 0)
		rc = reserver_open(&transfer->reserver, transfer->cache, limits->tails_max, err);
	if (rc == 0) {
		rc = tails_open(&transfer->tails, limits->tail_hint_max,
				transfer->groups->page_tokens, err);
	}
	return rc;
}

static int open_all(struct transfer *transfer, struct kvs_error *err)
{
	const struct transfer_limits *const limits = &transfer->limits;
	const int                           rc = open_rooms(transfer, err);

	if (rc < 0)
		return rc;
	if (open_tickets(transfer) < 0 || open_watches(transfer) < 0 ||
	    open_scratch(transfer) < 0 ||
	    roll_open(&transfer->negatives, limits->negative_max) < 0 ||
	    roll_open(&transfer->history, limits->history_max) < 0 ||
	    ring_open(&transfer->backups, limits->backup_max, sizeof(struct backup_candidate)) < 0)
		return err_set(err, -ENOMEM, "no memory for %u tickets", limits->op_credits);
	return 0;
}

int transfer_open(const struct transfer_options *options, struct transfer **ret_transfer,
		  struct kvs_error *err)
{
	struct transfer *transfer;
	int              rc = check_limits(options, err);

	if (rc < 0)
		return rc;
	KVS_ASSERT(cache_pool(options->cache, STRATUM_HOST) != NULL);
	KVS_ASSERT_CMP(options->hostmap->group_count, ==, cache_groups(options->cache)->count);
	transfer = calloc(1, sizeof(*transfer));
	if (!transfer)
		return err_set(err, -ENOMEM, "no memory for the transfer manager");
	*transfer = (struct transfer){ .limits = options->limits,
				       .cache = options->cache,
				       .groups = cache_groups(options->cache),
				       .owner = options->owner,
				       .part = options->part,
				       .hostmap = options->hostmap,
				       .page_max = options->page_max,
				       .bytes = sizeof(*transfer),
				       .permits = { .forward = true, .storage = true },
				       .next_op_id = 1 };
	transfer->counts.plans = &transfer->query.counts;
	rc = open_all(transfer, err);
	if (rc < 0) {
		transfer_close(transfer);
		return rc;
	}
	*ret_transfer = transfer;
	return 0;
}

static void close_tickets(struct transfer *transfer)
{
	uint32_t i;

	/* What is left of them; a failed open has no slots yet. */
	for (i = 0; transfer->slots.busy && i < transfer->limits.op_credits; i++) {
		if (slots_busy(&transfer->slots, i))
			ticket_end(transfer, &transfer->tickets[i]);
	}
	for (i = 0; transfer->tickets && i < transfer->limits.op_credits; i++) {
		struct ticket *const ticket = &transfer->tickets[i];

		free(ticket->tails);
		free(ticket->asked);
		free(ticket->sources);
		free(ticket->keys);
		free(ticket->spans);
		free(ticket->reservation.rows);
	}
	free(transfer->tickets);
	free(transfer->timed);
	free(transfer->out.ops);
	free(transfer->out.wakes);
	slots_close(&transfer->slots);
	map_close(&transfer->ids);
}

void transfer_close(struct transfer *transfer)
{
	if (!transfer)
		return;
	close_tickets(transfer);
	ring_close(&transfer->backups);
	roll_close(&transfer->history);
	roll_close(&transfer->negatives);
	tails_close(&transfer->tails);
	reserver_close(&transfer->reserver);
	query_close(&transfer->query);
	map_close(&transfer->watch_map);
	slots_close(&transfer->watch_slots);
	free(transfer->watches);
	free(transfer->watching);
	free(transfer->stirring);
	free(transfer->fetched_by);
	free(transfer->putting);
	free(transfer->entries);
	free(transfer->page_bits);
	free(transfer->tail_bits);
	free(transfer->found);
	free(transfer->filled);
	free(transfer);
}

size_t transfer_bytes(const struct transfer *transfer)
{
	return transfer->bytes + slots_bytes(&transfer->slots) + map_bytes(&transfer->ids) +
	       slots_bytes(&transfer->watch_slots) + map_bytes(&transfer->watch_map) +
	       ring_bytes(&transfer->backups) + roll_bytes(&transfer->negatives) +
	       roll_bytes(&transfer->history) + tails_bytes(&transfer->tails) +
	       reserver_bytes(&transfer->reserver) + query_bytes(&transfer->query);
}
