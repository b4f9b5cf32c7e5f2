/* pairs.c - the task of translation, from words or (task_lattice_pairs) from lattices, measured by BLEU.
 *
 * A lattice is made from a source sentence's characters; its lexicon is the words of the training split's sources. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/output/answers.h"
#include "cli/session/decode.h"
#include "cli/session/session.h"
#include "cli/tasks/words.h"

#include <math.h>

/* ---------------------------------------------------------------- reading */

static const char *word_at(const vpps_sentences *s, uint32_t i, uint32_t k) {
    return vpps_vocab_word(vpps_sentences_vocab(s), vpps_sentences_get(s, i).words[k]);
}

/* Makes sentences whose words are the characters of other sentences. No sentence is empty. */
static vpps_status spell_out(const vpps_sentences *words, vpps_sentences *characters) {
    const uint32_t n = vpps_sentences_size(words);
    size_t bytes = n + 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < vpps_sentences_get(words, i).n_words; k++) bytes += strlen(word_at(words, i, k));
    VPPS_FREED char *text = vpps_scratch(bytes);
    char *at = text;
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for the characters of %u sentences", n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < vpps_sentences_get(words, i).n_words; k++) at = stpcpy(at, word_at(words, i, k));
        *at++ = '\n';
    }
    return task_read_characters(characters, &(task_text){"source", text, (size_t)(at - text)});
}

static vpps_status read_words(corpus *c, corpus_split *split, vpps_sentences *source, const task_text *text,
                              const task_text *target) {
    const vpps_parallel parallel = {.end_word = END_WORD, .skip_empty = true};
    if (!target) return vpps_sentences_read_lines_text(source, text->name, text->text, text->len, NULL);
    if (c->input.form == READ_FILE) corpus_note_reserved(c, target->name, target->text, target->len);
    return vpps_sentences_read_parallel_texts(source, split->target, text->name, text->text, text->len, target->name,
                                              target->text, target->len, &parallel);
}

static vpps_status read_pairs(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                              const task_text *target) {
    vpps_sentences **source = s->network->kind == NET_LATTICE_PAIRS ? &split->words : &split->sentences;
    VPPS_TRY(task_need_sentences(source));
    VPPS_TRY(task_need_sentences(&split->target));
    return read_words(c, split, *source, text, target);
}

/* Makes the lattices of a split. The training split's lattices must be made first, since its words make up the lexicon. */
static vpps_status finish_lattice_pairs(corpus *c, const settings *s, corpus_split *split) {
    (void)s;
    const bool training = split == &c->split[SPLIT_TRAIN] && !c->vocab[VOCAB_WORDS];
    vpps_vocab **lexicon = &c->vocab[VOCAB_LEXICON];
    if (training && !*lexicon) VPPS_TRY(vpps_vocab_create(lexicon));
    if (training) VPPS_TRY(task_add_words(*lexicon, vpps_sentences_vocab(split->words)));
    VPPS_TRY(task_need_sentences(&split->sentences));
    VPPS_TRY(spell_out(split->words, split->sentences));
    vpps_sentences_destroy(split->words);
    split->words = NULL;
    return lattice_build(c, split);
}

/* ---------------------------------------------------------------- ids */

static vpps_status learn(corpus *c, const settings *s) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    VPPS_TRY(task_cut_words(c, &c->vocab[VOCAB_CLASSES], train->target, s->min_count, true));
    c->classes = vpps_vocab_size(c->vocab[VOCAB_CLASSES]);
    if (train->lattices) return lattice_learn(c, s);
    return task_cut_words(c, &c->vocab[VOCAB_WORDS], train->sentences, s->min_count, false);
}

/* Returns how many of the given examples (NULL: of all that were read) have a target of at least four words, end word
 * excluded: without any, BLEU is always 0. */
static uint64_t count_long(const corpus_split *split, const uint32_t *examples, uint32_t n) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += vpps_sentences_get(split->target, examples ? examples[i] : i).n_words > 4;
    return found;
}

static void note_short(corpus *c, const settings *s, const corpus_split *split) {
    const bool measured = s->command == COMMAND_EVAL || (s->command == COMMAND_TRAIN && split != c->split);
    if (measured && !count_long(split, NULL, vpps_sentences_size(split->target)))
        corpus_note(c,
                    "%s: no target has four words, without which BLEU is 0 by definition: it goes by perplexity alone",
                    split_names[split - c->split]);
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    note_short(c, s, split);
    VPPS_TRY(
        vpps_vocab_map(vpps_sentences_vocab(split->target), c->vocab[VOCAB_CLASSES], 0, &split->ids[VOCAB_CLASSES]));
    if (split->lattices) return lattice_map(c, split);
    split->n_all = vpps_sentences_size(split->sentences);
    return vpps_vocab_map(vpps_sentences_vocab(split->sentences), c->vocab[VOCAB_WORDS], 0, &split->ids[VOCAB_WORDS]);
}

