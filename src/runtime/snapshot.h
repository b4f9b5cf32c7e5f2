/* snapshot.h - copies of the parameters that handles for inference read while another handle trains. The training handle fills the copy
 * that nobody reads, then swaps both. So no reader sees half an update, and publishing does not wait for computations. Thread-safe. */
#pragma once

#include "graph/model.h"

typedef struct vpps_snapshot vpps_snapshot;

/* Creates a snapshot of all parameters of the model, with their current values. Fails with MEMORY. */
vpps_status vpps_snapshot_create(vpps_snapshot **out, const vpps_model *model);

/* Adds a holder of the snapshot (a count of references). Returns the snapshot. */
vpps_snapshot *vpps_snapshot_share(vpps_snapshot *s);
/* Removes a holder of the snapshot; the last one frees it. NULL is allowed. */
void vpps_snapshot_drop(vpps_snapshot *s);

/* Returns the copy that nobody reads, which the training handle fills before it calls vpps_snapshot_publish. */
vpps_model *vpps_snapshot_spare(vpps_snapshot *s);
/* Makes the filled copy the one that readers get. Waits while a reader holds the lock. */
void vpps_snapshot_publish(vpps_snapshot *s);

/* Returns how often parameters were published. */
uint64_t vpps_snapshot_version(const vpps_snapshot *s);
/* Locks and returns the published copy, which does not change until vpps_snapshot_unlock. Sets *version to its number. */
const vpps_model *vpps_snapshot_lock(vpps_snapshot *s, uint64_t *version);
void vpps_snapshot_unlock(vpps_snapshot *s);
