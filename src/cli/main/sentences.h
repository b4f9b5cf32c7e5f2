/* sentences.h - part of an exported program: reads sentences, whose words are in a line, a JSON object or a table's row of the input. */
/* Takes the next word off the rest of a line. Returns 0 if there is none. */
static int next_word(text *left, text *word) {
    size_t n = 0;
    while (left->len && vpps_is_space(*left->at)) *left = after(*left, 1);
    while (n < left->len && !vpps_is_space(left->at[n])) n++;
    *word = (text){left->at, n};
    *left = after(*left, n);
    return n > 0;
}

typedef struct sentence {
    size_t n;
    text *words;
    uint32_t *numbers;
    char *own; /* the sentence's own copy of the text to which `words` point; NULL: `words` point into the input */
} sentence;

static void add_word(sentence *s, text word) {
    s->words = grow(s->words, s->n + 1, sizeof *s->words);
    s->numbers = grow(s->numbers, s->n + 1, sizeof *s->numbers);
    s->words[s->n] = word;
    s->numbers[s->n++] = net_word_number(word.at, word.len);
}

static void begin_sentence(sentence *s) {
    free(s->own);
    s->own = NULL;
    s->n = 0;
}

static void add_words(sentence *s, text t) {
    text word;
#ifdef TOKENS
    char *whole = copy(t);
    s->own = need_memory(tokenize_simple(whole));
    free(whole);
    t = (text){s->own, strlen(s->own)};
#endif
    while (next_word(&t, &word)) add_word(s, word);
}

/* Adds one word of a list to the sentence. If `spaces`, the word may contain spaces. */
static void add_item(sentence *s, text whole, int spaces) {
    const text word = spaces && trim(whole).len ? trim(whole) : whole;
    if (!word.len || (!spaces && memchr(word.at, ' ', word.len))) stop("words in the list");
    add_word(s, word);
}

/* Adds the words in a table's cell, which holds a sentence's text or a list of words. */
static void add_cell(sentence *s, char *cell, int spaces) {
    bool cut;
    size_t n;
    char *item = s->own = room(strlen(cell), 1);
    const bool list = list_of_text(cell, item, &n, &cut);
    if (cut) stop("a list, found one with \"...\", whose items were left out");
    for (size_t next; list && n; n--, item += next + 1) {
        next = strlen(item);
        add_item(s, flat(item), spaces);
    }
    if (list) return;
    begin_sentence(s);
    add_words(s, (text){cell, strlen(cell)});
}

/* Adds the words of a record (JSON object or table row) to the sentence: those of its text, or those of its list of words. */
static void add_record(sentence *s, const reader *r, const example *x, int spaces) {
    if (is_table(r->form)) {
        add_cell(s, cell_of(r, x), spaces);
        return;
    }
    const vpps_json_value *v = value_in(&x->json), *item = NULL;
    if (v->kind != VPPS_JSON_ARRAY) add_words(s, flat_value(v));
    while (v->kind == VPPS_JSON_ARRAY && (item = vpps_json_next(&x->json, v, item)))
        add_item(s, flat_value(item), spaces);
}

static void drop_sentence(sentence *s) {
    begin_sentence(s);
    release(s->words);
    release(s->numbers);
}

static void put_class(size_t number) {
    const char *name = net_class_text((uint32_t)number);
    if (name) fputs(name, stdout);
}
