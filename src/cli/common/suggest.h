/* suggest.h - "did you mean": finds the known word nearest to a misspelled one. */
#pragma once

#include <stddef.h>

typedef struct suggestion {
    const char *typed, *word; /* typed: the misspelled word; word: the nearest known one, NULL: none is near */
    size_t distance;
} suggestion;

suggestion suggest_for(const char *typed);

/* Makes `word` the suggestion if it is nearer than all words tried before. */
void suggest_try(suggestion *s, const char *word);
