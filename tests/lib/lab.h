/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache to try scenarios on: small groups, one prompt at a time, and pictures of what is where.
 *
 * A picture is a text with a letter a position of one group, from the start of the prompt: 'x' is a
 * block, '.' is none.  "..xx" of a table is two holes and two blocks; of a stratum, that positions 2
 * and 3 of the prompt are published and no others.
 *
 * Every call audits the cache.  What is refused is checked to have left no trace.
 */
#ifndef LIB_LAB_H
#define LIB_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "coord/cache.h"

#define LAB_PAGES 24u /* of a prompt; a tail may follow them */
#define LAB_SLOTS 64u /* of a table */
#define LAB_ROWS  64u /* moves under way */

/* Groups in few words: q, the window, and K. */
#define LAB_FULL(q, k)      { .kind = GROUP_FULL, .block_tokens = (q), .packing = (k) }
#define LAB_WINDOW(q, w, k) \
	{ .kind = GROUP_WINDOW, .block_tokens = (q), .window_tokens = (w), .packing = (k) }
#define LAB_STATE(q, k)     { .kind = GROUP_STATE, .block_tokens = (q), .packing = (k) }

/* The model of a scenario; groups end with one of q = 0. */
struct lab_model {
	uint32_t          page_tokens;
	uint32_t          device; /* parents */
	uint32_t          host;
	struct group_spec groups[5];
};

struct lab {
	struct cache        *cache;
	const struct groups *groups;
	uint32_t             group_count;
	struct kvs_namespace space;
	struct prefix_hash   hashes[LAB_PAGES + 1]; /* of the prompt that all calls speak of */
	struct cache_probe   probe;                 /* the last one */
	uint32_t             inserted;              /* cells that the sink was told of */
	uint32_t             removed;
};

void lab_open(struct lab *lab, const struct lab_model *model);
void lab_close(struct lab *lab);
void lab_audit(const struct lab *lab);

/* Speak of another prompt from page `first` on; 0 is the one at open. */
void lab_prompt(struct lab *lab, uint32_t number, uint32_t first);

/*
 * A prefix of the prompt that ends inside a page.  All calls speak of that page by the tail's name from
 * then on, until lab_prompt().
 */
struct tail lab_tail(struct lab *lab, uint32_t tokens);

/*
 * Publish positions of a group, held by nobody then.  On Device one request does it, with one epoch,
 * which is returned; on Host every block has an epoch of its own, and the last is returned.
 */
uint64_t lab_fill(struct lab *lab, enum stratum_id stratum, uint32_t group, const char *picture);

/* --- requests --------------------------------------------------------------------------------- */

struct lab_request {
	struct table tables[GROUPS_MAX];
	uint32_t     slots[GROUPS_MAX][LAB_SLOTS];
	uint64_t     epoch;
};

/* What a request does next. */
struct lab_step {
	struct demand          demands[GROUPS_MAX];
	struct cache_completed completed;
	bool                   probed; /* claims what the last probe found */
};

void lab_begin(const struct lab *lab, struct lab_request *request);

/* So many tokens more in every group, and nothing completed. */
struct lab_step lab_tokens(uint32_t tokens);
/* The same, behind what the last probe found. */
struct lab_step lab_probed(uint32_t tokens);
/* pages are complete, those from new_begin on just now, and computed tokens have their cache. */
void lab_complete(const struct lab *lab, struct lab_step *step, uint32_t pages, uint32_t new_begin,
		  enum cell_kind kind, uint64_t computed);

/* Must succeed. */
struct cache_admitted lab_admit(struct lab *lab, struct lab_request *request,
				const struct lab_step *step);
/* Must be refused with this code, and leave no trace. */
void lab_refuse(struct lab *lab, struct lab_request *request, const struct lab_step *step, int code);
bool lab_can_admit(struct lab *lab, struct lab_request *request, const struct lab_step *step,
		   const struct cache_block *released, uint32_t released_count);
/* The demand is none; must succeed. */
void lab_advance(struct lab *lab, struct lab_request *request, const struct lab_step *step);
void lab_reclaim(struct lab *lab, struct lab_request *request, uint64_t computed);
/* Publish pages of all groups. */
void lab_publish(struct lab *lab, struct lab_request *request, uint32_t first_page,
		 uint32_t page_count, enum cell_kind kind);
void lab_free(struct lab *lab, struct lab_request *request);

/* So many tokens from the start in every group, their whole pages published; then freed. */
uint64_t lab_run(struct lab *lab, uint32_t tokens, enum cell_kind kind);

/* The lists of an admission last only until the next one: keep its loads and copies. */
struct lab_rows {
	struct cache_move row[LAB_ROWS];
	uint32_t          count;
};
struct lab_rows lab_rows_of(const struct cache_admitted *admitted);
/* Every row's copy has passed its fence. */
void lab_moved(struct lab *lab, const struct lab_rows *rows);

/* A new request for pages of the prompt: it gets what is there, and room for so many tokens more. */
struct lab_rows lab_claim(struct lab *lab, struct lab_request *request, uint32_t pages,
			  uint32_t tokens);
/* The same, and all its copies done and itself gone. */
void lab_use(struct lab *lab, uint32_t pages);

/* --- what is where ---------------------------------------------------------------------------- */

/* Changes nothing; the answer is in lab->probe. */
void lab_probe(struct lab *lab, uint32_t pages);
void lab_probe_tails(struct lab *lab, uint32_t pages, const struct tail *tails,
		     uint32_t tail_count);
void lab_probe_decode(struct lab *lab, uint32_t pages);
/* Positions that the last probe would take. */
uint32_t lab_hits(const struct lab *lab, uint32_t group, enum stratum_id stratum);

void lab_expect_table(const struct lab *lab, const struct lab_request *request, uint32_t group,
		      const char *picture);
void lab_expect_held(const struct lab *lab, enum stratum_id stratum, uint32_t group,
		     const char *picture);

/* A position of the prompt by name; held until the prompt changes. */
struct cell_name lab_name(const struct lab *lab, uint32_t group, uint32_t position);
/* The block of a position of the prompt; BLOCK_NULL where it is not published. */
uint32_t lab_block(const struct lab *lab, enum stratum_id stratum, uint32_t group,
		   uint32_t position);
/* As what it is published; it must be. */
struct cell_view lab_view(const struct lab *lab, enum stratum_id stratum, uint32_t group,
			  uint32_t position);
/* Its references, that of the index among them. */
uint32_t lab_refs(const struct lab *lab, enum stratum_id stratum, uint32_t group,
		  uint32_t position);
uint32_t lab_slot_refs(const struct lab *lab, const struct lab_request *request, uint32_t group,
		       uint32_t slot);

/* References on published blocks besides the index's; published blocks, of all prompts. */
uint32_t lab_pins(const struct lab *lab, enum stratum_id stratum);
uint32_t lab_published(const struct lab *lab, enum stratum_id stratum, uint32_t group);
/* Parents without a group. */
uint32_t lab_empty(const struct lab *lab, enum stratum_id stratum);

/* A number of all that can be seen of the cache: equal numbers, nothing changed. */
uint64_t lab_digest(const struct lab *lab);

#endif
