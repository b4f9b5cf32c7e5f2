/* suggest.h - "did you mean": finds the known word nearest to a misspelled one. */
#pragma once

#include <stddef.h>

typedef struct suggestion {
    const char *typed, *word; /* the misspelled word, and the nearest known word (NULL: none is near) */
    size_t distance;
} suggestion;

suggestion suggest_for(const char *typed);

/* Makes `word` the suggestion if it is nearer than all words tried before. */
void suggest_try(suggestion *s, const char *word);
