/* text.c - text for language models: perplexity. A sentence a line, or (--steps) pieces of equal length. */
#include "cli/tasks/text.h"
#include "base/base.h"
#include "cli/corpus_read.h"
#include "cli/session.h"
#include "cli/tasks/words.h"

#include <math.h>

/* ---------------------------------------------------------------- reading */

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    const vpps_lines lines = {.end_word = END_WORD};
    (void)c;
    (void)s;
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    return vpps_sentences_read_lines_text(split->sentences, text->name, text->text, text->len, &lines);
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    const vpps_language language = {.seed = seed, .end_word = END_WORD};
    (void)c;
    (void)s;
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    return vpps_sentences_generate(split->sentences, NULL, NULL, &language, n);
}

/* ---------------------------------------------------------------- ids */

static vpps_status learn(corpus *c, const settings *s) {
    VPPS_TRY(task_cut_words(&c->vocab[VOCAB_WORDS], c->split[SPLIT_TRAIN].sentences, s->min_count));
    c->classes = vpps_vocab_size(c->vocab[VOCAB_WORDS]);
    return VPPS_OK;
}

/* All sentences behind one end word: each begins with that of the one before. */
static vpps_status make_stream(const corpus *c, corpus_split *split) {
    const vpps_vocab *vocab = c->vocab[VOCAB_WORDS];
    size_t n = 0;
    const uint64_t total = vpps_sentences_total_words(split->sentences);
    if (total >= UINT32_MAX)
        return vpps_fail(VPPS_ARGUMENT, "a text of %llu words is too large", (unsigned long long)total);
    split->stream = malloc(((size_t)total + 1) * sizeof *split->stream);
    if (!split->stream) return vpps_fail(VPPS_MEMORY, "no memory for %llu words", (unsigned long long)total);
    const uint32_t end = vpps_vocab_find(vocab, END_WORD, sizeof END_WORD - 1);
    split->stream[n++] = end == VPPS_NO_WORD ? 0 : end;
    for (uint32_t i = 0; i < vpps_sentences_size(split->sentences); i++) {
        const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
        for (uint32_t k = 0; k < sentence.n_words; k++) {
            split->stream[n++] = split->ids[VOCAB_WORDS][sentence.words[k]];
        }
    }
    return VPPS_OK;
}

/* Where examples begin. The last one has what is left, fewer words than the others perhaps. */
static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    const uint32_t steps = s->command == COMMAND_PREDICT ? 0 : s->net.steps; /* what is asked for are sentences */
    const uint32_t predicted = (uint32_t)vpps_sentences_total_words(split->sentences);
    VPPS_TRY(task_map_ids(split, VOCAB_WORDS, vpps_sentences_vocab(split->sentences), c->vocab[VOCAB_WORDS], 0));
    VPPS_TRY(make_stream(c, split));
    split->n_all = steps ? predicted / steps + (predicted % steps != 0) : vpps_sentences_size(split->sentences);
    split->starts = malloc(((size_t)split->n_all + 1) * sizeof *split->starts);
    if (!split->starts) return vpps_fail(VPPS_MEMORY, "no memory for %u sentences", split->n_all);
    split->starts[0] = 0;
    for (uint32_t i = 0; i < split->n_all; i++) {
        const uint32_t words =
            steps ? vpps_min_u32(steps, predicted - split->starts[i]) : vpps_sentences_get(split->sentences, i).n_words;
        split->starts[i + 1] = split->starts[i] + words;
    }
    return VPPS_OK;
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    (void)c;
    const uint32_t first = split->starts[i];
    x->sentence = (vpps_sentence){.words = split->stream + first, .n_words = split->starts[i + 1] - first + 1};
    return VPPS_OK;
}

/* ---------------------------------------------------------------- measuring and prediction */

/* How many of the words that a batch says are <unk>. */
static vpps_status count_unknown(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                                 uint64_t *unknown) {
    const net_kind kind = x->settings->network->kind;
    for (uint32_t i = 0; i < n; i++) {
        net_example example;
        VPPS_TRY(corpus_example(c, kind, split, examples[i], &example));
        const vpps_sentence *said = kind == NET_TEXT ? &example.sentence : &example.target;
        for (uint32_t k = 1; k < said->n_words; k++) *unknown += said->words[k] == 0;
    }
    return VPPS_OK;
}

vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m) {
    const uint32_t batch = x->settings->batch;
    double total = 0;
    uint64_t words = 0, unknown = 0;
    for (uint32_t i = 0; i < split->n_examples && !(stop && *stop); i += batch) {
        const uint32_t n = vpps_min_u32(batch, split->n_examples - i);
        double nll;
        uint64_t counted;
        VPPS_TRY(session_nll(x, c, split, split->examples + i, n, &nll, &counted));
        VPPS_TRY(count_unknown(x, c, split, split->examples + i, n, &unknown));
        total += nll;
        words += counted;
    }
    m->value[first] = words ? exp(total / (double)words) : NAN;
    m->value[first + 1] = words ? (double)unknown / (double)words : NAN;
    m->counted[first] = m->counted[first + 1] = words;
    return VPPS_OK;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    *m = (measures){.examples = split->n_examples};
    VPPS_TRY(text_measure(x, c, split, stop, 0, m));
    m->known = !(stop && *stop);
    return VPPS_OK;
}

/* Each line's own perplexity before it. */
static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n) {
    for (uint32_t i = first; i < first + n; i++) {
        double nll;
        uint64_t counted;
        VPPS_TRY(session_nll(x, c, split, split->examples + i, 1, &nll, &counted));
        printf("%.4f\t", exp(nll / (double)counted));
        const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
        for (uint32_t k = 0; k + 1 < sentence.n_words; k++) {
            printf("%s%s", k ? " " : "", vpps_vocab_word(vpps_sentences_vocab(split->sentences), sentence.words[k]));
        }
        putchar('\n');
    }
    return VPPS_OK;
}

const task task_text_model = {
    .examples = "sentences",
    .generated = "generated sentences",
    .n_generated = 5000,
    .metrics = {TEXT_METRICS},
    .read = read_part,
    .generate = generate,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};
