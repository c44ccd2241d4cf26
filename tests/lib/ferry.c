/* SPDX-License-Identifier: Apache-2.0 */
/* See ferry.h. */
#include "ferry.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "named_block.h"
#include "os/os.h"

struct ferry *ferry_open(void)
{
	struct ferry *const ferry = calloc(1, sizeof(*ferry));
	void               *words;

	KVS_ASSERT(ferry && os_pages_map(FERRY_ROWS * QUARRY_BLOCK, &words) == 0);
	ferry->words = words;
	return ferry;
}

void ferry_close(struct ferry *ferry)
{
	os_pages_unmap(ferry->words, FERRY_ROWS * QUARRY_BLOCK);
	free(ferry);
}

uint64_t *ferry_words(const struct ferry *ferry, uint32_t i)
{
	return ferry->words + i * (QUARRY_BLOCK / 8);
}

void ferry_load(struct ferry *ferry, uint32_t i, uint32_t number, bool is_put)
{
	uint64_t *const words = ferry_words(ferry, i);

	ferry->keys[i] = key_of(number);
	ferry->io[i] = (struct kvs_io){ .cookie = i, .is_put = is_put, .key = &ferry->keys[i],
				       .span = { words, QUARRY_BLOCK, QUARRY_BLOCK } };
	ferry->answered[i] = 0;
	if (is_put)
		fill(words, number, QUARRY_BLOCK);
	else
		memset(words, 0xee, QUARRY_BLOCK);
}

uint32_t ferry_reap(struct kvs_store *store, uint32_t lane, struct ferry *ferry, uint64_t timeout_ns)
{
	struct kvs_io_done done[7];
	const int          count = strata_reap(store, lane, done, ARRAY_COUNT(done), timeout_ns);
	int                i;

	KVS_ASSERT(count >= 0);
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(done[i].cookie, <, FERRY_ROWS);
		KVS_ASSERT(done[i].retired);
		ferry->answered[done[i].cookie]++;
		ferry->result[done[i].cookie] = done[i].result;
	}
	return (uint32_t)count;
}

void ferry_cross(struct kvs_store *store, uint32_t lane, struct ferry *ferry, uint32_t count)
{
	uint32_t taken = 0, answered = 0, i;

	while (answered < count) {
		if (taken < count) {
			const int more =
				strata_submit(store, lane, ferry->io + taken, count - taken);

			KVS_ASSERT(more >= 0 && (more > 0 || answered < taken));
			taken += (uint32_t)more;
		}
		answered += ferry_reap(store, lane, ferry, FERRY_FOREVER_NS);
		KVS_ASSERT_CMP(answered, <=, taken);
	}
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(ferry->answered[i], ==, 1);
		KVS_ASSERT(ferry->result[i] != KVS_RESULT_DONE ||
			   is_filled(ferry_words(ferry, i), ferry->keys[i].offset, QUARRY_BLOCK));
	}
}

enum kvs_result ferry_one(struct kvs_store *store, struct ferry *ferry, uint32_t number, bool is_put)
{
	ferry_load(ferry, 0, number, is_put);
	ferry_cross(store, 0, ferry, 1);
	return ferry->result[0];
}
