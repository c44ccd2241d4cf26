/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the library's way share.
 *
 *   library.c         the table of the way: calls, doubts, figures
 *   library_open.c    its beginning and its end
 *   library_keeper.c  the hand that connects, registers and destroys
 */
#ifndef MOONCAKE_LIBRARY_PARTS_H
#define MOONCAKE_LIBRARY_PARTS_H

#include "mooncake/library_lane.h"

struct library_region {
	void  *ptr;
	size_t bytes;
};

enum keeper_job {
	KEEPER_CONNECT,  /* create and setup, and what memory was told until then */
	KEEPER_REGISTER,
	KEEPER_END       /* all lanes, when they are home, and the client */
};

struct library {
	struct mooncake_way      way;
	struct mooncake_settings settings;
	struct sdk               sdk;
	uint32_t                 lane_count; /* started */
	struct library_lane     *lanes;      /* with that of the lookups */
	struct hand              keeper;

	/* The keeper's: written by its work, read by who holds it and by its home(). */
	enum keeper_job  job;
	void            *client; /* the lanes read it once they are up */
	struct kvs_error said;   /* why it is not connected; code 0: it is */
	int              register_rc;

	struct os_mutex        lock;    /* guards all below, and the hands */
	bool                   up;      /* the client is set up: lanes may be taken */
	bool                   reached;
	bool                   told;    /* all regions have been offered to the client */
	bool                   left;    /* the keeper ends this alone */
	bool                   over;    /* lanes and client are gone */
	uint64_t               doubts;  /* calls that are not proven over */
	uint64_t               retry_ns, pause_ns; /* when not up: the next time to connect */
	struct library_region *regions;
	uint32_t               region_count;
	char                   why[96];     /* it is not up */
	char                   unheard[96]; /* why memory is not registered; "" when it is */
};

void library_keeper_work(struct hand *hand);
bool library_keeper_home(struct hand *hand);
void library_keeper_gone(struct hand *hand);

/* With the lock held, when the client is not set up: try again, if it is time. */
void library_keeper_connect_again(struct library *library);

/* A call of a lane, waited for no longer than timeout_ns; see struct mooncake_way_ops. */
int library_call(struct library *library, uint32_t lane, const struct mooncake_call *call,
		 uint64_t timeout_ns, bool *ret_retired);

/* A lane's home(): what came late may prove something. */
bool library_lane_home(struct hand *hand);

/* 0 or KVS_E_QUARANTINE. */
int library_close(struct mooncake_way *way);

/* Everything that is memory; all hands have ended. */
void library_free(struct library *library);

extern const struct mooncake_way_ops library_ops;

#endif
