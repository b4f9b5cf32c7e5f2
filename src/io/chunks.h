/* chunks.h - tags of chunks (entities), whatever their scheme: IOB1, IOB2, IOE, IOBES (BIOES), BILOU, BMES, BMEWO. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* A tag taken apart. */
typedef struct vpps_chunk_tag {
    char part;        /* O; B, I, E: a chunk's begin, inside and end; S: a whole one */
    const char *type; /* "" for O, and for a tag without one */
} vpps_chunk_tag;

/* O, or a letter, and after it nothing or '-' and a type. Of the schemes' letters M is I, L is E, U and W are S. False: it is
 * the tag of no scheme; *tag is then O. */
static inline bool vpps_chunk_tag_read(const char *text, vpps_chunk_tag *tag) {
    static const char letters[] = "BIESMLUW", parts[] = "BIESIESS";
    *tag = (vpps_chunk_tag){'O', ""};
    if (strcmp(text, "O") == 0) return true;
    const char *letter = *text ? strchr(letters, *text) : NULL;
    if (!letter || (text[1] != '\0' && text[1] != '-')) return false;
    *tag = (vpps_chunk_tag){parts[letter - letters], text[1] ? text + 2 : ""};
    return true;
}

/* Does a chunk go on from a tag to the next one, both of the same type? Else one ends after the first, if that is not O,
 * and one begins at the second, if that is not O. As conlleval has it (Tjong Kim Sang and Buchholz 2000). */
static inline bool vpps_chunk_goes_on(char before, char now) {
    return (before == 'B' || before == 'I') && (now == 'I' || now == 'E');
}
