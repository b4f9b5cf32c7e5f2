/* vectors.h - pretrained vectors as the beginning of a network's embeddings (--vectors). */
#pragma once

#include "cli/session_state.h"

/* Does s begin with vectors of a file? Not where parameters come from a checkpoint. */
bool vectors_wanted(const settings *s);

/* Before the network is made: its embeddings get the file's size, unless their size is given. Fails with IO, FORMAT,
 * MEMORY, ARGUMENT (another size is given). */
vpps_status vectors_set_size(settings *s);

/* After it is made, and before its handle: sets the embeddings of words that the file has, and x->vectors; freezes them
 * when s asks for it. Fails with IO, FORMAT, MEMORY. */
vpps_status vectors_load(session *x, const corpus *c);

/* "glove.txt: vectors of 81.2 % of the words, ..." */
void vectors_describe(const session *x, char *text, size_t n);
