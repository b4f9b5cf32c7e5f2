/* words.h - reading and mapping words, for several tasks. */
#pragma once

#include "cli/task.h"
#include "io/text.h"

/* Reads text, a sentence a line, every character a word; spaces do not count. */
vpps_status task_read_characters(vpps_sentences *out, const task_text *text);

/* Makes *s unless it is there already. */
vpps_status task_need_sentences(vpps_sentences **s);

vpps_status task_copy_vocab(vpps_vocab **out, const vpps_vocab *from);

/* Tells how many words are cut, where a fifth or more of what was read becomes <unk>: a small text, whose words occur once. */
void task_note_cut(corpus *c, const vpps_vocab *words, const uint32_t *counts, uint32_t min_count);

/* A vocabulary of <unk>, then of the words that occur at least min_count times. `ends`: sentences end in END_WORD, which is kept however
 * rare it is. */
vpps_status task_cut_words(corpus *c, vpps_vocab **out, const vpps_sentences *sentences, uint32_t min_count, bool ends);

/* Ids of `from` in `to`, into split->ids[which]; VPPS_NO_WORD or 0 for what `to` does not know. */
vpps_status task_map_ids(corpus_split *split, int which, const vpps_vocab *from, const vpps_vocab *to,
                         uint32_t missing);

/* n ids by a map (NULL: as they are) into *out, which grows. Fails with MEMORY. */
vpps_status task_copy_ids(uint32_t **out, const uint32_t *ids, uint32_t n, const uint32_t *map);

/* Keeps the text of the part's latest example, for its answer; and gives that of example i. Fails with MEMORY. */
vpps_status task_keep_text(corpus_split *split, const task_text *text);
vpps_text task_text_of(const corpus_split *split, uint32_t i);
