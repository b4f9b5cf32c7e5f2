/* tags.c - makes a network's vocabulary of tags, and measures and prints predicted tags. */
#include "cli/tasks/tags.h"
#include "base/base.h"
#include "cli/output/answers.h"
#include "cli/session/chain.h"
#include "cli/session/measure.h"
#include "cli/session/session.h"
#include "cli/tasks/words.h"

#include <math.h>

enum { F1, ACCURACY, PRECISION, RECALL };

vpps_status tags_learn(corpus *c, const vpps_vocab *tags) {
    VPPS_TRY(task_copy_vocab(&c->vocab[VOCAB_CLASSES], tags));
    c->classes = vpps_vocab_size(tags);
    return VPPS_OK;
}

vpps_status tags_learn_sentences(corpus *c, const settings *s) {
    const vpps_sentences *train = c->split[SPLIT_TRAIN].sentences;
    VPPS_TRY(tags_learn(c, vpps_sentences_tag_vocab(train)));
    return task_cut_words(c, &c->vocab[VOCAB_WORDS], train, s->min_count, false);
}

vpps_status tags_map_sentences(corpus *c, const settings *s, corpus_split *split) {
    (void)s;
    split->n_all = vpps_sentences_size(split->sentences);
    VPPS_TRY(
        vpps_vocab_map(vpps_sentences_vocab(split->sentences), c->vocab[VOCAB_WORDS], 0, &split->ids[VOCAB_WORDS]));
    return vpps_vocab_map(vpps_sentences_tag_vocab(split->sentences), c->vocab[VOCAB_CLASSES], VPPS_NO_WORD,
                          &split->ids[VOCAB_CLASSES]);
}

/* ---------------------------------------------------------------- measuring */

/* Makes a vocabulary of the network's tags, followed by tags that only this split has. (*ids)[i]: id in this vocabulary of the split's tag i. */
static vpps_status all_tags(const corpus *c, const vpps_vocab *split_tags, vpps_vocab **out, uint32_t **ids) {
    VPPS_TRY(task_copy_vocab(out, c->vocab[VOCAB_CLASSES]));
    VPPS_TRY(task_add_words(*out, split_tags));
    return vpps_vocab_map(split_tags, *out, VPPS_NO_WORD, ids);
}

typedef struct tag_counter {
    vpps_vocab *tags;
    uint32_t *ids;
    vpps_f1 *f1; /* counts for F1; NULL: tags do not mark chunks */
    uint32_t *own_gold, *own_predicted;
    accuracy words;
    const uint32_t *(*gold)(const corpus_split *split, uint32_t i, uint32_t *n);
} tag_counter;

static vpps_status open_counter(tag_counter *t, const corpus *c, const vpps_vocab *split_tags) {
    VPPS_TRY(all_tags(c, split_tags, &t->tags, &t->ids));
    return vpps_f1_applies(c->vocab[VOCAB_CLASSES]) ? vpps_f1_create(&t->f1, t->tags) : VPPS_OK;
}

static void close_counter(tag_counter *t) {
    vpps_f1_destroy(t->f1);
    vpps_vocab_destroy(t->tags);
    free(t->ids);
    VPPS_FREE_ARRAYS(t->own_gold, t->own_predicted);
}

static vpps_status count(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted, uint32_t *n) {
    tag_counter *t = context;
    const uint32_t *gold = t->gold(split, i, n);
    VPPS_TRY(task_copy_ids(&t->own_gold, gold, *n, t->ids));
    if (!VPPS_RESERVE(t->own_predicted, (size_t)*n + 1)) { return vpps_fail(VPPS_MEMORY, "no memory for %u tags", *n); }
    for (uint32_t k = 0; k < *n; k++) {
        t->own_predicted[k] = (uint32_t)predicted[k];
        /* numbers of tags that the network does not know come after its own tags' numbers: such a tag is never predicted right */
        accuracy_count(&t->words, t->own_gold[k], t->own_predicted[k]);
    }
    return t->f1 ? vpps_f1_add(t->f1, *n, t->own_gold, t->own_predicted) : VPPS_OK;
}

static vpps_status take_measures(session *x, const tag_counter *t, measures *m) {
    const vpps_f1_counts chunks = t->f1 ? vpps_f1_all_counts(t->f1) : (vpps_f1_counts){0};
    uint64_t counts[] = {chunks.gold, chunks.predicted, chunks.correct};
    for (int i = 0; i < MAX_METRICS; i++) m->value[i] = NAN;
    VPPS_TRY(measure_accuracy(x, t->words, ACCURACY, m));
    if (!t->f1) return VPPS_OK;
    VPPS_TRY(session_add_up(x, VPPS_COUNT(counts), counts));
    const vpps_f1_counts all = {counts[0], counts[1], counts[2]};
    m->counted[F1] = all.gold;
    m->value[F1] = vpps_f1_score(all);
    m->value[PRECISION] = vpps_f1_precision(all);
    m->value[RECALL] = vpps_f1_recall(all);
    return VPPS_OK;
}

