/* labels.h - the program of an exported network that labels sentences: lines of words, or of a label, a tab and words, whose labels are
 * replaced. `logits_of` gives CLASSES scores. */
static void logits_of(const sentence *s, float *logits);

int main(void) {
    text all, line, word;
    char *input = read_input(&all);
    sentence s = {0, 0, NULL, NULL};
    const shapes n = look(all);
    const int labelled = n.lines && 10 * n.tabs >= 9 * n.lines && 2 * n.labelled >= n.lines;
    if (!labelled && n.objects) fail(1, "expected lines of words, found JSON, which vpps predict reads");
    for (size_t number = 1; next_line(&all, &line); number++) {
        float logits[CLASSES];
        const char *tab = memchr(line.at, '\t', line.len);
        text left = line;
        s.n = 0;
        while (next_word(&left, &word)) s.n++;
        if (labelled && s.n) {
            if (!tab) fail(number, "expected a label, a tab and a sentence");
            line.len -= (size_t)(tab + 1 - line.at);
            line.at = tab + 1;
            if (memchr(line.at, '\t', line.len)) fail(number, "expected spaces between words, found a second tab");
            if (s.n && !next_word(&(text){line.at, line.len}, &word)) fail(number, "expected a sentence after the tab");
        }
        s.n = 0;
        while (next_word(&line, &word)) add_word(&s, word);
        if (s.n) {
            logits_of(&s, logits);
            put_class(greatest(logits, CLASSES));
        }
        for (size_t k = 0; k < s.n; k++) {
            putchar(k ? ' ' : '\t');
            put(s.words[k]);
        }
        putchar('\n');
    }
    drop_sentence(&s);
    free(input);
    return 0;
}
