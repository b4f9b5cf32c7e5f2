/* suggest.h - "did you mean": the known word that is nearest to a misspelled one. */
#pragma once

#include <stddef.h>

typedef struct suggestion {
    const char *typed, *word; /* word NULL: nothing is near */
    size_t distance;
} suggestion;

suggestion suggest_for(const char *typed);

/* Is it nearer than what was tried before? Equally near words: the first one. */
void suggest_try(suggestion *s, const char *word);
