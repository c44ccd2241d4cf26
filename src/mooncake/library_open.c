/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a library: see library.h and library_parts.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mooncake/codes.h"
#include "mooncake/library.h"
#include "mooncake/library_parts.h"

#define PAUSE_FIRST_NS 100000000u

void library_free(struct library *library)
{
	os_mutex_fini(&library->lock);
	free(library->regions);
	free(library->lanes);
	free(library);
}

/* Those that have begun. */
static bool lanes_are_home(const struct library *library)
{
	uint32_t i;

	for (i = 0; i < library->lane_count; i++) {
		if (library->lanes[i].hand.state != HAND_HOME)
			return false;
	}
	return true;
}

/* With the lock held: the keeper ends the rest when it can, and nobody waits for it. */
static void leave(struct library *library)
{
	struct hand *const keeper = &library->keeper;

	library->left = true;
	if (keeper->state == HAND_HOME) {
		library->job = KEEPER_END;
		hand_send(keeper);
	}
	hand_leave(keeper);
}

/* With the lock held and every hand at home; false when destroy() hangs. */
static bool end_by(struct library *library, uint64_t timeout_ns)
{
	struct hand *const keeper = &library->keeper;
	bool               home;

	KVS_ASSERT(hand_take(keeper));
	library->job = KEEPER_END;
	hand_give(keeper);
	home = hand_wait(keeper, timeout_ns);
	if (home)
		hand_back(keeper);
	return home;
}

/* An open that failed: no call of a caller was ever made, and no memory was told. */
static void undo(struct library *library)
{
	bool home;

	os_mutex_lock(&library->lock);
	home = library->keeper.state == HAND_HOME && lanes_are_home(library) &&
	       end_by(library, library->settings.timeout_ns);
	if (!home)
		leave(library);
	os_mutex_unlock(&library->lock);
	if (!home)
		return;
	hand_stop(&library->keeper);
	library_free(library);
}

int library_close(struct mooncake_way *way)
{
	struct library *const library = (struct library *)way;
	bool                  over;

	os_mutex_lock(&library->lock);
	if (library->doubts == 0 && lanes_are_home(library) &&
	    hand_is_home_by(&library->keeper, library->settings.timeout_ns) && !library->over)
		(void)end_by(library, library->settings.timeout_ns);
	over = library->over;
	/* A setup that hangs holds nothing of the caller's. */
	if (!over && !library->up && library->job == KEEPER_CONNECT) {
		leave(library);
		os_mutex_unlock(&library->lock);
		return 0;
	}
	os_mutex_unlock(&library->lock);
	if (!over)
		return KVS_E_QUARANTINE;
	hand_stop(&library->keeper);
	library_free(library);
	return 0;
}

static int start_lane(struct library *library, uint32_t number)
{
	struct library_lane *const lane = &library->lanes[number];
	char                       name[16];

	lane->library = library;
	lane->sdk = &library->sdk;
	lane->replicas = library->settings.replica_count;
	lane->hand.lock = &library->lock;
	lane->hand.work = library_lane_work;
	lane->hand.home = library_lane_home;
	snprintf(name, sizeof(name), "kvs-mc-%u", number % 100);
	return hand_start(&lane->hand, name);
}

static int start_hands(struct library *library)
{
	const uint32_t wanted = (uint32_t)library->settings.lanes + 1;
	int            rc;

	library->keeper.lock = &library->lock;
	library->keeper.work = library_keeper_work;
	library->keeper.home = library_keeper_home;
	library->keeper.gone = library_keeper_gone;
	rc = hand_start(&library->keeper, "kvs-mc-keeper");
	if (rc < 0) {
		library_free(library);
		return rc;
	}
	while (rc == 0 && library->lane_count < wanted) {
		rc = start_lane(library, library->lane_count);
		library->lane_count += rc == 0;
	}
	if (rc < 0)
		undo(library);
	return rc;
}

static int make(const struct mooncake_settings *settings, const struct sdk *sdk,
		struct library **ret_library)
{
	struct library *const library = calloc(1, sizeof(*library));
	int                   rc;

