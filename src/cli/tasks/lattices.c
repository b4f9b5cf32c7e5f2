/* lattices.c - the task of lattices with a tag for every character, measured by the F1 of entities.
 *
 * Files hold sentences of tagged characters, which a lexicon (--lexicon) turns into lattices. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/output/answers.h"
#include "cli/session/session.h"
#include "cli/tasks/tags.h"
#include "cli/tasks/words.h"
#include "io/stream.h"

/* Reads the lexicon once, unless the checkpoint has it. */
static vpps_status read_lexicon(corpus *c, const char *path) {
    VPPS_FREED char *text = NULL;
    size_t len;
    if (c->vocab[VOCAB_LEXICON]) return VPPS_OK;
    if (!path)
        return vpps_fail(VPPS_ARGUMENT,
                         "lattice-lstm needs --lexicon FILE: the words that make lattices of characters");
    VPPS_TRY(vpps_vocab_create(&c->vocab[VOCAB_LEXICON]));
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    corpus_note_encoding(c, path, text, len);
    return vpps_lexicon_read_text(c->vocab[VOCAB_LEXICON], path, text, len);
}

/* Adds a note if no word of the lexicon is in the text, as with a lexicon of another language or encoding. */
static void note_no_words(corpus *c, const settings *s, const corpus_split *split) {
    if (split != &c->split[SPLIT_TRAIN] || vpps_lattices_words(split->lattices) > 0) return;
    corpus_note(
        c,
        "warning: %s%s: none of its %u words is in the training part: no lattice has a word. Words are the first "
        "column, and count when they have %d to %d characters",
        VPPS_PATH_ARGS(s->lexicon), vpps_vocab_size(c->vocab[VOCAB_LEXICON]), VPPS_LATTICE_WORD_MIN,
        VPPS_LATTICE_WORD_MAX);
}

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    (void)target;
    VPPS_TRY(read_lexicon(c, s->lexicon));
    VPPS_TRY(task_need_sentences(&split->sentences));
    if (c->input.form == READ_FILE) return tags_read(split->sentences, s, text);
    if (c->input.form != READ_LINES) return tags_read_input(c, split->sentences, text);
    return task_read_characters(split->sentences, text);
}

static vpps_status finish(corpus *c, const settings *s, corpus_split *split) {
    VPPS_TRY(lattice_build(c, split));
    note_no_words(c, s, split);
    return VPPS_OK;
}

static vpps_status learn(corpus *c, const settings *s) {
    VPPS_TRY(tags_learn(c, vpps_sentences_tag_vocab(c->split[SPLIT_TRAIN].sentences)));
    return lattice_learn(c, s);
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    const vpps_vocab *tags = vpps_sentences_tag_vocab(split->sentences);
    (void)s;
    if (vpps_vocab_size(tags) > 0) { /* plain text has no tags */
        VPPS_TRY(vpps_vocab_map(tags, c->vocab[VOCAB_CLASSES], VPPS_NO_WORD, &split->ids[VOCAB_CLASSES]));
    }
    return lattice_map(c, split);
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(lattice_example(c, split, i, x));
    const uint32_t n = x->lattice->n_nodes;
    if (split->ids[VOCAB_CLASSES]) {
        VPPS_TRY(task_copy_ids(&scratch->tags, x->lattice->tags, n, split->ids[VOCAB_CLASSES]));
    } else {
        VPPS_TRY(task_copy_ids(&scratch->tags, x->lattice->tags, n, NULL));
        for (uint32_t k = 0; k < n; k++) scratch->tags[k] = VPPS_NO_WORD;
    }
    scratch->lattice.tags = scratch->tags;
    return VPPS_OK;
}

static const uint32_t *gold(const corpus_split *split, uint32_t i, uint32_t *n) {
    const vpps_lattice l = vpps_lattices_get(split->lattices, i);
    *n = l.n_nodes - 1;
    return l.tags + 1;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    return tags_measure(x, c, split, vpps_sentences_tag_vocab(split->sentences), gold, stop, m);
}

/* Returns lattice i as a sentence: without tags if its file has none. */
static tags_sentence sentence_of(const corpus *c, const corpus_split *split, uint32_t i) {
    (void)c;
    const vpps_vocab *tags = vpps_sentences_tag_vocab(split->sentences);
    tags_sentence tagged = {.lines = split->sentences,
                            .i = i,
                            .words = vpps_sentences_vocab(split->sentences),
                            .ids = vpps_sentences_get(split->sentences, i).words};
    tagged.gold_ids = gold(split, i, &tagged.n);
    if (vpps_vocab_size(tags) > 0) tagged.gold = tags;
    return tagged;
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    return tags_predict(x, c, split, first, n, a, sentence_of);
}

const task task_lattices = {
    .examples = "lattices",
    .loss_of = "tag",
    .generated = "generated lattices",
    .n_generated = 3000,
    .metrics = TAGS_METRICS,
    .classifies = true,
    .look = tags_look,
    .read = read_part,
    .finish = finish,
    .language = {.characters = true, .tags = true},
    .generate = lattice_generate,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};
