/* brackets.h - common parts of the readers of bracketed trees: the position in a text, and its white space. */
#pragma once

#include "text.h"

/* A tree begins a line, and may go on in those that follow. A line that has a bracket at its margin begins the next tree,
 * so that a closing bracket that is missing is found where it should be. */
typedef struct vpps_brackets {
    vpps_text text;
    vpps_line line;
    const char *at; /* in the line */
    bool in_tree;
} vpps_brackets;

/* The text from its beginning. Fails with FORMAT when it is none (vpps_text_check). */
vpps_status vpps_brackets_open(vpps_brackets *b, const char *name, const char *text, size_t len);

/* Goes to the next tree, which begins a line; false at the end of the text. */
bool vpps_brackets_next_tree(vpps_brackets *b);

/* Fails unless the tree, which is complete, ends its line. */
vpps_status vpps_brackets_end_tree(vpps_brackets *b);

/* Skips white space, inside a tree also line ends. */
void vpps_brackets_skip(vpps_brackets *b);

/* The next byte; a NUL at the end of the line. */
static inline char vpps_brackets_peek(const vpps_brackets *b) { return b->at < b->line.end ? *b->at : '\0'; }

/* Takes a label or a word and the white space after it. Returns the length of the former; 0: a bracket or the end of the line is here. */
size_t vpps_brackets_token(vpps_brackets *b, const char **token);

/* Takes one of ( and ), with the white space after it; fails with `expected` when something else is here. A bracket that
 * closes may end the tree: the white space after it is not taken. */
vpps_status vpps_brackets_take(vpps_brackets *b, char bracket, const char *expected);

vpps_status vpps_brackets_fail(const vpps_brackets *b, const char *expected);
