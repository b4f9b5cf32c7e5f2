/* encode.h - the words of a script. */
#ifndef VPPS_SCRIPT_ENCODE_H
#define VPPS_SCRIPT_ENCODE_H

#include "script/work.h"

/* POOL, without a message: the batch needs w->next_word words of the pool. */
vpps_status vpps_encode_batch(vpps_batch *b);
void vpps_script_places_free(vpps_script_places *p);

#endif
