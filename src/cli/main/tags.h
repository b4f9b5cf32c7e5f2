/* tags.h - the program of an exported network that tags words: lines of words or of word|TAG, whose tags are replaced. `logits_of` gives
 * CLASSES scores for each word. */
static void logits_of(const sentence *s, float *logits);

#ifdef CHAIN
/* The likeliest tags together (Viterbi 1967), by the scores of which tag follows which. */
static void choose(size_t n, const float *logits, size_t *tags) {
    double *best = room(2 * CLASSES, sizeof *best), *now = best + CLASSES;
    size_t *from = room(n * CLASSES, sizeof *from);
    for (size_t i = 0; i < CLASSES; i++) best[i] = (double)chain_begin[i] + (double)logits[i];
    for (size_t k = 1; k < n; k++) {
        for (size_t i = 0; i < CLASSES; i++) {
            size_t at = 0;
            for (size_t j = 1; j < CLASSES; j++)
                if (best[j] + (double)chain_next[i * CLASSES + j] > best[at] + (double)chain_next[i * CLASSES + at])
                    at = j;
            from[k * CLASSES + i] = at;
            now[i] = best[at] + (double)chain_next[i * CLASSES + at] + (double)logits[k * CLASSES + i];
        }
        memcpy(best, now, CLASSES * sizeof *best);
    }
    size_t tag = 0;
    for (size_t i = 0; i < CLASSES; i++) best[i] += (double)chain_end[i];
    for (size_t i = 1; i < CLASSES; i++) tag = best[i] > best[tag] ? i : tag;
    for (size_t k = n; k-- > 0; tag = from[k * CLASSES + tag]) tags[k] = tag;
    free(best);
    free(from);
}
#else
static void choose(size_t n, const float *logits, size_t *tags) {
    for (size_t k = 0; k < n; k++) tags[k] = greatest(logits + k * CLASSES, CLASSES);
}
#endif

static void answer(const sentence *s) {
    float *logits = room(s->n * CLASSES, sizeof *logits);
    size_t *tags = room(s->n, sizeof *tags);
    logits_of(s, logits);
    if (s->n) choose(s->n, logits, tags);
    for (size_t k = 0; k < s->n; k++) {
        if (k) putchar(' ');
        put(s->words[k]);
        putchar('|');
        put_class(tags[k]);
    }
    putchar('\n');
    free(logits);
    free(tags);
}

int main(void) {
    text all, line, word;
    char *input = read_input(&all);
    sentence s = {0, 0, NULL, NULL};
    const shapes n = look(all);
    const int barred = n.words && 10 * n.barred >= 9 * n.words;
    if (!barred && (n.objects || (n.alike && n.in_row && n.parted)))
        fail(1, "expected lines of words or of word|TAG, found columns or JSON, which vpps predict reads");
    for (size_t number = 1; next_line(&all, &line); number++) {
        s.n = 0;
        while (next_word(&line, &word)) {
            const char *bar = barred ? find_bar(word) : NULL;
            if (barred && !bar) fail(number, "expected word|TAG");
            add_word(&s, (text){word.at, bar ? (size_t)(bar - word.at) : word.len});
        }
        answer(&s);
    }
    drop_sentence(&s);
    free(input);
    return 0;
}
