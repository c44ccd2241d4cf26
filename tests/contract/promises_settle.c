/* SPDX-License-Identifier: Apache-2.0 */
/* Promises of those who can prove late that a call they left unretired is over. */
#include "stand.h"

#include <sched.h>

#include "named_block.h"
#include "promises.h"

/* One get, whose span is the caller's until it is known to be nobody's. */
static bool get_retires(struct stand *stand, struct kvs_span *ret_span)
{
	const struct kvs_key key = key_of(1);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;
	bool                 retired = false;

	*ret_span = guarded_lend(&stand->guarded, 4096);
	assert_int_equal(stand_move(stand, 0, false, &key, ret_span, 1, &result, &retired), 0);
	if (retired)
		guarded_back(&stand->guarded, ret_span, true);
	return retired;
}

/*
 * It is asked while nothing is in doubt, too: then there is nothing that it could not prove.  After its
 * proof a span is overwritten like any that retired, and the stand looks at it once more behind close.
 */
void X2_what_has_settled_is_touched_no_more(void **state)
{
	struct stand *const     stand = *state;
	struct kvs_store *const store = stand->store;
	struct kvs_span         span;
	uint32_t                gets = 0;

	if (!store->ops->settled) {
		print_message("# %s proves nothing late\n", stand->subject->name);
		return;
	}
	assert_true(store->ops->settled(store));
	(void)stand_put(stand, 1, 4096);
	assert_true(get_retires(stand, &span));
	assert_true(store->ops->settled(store));
	if (!stand->subject->late) {
		print_message("# %s leaves nothing in doubt here\n", stand->subject->name);
		return;
	}
	while (get_retires(stand, &span))
		assert_true(++gets < stand->subject->late);
	while (!store->ops->settled(store))
		sched_yield();
	guarded_back(&stand->guarded, &span, true);
	assert_true(get_retires(stand, &span));
	stand_close(stand);
}
