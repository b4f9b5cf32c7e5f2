/* vocab.h - calls on vocabularies for readers, beyond those of vpps_data.h. */
#pragma once

#include "vpps_data.h"

/* vpps_vocab_add for a word that is known to be non-empty and free of NUL and line feeds. */
vpps_status vpps_vocab_add_unchecked(vpps_vocab *v, const char *word, size_t len, uint32_t *id);

/* Forgets the words with ids from `size` on: how a failed reader puts the vocabulary back. Never fails. */
void vpps_vocab_truncate(vpps_vocab *v, uint32_t size);

/* Replaces v's words by those of `by`, which is freed. The text of the old words lives as long as v. Never fails. */
void vpps_vocab_replace(vpps_vocab *v, vpps_vocab *by);
