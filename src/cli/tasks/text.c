/* text.c - the task of language models, measured by perplexity. An example is a line's sentence, or (--steps) a piece of equal length. */
#include "base/base.h"
#include "cli/common/number.h"
#include "cli/input/corpus_read.h"
#include "cli/output/answers.h"
#include "cli/session/session.h"
#include "cli/session/team.h"
#include "cli/tasks/words.h"

#include <math.h>

/* ---------------------------------------------------------------- reading */

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    const vpps_lines lines = {.end_word = END_WORD};
    (void)s;
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    if (c->input.form == READ_FILE) corpus_note_reserved(c, text->name, text->text, text->len);
    return vpps_sentences_read_lines_text(split->sentences, text->name, text->text, text->len, &lines);
}

/* ---------------------------------------------------------------- ids */

static vpps_status learn(corpus *c, const settings *s) {
    VPPS_TRY(task_cut_words(c, &c->vocab[VOCAB_WORDS], c->split[SPLIT_TRAIN].sentences, s->min_count, true));
    c->classes = vpps_vocab_size(c->vocab[VOCAB_WORDS]);
    return VPPS_OK;
}

/* Joins all sentences to one stream of words. The end word of each sentence is also the first word of the next sentence. */
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
        for (uint32_t k = 0; k < sentence.n_words; k++) split->stream[n++] = split->ids[VOCAB_WORDS][sentence.words[k]];
    }
    return VPPS_OK;
}

/* Cuts the stream of all words into examples, and stores where each example begins. The last example may have fewer words than the
 * others. */
static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    const uint32_t steps = s->command == COMMAND_PREDICT ? 0 : s->net.steps; /* predict answers sentences */
    const uint32_t predicted = (uint32_t)vpps_sentences_total_words(split->sentences);
    VPPS_TRY(
        vpps_vocab_map(vpps_sentences_vocab(split->sentences), c->vocab[VOCAB_WORDS], 0, &split->ids[VOCAB_WORDS]));
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

/* Counts how many of the words that a batch predicts are <unk>. */
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

typedef struct text_counts {
    double nll;
    uint64_t words, unknown;
} text_counts;

static vpps_status count_text(session *x, corpus *c, const corpus_split *split, const uint32_t *examples,
                              const volatile int *stop, text_counts *sums) {
    const uint32_t batch = x->settings->batch;
    for (uint32_t i = 0; i < split->n_examples && !(stop && *stop); i += batch) {
        const uint32_t n = vpps_min_u32(batch, split->n_examples - i);
        double nll;
        uint64_t counted;
        VPPS_TRY(session_nll(x, c, split, examples + i, n, &nll, &counted));
        VPPS_TRY(count_unknown(x, c, split, examples + i, n, &sums->unknown));
        sums->nll += nll;
        sums->words += counted;
    }
    return VPPS_OK;
}

/* Measures the loss of streams of text, whose recurrent states are carried from piece to piece. */
static vpps_status count_streams(session *x, corpus *c, const corpus_split *split, const volatile int *stop,
                                 text_counts *sums) {
    carry states;
    VPPS_TRY(team_alone(x->team, "carry"));
    VPPS_TRY(carry_open(&states, x->settings->batch));
    VPPS_FREED uint32_t *order = vpps_scratch(((size_t)split->n_examples + 1) * sizeof *order);
    vpps_status status = order ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for the order of %u", split->n_examples);
    if (status == VPPS_OK) {
        carry_order(split->examples, split->n_examples, states.n_streams, order);
        x->carry = &states;
        status = count_text(x, c, split, order, stop, sums);
        x->carry = NULL;
    }
    carry_free(&states, x->handle);
    return status;
}

vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m) {
    text_counts sums = {0};
    VPPS_TRY(x->settings->net.carry ? count_streams(x, c, split, stop, &sums)
                                    : count_text(x, c, split, split->examples, stop, &sums));
    VPPS_TRY(session_add_up(x, 1, &sums.words));
    VPPS_TRY(session_add_up(x, 1, &sums.unknown));
    if (x->team) VPPS_TRY(team_sum(x->team, 1, &sums.nll));
    m->value[first] = sums.words ? exp(sums.nll / (double)sums.words) : NAN;
    m->value[first + 1] = sums.words ? (double)sums.unknown / (double)sums.words : NAN;
    m->counted[first] = m->counted[first + 1] = sums.words;
    return VPPS_OK;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    return text_measure(x, c, split, stop, 0, m);
}

static const char *word_at(const corpus_split *split, const vpps_sentence *s, uint32_t k) {
    return vpps_vocab_word(vpps_sentences_vocab(split->sentences), s->words[k]);
}

/* Makes a JSON answer: each word, and the end, with its log-probability; with --top also likelier words. */
static vpps_status answer_json(answers *a, const corpus *c, const corpus_split *split, uint32_t i,
                               const float *const *logits) {
    const vpps_sentence said = vpps_sentences_get(split->sentences, i);
    const uint32_t *ids = split->stream + split->starts[i] + 1;
    json_t *words = json_array(), *o;
    double total = 0;
    for (uint32_t k = 0; k < said.n_words; k++) {
        const char *word = word_at(split, &said, k);
        const double nll = answer_nll(logits[k], c->classes, ids[k]);
        json_t *row =
            json_pack("{so so}", "word", answer_text(word, strlen(word)), "log_probability", report_number(-nll));
        total += nll;
        if (a->top > 1) json_object_set_new(row, "top", answer_top(a, logits[k], c->classes));
        json_array_append_new(words, row);
    }
    o = json_pack("{so so so}", "perplexity", report_number(exp(total / said.n_words)), "log_probability",
                  report_number(-total), "words", words);
    return answers_end_json(a, o);
}

static vpps_status predict_json(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_LABELLED, &p));
    size_t at = 0;
    for (uint32_t i = first; i < first + n; i++) {
        VPPS_TRY(answer_json(a, c, split, i, p.of + at));
        at += vpps_sentences_get(split->sentences, i).n_words;
    }
    return VPPS_OK;
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    if (a->json) return predict_json(x, c, split, first, n, a);
    VPPS_FREED float *means = vpps_scratch(((size_t)n + 1) * sizeof *means);
    if (!means) return vpps_fail(VPPS_MEMORY, "no memory for %u sentences", n);
    VPPS_TRY(session_mean_nll(x, c, split, split->examples + first, n, means));
    for (uint32_t i = 0; i < n; i++) {
        const vpps_sentence sentence = vpps_sentences_get(split->sentences, first + i);
        char perplexity[32];
        number_text(exp((double)means[i]), 4, perplexity, sizeof perplexity);
        fprintf(a->file, "%s\t", perplexity);
        for (uint32_t k = 0; k + 1 < sentence.n_words; k++)
            fprintf(a->file, "%s%s", k ? " " : "", word_at(split, &sentence, k));
        VPPS_TRY(answers_end(a));
    }
    return VPPS_OK;
}

const task task_text_model = {
    .examples = "sentences",
    .loss_of = "word",
    .generated = "generated sentences",
    .n_generated = 5000,
    .metrics = {TEXT_METRICS},
    .read = read_part,
    .language = {.end_word = END_WORD},
    .generate = task_generate_sentences,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};
