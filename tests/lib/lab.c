/* SPDX-License-Identifier: Apache-2.0 */
/* See lab.h. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = { "a", "b", "c", "d", "e" };

static void expect_ok(int rc, const struct kvs_error *err)
{
	if (rc < 0)
		fail_msg("refused with %d: %s", rc, err->message);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void count_inserted(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct lab *const lab = ctx;

	assert_true(name->group < lab->group_count);
	assert_int_not_equal(block, BLOCK_NULL);
	lab->inserted++;
}

static void count_removed(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct lab *const lab = ctx;

	assert_true(name->group < lab->group_count);
	assert_int_not_equal(block, BLOCK_NULL);
	lab->removed++;
}

void lab_open(struct lab *lab, const struct lab_model *model)
{
	struct group_spec    groups[ARRAY_COUNT(names)];
	struct cache_options options = { .groups = groups, .page_tokens = model->page_tokens,
					 .device_parents = model->device,
					 .host_parents = model->host, .prompt_pages = LAB_PAGES,
					 .sink = { count_inserted, count_removed, lab } };
	struct kvs_error     err = { 0 };
	uint32_t             count = 0;

	while (count < ARRAY_COUNT(names) && model->groups[count].block_tokens > 0) {
		groups[count] = model->groups[count];
		groups[count].name = names[count];
		count++;
	}
	options.group_count = count;
	*lab = (struct lab){ .group_count = count };
	expect_ok(cache_open(&options, &lab->cache, &err), &err);
	lab->groups = cache_groups(lab->cache);
	lab_prompt(lab, 0, 0);
	lab_audit(lab);
}

void lab_close(struct lab *lab)
{
	lab_audit(lab);
	cache_close(lab->cache);
}

void lab_audit(const struct lab *lab)
{
	cache_audit(lab->cache);
	pages_audit(cache_pages(lab->cache));
	pool_audit(cache_pool(lab->cache, STRATUM_DEVICE));
	if (cache_pool(lab->cache, STRATUM_HOST))
		pool_audit(cache_pool(lab->cache, STRATUM_HOST));
}

static void audit_with(const struct lab *lab, const struct lab_request *request)
{
	uint32_t g;

	lab_audit(lab);
	for (g = 0; g < lab->group_count; g++)
		table_audit(&request->tables[g], &lab->groups->group[g]);
}

void lab_prompt(struct lab *lab, uint32_t number, uint32_t first)
{
	uint32_t page;

	for (page = first; page <= LAB_PAGES; page++) {
		struct prefix_hash *const hash = &lab->hashes[page];

		memset(hash, 0, sizeof(*hash));
		hash->byte[0] = (uint8_t)(number + 1);
		hash->byte[1] = (uint8_t)page;
	}
}

struct tail lab_tail(struct lab *lab, uint32_t tokens)
{
	struct prefix_hash *const hash = &lab->hashes[tokens / lab->groups->page_tokens];

	hash->byte[2] = (uint8_t)tokens;
	return (struct tail){ .tokens = tokens, .hash = *hash };
}

/* --- pictures --------------------------------------------------------------------------------- */

/* Long enough for a page to be in it. */
static void lengthen(struct table *table, uint32_t count)
{
	if (table->count < count)
		table_push_holes(table, count - table->count);
}

static void fill_device(struct lab *lab, uint32_t group, uint32_t position, uint64_t *epoch)
{
	const struct group *const of = &lab->groups->group[group];
	const uint32_t            page = position / of->page_blocks;
	struct lab_step           step = lab_tokens(0);
	struct lab_request        request;
	uint32_t                  g;

	lab_begin(lab, &request);
	request.epoch = *epoch;
	lengthen(&request.tables[group], position);
	step.demands[group].tokens = of->spec.block_tokens;
	lab_admit(lab, &request, &step);
	for (g = 0; g < lab->group_count; g++)
		lengthen(&request.tables[g], (page + 1) * lab->groups->group[g].page_blocks);
	lab_publish(lab, &request, page, 1, CELL_CHUNK);
	lab_free(lab, &request);
	*epoch = request.epoch;
}