	KVS_ASSERT(settings->lanes > 0 && settings->lanes <= MOONCAKE_LANES_MAX);
	if (!library)
		return -ENOMEM;
	library->lanes = calloc(settings->lanes + 1, sizeof(*library->lanes));
	if (!library->lanes) {
		free(library);
		return -ENOMEM;
	}
	library->way.ops = &library_ops;
	library->settings = *settings;
	library->sdk = *sdk;
	library->pause_ns = PAUSE_FIRST_NS;
	os_mutex_init(&library->lock);
	rc = start_hands(library);
	if (rc == 0)
		*ret_library = library;
	return rc;
}

/* 0, or why the client is not set up by the deadline. */
static int connect_by(struct library *library, uint64_t timeout_ns, struct kvs_error *err)
{
	int rc;

	os_mutex_lock(&library->lock);
	KVS_ASSERT(hand_take(&library->keeper));
	library->job = KEEPER_CONNECT;
	hand_give(&library->keeper);
	if (!hand_wait(&library->keeper, timeout_ns)) {
		rc = err_set(err, -ETIMEDOUT,
			     "store.master: %.96s: the client was not set up within "
			     "connect_timeout", library->settings.master);
		snprintf(library->why, sizeof(library->why), "setup() has not returned yet");
	} else {
		rc = library->said.code;
		if (rc < 0 && err)
			*err = library->said;
		hand_back(&library->keeper);
	}
	os_mutex_unlock(&library->lock);
	return rc;
}

/*
 * A setup proves nothing about the master, nor does the SDK's own check of its health: a lookup of what is
 * never there does.
 */
static int ask(struct library *library, uint64_t timeout_ns, struct kvs_error *err)
{
	char                 name[LABEL_PREFIX_MAX + sizeof(MOONCAKE_SENTINEL)];
	const char *const    names[] = { name };
	int64_t              code = 0;
	bool                 retired;
	struct mooncake_call call = { .verb = MOONCAKE_EXISTS, .count = 1, .names = names,
				      .codes = &code };
	int                  rc;

	snprintf(name, sizeof(name), "%s" MOONCAKE_SENTINEL, library->settings.prefix);
	rc = library_call(library, MOONCAKE_LOOKUPS, &call, timeout_ns, &retired);
	if (rc < 0) {
		return err_set(err, rc, "store.master: %.96s: no answer to a lookup: %s",
			       library->settings.master, kvs_strerror(rc));
	}
	if (code == 0 || code == 1)
		return 0;
	return err_set(err, -EIO, "store.master: %.96s: a lookup gave %lld, %s",
		       library->settings.master, (long long)code, mooncake_code_name(code));
}

static int begin(struct library *library, struct kvs_error *err)
{
	const uint64_t until_ns = os_until_ns(library->settings.connect_timeout_ns);
	uint64_t       now_ns;
	int            rc = connect_by(library, library->settings.connect_timeout_ns, err);

	if (rc < 0)
		return rc;
	now_ns = os_now_ns();
	return ask(library, now_ns < until_ns ? until_ns - now_ns : 0, err);
}

/* As other users of the SDK's library name it. */
static const char *name_library(const struct mooncake_settings *settings)
{
	const char *const named = os_environment(MOONCAKE_LIBRARY_VARIABLE);

	if (*settings->library)
		return settings->library;
	return named ? named : MOONCAKE_LIBRARY_NAME;
}

int mooncake_library_open(const struct mooncake_settings *settings, struct mooncake_way **ret_way,
			  struct kvs_error *err)
{
	struct kvs_error said;
	struct sdk       sdk;
	struct library  *library = NULL;
	int              rc = sdk_load(name_library(settings), &sdk, err);

	if (rc < 0)
		return rc;
	rc = make(settings, &sdk, &library);
	if (rc < 0) {
		os_library_unload(sdk.library);
		return err_set(err, rc, "store: the library's lanes: %s", kvs_strerror(rc));
	}
	rc = begin(library, &said);
	if (rc < 0 && settings->required) {
		undo(library);
		return err_set(err, rc, "%s", said.message);
	}
	*ret_way = &library->way;
	return 0;
}