static uint32_t end_word(const corpus *c) {
    const uint32_t id = vpps_vocab_find(c->vocab[VOCAB_CLASSES], END_WORD, sizeof END_WORD - 1);
    return id == VPPS_NO_WORD ? 0 : id;
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_sentence target = vpps_sentences_get(split->target, i);
    corpus_scratch *scratch = &c->scratch;
    if (split->lattices) {
        VPPS_TRY(lattice_example(c, split, i, x));
    } else {
        const vpps_sentence source = vpps_sentences_get(split->sentences, i);
        VPPS_TRY(task_copy_ids(&scratch->words, source.words, source.n_words, split->ids[VOCAB_WORDS]));
        x->sentence = (vpps_sentence){.words = scratch->words, .n_words = source.n_words};
    }
    if (!VPPS_RESERVE(scratch->target, (size_t)target.n_words + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for a translation of %u words", target.n_words);
    scratch->target[0] = end_word(c);
    for (uint32_t k = 0; k < target.n_words; k++) scratch->target[k + 1] = split->ids[VOCAB_CLASSES][target.words[k]];
    x->target = (vpps_sentence){.words = scratch->target, .n_words = target.n_words + 1};
    return VPPS_OK;
}

/* ---------------------------------------------------------------- translation */

typedef struct source_list {
    corpus *corpus;
    net_kind kind;
    const corpus_split *split;
    const uint32_t *examples;
} source_list;

static vpps_status source(void *context, uint32_t i, net_example *x) {
    const source_list *list = context;
    return corpus_example(list->corpus, list->kind, list->split, list->examples[i], x);
}

static vpps_status translate(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                             uint32_t n_best, decoded *out) {
    const settings *s = x->settings;
    const decoder d = {.handle = x->handle,
                       .graph = x->graph,
                       .net = s->network,
                       .instance = x->net,
                       .classes = c->classes,
                       .end_word = end_word(c),
                       .options = {s->beam, s->max_words, s->length_penalty, n_best}};
    source_list list = {c, s->network->kind, split, examples};
    return decode_batch(&d, n, source, &list, out);
}

/* Adds translations to BLEU, as words of the references' vocabulary: an unknown word, printed as <unk>, matches only
 * where the reference has <unk>. */
static vpps_status add_to_bleu(vpps_bleu *b, const corpus_split *split, const uint32_t *examples, uint32_t n,
                               const decoded *d, const uint32_t *ids, uint32_t *hypothesis) {
    for (uint32_t i = 0; i < n; i++) {
        const vpps_sentence reference = vpps_sentences_get(split->target, examples[i]);
        const uint32_t words = (uint32_t)(d->first[i + 1] - d->first[i]);
        for (uint32_t k = 0; k < words; k++) hypothesis[k] = ids[d->words[d->first[i] + k]];
        VPPS_TRY(vpps_bleu_add(b, words, hypothesis, reference.n_words - 1, reference.words));
    }
    return VPPS_OK;
}

static vpps_status measure_bleu(session *x, corpus *c, corpus_split *split, const volatile int *stop, vpps_bleu *b) {
    const uint32_t batch = x->settings->batch;
    VPPS_FREED uint32_t *ids = NULL;
    uint32_t *hypothesis = NULL;
    VPPS_TRY(vpps_vocab_map(c->vocab[VOCAB_CLASSES], vpps_sentences_vocab(split->target), VPPS_NO_WORD, &ids));
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < split->n_examples && status == VPPS_OK && !(stop && *stop); i += batch) {
        const uint32_t n = vpps_min_u32(batch, split->n_examples - i);
        decoded d = {0};
        status = translate(x, c, split, split->examples + i, n, 1, &d);
        /* continues with the next batch, since the other processes still measure; measure_part reports scores that are not finite */
        if (status == VPPS_NONFINITE) {
            x->nonfinite = true;
            status = VPPS_OK;
            continue;
        }
        if (status == VPPS_OK && !VPPS_RESERVE(hypothesis, d.first[n] + 1))
            status = vpps_fail(VPPS_MEMORY, "no memory for %zu words", d.first[n]);
        if (status == VPPS_OK && hypothesis)
            status = add_to_bleu(b, split, split->examples + i, n, &d, ids, hypothesis);
        decoded_destroy(&d);
    }
    VPPS_FREE_ARRAYS(hypothesis);
    return status;
}

enum { BLEU, PERPLEXITY };

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    vpps_bleu b = {0};
    VPPS_TRY(text_measure(x, c, split, stop, PERPLEXITY, m));
    VPPS_TRY(measure_bleu(x, c, split, stop, &b));
    VPPS_TRY(session_add_up(x, VPPS_COUNT(b.matches), b.matches));
    VPPS_TRY(session_add_up(x, VPPS_COUNT(b.possible), b.possible));
    VPPS_TRY(session_add_up(x, 1, &b.hypothesis_words));
    VPPS_TRY(session_add_up(x, 1, &b.reference_words));
    uint64_t examples = split->n_examples, long_enough = count_long(split, split->examples, split->n_examples);
    VPPS_TRY(session_add_up(x, 1, &examples));
    VPPS_TRY(session_add_up(x, 1, &long_enough));
    m->value[BLEU] = long_enough ? vpps_bleu_score(&b, VPPS_BLEU_NONE) : NAN;
    m->counted[BLEU] = long_enough ? examples : 0;
    return VPPS_OK;
}

