/* heads.h - the types that only the loss and other heads read, and that are no recurrence: classifiers, which keep more than all that
 * is below them where there are many classes. Their vertices need little of each other, so that they can be run slice by slice. */
#ifndef VPPS_SCRIPT_HEADS_H
#define VPPS_SCRIPT_HEADS_H

#include "script/needs.h"

/* heads[t]: is type t one? `heads` is all false before. */
void vpps_find_heads(const vpps_batch_needs *n, bool *heads);

#endif
