/* chain.h - tags of a sentence that depend on each other: through a network's scores of successive tags (models/crf.c),
 * or through the rules of a tag scheme such as IOB2. */
#pragma once

#include "cli/session/chain_paths.h"

/* The rules by which tags may follow each other, in the order of --scheme's choices. */
typedef enum chain_scheme { CHAIN_ANY, CHAIN_IOB1, CHAIN_IOB2, CHAIN_IOBES } chain_scheme;

/* Makes a chain, the scores of successive tags, for `classes` tags; all scores are zero. Fails with MEMORY. Call chain_close also after a failure. */
vpps_status chain_open(tag_chain *ch, uint32_t classes);
void chain_close(tag_chain *ch);

/* Sets scores to -inf for successive tags that the scheme forbids. Fails with ARGUMENT where tags do not mark chunks, where O is missing,
 * or where a tag fits only another scheme: E-x and S-x fit only IOBES, in which B-x needs a tag E-x. Fails with MEMORY. */
vpps_status chain_forbid(tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags);

/* Checks that the network's tags fit the tag scheme, such as IOB2. Fails with ARGUMENT where tags do not mark chunks, O is missing, or a
 * tag fits only another scheme. Fails with MEMORY. */
vpps_status chain_check(chain_scheme scheme, const vpps_vocab *tags);

/* Returns whether the scheme allows the tag `now` directly after `before`. O counts as the tag before a sentence's first and after its last tag. */
bool chain_allows(chain_scheme scheme, const char *before, const char *now);
