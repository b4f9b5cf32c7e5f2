/* tagger.h - an exported program that tags words. Its input has lines of words, lines of word|TAG, columns, or records (JSON, CSV, TSV). */
/* How the input's lines are read. bars 0: as columns, which `y` describes; else as tokens such as word|TAG, each with `bars` times '|'. */
static struct {
    columns y;
    size_t bars;
} lines;

/* Returns the number of '|' in a token word|TAG or word|...|TAG; 0: the word is not such a token. */
static size_t bars_of(text word) {
    size_t n = 0;
    for (size_t i = 0; i < word.len; i++) n += word.at[i] == '|';
    if (!n || word.at[word.len - 1] == '|' || !memchr(word.at + 1, '|', word.len - 1)) return 0;
    return n;
}

static form look(input in, form wanted, int sure) {
    static const char says[] = "%s; --input-format text or columns says what the lines are";
    text names, word = {NULL, 0}, last = word;
    const int document = find_first(&in, &names);
    text first = last;
    size_t fewest = 0, n = 0;
    for (text left = in.line; next_word(&left, &word); last = word) {
        if (!n++) first = word;
        if (bars_of(word) && (!fewest || bars_of(word) < fewest)) fewest = bars_of(word);
    }
    if (wanted == PLAIN) return PLAIN;
    lines.bars = 0;
    lines.y = columns_of(in.line, names);
    if (wanted == TAGGED || (!wanted && n && memchr(first.at, '|', first.len) && !names.at)) {
        lines.bars = fewest ? fewest : 1;
        return TAGGED;
    }
    const int told = wanted || names.at || document, conllu = lines.y.conllu;
    const int twice = n == 2 && first.len == last.len && !memcmp(first.at, last.at, last.len);
    if (!told && (!in.line.len || !memchr(in.line.at, '\t', in.line.len))) {
        const int tag = n > 1 && net_class_number(last.at, last.len) != UINT32_MAX &&
                        (twice || net_word_number(last.at, last.len) == UINT32_MAX);
        if (sure && (conllu || tag)) stop_with(says, "expected text, found a line that may be of columns");
        return PLAIN;
    }
    lines.y.keeps = has_other_tag(lines.y, in);
    if (!told && !conllu && lines.y.keeps && sure)
        stop_with(says, "expected a tag of the network in the column of tags");
    if (lines.y.alone) lines.y.separator = '\t';
    return told || conllu || !lines.y.keeps ? COLUMNS : ANY;
}

/* Returns column `wanted`, from 1, of a token of n + 1 columns. The token's first column has the surplus '|' if there are more than n.
 * The result's `at` is NULL if there is no such column. */
static text bar_column(text t, size_t n, size_t wanted) {
    for (size_t c = n + 1; c > 1; c--) {
        size_t begin = t.len;
        while (begin && t.at[begin - 1] != '|') begin--;
        if (!begin) return (text){NULL, 0};
        if (c == wanted) return after(t, begin);
        t.len = begin - 1;
    }
    return t;
}

static void add_barred(sentence *s, text token) {
    const text none = {NULL, 0};
    const size_t n = lines.bars ? lines.bars : 1;
    size_t column_of_word = find_column(none, asked.word_column, "", 1),
           tag = find_column(none, asked.tag_column, "", n + 1);
    if (column_of_word > n + 1 || tag > n + 1 || column_of_word == tag) stop("two of the columns for word and tag");
    if (!bar_column(token, n, 1).at) stop(n == 1 ? "word|TAG" : "as many '|' as in the first line");
    if (!bar_column(token, n, column_of_word).len) stop("a word before '|'");
    if (!bar_column(token, n, tag).len) stop("a tag after '|'");
    add_word(s, bar_column(token, n, column_of_word));
}

static void put_tagged(const answer *a) {
    for (size_t k = 0; k < a->s->n; k++) {
        if (k) putchar(' ');
        put(a->s->words[k]);
        putchar('|');
        put_class((size_t)a->tags[k]);
    }
}

static void answer_example(const reader *r, const example *x, sentence *s) {
    const int is_record = r->form >= JSONL && !x->blank;
    text word;
    begin_sentence(s);
    if (is_record)
        add_record(s, r, x, 1);
    else if (r->form != TAGGED)
        add_words(s, x->line);
    for (text left = x->line; r->form == TAGGED && next_word(&left, &word);) add_barred(s, word);
    answer a = make_answer(s, is_record);
    if (is_record)
        put_record(r, x, s->n ? &a : NULL);
    else
        put_tagged(&a);
    fputs(x->end, stdout);
    drop_answer(&a);
}

static void answer_input(input *in) {
    reader r = begin_reader(in);
    sentence s = {0, NULL, NULL, NULL};
    while (r.form == COLUMNS && in->left.len) answer_columns(in, &lines.y, &s);
    for (example x; next_example(in, &r, &x); drop_example(&x)) answer_example(&r, &x, &s);
    end_reader(&r);
    drop_sentence(&s);
}
