/* chain.h - tags of a sentence that depend on each other: by a network's scores of which tag follows which (models/crf.h), and by what a
 * scheme of chunks allows. */
#pragma once

#include "cli/chain_paths.h"

/* Which tags may follow each other, in the order of --scheme's words. */
typedef enum chain_scheme { CHAIN_ANY, CHAIN_IOB1, CHAIN_IOB2, CHAIN_IOBES } chain_scheme;

/* A chain of zeros. Close in any case. Fails with MEMORY. */
vpps_status chain_open(tag_chain *ch, uint32_t classes);
void chain_close(tag_chain *ch);

/* -inf for what the scheme does not allow. Fails with ARGUMENT where tags are not those of chunks, O is not among them, or one is of
 * another scheme: no sentence may have it, as B-x with IOBES and without E-x, or it is E-x or S-x without IOBES. Fails with MEMORY. */
vpps_status chain_forbid(tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags);

/* Would chain_forbid fail? As it does. */
vpps_status chain_check(chain_scheme scheme, const vpps_vocab *tags);

/* May `now` follow `before`? O stands before the first tag of a sentence and after the last. */
bool chain_allows(chain_scheme scheme, const char *before, const char *now);
