/* sentences.h - the program of an exported network: the words of a line or an object, and what the lines of the input look like. */
/* The next word of what is left of a line; 0: there is none. */
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
    char *own; /* the sentence's own copy of the text that `words` point into; NULL: they point into the input */
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
    char *copy = room(t.len, 1);
    memcpy(copy, t.at, t.len);
    s->own = need_memory(tokenize_simple(copy));
    free(copy);
    t = (text){s->own, strlen(s->own)};
#endif
    while (next_word(&t, &word)) add_word(s, word);
}

/* Of an object: a text, or a list of words. spaces: words may have some. */
static void add_object(const input *in, vpps_json *json, sentence *s, int spaces) {
    const vpps_json_value *v = read_object(in, json), *item = NULL;
    if (v->kind != VPPS_JSON_ARRAY) add_words(s, flat(in, v));
    while (v->kind == VPPS_JSON_ARRAY && (item = vpps_json_next(json, v, item))) {
        const text whole = flat(in, item), word = spaces && trim(whole).len ? trim(whole) : whole;
        if (!word.len || (!spaces && memchr(word.at, ' ', word.len))) stop(in, "words in the list");
        add_word(s, word);
    }
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