vpps_status tags_measure(session *x, corpus *c, corpus_split *split, const vpps_vocab *all,
                         const uint32_t *(*gold)(const corpus_split *split, uint32_t i, uint32_t *n),
                         const volatile int *stop, measures *m) {
    tag_counter t = {.words = {.classes = x->classes}, .gold = gold};
    tag_chain chain = {0};
    vpps_status status = open_counter(&t, c, all);
    if (status == VPPS_OK) status = session_open_chain(x, c, &chain);
    if (chain.classes) x->chain = &chain;
    if (status == VPPS_OK) status = session_predict_all(x, c, split, stop, count, &t);
    x->chain = NULL;
    chain_close(&chain);
    if (status == VPPS_OK) status = take_measures(x, &t, m);
    if (x->classes && t.f1) { /* the confusion matrix now owns the counts of entities and the tags' names */
        x->classes->chunks = t.f1;
        x->classes->tags = t.tags;
        t.f1 = NULL;
        t.tags = NULL;
    }
    close_counter(&t);
    return status;
}

/* ---------------------------------------------------------------- prediction */

/* Returns the tag of word k in its text, NULL if it has none. */
static const char *gold_tag(const tags_sentence *x, uint32_t k) {
    const char *tag = x->gold ? vpps_vocab_word(x->gold, x->gold_ids[k]) : NULL;
    return tag && strcmp(tag, "_") != 0 ? tag : NULL;
}

static vpps_status answer_json(answers *a, const corpus *c, const tags_sentence *x, const float *const *logits,
                               const int32_t *tags) {
    json_t *o = json_object(), *all_words = json_array(), *all_tags = json_array();
    for (uint32_t k = 0; k < x->n; k++) {
        const char *word = vpps_vocab_word(x->words, x->ids[k]), *gold = gold_tag(x, k);
        json_t *tag = answer_class_of(a, logits[k], c->classes, (uint32_t)tags[k]);
        json_array_append_new(all_words, answer_text(word, strlen(word)));
        if (a->gold) json_object_set_new(tag, "gold", gold ? answer_text(gold, strlen(gold)) : json_null());
        json_array_append_new(all_tags, tag);
    }
    json_object_set_new(o, "words", all_words);
    json_object_set_new(o, "tags", all_tags);
    json_object_set_new(o, "spans", answer_spans(a, tags, logits, c->classes, x->n));
    return answers_end_json(a, o);
}

/* Prints an answer whose scores are the marginal probabilities of the words' tags. */
static vpps_status answer_chain(answers *a, const corpus *c, const tags_sentence *x, const tag_chain *chain,
                                const float *const *logits, const int32_t *tags) {
    VPPS_FREED float *log_p = vpps_scratch(((size_t)x->n * c->classes + 1) * sizeof *log_p);
    VPPS_FREED const float **of = vpps_scratch(((size_t)x->n + 1) * sizeof *of);
    if (!log_p || !of) return vpps_fail(VPPS_MEMORY, "no memory for %u tags", x->n);
    VPPS_TRY(chain_marginals(chain, x->n, logits, log_p));
    for (uint32_t k = 0; k < x->n; k++) of[k] = log_p + (size_t)k * c->classes;
    return answer_json(a, c, x, of, tags);
}

/* Prints an answer in the input's format, or, if a->rows, as a row LINE<TAB>TAG<TAB>GOLD<TAB>WORD per word. */
static vpps_status answer_plain(answers *a, const corpus *c, const tags_sentence *x, const int32_t *tags) {
    for (uint32_t k = 0; k < x->n; k++) {
        const char *word = vpps_vocab_word(x->words, x->ids[k]), *gold = gold_tag(x, k);
        const char *tag = vpps_vocab_word(c->vocab[VOCAB_CLASSES], (uint32_t)tags[k]);
        if (a->rows) {
            fprintf(a->file, "%u\t%s\t%s\t%s\n", vpps_sentences_word_line(x->lines, x->i, k), tag, gold ? gold : "_",
                    word);
            continue;
        }
        if (k) fputc(' ', a->file);
        fprintf(a->file, "%s|", word);
        if (a->gold) fprintf(a->file, "%s|", gold ? gold : "_");
        fputs(tag, a->file);
    }
    return answers_end(a);
}

static vpps_status answer(answers *a, const corpus *c, const tags_sentence *sentence, const tag_chain *chain,
                          const float *const *logits) {
    VPPS_FREED int32_t *tags = vpps_scratch(((size_t)sentence->n + 1) * sizeof *tags);
    if (!tags) return vpps_fail(VPPS_MEMORY, "no memory for %u tags", sentence->n);
    const bool chained = chain->classes;
    for (uint32_t k = 0; k < sentence->n && !chained; k++) tags[k] = (int32_t)likeliest_class(logits[k], c->classes);
    if (chained) VPPS_TRY(chain_decode(chain, sentence->n, logits, tags));
    if (!a->json) return answer_plain(a, c, sentence, tags);
    return chained ? answer_chain(a, c, sentence, chain, logits, tags) : answer_json(a, c, sentence, logits, tags);
}

vpps_status tags_predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a,
                         tags_sentence (*sentence_of)(const corpus *c, const corpus_split *split, uint32_t i)) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    VPPS_CLOSED_BY(chain_close) tag_chain chain = {0};
    VPPS_TRY(session_open_chain(x, c, &chain));
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_ALL, &p));
    size_t at = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const tags_sentence sentence = sentence_of(c, split, i);
        VPPS_TRY(answer(a, c, &sentence, &chain, p.of + at));
        at += sentence.n;
    }
    return VPPS_OK;
}
