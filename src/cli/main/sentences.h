/* sentences.h - the program of an exported network: the words of a line, and what the lines of the input look like. */
/* The next word of what is left of a line; 0: there is none. */
static int next_word(text *left, text *word) {
    size_t n = 0;
    while (left->len && is_blank(*left->at)) left->at++, left->len--;
    while (n < left->len && !is_blank(left->at[n])) n++;
    *word = (text){left->at, n};
    left->at += n;
    left->len -= n;
    return n > 0;
}

typedef struct sentence {
    size_t n, most;
    text *words;
    uint32_t *numbers;
} sentence;

static void add_word(sentence *s, text word) {
    if (s->n == s->most) {
        s->most = 2 * s->most + 16;
        s->words = realloc(s->words, s->most * sizeof *s->words);
        s->numbers = realloc(s->numbers, s->most * sizeof *s->numbers);
        if (!s->words || !s->numbers) fail(0, "out of memory");
    }
    s->words[s->n] = word;
    s->numbers[s->n++] = net_word_number(word.at, word.len);
}

static void drop_sentence(sentence *s) {
    free(s->words);
    free(s->numbers);
}

static void put_class(size_t number) {
    const char *name = net_class_text((uint32_t)number);
    if (name) fputs(name, stdout);
}

/* The bar that parts a word from its tag; NULL: there is none, or one of the two is missing. */
static const char *find_bar(text word) {
    const char *bar = word.at + word.len;
    while (bar > word.at && *--bar != '|') {}
    return bar > word.at && bar + 1 < word.at + word.len ? bar : NULL;
}

/* Counts over all lines that are not blank. */
typedef struct shapes {
    size_t lines, words, barred, tabs, labelled, columns;
    int objects, alike, parted, after, in_row;
} shapes;

static shapes look(text all) {
    shapes n = {.objects = 1, .alike = 1};
    text line, word, left;
    while (next_line(&all, &line)) {
        size_t words = 0;
        const char *tab = memchr(line.at, '\t', line.len);
        left = line;
        n.parted |= tab != NULL;
        while (next_word(&left, &word)) words++, n.barred += find_bar(word) != NULL;
        n.parted |= !words;
        n.in_row |= words && n.after;
        n.after = words > 0;
        if (!words) continue;
        n.lines++;
        n.words += words;
        n.alike = n.alike && words > 1 && (!n.columns || words == n.columns);
        n.columns = words;
        n.tabs += tab != NULL;
        left = (text){line.at, tab ? (size_t)(tab - line.at) : 0};
        while (left.len && is_blank(*left.at)) left.at++, left.len--;
        while (left.len && is_blank(left.at[left.len - 1])) left.len--;
        n.labelled += left.len && net_class_number(left.at, left.len) != UINT32_MAX;
        left = line;
        next_word(&left, &word);
        n.objects = n.objects && *word.at == '{';
    }
    n.objects = n.objects && n.lines;
    return n;
}
