/* tagging.c - the task of sentences with a tag for every word, measured by the F1 of entities.
 *
 * Files hold word|TAG lines (WikiNER), or the columns of the CoNLL shared tasks. */
#include "base/base.h"
#include "cli/output/answers.h"
#include "cli/session/session.h"
#include "cli/tasks/tags.h"
#include "cli/tasks/words.h"

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    if (c->input.form == READ_FILE) return tags_read(split->sentences, s, text);
    if (c->input.form != READ_LINES) return tags_read_input(c, split->sentences, text);
    return vpps_sentences_read_lines_text(split->sentences, text->name, text->text, text->len, NULL);
}

/* Makes the vocabulary of the characters of training words; characters that occur once train the embedding of <unk>. */
static vpps_status learn_characters(corpus *c, const vpps_vocab *words) {
    vpps_spellings *spellings;
    VPPS_TRY(vpps_spellings_create(&spellings, words));
    const vpps_vocab *characters = vpps_spellings_vocab(spellings);
    VPPS_FREED uint32_t *counts = vpps_scratch(((size_t)vpps_vocab_size(characters) + 1) * sizeof *counts);
    for (uint32_t w = 0; counts && w < vpps_vocab_size(words); w++) {
        uint32_t n;
        const uint32_t *ids = vpps_spellings_word(spellings, w, &n);
        for (uint32_t i = 0; i < n; i++) counts[ids[i]]++;
    }
    const vpps_status status = counts ? vpps_vocab_cut(&c->vocab[VOCAB_CHARACTERS], characters, counts, 2)
                                      : vpps_fail(VPPS_MEMORY, "no memory for the characters");
    vpps_spellings_destroy(spellings);
    return status;
}

static vpps_status learn(corpus *c, const settings *s) {
    VPPS_TRY(tags_learn_sentences(c, s));
    return s->network->spells ? learn_characters(c, vpps_sentences_vocab(c->split[SPLIT_TRAIN].sentences)) : VPPS_OK;
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    VPPS_TRY(tags_map_sentences(c, s, split));
    if (!s->network->spells) return VPPS_OK;
    VPPS_TRY(vpps_spellings_create(&split->spellings, vpps_sentences_vocab(split->sentences)));
    return vpps_vocab_map(vpps_spellings_vocab(split->spellings), c->vocab[VOCAB_CHARACTERS], 0,
                          &split->ids[VOCAB_CHARACTERS]);
}

/* Adds to example x the characters (spellings) of those words of the sentence that the vocabulary of words lacks. */
static vpps_status spell(corpus *c, const corpus_split *split, const vpps_sentence *sentence, net_example *x) {
    corpus_scratch *scratch = &c->scratch;
    size_t n_characters = 0;
    uint32_t n;
    if (!split->spellings) return VPPS_OK;
    for (uint32_t k = 0; k < sentence->n_words; k++) {
        vpps_spellings_word(split->spellings, sentence->words[k], &n);
        n_characters += n;
    }
    if (!VPPS_RESERVE(scratch->characters, n_characters + 1) ||
        !VPPS_RESERVE(scratch->spellings, (size_t)sentence->n_words + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu characters", n_characters);
    uint32_t *at = scratch->characters;
    for (uint32_t k = 0; k < sentence->n_words; k++) {
        const uint32_t *ids = vpps_spellings_word(split->spellings, sentence->words[k], &n);
        if (scratch->words[k] != 0) n = 0;
        scratch->spellings[k] = (net_spelling){at, n};
        for (uint32_t i = 0; i < n; i++) *at++ = split->ids[VOCAB_CHARACTERS][ids[i]];
    }
    x->spellings = scratch->spellings;
    return VPPS_OK;
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(task_copy_ids(&scratch->words, sentence.words, sentence.n_words, split->ids[VOCAB_WORDS]));
    x->sentence = (vpps_sentence){.words = scratch->words, .n_words = sentence.n_words};
    if (sentence.tags) {
        VPPS_TRY(task_copy_ids(&scratch->tags, sentence.tags, sentence.n_words, split->ids[VOCAB_CLASSES]));
        x->sentence.tags = scratch->tags;
    }
    return spell(c, split, &sentence, x);
}

static const uint32_t *gold(const corpus_split *split, uint32_t i, uint32_t *n) {
    const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
    *n = sentence.n_words;
    return sentence.tags;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    return tags_measure(x, c, split, vpps_sentences_tag_vocab(split->sentences), gold, stop, m);
}

static tags_sentence sentence_of(const corpus *c, const corpus_split *split, uint32_t i) {
    const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
    (void)c;
    return (tags_sentence){.n = sentence.n_words,
                           .words = vpps_sentences_vocab(split->sentences),
                           .ids = sentence.words,
                           .gold = sentence.tags ? vpps_sentences_tag_vocab(split->sentences) : NULL,
                           .gold_ids = sentence.tags,
                           .lines = split->sentences,
                           .i = i};
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    return tags_predict(x, c, split, first, n, a, sentence_of);
}

const task task_tagging = {
    .examples = "sentences",
    .loss_of = "tag",
    .generated = "generated sentences",
    .n_generated = 5000,
    .metrics = TAGS_METRICS,
    .classifies = true,
    .look = tags_look,
    .read = read_part,
    .language = {.tags = true},
    .generate = task_generate_sentences,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};
