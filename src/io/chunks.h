/* chunks.h - tags of chunks (named entities, phrases): IOB1, IOB2, IOE, IOBES (BIOES), BILOU, BMES and BMEWO. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* A tag such as B-PER, split into the letter and the type. */
typedef struct vpps_chunk_tag {
    char part;        /* 'O' outside a chunk; 'B', 'I', 'E': first, inner, last word; 'S': the only word */
    const char *type; /* the chunk's type; "" if the tag has none */
} vpps_chunk_tag;

/* Splits a tag: a letter alone, or a letter, '-' and the chunk's type. The schemes' other letters are translated: M to
 * I, L to E, U and W to S. Returns false, with *tag set to O, when the text is a tag of no scheme. */
static inline bool vpps_chunk_tag_read(const char *text, vpps_chunk_tag *tag) {
    static const char letters[] = "BIESMLUW", parts[] = "BIESIESS";
    *tag = (vpps_chunk_tag){'O', ""};
    if (strcmp(text, "O") == 0) return true;
    const char *letter = *text ? strchr(letters, *text) : NULL;
    if (!letter || (text[1] != '\0' && text[1] != '-')) return false;
    *tag = (vpps_chunk_tag){parts[letter - letters], text[1] ? text + 2 : ""};
    return true;
}

/* Returns whether two neighbouring tags of one type, given by their letters, belong to the same chunk. If not, a chunk ends after the first
 * tag and another begins at the second one; O is in no chunk. The scorer conlleval has this rule (Tjong Kim Sang and Buchholz 2000). */
static inline bool vpps_chunk_goes_on(char before, char now) {
    return (before == 'B' || before == 'I') && (now == 'I' || now == 'E');
}
