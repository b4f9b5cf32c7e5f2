/* vectors.h - initialises a network's embeddings with pretrained vectors (--vectors). */
#pragma once

#include "cli/session/session_state.h"

/* Returns whether s initialises embeddings from a file of vectors; false where parameters come from a checkpoint. */
bool vectors_wanted(const settings *s);

/* Sets the embeddings' size to the size of the file's vectors, unless an option gives it. Call it before the network is
 * made. Fails with IO, FORMAT, MEMORY, ARGUMENT (another size is given). */
vpps_status vectors_set_size(settings *s);

/* Sets the embeddings of words that the file has, and x->vectors; freezes them if s says so. Call it after the network
 * is made and before its handle is. Fails with IO, FORMAT, MEMORY. */
vpps_status vectors_load(session *x, const corpus *c);

/* Writes a line such as "glove.txt: vectors of 81.2 % of the words, ...". */
void vectors_describe(const session *x, char *text, size_t n);
