/* SPDX-License-Identifier: Apache-2.0 */
/* What kvstrata/store.h promises, one test a promise.  contract_test.c runs them on a subject. */
#ifndef CONTRACT_PROMISES_H
#define CONTRACT_PROMISES_H

#define PROMISES(X) \
	X(what_is_put_is_got_whole) \
	X(a_second_put_changes_nothing) \
	X(another_length_is_never_done) \
	X(a_wrong_length_destroys_nothing) \
	X(what_is_not_there_is_missing) \
	X(what_is_removed_is_gone) \
	X(every_field_of_a_key_counts) \
	X(every_key_of_a_batch_has_its_result) \
	X(bad_spans_are_refused_whole) \
	X(a_full_store_evicts_or_refuses) \
	X(listing_sees_one_namespace) \
	X(purging_takes_one_namespace) \
	X(locked_objects_are_not_evicted) \
	X(locks_count) \
	X(unlocking_what_is_not_there_is_no_error) \
	X(removing_takes_what_is_locked) \
	X(describe_agrees_with_what_happened) \
	X(the_table_is_whole) \
	X(what_should_survive_a_close_does) \
	X(nothing_is_touched_after_close) \
	X(X2_what_has_settled_is_touched_no_more) \
	X(workers_at_once_see_whole_objects) \
	X(rows_of_both_kinds_cross_together) \
	X(a_lane_waits_no_longer_than_asked) \
	X(B2_5_an_adapter_works_over_it)

#define PROMISE(name) void name(void **state);
PROMISES(PROMISE)
#undef PROMISE

#endif
