/* tags.h - an exported tagger (a C program made from a trained network): the tags that it predicts for the words of its input, printed as
 * text and as fields of JSON objects. `logits_of` computes CLASSES scores for each word. */
struct answer {
    const sentence *s;
    float *logits;
    int32_t *tags;
};
static void logits_of(const sentence *s, float *logits);

static const float *logits_at(const answer *a, size_t k) { return a->logits + k * CLASSES; }

#ifdef CHAIN
/* Chooses the likeliest sequence of tags by the scores of the words and of neighbouring tags (a CRF). If p is not 0, replaces the logits by
 * the log marginal probabilities of each word's tags. */
static void choose(answer *a, int p) {
    const tag_chain chain = {CLASSES, (float *)(size_t)chain_next, (float *)(size_t)chain_begin,
                             (float *)(size_t)chain_end};
    const float **rows = room(a->s->n, sizeof *rows);
    for (size_t k = 0; k < a->s->n; k++) rows[k] = logits_at(a, k);
    chain_decode(&chain, (uint32_t)a->s->n, rows, a->tags);
    if (p) chain_marginals(&chain, (uint32_t)a->s->n, rows, a->logits);
    free((void *)rows);
}
#else
static void choose(answer *a, int p) {
    (void)p;
    for (size_t k = 0; k < a->s->n; k++) a->tags[k] = (int32_t)likeliest(logits_at(a, k));
}
#endif

static answer make_answer(const sentence *s, int p) {
    answer a = {s, room(s->n * CLASSES, sizeof *a.logits), room(s->n, sizeof *a.tags)};
    if (s->n) logits_of(s, a.logits);
    if (s->n) choose(&a, p);
    return a;
}

static void drop_answer(answer *a) {
    free(a->logits);
    free(a->tags);
}

static void put_words(const answer *a) {
    for (size_t k = 0; k < a->s->n; k++) {
        putchar(k ? ',' : '[');
        put_string(a->s->words[k]);
    }
    fputs(a->s->n ? "]" : "[]", stdout);
}

static double score_at(const answer *a, size_t k) { return score_of(logits_at(a, k), (size_t)a->tags[k]); }

static void put_scored(const char *name, const char *text_of, double score) {
    printf("\"%s\":", name);
    vpps_json_write_string(stdout, text_of);
    fputs(",\"score\":", stdout);
    put_number(score);
    putchar('}');
}

static void put_tags(const answer *a) {
    for (size_t k = 0; k < a->s->n; k++) {
        fputs(k ? ",{" : "[{", stdout);
        put_scored("label", net_class_text((uint32_t)a->tags[k]), score_at(a, k));
    }
    fputs(a->s->n ? "]" : "[]", stdout);
}

/* Prints spans (IOB chunks) with their type and score; a span's score is the least score of its words' tags. */
static void put_spans(const answer *a) {
#ifdef CHUNKS
    vpps_chunk_tag before = {'O', ""}, now;
    size_t begin = 0;
    const char *comma = "";
    double score = 1;
    putchar('[');
    for (size_t k = 0; k <= a->s->n; k++, before = now) {
        vpps_chunk_tag_read(k < a->s->n ? net_class_text((uint32_t)a->tags[k]) : "O", &now);
        const int goes_on = vpps_chunk_goes_on(before.part, now.part) && strcmp(before.type, now.type) == 0;
        if (!goes_on && before.part != 'O') {
            printf("%s{\"begin\":%lu,\"end\":%lu,", comma, (unsigned long)begin, (unsigned long)k);
            put_scored("type", before.type, score);
            comma = ",";
        }
        if (k == a->s->n) break;
        score = goes_on ? fmin(score, score_at(a, k)) : score_at(a, k);
        if (!goes_on) begin = k;
    }
    putchar(']');
#else
    (void)a;
    fputs("null", stdout);
#endif
}

static void put_value(const answer *a, size_t i) {
    static void (*const puts[])(const answer *a) = {put_words, put_tags, put_spans};
    puts[i](a);
}

static void put_cell(const answer *a, size_t i, char separator, int tabs) {
    char *words = NULL;
    size_t len = 0;
    for (size_t k = 0; k < a->s->n; k++) {
        const char *tag = net_class_text((uint32_t)a->tags[k]);
        words = add_joined(words, &len, i ? (text){tag, strlen(tag)} : a->s->words[k]);
    }
    csv_write(stdout, words ? words : "", separator, tabs);
    release(words);
}
