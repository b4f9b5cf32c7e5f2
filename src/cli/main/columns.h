/* columns.h - input of an exported tagger in columns: one word a line, tabs or blanks between the columns, a blank line after each
 * sentence. The columns of CoNLL-U have standard names. In CoNLL-U Plus the file's first line names the columns. */
typedef struct columns {
    char separator; /* the separator of columns: a tab; or a space, which stands for any run of blanks */
    /* n: number of columns; 0: as many as in line 1. word, tag, id: numbers of these columns, from 1. tag 0: the last column; id 0: no column. */
    size_t n, word, tag, id, usual; /* usual: number of columns of the deciding line */
    int conllu;                     /* the lines are CoNLL-U */
    int named;                      /* the columns have names, from which `n`, `word` and `tag` were set */
    int varies;                     /* sentences may differ in their number of columns */
    int alone;                      /* each line is one word, without other columns */
    int keeps; /* the first word's tag is none of the network's: all tags stay, and predicted tags are a further column */
} columns;

enum { ENDS, NO_WORD, WORD }; /* kinds of lines: the sentence's end; a line without a word, such as a comment; a word */

/* Takes the next column c off the rest of a line. Sets left->at to NULL after the last column. Returns 0 if there is none. */
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

/* Returns whether a text is a number; if `marked`, a range such as 3-4 or a number such as 5.1 is one, too. */
static int is_number(text t, int marked) {
    size_t marks = 0;
    for (size_t i = 0; i < t.len; i++) {
        const int mark = i && i + 1 < t.len && (t.at[i] == '-' || t.at[i] == '.');
        marks += (size_t)mark;
        if (!mark && (t.at[i] < '0' || t.at[i] > '9')) return 0;
    }
    return t.len && marks <= (size_t)marked;
}

static int is_document(const columns *y, text line) {
    text left = line, word;
    return next_word(&left, &word) && is(word, "-DOCSTART-") &&
           (y->separator == ' ' || !memchr(line.at, '\t', (size_t)(word.at - line.at)));
}

/* Sets the separator and number of columns from the sentence's first line with columns; a sentence of comments has as many as the deciding line. */
static void begin_rows(columns *y, input in) {
    for (int first = 1, more = 1; more; first = 0, more = next_line(&in)) {
        const int document = is_document(y, in.line);
        if (!trim(in.line).len || (document && !first)) break;
        if (*in.line.at == '#' || document) continue;
        if (y->named) y->separator = memchr(in.line.at, '\t', in.line.len) ? '\t' : ' ';
        if (!y->n) y->n = count_columns(y, in.line);
        return;
    }
    if (!y->n) y->n = y->usual;
}

/* Returns what a word's line should have but lacks, as text for a message; NULL: the line is correct. */
static const char *fault_of(const columns *y, text line) {
    const size_t tag = y->tag ? y->tag : y->n, most = y->word > tag ? y->word : tag;
    if (y->word == y->tag) return "word and tag in different columns";
    if (!y->named && (y->n < most || (!y->tag && y->n <= y->word))) return "more columns";
    if (count_columns(y, line) != y->n)
        return !y->named    ? "as many columns as the sentence's first line has"
               : y->n == 10 ? "the 10 columns of CoNLL-U"
                            : "as many columns as there are names";
    if (y->id && !is_number(trim(column(y, line, y->id)), 1))
        return "a word's number, a range as 3-4, or an empty node as 5.1";
    if (y->id && !is_number(trim(column(y, line, y->id)), 0)) return NULL;
    if (!column(y, line, y->word).len) return "a word";
    return trim(column(y, line, tag)).len ? NULL : "a tag";
}

static int kind_of(columns *y, text line, const char **fault) {
    *fault = NULL;
    if (!trim(line).len || is_document(y, line)) return ENDS;
    if (y->named && (!y->word || !y->tag)) *fault = "columns of the names that are asked for";
    if (*fault) return WORD;
    const text id = trim(column(y, line, y->id));
    if (*line.at == '#' && !y->alone && y->n && (count_columns(y, line) != y->n || (y->id && !is_number(id, 1))))
        return NO_WORD;
    if (y->alone) {
        text left = line, word;
        if (next_word(&left, &word) && next_word(&left, &word)) *fault = "a word a line";
        return WORD;
    }
    if (!y->n) y->n = count_columns(y, line);
    *fault = fault_of(y, line);
    return y->id && !is_number(id, 0) ? NO_WORD : WORD;
}

/* ---------------------------------------------------------------- the format, told by the first line */

/* Returns the column names in the first line of CoNLL-U Plus; `at` is NULL for any other line. */
static text names_in(text line) {
    static const char name[] = "global.columns";
    const text none = {NULL, 0}, t = line.len && *line.at == '#' ? trim(after(line, 1)) : none;
    if (t.len < sizeof name || memcmp(t.at, name, sizeof name - 1) != 0) return none;
    const text value = trim(after(t, sizeof name - 1));
    return value.len && *value.at == '=' ? after(value, 1) : none;
}

/* Returns a column's number, from 1. `given`: the column's name or number, which an option's user gave; NULL: `usual` is the name. Returns
 * `otherwise` if no column has the name. */
