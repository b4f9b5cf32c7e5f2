/* labels.h - the program of an exported network that labels sentences: lines of words, or of a label, a tab and words, whose labels are
 * replaced, or objects. `logits_of` gives CLASSES scores. */
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

/* Has the first line a tab? Then it must have a label that is known before it. */
static int are_labelled(input in) {
    while (next_line(&in)) {
        if (!trim(in.line).len) continue;
        const char *tab = memchr(in.line.at, '\t', in.line.len);
        const text label = trim((text){in.line.at, tab ? (size_t)(tab - in.line.at) : 0});
        if (tab && net_class_number(label.at, label.len) == UINT32_MAX)
            stop(&in, "a label of the network before the tab");
        return tab != NULL;
    }
    return 0;
}

/* The sentence of a line of a label, a tab and words. */
static text after_label(const input *in) {
    const char *tab = memchr(in->line.at, '\t', in->line.len);
    if (!tab) stop(in, "a label, a tab and a sentence");
    const text sentence = after(in->line, (size_t)(tab + 1 - in->line.at));
    if (!trim((text){in->line.at, (size_t)(tab - in->line.at)}).len) stop(in, "a label before the tab");
    if (memchr(sentence.at, '\t', sentence.len)) stop(in, "spaces between words, found a second tab");
    if (!trim(sentence).len) stop(in, "a sentence after the tab");
    return sentence;
}

int main(void) {
    input in = read_input();
    sentence s = {0, NULL, NULL, NULL};
    const int json = is_json(in), labelled = !json && are_labelled(in);
    while (next_line(&in)) {
        vpps_json object;
        answer a;
        const int blank = !trim(in.line).len;
        begin_sentence(&s);
        if (!blank && json)
            add_object(&in, &object, &s, 0);
        else if (!blank)
            add_words(&s, labelled ? after_label(&in) : in.line);
        if (s.n) logits_of(&s, a.logits);
        if (!blank && json) {
            put_object(in.line, &object, s.n ? &a : NULL);
            vpps_json_free(&object);
        } else if (s.n) {
            put_class(likeliest(a.logits));
            for (size_t k = 0; k < s.n; k++) {
                putchar(k ? ' ' : '\t');
                put(s.words[k]);
            }
        }
        fputs(in.end, stdout);
    }
    drop_sentence(&s);
    free(in.all);
    return 0;
}
