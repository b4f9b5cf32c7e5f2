/* snapshot.h - parameters as they were when a batch was over: what handles for inference read while another one trains. There are two
 * copies: the handle that trains fills the one that nobody reads, and then swaps them. So no reader sees half of an update, and publishing
 * does not wait for computations. Used by several threads. */
#pragma once

#include "graph/model.h"

typedef struct vpps_snapshot vpps_snapshot;

/* For the parameters of a model, which must have all of them; values are those of the model. Fails with MEMORY. */
vpps_status vpps_snapshot_create(vpps_snapshot **out, const vpps_model *model);

/* One more handle has it; one fewer has: the last one frees it. NULL is allowed. */
vpps_snapshot *vpps_snapshot_share(vpps_snapshot *s);
void vpps_snapshot_drop(vpps_snapshot *s);

/* For the one that trains: a model with the same parameters, whose values are to be set. Then publish: they are read from now on. */
vpps_model *vpps_snapshot_spare(vpps_snapshot *s);
void vpps_snapshot_publish(vpps_snapshot *s);

/* For the others: how often something was published; and that model, which stays as it is until unlock. Whoever has it locked and
 * whoever publishes wait for each other. */
uint64_t vpps_snapshot_version(const vpps_snapshot *s);
const vpps_model *vpps_snapshot_lock(vpps_snapshot *s, uint64_t *version);
void vpps_snapshot_unlock(vpps_snapshot *s);