static void fill_host(struct lab *lab, uint32_t group, uint32_t position)
{
	const struct cell_name name = lab_name(lab, group, position);
	const uint32_t         block = cache_host_acquire(lab->cache, group);

	assert_int_not_equal(block, BLOCK_NULL);
	lab_audit(lab);
	assert_int_equal(cache_host_publish(lab->cache, &name, block, CELL_CHUNK), block);
	lab_audit(lab);
}

uint64_t lab_fill(struct lab *lab, enum stratum_id stratum, uint32_t group, const char *picture)
{
	uint64_t epoch = 0;
	uint32_t i;

	for (i = 0; picture[i]; i++) {
		if (picture[i] != 'x')
			continue;
		if (stratum == STRATUM_DEVICE)
			fill_device(lab, group, i, &epoch);
		else
			fill_host(lab, group, i);
	}
	return stratum == STRATUM_DEVICE ? epoch : cache_clock(lab->cache);
}

/* --- requests --------------------------------------------------------------------------------- */

void lab_begin(const struct lab *lab, struct lab_request *request)
{
	uint32_t g;

	*request = (struct lab_request){ 0 };
	for (g = 0; g < lab->group_count; g++)
		table_init(&request->tables[g], request->slots[g], LAB_SLOTS);
}

struct lab_step lab_tokens(uint32_t tokens)
{
	struct lab_step step = { .completed = { .computed = COMPUTED_NONE } };
	uint32_t        g;

	for (g = 0; g < GROUPS_MAX; g++)
		step.demands[g] = demand_dense(tokens, 0);
	return step;
}

struct lab_step lab_probed(uint32_t tokens)
{
	struct lab_step step = lab_tokens(tokens);

	step.probed = true;
	return step;
}

void lab_complete(const struct lab *lab, struct lab_step *step, uint32_t pages, uint32_t new_begin,
		  enum cell_kind kind, uint64_t computed)
{
	step->completed = (struct cache_completed){ &lab->space, lab->hashes, pages,
						    new_begin,   kind,        computed };
}

static struct cache_admission admission_of(const struct lab *lab, struct lab_request *request,
					   const struct lab_step *step)
{
	return (struct cache_admission){ .tables = request->tables, .demands = step->demands,
					 .probe = step->probed ? &lab->probe : NULL,
					 .completed = step->completed, .epoch = request->epoch };
}

struct cache_admitted lab_admit(struct lab *lab, struct lab_request *request,
				const struct lab_step *step)
{
	const struct cache_admission admission = admission_of(lab, request, step);
	struct cache_admitted        admitted;
	struct kvs_error             err = { 0 };

	assert_true(cache_can_admit(lab->cache, &admission, NULL, 0));
	expect_ok(cache_admit(lab->cache, &admission, &admitted, &err), &err);
	audit_with(lab, request);
	if (request->epoch == 0)
		assert_int_equal(admitted.epoch, cache_clock(lab->cache));
	else
		assert_int_equal(admitted.epoch, request->epoch);
	request->epoch = admitted.epoch;
	return admitted;
}

void lab_refuse(struct lab *lab, struct lab_request *request, const struct lab_step *step, int code)
{
	const struct cache_admission admission = admission_of(lab, request, step);
	const struct lab_request     before = *request;
	const struct cache_probe     probe = lab->probe;
	const uint64_t               digest = lab_digest(lab);
	struct cache_admitted        admitted;
	struct kvs_error             err = { 0 };

	assert_false(cache_can_admit(lab->cache, &admission, NULL, 0));
	assert_int_equal(cache_admit(lab->cache, &admission, &admitted, &err), code);
	assert_int_equal(err.code, code);
	audit_with(lab, request);
	assert_int_equal(lab_digest(lab), digest);
	assert_memory_equal(request, &before, sizeof(before));
	assert_memory_equal(&lab->probe, &probe, sizeof(probe));
}

