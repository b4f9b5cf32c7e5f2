/* columns.h - the program of an exported tagger: a word a line, columns with tabs or blanks between, a blank line after each sentence; among
 * them CoNLL-U. */
typedef struct columns {
    char separator;          /* a tab, or a space: any blanks */
    size_t n, word, tag, id; /* of a line; numbers from 1; id 0: there is none */
    int keeps;               /* the network's tags come after all columns */
} columns;

enum { ENDS, NO_WORD, WORD }; /* what a line is to a sentence */

/* The next column of what is left, whose `at` is NULL after the last one. */
static int next_column(const columns *y, text *left, text *c) {
    if (y->separator == ' ' || !left->at) return left->at && next_word(left, c);
    const char *tab = left->len ? memchr(left->at, '\t', left->len) : NULL;
    *c = (text){left->at, tab ? (size_t)(tab - left->at) : left->len};
    *left = tab ? after(*left, c->len + 1) : (text){NULL, 0};
    return 1;
}

static size_t count_columns(const columns *y, text line) {
    size_t n = 0;
    for (text c; next_column(y, &line, &c);) n++;
    return n;
}

static text column(const columns *y, text line, size_t number) {
    text c = {line.at, 0};
    while (number && next_column(y, &line, &c)) number--;
    return number ? (text){c.at, 0} : c;
}

/* A number, or where a mark may be in it 3-4 or 5.1. */
static int is_number(text t, int marked) {
    size_t marks = 0;
    for (size_t i = 0; i < t.len; i++) {
        const int mark = i && i + 1 < t.len && (t.at[i] == '-' || t.at[i] == '.');
        marks += (size_t)mark;
        if (!mark && (t.at[i] < '0' || t.at[i] > '9')) return 0;
    }
    return t.len && marks <= (size_t)marked;
}

static int is_document(text line) {
    text word;
    return next_word(&line, &word) && word.len == 10 && memcmp(word.at, "-DOCSTART-", 10) == 0;
}

static int kind_of(const columns *y, text line) {
    const text id = trim(column(y, line, y->id));
    if (!trim(line).len || is_document(line)) return ENDS;
    if (*line.at == '#' && (count_columns(y, line) != y->n || (y->id && !is_number(id, 1)))) return NO_WORD;
    return y->id && !is_number(id, 0) ? NO_WORD : WORD;
}

/* By the first line that may have columns. */
static columns columns_of(text first, int tabs) {
    columns y = {tabs ? '\t' : ' ', 0, 1, 0, 0, 0};
    y.n = y.tag = count_columns(&y, first);
    const text head = trim(column(&y, first, 7));
    if (y.n == 10 && is_number(trim(column(&y, first, 1)), 1) &&
        (is_number(head, 0) || (head.len == 1 && *head.at == '_')))
        y = (columns){y.separator, 10, 2, 4, 1, 0};
    return y;
}

/* Are these columns? Every line has as many, and nearly all tags are known, or it is CoNLL-U. */
static int find_columns(input all, columns *y) {
    size_t n = 0, known_tags = 0;
    int tabs = 1, varied = 0, ended = 0;
    text first = {NULL, 0}, first_tag = {NULL, 0};
    for (input in = all; next_line(&in);) {
        if (in.number == 1 && in.line.len > 16 && memcmp(in.line.at, "# global.columns", 16) == 0)
            stop(&in, "CoNLL-U or columns without names, found CoNLL-U Plus, which vpps predict reads");
        if (!trim(in.line).len || *in.line.at == '#') continue;
        if (!first.at || is_document(first)) first = in.line;
        tabs = tabs && memchr(in.line.at, '\t', in.line.len) != NULL;
    }
    if (!first.at) return 0;
    *y = columns_of(first, tabs);
    for (input in = all; next_line(&in);) {
        const int kind = kind_of(y, in.line);
        ended |= kind == ENDS && n;
        if (kind != WORD && !(y->id && kind == NO_WORD && *in.line.at != '#')) continue;
        const text tag = trim(column(y, in.line, y->tag));
        if (y->n < 2 || count_columns(y, in.line) != y->n || !column(y, in.line, y->word).len || !tag.len) {
            if (y->id) stop(&in, "the 10 columns of CoNLL-U");
            return 0;
        }
        if (y->id && !is_number(trim(column(y, in.line, y->id)), 1))
            stop(&in, "a word's number, a range as 3-4, or an empty node as 5.1");
        if (kind != WORD) continue;
        if (!n++) first_tag = tag;
        varied |= ended || tag.len != first_tag.len || memcmp(tag.at, first_tag.at, tag.len) != 0;
        known_tags += net_class_number(tag.at, tag.len) != UINT32_MAX || (tag.len == 1 && *tag.at == '_');
    }
    y->keeps = !known_tags;
    return n && (y->id || (10 * known_tags >= 9 * n && (tabs || varied)));
}

/* A line with the network's tag in the place of its own, or after all. */
static void put_row(const columns *y, text line, size_t tag) {
    const text old = column(y, line, y->tag);
    const size_t before = y->keeps ? line.len : (size_t)(old.at - line.at);
    put((text){line.at, before});
    if (y->keeps) putchar(memchr(line.at, '\t', line.len) ? '\t' : ' ');
    put_class(tag);
    if (!y->keeps) put(after(line, before + old.len));
}

/* The next sentence's lines as they are, with other tags. */
static void answer_columns(input *in, const columns *y, sentence *s) {
    input again = *in;
    size_t lines = 0, word = 0;
    begin_sentence(s);
    for (int kind = WORD; kind != ENDS && next_line(in); lines++) {
        const text whole = column(y, in->line, y->word);
        kind = kind_of(y, in->line);
        if (kind == WORD) add_word(s, trim(whole).len ? trim(whole) : whole);
    }
    answer a = make_answer(s, 0);
    for (; lines && next_line(&again); lines--) {
        if (kind_of(y, again.line) == WORD)
            put_row(y, again.line, (size_t)a.tags[word++]);
        else if (trim(again.line).len)
            put(again.line);
        fputs(again.end, stdout);
    }
    drop_answer(&a);
}
