/* suggest.c - finds the nearest word. The distance counts insertions, deletions, substitutions, and swaps of
 * neighbouring letters (optimal string alignment). */
#include "cli/common/suggest.h"
#include "base/base.h"

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t distance(const char *a, const char *b) {
    const size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    size_t rows[3][LONGEST + 1]; /* the last three rows of the matrix of distances */
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(least(above[j], now[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

suggestion suggest_for(const char *typed) { return (suggestion){typed, NULL, SIZE_MAX}; }

void suggest_try(suggestion *s, const char *word) {
    const size_t len = strlen(s->typed), far = 1 + len / 5;
    const size_t n = strlen(word);
    size_t d = distance(s->typed, word);
    /* A known word that contains the typed word, or with which the typed word begins, is near, too, but less so than a misspelled word. */
    const bool part = len >= 2 && strncmp(word, s->typed, len) == 0,
               inside = len >= 4 && strstr(word, s->typed) != NULL;
    if (d > far && (part || inside || (n >= 4 && strncmp(s->typed, word, n) == 0))) d = far;
    if (d > far || d >= s->distance) return;
    s->distance = d;
    s->word = word;
}