bool lab_can_admit(struct lab *lab, struct lab_request *request, const struct lab_step *step,
		   const struct cache_block *released, uint32_t released_count)
{
	const struct cache_admission admission = admission_of(lab, request, step);
	const uint64_t               digest = lab_digest(lab);
	bool                         can;

	can = cache_can_admit(lab->cache, &admission, released, released_count);
	audit_with(lab, request);
	assert_int_equal(lab_digest(lab), digest);
	return can;
}

void lab_advance(struct lab *lab, struct lab_request *request, const struct lab_step *step)
{
	struct kvs_error err = { 0 };

	expect_ok(cache_advance(lab->cache, request->tables, &step->completed, request->epoch, &err),
		  &err);
	audit_with(lab, request);
}

void lab_reclaim(struct lab *lab, struct lab_request *request, uint64_t computed)
{
	cache_reclaim(lab->cache, request->tables, computed);
	audit_with(lab, request);
}

void lab_publish(struct lab *lab, struct lab_request *request, uint32_t first_page,
		 uint32_t page_count, enum cell_kind kind)
{
	struct kvs_error err = { 0 };

	expect_ok(cache_publish(lab->cache, request->tables, &lab->space, &lab->hashes[first_page],
				first_page, page_count, request->epoch, kind, &err),
		  &err);
	audit_with(lab, request);
}

void lab_free(struct lab *lab, struct lab_request *request)
{
	uint32_t g;

	cache_free(lab->cache, request->tables);
	audit_with(lab, request);
	for (g = 0; g < lab->group_count; g++) {
		assert_int_equal(request->tables[g].count, 0);
		assert_int_equal(request->tables[g].available, 0);
		assert_int_equal(request->tables[g].reclaimed, 0);
	}
}

uint64_t lab_run(struct lab *lab, uint32_t tokens, enum cell_kind kind)
{
	const uint32_t     pages = tokens / lab->groups->page_tokens;
	struct lab_step    step = lab_tokens(tokens);
	struct lab_request request;

	lab_begin(lab, &request);
	lab_admit(lab, &request, &step);
	lab_complete(lab, &step, pages, 0, kind, tokens);
	lab_advance(lab, &request, &step);
	lab_free(lab, &request);
	return request.epoch;
}

struct lab_rows lab_rows_of(const struct cache_admitted *admitted)
{
	struct lab_rows rows = { .count = admitted->load_count + admitted->copy_count };
	uint32_t        i;

	assert_true(rows.count <= LAB_ROWS);
	for (i = 0; i < rows.count; i++) {
		rows.row[i] = admitted->moves[i];
		assert_int_equal(rows.row[i].from_host, i < admitted->load_count);
	}
	return rows;
}

void lab_moved(struct lab *lab, const struct lab_rows *rows)
{
	uint32_t i;

	for (i = 0; i < rows->count; i++) {
		cache_moved(lab->cache, &rows->row[i]);
		lab_audit(lab);
	}
}

struct lab_rows lab_claim(struct lab *lab, struct lab_request *request, uint32_t pages,
			  uint32_t tokens)
{
	const struct lab_step step = lab_probed(tokens);
	struct cache_admitted admitted;

	lab_begin(lab, request);
	lab_probe(lab, pages);
	admitted = lab_admit(lab, request, &step);
	assert_int_equal(admitted.device_tokens, lab->probe.device_tokens);
	assert_int_equal(admitted.host_tokens, lab->probe.host_tokens);
	assert_int_equal(admitted.promotion_tokens, lab->probe.promotion_tokens);
	return lab_rows_of(&admitted);
}

void lab_use(struct lab *lab, uint32_t pages)
{
	struct lab_request    request;
	const struct lab_rows rows = lab_claim(lab, &request, pages, 0);

	lab_moved(lab, &rows);
	lab_free(lab, &request);
}
