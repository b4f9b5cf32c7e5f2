/* heads.h - finds heads, such as classifiers: types that only the loss and other heads read and that are no recurrence. With many classes
 * they keep more words than all other vertices. Since their vertices hardly read each other, they can run slice by slice. */
#pragma once

#include "script/needs.h"

/* Sets heads[t] to true for each type t that is a head; the array is all false on entry. */
void vpps_find_heads(const vpps_batch_needs *n, bool *heads);
