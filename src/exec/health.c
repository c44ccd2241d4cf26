/* SPDX-License-Identifier: Apache-2.0 */
/* See health.h.  Only fall() begins an outage, so only it counts epochs. */
#include "exec/health.h"

#include "base/err.h"

void health_init(struct health *health, uint64_t cooldown_min_ns, uint64_t cooldown_max_ns)
{
	KVS_ASSERT_CMP(cooldown_min_ns, >, 0);
	KVS_ASSERT_CMP(cooldown_min_ns, <=, cooldown_max_ns);
	*health = (struct health){ .cooldown_ns = cooldown_min_ns,
				   .cooldown_min_ns = cooldown_min_ns,
				   .cooldown_max_ns = cooldown_max_ns };
}

static void fall(struct health *health, uint64_t cooldown_ns, uint64_t retry_ns)
{
	health->state = HEALTH_DOWN;
	health->epoch++;
	health->outages++;
	health->cooldown_ns = cooldown_ns;
	health->retry_ns = retry_ns;
}

void health_start_down(struct health *health, uint64_t now_ns)
{
	KVS_ASSERT_CMP(health->epoch, ==, 0);
	fall(health, health->cooldown_min_ns, now_ns);
}

bool health_admit(struct health *health, uint64_t now_ns)
{
	if (health->state == HEALTH_DOWN && now_ns >= health->retry_ns) {
		health->state = HEALTH_PROBING;
		return true;
	}
	return health->state == HEALTH_UP;
}

void health_unprobe(struct health *health, uint64_t now_ns)
{
	if (health->state != HEALTH_PROBING)
		return;
	health->state = HEALTH_DOWN;
	health->retry_ns = now_ns;
}

void health_success(struct health *health, uint64_t epoch)
{
	KVS_ASSERT_CMP(epoch, <=, health->epoch);
#ifdef KVS_MUTANT_STALE_SUCCESS /* Planted bug: a success of a store that was clears its outage. */
	epoch = health->epoch;
#endif
	if (health->state == HEALTH_PROBING && epoch == health->epoch)
		health->state = HEALTH_UP;
}

/* A failure that began in the cooldown itself is of an outage that is known. */
void health_failure(struct health *health, uint64_t epoch, uint64_t now_ns)
{
	uint64_t cooldown_ns = health->cooldown_min_ns;

	KVS_ASSERT_CMP(epoch, <=, health->epoch);
	if (epoch < health->epoch || health->state == HEALTH_DOWN)
		return;
	if (health->state == HEALTH_PROBING) {
		cooldown_ns = health->cooldown_ns > health->cooldown_max_ns / 2
				      ? health->cooldown_max_ns
				      : 2 * health->cooldown_ns;
	}
	fall(health, cooldown_ns,
	     cooldown_ns < UINT64_MAX - now_ns ? now_ns + cooldown_ns : UINT64_MAX);
}

const char *health_state_name(enum health_state state)
{
	switch (state) {
	case HEALTH_UP:
		return "up";
	case HEALTH_DOWN:
		return "down";
	case HEALTH_PROBING:
		return "probing";
	}
	KVS_PANIC("no health state %d", (int)state);
}
