/* labels.h - an exported program that labels sentences. A line of input has words, or a label, a tab and words; or the input has JSON
 * objects or table rows. The program prints predicted labels. `logits_of` computes a sentence's CLASSES scores. */
struct answer {
    float logits[CLASSES];
};
static void logits_of(const sentence *s, float *logits);

static void put_value(const answer *a, size_t i) {
    const size_t label = likeliest(a->logits);
    if (i == 0)
        vpps_json_write_string(stdout, net_class_text((uint32_t)label));
    else
        put_number(score_of(a->logits, label));
}

static void put_cell(const answer *a, size_t i, char separator, int tabs) {
    const size_t label = likeliest(a->logits);
    if (i == 0)
        csv_write(stdout, net_class_text((uint32_t)label), separator, tabs);
    else
        put_number_cell(score_of(a->logits, label), separator);
}

/* Finds the input's format: LABELLED if its first line has a known label before a tab, PLAIN if the line has no tab. */
static form look(input in, form wanted, int sure) {
    if (wanted) return wanted;
    while (next_line(&in)) {
        if (!trim(in.line).len) continue;
        const char *tab = memchr(in.line.at, '\t', in.line.len);
        const text label = trim((text){in.line.at, tab ? (size_t)(tab - in.line.at) : 0});
        const int none = tab && net_class_number(label.at, label.len) == UINT32_MAX;
        if (none && sure) stop("a label of the network before the tab");
        return none ? ANY : tab ? LABELLED : PLAIN;
    }
    return PLAIN;
}

/* Returns the sentence after the label and tab of a line. */
static text after_label(text line) {
    const char *tab = memchr(line.at, '\t', line.len);
    if (!tab) stop("a label, a tab and a sentence");
    const text sentence = after(line, (size_t)(tab + 1 - line.at));
    if (!trim((text){line.at, (size_t)(tab - line.at)}).len) stop("a label before the tab");
    if (memchr(sentence.at, '\t', sentence.len)) stop("spaces between words, found a second tab");
    if (!trim(sentence).len) stop("a sentence after the tab");
    return sentence;
}

static void answer_input(input *in) {
    reader r = begin_reader(in);
    sentence s = {0, NULL, NULL, NULL};
    for (example x; next_example(in, &r, &x); drop_example(&x)) {
        answer a;
        begin_sentence(&s);
        if (!x.blank && r.form >= JSONL)
            add_record(&s, &r, &x, 0);
        else if (!x.blank)
            add_words(&s, r.form == LABELLED ? after_label(x.line) : x.line);
        if (s.n) logits_of(&s, a.logits);
        if (!x.blank && r.form >= JSONL) {
            put_record(&r, &x, s.n ? &a : NULL);
        } else if (s.n) {
            put_class(likeliest(a.logits));
            for (size_t k = 0; k < s.n; k++) {
                putchar(k ? ' ' : '\t');
                put(s.words[k]);
            }
        }
        fputs(x.end, stdout);
    }
    end_reader(&r);
    drop_sentence(&s);
}
