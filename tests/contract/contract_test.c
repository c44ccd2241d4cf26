/* SPDX-License-Identifier: Apache-2.0 */
/* Does a store keep what kvstrata/store.h promises?  contract SUBJECT, a name of subjects.c. */
#include "stand.h"

#include <stdio.h>

#include "promises.h"

int main(int argc, char **argv)
{
	const struct subject *subject = argc == 2 ? subject_find(argv[1]) : NULL;

	if (!subject) {
		fprintf(stderr, "usage: contract SUBJECT\n");
		return 2;
	}

	if (subject->redis && !redis_is_installed()) {
		printf("1..0 # SKIP redis-server is not installed\n");
		return 0;
	}

#define PROMISE(name) { #name, name, stand_setup, stand_teardown, (void *)subject },
	const struct CMUnitTest tests[] = { PROMISES(PROMISE) };
#undef PROMISE

	return cmocka_run_group_tests(tests, NULL, NULL);
}
