/* tagger.h - the program of an exported network that tags words: lines of words, of word|TAG, columns, or objects. */
enum { MOST_BARS = 8 };

/* How many '|' a word has that is word|TAG, or has more columns; 0: it is not. */
static size_t bars_of(text word) {
    size_t n = 0;
    for (size_t i = 0; i < word.len; i++) n += word.at[i] == '|';
    if (!n || word.at[word.len - 1] == '|' || !memchr(word.at + 1, '|', word.len - 1)) return 0;
    return n < MOST_BARS ? n : MOST_BARS - 1;
}

/* How many '|' part the columns of a token: the fewest of a word in the first line, where its first word has a '|'; else 0. */
static size_t find_bars(input in) {
    size_t fewest = MOST_BARS, n = 0;
    while (!n && next_line(&in)) {
        for (text left = in.line, word; next_word(&left, &word); n++) {
            const size_t bars = bars_of(word);
            if (!n && !memchr(word.at, '|', word.len)) return 0;
            if (bars && bars < fewest) fewest = bars;
        }
    }
    return !n ? 0 : fewest == MOST_BARS ? 1 : fewest;
}

/* Adds word|TAG without the tag, and without columns between. */
static void add_barred(const input *in, sentence *s, text word, size_t bars) {
    text left = word;
    for (size_t k = 0; k < bars; k++) {
        while (left.len && left.at[left.len - 1] != '|') left.len--;
        if (!left.len) stop(in, "word|TAG");
        if (!k && left.len == word.len) stop(in, "a tag after '|'");
        left.len--;
    }
    if (!left.len) stop(in, "a word before '|'");
    add_word(s, left);
}

static void put_tagged(const answer *a) {
    for (size_t k = 0; k < a->s->n; k++) {
        if (k) putchar(' ');
        put(a->s->words[k]);
        putchar('|');
        put_class((size_t)a->tags[k]);
    }
}

static void answer_line(input *in, sentence *s, int json, size_t bars) {
    vpps_json object;
    text word;
    const int blank = !trim(in->line).len;
    begin_sentence(s);
    if (json && !blank)
        add_object(in, &object, s, 1);
    else if (!bars)
        add_words(s, in->line);
    for (text left = in->line; bars && next_word(&left, &word);) add_barred(in, s, word, bars);
    answer a = make_answer(s, json);
    if (json && !blank) {
        put_object(in->line, &object, s->n ? &a : NULL);
        vpps_json_free(&object);
    } else {
        put_tagged(&a);
    }
    fputs(in->end, stdout);
    drop_answer(&a);
}

int main(void) {
    input in = read_input();
    sentence s = {0, NULL, NULL, NULL};
    columns y;
    const int json = is_json(in);
    const size_t bars = json ? 0 : find_bars(in);
    if (!json && !bars && find_columns(in, &y))
        while (in.left.len) answer_columns(&in, &y, &s);
    while (next_line(&in)) answer_line(&in, &s, json, bars);
    drop_sentence(&s);
    free(in.all);
    return 0;
}