static size_t find_column(text names, const char *given, const char *usual, size_t otherwise) {
    text word;
    const char *name = given ? given : usual;
    if (given && isdigit((unsigned char)*given)) {
        char *end;
        const unsigned long number = strtoul(given, &end, 10);
        if (*end || number < 1 || number > 1000000)
            stop_with("expected a column's number, from 1, or its name: '%.64s'", given);
        return number;
    }
    for (size_t i = 1; names.at && next_word(&names, &word); i++)
        if (is_alike(word, name)) return i;
    return otherwise;
}

/* Goes to the deciding line: the first that has words and is neither a comment nor -DOCSTART-; if none is, the first with words. A line is no
 * comment if its first word has a '|'. Sets *names to the names in line 1 of CoNLL-U Plus. Returns whether -DOCSTART- comes before the line. */
static int find_first(input *in, text *names) {
    int found = 0, document = 0;
    *names = (text){NULL, 0};
    for (input now = *in; next_line(&now);) {
        text left = now.line, word;
        if (now.number == 1) *names = names_in(now.line);
        if (!next_word(&left, &word)) continue;
        const int begins = is(word, "-DOCSTART-"), comment = *now.line.at == '#' && !memchr(word.at, '|', word.len);
        document |= begins;
        if (!(comment || begins) || !found) *in = now;
        if (!comment && !begins) break;
        found = 1;
    }
    return document;
}

/* Returns whether a line has CoNLL-U's ten columns: the first a word's number or a range, the seventh, the head's, a number or missing. */
static int is_conllu(const columns *y, text line) {
    const text head = column(y, line, 7);
    return count_columns(y, line) == 10 && is_number(column(y, line, 1), 1) && (is_number(head, 0) || is(head, "_"));
}

/* Finds the lines' separator and the columns with word and tag by the deciding line, supposing that the input is in columns. */
static columns columns_of(text line, text names) {
    columns y = {'\t', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    text left = line, c;
    const char *word = asked.word_column, *tag = asked.tag_column;
    if (!line.len || !memchr(line.at, '\t', line.len)) y.separator = ' ';
    y.alone = !word && !tag && !(next_word(&left, &c) && next_word(&left, &c));
    y.conllu = names.at || is_conllu(&y, line);
    if (y.conllu || (word && !isdigit((unsigned char)*word)) || (tag && !isdigit((unsigned char)*tag))) {
        static const char standard[] = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC";
        if (!names.at) names = (text){standard, sizeof standard - 1};
        y.named = 1;
        y.alone = 0;
        y.separator = ' ';
        y.n = count_columns(&y, names);
        y.separator = '\t';
        y.id = find_column(names, NULL, "id", 0);
    }
    y.word = find_column(names, word, "form", y.named ? 0 : 1);
    y.tag = find_column(names, tag, "upos", 0);
    y.varies = word && tag && !y.named;
    y.usual = y.alone ? 1 : count_columns(&y, line);
    return y;
}

/* Returns whether the tag of the first word from the deciding line on is none of the network's; "_" stands for any tag. */
static int has_other_tag(columns y, input in) {
    const char *fault;
    int kind;
    if (!in.line.len) return 0;
    if (y.named) y.separator = memchr(in.line.at, '\t', in.line.len) ? '\t' : ' ';
    y.alone = 0;
    do {
        kind = kind_of(&y, in.line, &fault);
        if (fault) return 0;
    } while (kind != WORD && next_line(&in));
    const text tag = trim(column(&y, in.line, y.tag ? y.tag : y.n));
    return kind == WORD && net_class_number(tag.at, tag.len) == UINT32_MAX && !is(tag, "_");
}

/* ---------------------------------------------------------------- answers */

/* Prints a line with the predicted tag in place of the line's own tag, or as a last column. */
static void put_tagged_line(const columns *y, text line, text whole, size_t tag) {
    const text old = column(y, line, y->tag ? y->tag : y->n);
    const int keeps = y->keeps || y->alone;
    const size_t before = keeps ? whole.len : (size_t)(old.at - whole.at);
    put((text){whole.at, before});
    if (keeps) putchar(y->separator == '\t' || memchr(line.at, '\t', line.len) ? '\t' : ' ');
    put_class(tag);
    if (!keeps) put(after(whole, before + old.len));
}

/* Reads the next sentence and prints its lines with predicted tags. */
static void answer_columns(input *in, const columns *file, sentence *s) {
    input again = *in;
    columns y = *file;
    size_t lines = 0, word = 0;
    const char *fault;
    begin_sentence(s);
    for (int kind = WORD; (kind != ENDS || (lines == 1 && trim(in->line).len)) && next_line(in); lines++) {
        if (!lines) begin_rows(&y, *in);
        place.line = in->number;
        kind = kind_of(&y, in->line, &fault);
        if (fault) stop(fault);
        const text whole = y.alone ? in->line : column(&y, in->line, y.word);
        if (kind == WORD) add_word(s, trim(whole).len ? trim(whole) : whole);
    }
    answer a = make_answer(s, 0);
    for (; lines && next_line(&again); lines--) {
        if (kind_of(&y, again.line, &fault) == WORD)
            put_tagged_line(&y, again.line, again.whole, (size_t)a.tags[word++]);
        else if (trim(again.line).len)
            put(again.whole);
        fputs(again.end, stdout);
    }
    drop_answer(&a);
}
