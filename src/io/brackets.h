/* brackets.h - common functions of the readers of bracketed trees, such as (S (NP ...)): the position in the text, and white space. */
#pragma once

#include "text.h"

/* A reader's position in a text of bracketed trees. A tree begins a line and may continue on the following lines. A line with a bracket in
 * its first column begins the next tree, so that a missing closing bracket is reported where it is missing. */
typedef struct vpps_brackets {
    vpps_text text;
    vpps_line line;
    const char *at; /* position within `line` */
    bool in_tree;
} vpps_brackets;

/* Starts reading at the beginning of a text. Fails with FORMAT when the bytes are no text (vpps_text_check). */
vpps_status vpps_brackets_open(vpps_brackets *b, const char *name, const char *text, size_t len);

/* Goes to the next tree. Returns false at the end of the text. */
bool vpps_brackets_next_tree(vpps_brackets *b);

/* Fails with FORMAT when something follows a complete tree on its last line. */
vpps_status vpps_brackets_end_tree(vpps_brackets *b);

/* Skips white space; inside a tree, skips line ends, too. */
void vpps_brackets_skip(vpps_brackets *b);

/* Returns the next byte without taking it, NUL at the end of the line. */
static inline char vpps_brackets_peek(const vpps_brackets *b) { return b->at < b->line.end ? *b->at : '\0'; }

/* Takes a label or word and the white space after it. Returns its length, 0 before a bracket or the line's end. */
size_t vpps_brackets_token(vpps_brackets *b, const char **token);

/* Takes '(' with the white space after it, or ')' alone, since ')' may end the tree. Fails with FORMAT and `expected` in
 * the message when another byte comes next. */
vpps_status vpps_brackets_take(vpps_brackets *b, char bracket, const char *expected);

vpps_status vpps_brackets_fail(const vpps_brackets *b, const char *expected);
