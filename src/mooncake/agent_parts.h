/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of way AGENT: its lanes and who owns them.
 *
 *              start            READY, OK           call()
 *   DOWN ---------------> STARTING ---------> UP <---------> BUSY
 *    ^  \_ after a pause     |                |                |
 *    |                       v                v                | hung, or proved nothing
 *    +-------- ended ----- DYING <-------------------------<---+
 *
 * Owners   One a state: of BUSY the caller, of all others the keeper, under the way's lock.  A state
 *          is changed by its owner with the lock held; only a caller takes a lane that is UP.
 * Calls    A caller reads what register_memory() wrote without the lock: it took its lane after that.
 * Doubt    A call that left memory unretired: until its agent has ended, if that is trusted, else for
 *          ever.
 */
#ifndef MOONCAKE_AGENT_PARTS_H
#define MOONCAKE_AGENT_PARTS_H

#include <string.h>

#include "mooncake/agent.h"
#include "mooncake/frame.h"
#include "os/jail.h"
#include "os/os.h"

#define AGENT_LANES_MAX (MOONCAKE_LANES_MAX + 1)
#define AGENT_REGIONS_MAX 64

enum lane_state { LANE_DOWN, LANE_STARTING, LANE_UP, LANE_BUSY, LANE_DYING };
enum lane_step { LANE_HELLO, LANE_MEMORY }; /* of STARTING: what has been said and not answered */

struct agent_way;

struct lane {
	struct agent_way *owner;
	uint32_t          index;
	enum lane_state   state;
	enum lane_step    step;
	struct os_jail    jail;
	int               fd;          /* -1: none */
	bool              has_memory;
	bool              doubted;     /* DYING: a call is unretired until it has ended */
	bool              killed;      /* DYING: the signal was sent */
	bool              ended;       /* BUSY: its end was seen; its caller will see, too */
	uint32_t          starts;
	uint64_t          at_ns;       /* DOWN: start then; STARTING: give up; DYING: kill, or killed */
	uint64_t          backoff_ns;  /* the next pause */
	uint64_t          sequence;
	size_t            heard_bytes;
	uint8_t          *said;        /* FRAME_SAID_MAX */
	uint8_t          *heard;       /* one byte more than FRAME_HEARD_MAX, so that too much shows */
};

/* Memory at consecutive addresses. */
struct region {
	uintptr_t base;
	uint64_t  bytes;
	uint64_t  offset; /* in the descriptor */
};

struct agent_way {
	struct mooncake_way      way;
	struct mooncake_settings settings;
	char                     python[MOONCAKE_PATH_MAX];
	char                     script[MOONCAKE_PATH_MAX];
	int                      log; /* -1: none */
	struct os_mutex          lock;
	struct os_cond           changed; /* a lane's state */
	int                      wake;    /* of the keeper; -1 before it runs */
	pthread_t                keeper;
	bool                     stop, closing;

	struct lane   lanes[AGENT_LANES_MAX];
	uint32_t      lane_count;

	struct region regions[AGENT_REGIONS_MAX];
	uint32_t      region_count;
	uint64_t      memory_bytes; /* 0: none registered */
	int           memory_fd;

	bool     reached;
	bool     unconfined; /* this machine cannot confine */
	uint64_t doubts_for_ever;
	uint64_t restarts, kills;

	/* Why the last lane went down; code 0 when none has since. */
	struct kvs_error trouble;
	bool             trouble_lasts;
};

/* --- script.c --------------------------------------------------------------------------------- */
/* Where the program of the agents is. */
int script_find(const struct mooncake_settings *settings, char ret_path[MOONCAKE_PATH_MAX],
		struct kvs_error *err);
/* The body of a HELLO: its length. */
size_t script_hello(const struct mooncake_settings *settings, uint32_t lane, char *body, size_t room);

/* --- interpreter.c ---------------------------------------------------------------------------- */
/* The program that settings->python leads to; it may be asked, for connect_timeout_ns at most. */
int interpreter_find(const struct mooncake_settings *settings, char ret_path[MOONCAKE_PATH_MAX],
		     struct kvs_error *err);

/* --- lane.c ----------------------------------------------------------------------------------- */
int  lane_init(struct lane *lane, struct agent_way *owner, uint32_t index);
void lane_fini(struct lane *lane);
/* Sends `bytes` of said before deadline_ns; sent: a descriptor to go with the first of them, or -1. */
int  lane_say(struct lane *lane, size_t bytes, int sent, uint64_t deadline_ns);
/* One frame that answers what was said last; -EAGAIN when it has not come yet. */
int  lane_hear(struct lane *lane, struct frame *ret_frame, struct kvs_error *err);
/* An end of an agent proves something. */
bool lane_is_trusted(const struct lane *lane);
int  lane_call(struct mooncake_way *way, uint32_t index, const struct mooncake_call *call,
	       bool *ret_retired);

/* --- keeper.c: with the lock held ------------------------------------------------------------- */
void *keeper_run(void *arg);
void  keeper_wake(struct agent_way *way);
/* Its agent has ended and was reaped; the keeper starts another after a pause. */
void  keeper_lane_ended(struct lane *lane);
/* Its agent is to end: the keeper reaps it. */
void  keeper_lane_dying(struct lane *lane, bool doubted);
/* Remember why a lane is down. */
void  keeper_note(struct agent_way *way, const struct kvs_error *err, bool lasting);

/* Payload moves by copies of sockets alone: the end of an agent that is confined proves something. */
static inline bool agent_copies_only(const struct agent_way *way)
{
	return strcmp(way->settings.protocol, "tcp") == 0;
}

#endif