static const char *signature(void) { return vpps_bleu_signature(VPPS_BLEU_NONE); }

static void put_translation(FILE *f, const corpus *c, const decoded *d, size_t k) {
    for (size_t w = d->first[k]; w < d->first[k + 1]; w++)
        fprintf(f, "%s%s", w > d->first[k] ? " " : "", vpps_vocab_word(c->vocab[VOCAB_CLASSES], d->words[w]));
}

/* Returns a translation and its score as JSON, NULL when out of memory. */
static json_t *translation_json(const corpus *c, const decoded *d, size_t k) {
    VPPS_FREED char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f) put_translation(f, c, d, k);
    if (vpps_text_end(f, VPPS_OK, &text) != VPPS_OK) return NULL;
    return json_pack("{so so}", "translation", answer_text(text, bytes), "score", report_number(d->scores[k]));
}

/* Prints the best translation of source i without its end word. JSON adds the translation's score, with --top the n best translations, and
 * with --gold the log-probability of the translation that the input gives. */
static vpps_status answer(answers *a, const corpus *c, const decoded *d, uint32_t i, const double *gold) {
    if (!a->json) {
        put_translation(a->file, c, d, d->of[i]);
        return answers_end(a);
    }
    json_t *o = translation_json(c, d, d->of[i]), *top = a->top > 1 ? json_array() : NULL;
    for (size_t k = d->of[i]; top && k < d->of[i + 1]; k++) json_array_append_new(top, translation_json(c, d, k));
    if (top) json_object_set_new(o, "top", top);
    if (o && gold) json_object_set_new(o, "gold_log_probability", report_number(gold[i]));
    return o ? answers_end_json(a, o) : vpps_fail(VPPS_MEMORY, "no memory for a translation");
}

/* Computes the log-probabilities of the given translations, end words included; the caller frees *scores. */
static vpps_status score_targets(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                                 double **scores) {
    VPPS_FREED float *means = vpps_scratch((n + (size_t)1) * sizeof *means);
    *scores = vpps_scratch((n + (size_t)1) * sizeof **scores);
    if (!means || !*scores) return vpps_fail(VPPS_MEMORY, "no memory for %u scores", n);
    VPPS_TRY(session_mean_nll(x, c, split, examples, n, means));
    for (uint32_t i = 0; i < n; i++)
        (*scores)[i] = -(double)means[i] * vpps_sentences_get(split->target, examples[i]).n_words;
    return VPPS_OK;
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    const uint32_t *examples = split->examples + first;
    VPPS_CLOSED_BY(decoded_destroy) decoded d = {0};
    VPPS_FREED double *gold = NULL;
    VPPS_TRY(translate(x, c, split, examples, n, a->json && a->top > 1 ? a->top : 1, &d));
    if (a->gold && a->json) VPPS_TRY(score_targets(x, c, split, examples, n, &gold));
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(answer(a, c, &d, i, gold));
    return VPPS_OK;
}

#define PAIRS_METRICS                                                                                                  \
    { {"bleu", "BLEU", false, false, "sentences"}, TEXT_METRICS }

const task task_pairs = {
    .examples = "pairs",
    .loss_of = "word",
    .generated = "generated pairs",
    .n_generated = 5000,
    .metrics = PAIRS_METRICS,
    .signature = signature,
    .paired = true,
    .read = read_pairs,
    .language = {.end_word = END_WORD},
    .generate = task_generate_sentences,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};

const task task_lattice_pairs = {
    .examples = "pairs",
    .loss_of = "word",
    .generated = "generated pairs of lattices",
    .n_generated = 1000,
    .metrics = PAIRS_METRICS,
    .signature = signature,
    .paired = true,
    .read = read_pairs,
    .finish = finish_lattice_pairs,
    .language = {.characters = true, .end_word = END_WORD},
    .generate = lattice_generate,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};
