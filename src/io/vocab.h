/* vocab.h - calls on vocabularies for the readers of data, beyond the public ones in vpps_data.h. */
#pragma once

#include "vpps_data.h"

/* Adds a word as vpps_vocab_add does, without checking that it is non-empty and free of NUL and line feeds. */
vpps_status vpps_vocab_add_unchecked(vpps_vocab *v, const char *word, size_t len, uint32_t *id);

/* Removes the words with ids from `size` on; a reader that fails calls it to restore the vocabulary. Never fails. */
void vpps_vocab_truncate(vpps_vocab *v, uint32_t size);

/* Replaces v's words by the words of `by`, which is freed. The text of the old words stays valid as long as v. Never fails. */
void vpps_vocab_replace(vpps_vocab *v, vpps_vocab *by);
