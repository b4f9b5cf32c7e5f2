/* heads.h - finds heads: types that only the loss and other heads read and that are no recurrence, as classifiers. With many classes
 * they keep more words than all other vertices. Their vertices need little of each other, so that they can run slice by slice. */
#pragma once

#include "script/needs.h"

/* Sets heads[t] if type t is a head; `heads` is all false before. */
void vpps_find_heads(const vpps_batch_needs *n, bool *heads);
